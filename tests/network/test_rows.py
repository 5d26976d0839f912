"""Training rows: sorted, without copies, standardized."""

import numpy as np

from rbfdiffnet.network.rows import standardize_rows


def test_rows_are_sorted_merged_and_standardized():
    rows = standardize_rows(np.array([[2.0], [0.0], [0.0]]), np.ones((3, 1)), np.ones(3))
    np.testing.assert_allclose(rows.Z.ravel(), [-(0.5**0.5), 2.0**0.5], atol=1e-9)
    np.testing.assert_allclose(rows.weight, [4 / 3, 2 / 3])


def test_targets_are_clipped_beyond_the_fence_and_rows_are_thinned_evenly(rng):
    y = np.append(rng.normal(size=999), 1e3)[:, None]
    rows = standardize_rows(np.arange(1000.0)[:, None], y, np.ones(1000))
    low, high = np.quantile(rows.target, [0.25, 0.75])
    clipped = rows.clip_outliers().target
    assert clipped.max() == high + 6.0 * (high - low) < rows.target.max()
    assert np.count_nonzero(clipped != rows.target) == 1
    np.testing.assert_array_equal(rows.subsample(300).Z, rows.Z[::4])

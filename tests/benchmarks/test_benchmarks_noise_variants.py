"""The other cures for noise in the inputs do what their formulas say."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import noise_variants  # noqa: E402
from noise_parts.data import make_cell  # noqa: E402
from rbfdiffnet.noise import learn_trajectory, search  # noqa: E402
from rbfdiffnet.noise.maps import make_basis, place_centers  # noqa: E402
from rbfdiffnet.series.windows import lag_windows  # noqa: E402


def test_corrected_moments_are_those_of_clean_windows():
    rng = np.random.default_rng(0)
    X, y, R = rng.normal(size=(20, 2)), rng.normal(size=20), 0.2
    basis = make_basis(place_centers(X, 0.5, 5), 0.5, 1.0)
    features = np.column_stack([basis.activations(X) @ basis.roots, np.ones(20)])
    noisy = np.tile(X, (20_000, 1)) + np.sqrt(R) * rng.normal(size=(400_000, 2))
    G, b = noise_variants.corrected_moments(basis, noisy, np.tile(y, 20_000), R)
    np.testing.assert_allclose(G / 20_000, features.T @ features, atol=0.1)
    np.testing.assert_allclose(b / 20_000, features.T @ y, atol=0.1)
    blurred = np.column_stack([basis.activations(noisy) @ basis.roots, np.ones(400_000)])
    assert np.abs(blurred.T @ blurred / 20_000 - features.T @ features).max() > 0.5


def test_functions_narrower_than_the_noise_have_no_unbiased_version():
    with pytest.raises(ValueError, match="too much"):
        noise_variants.deconvolved(np.zeros((1, 2)), np.zeros((1, 2)), 0.1, np.array([0.05, 0.2]))


def test_simex_brings_an_attenuated_slope_back():
    rng = np.random.default_rng(0)
    clean = np.zeros(4_000)
    for t in range(1, clean.size):
        clean[t] = 0.8 * clean[t - 1] + 0.6 * rng.normal()
    noisy = clean + 0.5 * rng.normal(size=clean.size)

    def fit(X, y):
        return np.linalg.lstsq(X, y, rcond=None)[0]

    naive = fit(*lag_windows(noisy, 1))[0]
    slope = noise_variants.simex_weights(noisy, 0.25, 1, fit)[0]
    assert naive < 0.7
    assert abs(slope - 0.8) < 0.5 * abs(naive - 0.8)


@pytest.fixture(scope="module")
def small():
    cell = make_cell("henon", 0.1, 2, seed=0)
    return cell, learn_trajectory(cell.training, 2)


def test_the_blurred_map_is_rebuilt_from_its_network(small):
    cell, found = small
    start = noise_variants.Blurred.of(cell, found)
    X, y = lag_windows(start.s, 2)
    network = start.basis.network(start.refitted(X, y), start.shift, start.scale)
    X, _ = lag_windows(cell.clean, 2)
    np.testing.assert_allclose(network.predict(X), found.blurred.predict(X), atol=1e-6)


@pytest.mark.parametrize(
    "name", ["SIMEX", "jittered inputs", "exact moments", "no smoother maps on the way"]
)
def test_variants_learn_the_map_and_leave_the_module_as_it_was(name, small):
    before = dict(vars(search))
    network = noise_variants.VARIANTS[name](*small)
    assert noise_variants.clean_error(small[0], network) < 0.1
    assert dict(vars(search)) == before


def test_ratios_are_to_the_full_method():
    full, other = noise_variants.FULL, "SIMEX"
    frame = pd.DataFrame(
        {
            "variant": [full, other, full, other],
            "noise": [0.1, 0.1, 0.4, 0.4],
            "error": [0.1, 0.2, 0.1, 0.8],
            "seconds": [1.0, 2.0, 1.0, 4.0],
        }
    )
    row = noise_variants.summarize(frame).rows[1]
    assert row["ratio_0.1"] == pytest.approx(2.0)
    assert row["ratio_0.4"] == pytest.approx(8.0)
    assert row["ratio_all"] == pytest.approx(4.0)
    assert row["seconds"] == pytest.approx(3.0)

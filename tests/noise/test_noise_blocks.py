"""Banded systems in blocks against dense linear algebra and SciPy's banded solver."""

import numpy as np
import pytest
from scipy.linalg import solveh_banded

from rbfdiffnet.noise.blocks import factor

# Batch, band width and length: several blocks, a last one filled up, less than one, wide bands.
SHAPES = [(1, 1, 5), (2, 0, 40), (3, 2, 48), (2, 4, 49), (2, 16, 100), (1, 30, 130), (2, 40, 45)]


def problem(rng, batch, width, length):
    """Positive definite bands, and the same matrices in full."""
    band = rng.normal(size=(batch, width + 1, length))
    for k in range(width + 1):
        band[:, k, length - k :] = 0.0
    band[:, 0] = 2.0 * np.abs(band).sum(axis=1).max() + rng.random((batch, length))
    full = np.zeros((batch, length, length))
    for k in range(min(width + 1, length)):
        at = np.arange(length - k)
        full[:, at + k, at] = full[:, at, at + k] = band[:, k, : length - k]
    return band, full


@pytest.mark.parametrize("shape", SHAPES)
def test_solutions_and_determinants_are_those_of_the_full_matrix(shape, rng):
    band, full = problem(rng, *shape)
    right = rng.normal(size=(shape[0], shape[2], 3))
    factored = factor(band)
    x = factored.solve(right)
    np.testing.assert_allclose(x, np.linalg.solve(full, right), rtol=1e-9, atol=1e-12)
    for i, one in enumerate(band):
        np.testing.assert_allclose(x[i], solveh_banded(one, right[i], lower=True), atol=1e-12)
    np.testing.assert_allclose(factored.log_determinant, np.linalg.slogdet(full)[1], rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_windows_of_the_inverse_are_its_blocks(shape, rng):
    band, full = problem(rng, *shape)
    inverse = np.linalg.inv(full)
    for width in {1, (shape[1] + 1) // 2 + 1, shape[1] + 1}:
        windows = factor(band).inverse_windows(width)
        expected = [inverse[:, t : t + width, t : t + width] for t in range(shape[2] - width + 1)]
        np.testing.assert_allclose(windows, np.stack(expected, axis=1), atol=1e-12)


def test_ill_conditioned_matrices_are_solved_like_full_ones(rng):
    """Smoothing: nearly singular, as where little is observed."""
    length = 200
    second = np.diff(np.eye(length), 2, axis=0)
    full = 1e-6 * np.eye(length) + second.T @ second
    band = np.stack([np.pad(np.diag(full, -k), (0, k)) for k in range(3)])
    right = rng.normal(size=(length, 1))
    x = factor(band[None]).solve(right[None])[0]
    np.testing.assert_allclose(x, np.linalg.solve(full, right), rtol=1e-7)


def test_a_system_does_not_depend_on_its_batch(rng):
    band, _ = problem(rng, 3, 4, 50)
    right = rng.normal(size=(3, 50, 2))
    together = factor(band).solve(right)
    for i in range(3):
        np.testing.assert_array_equal(
            factor(band[i : i + 1]).solve(right[i : i + 1])[0], together[i]
        )


@pytest.mark.parametrize("at", [0, 20, 39])
def test_matrices_must_be_positive_definite(at, rng):
    band, _ = problem(rng, 2, 3, 40)
    band[1, 0, at] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factor(band)

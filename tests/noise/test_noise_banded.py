"""The banded factor against dense linear algebra."""

import numpy as np
import pytest

from rbfdiffnet.noise.trajectory import BandedCholesky

# Band width and length: several blocks, a last one filled up, less than one, wide bands.
SHAPES = [(1, 5), (0, 40), (2, 48), (4, 49), (16, 100), (30, 130), (40, 45)]


def problem(rng, width, length):
    """A positive definite band, and the same matrix in full."""
    band = rng.normal(size=(width + 1, length))
    for k in range(width + 1):
        band[k, length - k :] = 0.0
    band[0] = 2.0 * np.abs(band).sum(axis=0).max() + rng.random(length)
    full = np.zeros((length, length))
    for k in range(width + 1):
        at = np.arange(length - k)
        full[at + k, at] = full[at, at + k] = band[k, : length - k]
    return band, full


@pytest.mark.parametrize("shape", SHAPES)
def test_solutions_and_determinants_are_those_of_the_full_matrix(shape, rng):
    band, full = problem(rng, *shape)
    right = rng.normal(size=(shape[1], 3))
    factored = BandedCholesky.factor(band)
    expected = np.linalg.solve(full, right)
    np.testing.assert_allclose(factored.solve(right), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(factored.solve(right[:, 0]), expected[:, 0], rtol=1e-9, atol=1e-12)
    assert factored.log_determinant == pytest.approx(np.linalg.slogdet(full)[1], rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_windows_of_the_inverse_are_its_blocks(shape, rng):
    band, full = problem(rng, *shape)
    inverse = np.linalg.inv(full)
    for width in {1, (shape[0] + 1) // 2 + 1, shape[0] + 1}:
        windows = BandedCholesky.factor(band).inverse_windows(width)
        expected = [inverse[t : t + width, t : t + width] for t in range(shape[1] - width + 1)]
        np.testing.assert_allclose(windows, np.stack(expected), atol=1e-12)


def test_ill_conditioned_matrices_are_solved_like_full_ones(rng):
    """Smoothing: nearly singular, as where little is observed."""
    length = 200
    second = np.diff(np.eye(length), 2, axis=0)
    full = 1e-6 * np.eye(length) + second.T @ second
    band = np.stack([np.pad(np.diag(full, -k), (0, k)) for k in range(3)])
    right = rng.normal(size=length)
    x = BandedCholesky.factor(band).solve(right)
    np.testing.assert_allclose(x, np.linalg.solve(full, right), rtol=1e-7)


@pytest.mark.parametrize("at", [0, 20, 39])
def test_matrices_must_be_positive_definite(at, rng):
    band, _ = problem(rng, 3, 40)
    band[0, at] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        BandedCholesky.factor(band)


@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_solved_by_halves_as_with_the_full_factor(shape, rng):
    (width, length), n = shape, shape[1] - shape[0]
    band, full = problem(rng, width, length)
    factored, root = BandedCholesky.factor(band), np.linalg.cholesky(full)
    J, columns = rng.normal(size=(n, width + 1)), rng.normal(size=(n, 3))
    turned = np.zeros((length, n))
    for t in range(n):
        turned[t : t + width + 1, t] = J[t]
    half = factored.solve_products(J, columns)
    np.testing.assert_allclose(half, np.linalg.solve(root, turned @ columns), atol=1e-11)
    back = np.linalg.solve(root.T, half)
    np.testing.assert_allclose(factored.solve_back(half), back, atol=1e-11)

r"""The few operations on long arrays that training spends its time in, for NumPy and PyTorch.

Arrays have the series as their first axis and rows as their last, contiguous one. Everything
else, on arrays without rows, is written once in `rbfdiffnet.batch.train`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from rbfdiffnet.batch.products import Products

__all__ = [
    "NUMPY",
    "SMALLEST_SPREAD",
    "TIE",
    "Backend",
    "NumpyBackend",
    "padded_rows",
    "standardize",
]

# BLAS libraries have fast paths for products of small matrices: rows are cut into blocks of this
# many at most.
_BLOCK = 704
_ROWS_AT_ONCE = 131_072  # values prepared together: enough work between two steps of a thread
_SMALL = 1152  # entries of such a product
SMALLEST_SPREAD = 1e-13  # a smaller one is that of a constant
TIE = 1e-9  # squared distance within which two centers are equally near


class Backend:
    """Operations on PyTorch tensors; `NumpyBackend` overrides what NumPy calls differently.

    Parameters
    ----------
    xp : module
        The array module.
    """

    #: How many batches it pays to work on at the same time, each in a thread and a `lane`.
    lanes = 1

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def lane(self) -> AbstractContextManager[Any]:
        """A context in which the work of one thread does not wait for that of others."""
        return nullcontext()

    def contract(self, P: Any, Q: Any) -> Any:
        """P Q', summed over rows: (B, p, N) and (B, q, N) give (B, p, q)."""
        return P @ Q.swapaxes(1, 2)

    def root(self, A: Any) -> Any:
        """L^-1, where L is the Cholesky factor of A; NaN where A is not positive definite.

        The inverse of A is the product of its transpose with it.
        """
        lower, failed = self.xp.linalg.cholesky_ex(A)
        eye = self.xp.eye(A.shape[1], dtype=A.dtype, device=A.device)
        lower = self.xp.where((failed > 0)[:, None, None], eye, lower)
        inverse = self.xp.linalg.inv(lower)
        return self.xp.where((failed > 0)[:, None, None], self.xp.nan * eye, inverse)

    def solve(self, A: Any, b: Any) -> Any:
        """Solutions of A x = b, (B, p, p) and (B, p)."""
        return self.xp.linalg.solve(A, b[:, :, None])[..., 0]

    def diagonal(self, values: Any) -> Any:
        """Matrices with the given diagonals, (B, p) to (B, p, p)."""
        return self.xp.diag_embed(values)

    def assign(self, rows: Any, centers: Any) -> tuple[Any, Any]:
        """One pass of Lloyd's algorithm.

        Parameters
        ----------
        rows : array of shape (B, d + 1, N)
            Inputs, and the rows' weight (1, or 0 for padding, where the inputs are 0 too).
        centers : array of shape (B, c, d)

        Returns
        -------
        sums : array of shape (B, c, d + 1)
            Inputs and number of the rows that belong to each center: those nearest to it. A row
            between two equally near centers belongs to both.
        distances : array of shape (B, c)
            Sum of the distances of these rows from it.
        """
        xp = self.xp
        own = (centers**2).sum(axis=2)[:, :, None]
        # Squared distances less the rows' own squares: one product.
        distance = xp.concatenate([-2.0 * centers, own], axis=2) @ rows
        lowest = self.lowest(distance)
        member = self.float(distance <= lowest + TIE)
        square = (rows[:, :-1] ** 2).sum(axis=1)
        away = xp.sqrt(xp.clip(lowest[:, 0] + square, 0.0, None)) * rows[:, -1]
        return self.contract(member, rows), self.contract(member, away[:, None])[..., 0]

    def lowest(self, distance: Any) -> Any:
        """Smallest value over the centers, (B, 1, N)."""
        return distance.amin(1, keepdim=True)

    def float(self, mask: Any) -> Any:
        """A mask as zeros and ones."""
        return mask.double()

    def rows(self, X: Any, weight: Any, n: Any) -> tuple[Any, Any, Any]:
        """Standardized inputs with the rows' weight, (B, d + 1, N); their means and spreads."""
        Z, mean, spread = standardize(X, weight[:, None], n[:, None], self.xp)
        return self.xp.concatenate([Z, weight[:, None]], axis=1), mean, spread

    def products(self, rows: Any, y: Any, centers: Any, beta: Any, slope: Any) -> Products:
        """Sums over rows that training needs, as `rbfdiffnet.batch.products.Products`."""
        return Products(self, rows, y, centers, beta, slope)

    def neighbors(self, series: Any, season_length: int, before: int, later: int) -> Any:
        """Median of the values so many seasons before and after, NaN where there is none."""
        xp = self.xp
        infinite = xp.where(xp.isfinite(series), series, xp.inf)
        reach = before * season_length
        edge = xp.full((len(series), reach), xp.inf, **self.kind(series))
        padded = xp.concatenate([edge, infinite, edge], axis=1)
        length = series.shape[1]
        shifts = [reach + j * season_length for j in range(-before, later + 1) if j]
        around = [padded[:, shift : shift + length] for shift in shifts]
        count = sum(xp.isfinite(values) + 0 for values in around)
        # Sort them by exchanging neighbors: missing ones go last.
        for end in range(len(around) - 1, 0, -1):
            for i in range(end):
                low, high = around[i], around[i + 1]
                around[i], around[i + 1] = xp.minimum(low, high), xp.maximum(low, high)
        middle = xp.ones_like(series) * xp.nan
        for n in range(1, len(around) + 1):
            value = 0.5 * (around[(n - 1) // 2] + around[n // 2])
            middle = xp.where(count == n, value, middle)
        return middle

    def rows_at(self, rows: Any, positions: Any) -> Any:
        """Inputs of the rows at positions (B, c): (B, c, d)."""
        series = self.xp.arange(len(rows), device=rows.device)[:, None]
        return rows[series, :-1, positions]

    def arange(self, n: int, like: Any) -> Any:
        """0, 1, ..., n - 1, where another array is."""
        return self.xp.arange(n, device=like.device)

    def empty_like(self, rows: Any, n: int) -> Any:
        """An array of n columns for the same rows."""
        return self.xp.empty((len(rows), n, rows.shape[2]), **self.kind(rows))

    def kind(self, like: Any) -> dict[str, Any]:
        """Type and place of an array, to make others like it."""
        return {"dtype": like.dtype, "device": like.device}

    def integers(self, values: Any) -> Any:
        """Whole numbers as integers, to count with."""
        return values.long()

    def diagonal_of(self, A: Any) -> Any:
        """Diagonals of matrices."""
        return self.xp.diagonal(A, 0, 1, 2)

    def highest(self, values: Any) -> Any:
        """Largest value along the last axis."""
        return values.amax(-1)

    def lowest_of(self, values: Any) -> Any:
        """Smallest value along the last axis."""
        return values.amin(-1)

    def round(self, values: Any, decimals: int) -> Any:
        """Values rounded to so many decimals."""
        return values.round(decimals=decimals)

    def sorted(self, values: Any) -> Any:
        """Values in ascending order along the last axis."""
        return values.sort(-1).values

    def running_max(self, values: Any) -> Any:
        """Largest of the values so far, along the second axis."""
        return values.cummax(1).values

    def flip(self, values: Any) -> Any:
        """Values in reverse order along the second axis."""
        return values.flip(1)

    def take(self, values: Any, index: Any, axis: int) -> Any:
        """Values at positions along an axis."""
        return values.gather(axis, index)

    def place(self, values: Any) -> Any:
        """Bring a NumPy array to where the computations are."""
        return self.xp.from_numpy(values)

    def batch_size(self, length: int, n_lags: int, n_centers: int) -> int:  # noqa: ARG002
        """How many series to train at once."""
        return max(1, _ROWS_AT_ONCE // length)

    def to_numpy(self, values: Any) -> Any:
        """The same as a NumPy array."""
        return values.cpu().numpy()

    def select(self, values: Any, index: Any) -> Any:
        """Some of the series, by their positions (NumPy integers)."""
        return values[self.xp.from_numpy(index).to(values.device)]

    def positions(self, mask: Any) -> Any:
        """Where a mask of shape (B,) is true."""
        return self.xp.nonzero(mask)[:, 0]

    def any(self, mask: Any) -> bool:  # noqa: ARG002
        """Whether any is true, or might be: on a device it takes longer to ask."""
        return True


class NumpyBackend(Backend):
    """Operations on NumPy arrays."""

    def __init__(self) -> None:
        super().__init__(np)

    def contract(self, P: Any, Q: Any) -> Any:
        """P Q', in blocks of rows and columns small enough for the fast paths of BLAS."""
        (batch, p, n), q = P.shape, Q.shape[1]
        blocks = -(-n // _BLOCK)
        if p > 64 or q > 64:
            return P @ Q.swapaxes(1, 2)
        size = n // blocks
        left = P[..., : blocks * size].reshape(batch, p, blocks, size).swapaxes(1, 2)
        right = Q[..., : blocks * size].reshape(batch, q, blocks, size).transpose(0, 2, 3, 1)
        product, width = np.empty((batch, p, q)), min(_SMALL // p, 24 if P is Q else q)
        for first in range(0, q, width):
            part = slice(first, first + width)
            np.sum(left @ right[..., part], axis=1, out=product[..., part])
        if n > blocks * size:
            product += P[..., blocks * size :] @ Q[..., blocks * size :].swapaxes(1, 2)
        return product

    def root(self, A: Any) -> Any:
        """L^-1, where L is the Cholesky factor of A."""
        roots = np.empty_like(A)
        for i, matrix in enumerate(A):
            lower, failed = dpotrf(matrix.T, lower=1, overwrite_a=0)
            roots[i] = np.nan if failed else dtrtri(lower, lower=1, overwrite_c=1)[0]
        return roots

    def diagonal(self, values: Any) -> Any:
        """Matrices with the given diagonals."""
        return values[:, :, None] * np.eye(values.shape[1])

    def rows_at(self, rows: Any, positions: Any) -> Any:
        """Inputs of the rows at positions."""
        return rows[np.arange(len(rows))[:, None], :-1, positions]

    def arange(self, n: int, like: Any) -> Any:  # noqa: ARG002
        """0, 1, ..., n - 1."""
        return np.arange(n)

    def kind(self, like: Any) -> dict[str, Any]:
        """Type of an array."""
        return {"dtype": like.dtype}

    def integers(self, values: Any) -> Any:
        """Whole numbers as integers."""
        return values.astype(np.int64)

    def highest(self, values: Any) -> Any:
        """Largest value along the last axis."""
        return values.max(axis=-1)

    def lowest_of(self, values: Any) -> Any:
        """Smallest value along the last axis."""
        return values.min(axis=-1)

    def round(self, values: Any, decimals: int) -> Any:
        """Values rounded to so many decimals."""
        return np.round(values, decimals)

    def sorted(self, values: Any) -> Any:
        """Values in ascending order along the last axis."""
        return np.sort(values, axis=-1)

    def running_max(self, values: Any) -> Any:
        """Largest of the values so far, along the second axis."""
        return np.maximum.accumulate(values, axis=1)

    def flip(self, values: Any) -> Any:
        """Values in reverse order along the second axis."""
        return values[:, ::-1]

    def take(self, values: Any, index: Any, axis: int) -> Any:
        """Values at positions along an axis."""
        return np.take_along_axis(values, index, axis)

    def place(self, values: Any) -> Any:
        """The same array."""
        return values

    def to_numpy(self, values: Any) -> Any:
        """The same array."""
        return values

    def select(self, values: Any, index: Any) -> Any:
        """Some of the series."""
        return values[index]

    def positions(self, mask: Any) -> Any:
        """Where a mask is true."""
        return np.flatnonzero(mask)

    def any(self, mask: Any) -> bool:
        """Whether any is true."""
        return bool(mask.any())

    def lowest(self, distance: Any) -> Any:
        """Smallest value over the centers."""
        return distance.min(axis=1, keepdims=True)

    def float(self, mask: Any) -> Any:
        """A mask as zeros and ones."""
        return mask.astype(np.float64)


#: Operations on NumPy arrays.
NUMPY = NumpyBackend()


def standardize(values: Any, weight: Any, n: Any, xp: Any) -> tuple[Any, Any, Any]:
    """Values with mean 0 and spread 1 along the last axis, 0 where they do not count."""
    mean = (values * weight).sum(axis=-1) / n
    centered = values - mean[..., None]
    centered *= weight
    spread = xp.sqrt((centered**2).sum(axis=-1) / n)
    spread = xp.where(spread > SMALLEST_SPREAD, spread, xp.ones_like(spread))
    centered /= spread[..., None]
    return centered, mean, spread


def padded_rows(n: int) -> int:
    """Return the number of rows that n are padded to: equal blocks, of multiples of 16.

    Examples
    --------
    >>> from rbfdiffnet.batch.backend import padded_rows
    >>> padded_rows(430), padded_rows(1900)
    (432, 1920)
    """
    blocks = -(-n // _BLOCK)
    return blocks * 16 * -(-n // (16 * blocks))

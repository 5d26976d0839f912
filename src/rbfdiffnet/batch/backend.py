r"""The operations on long arrays that training spends its time in, and who carries them out.

Arrays have the series as their first axis and rows as their last, contiguous one. `batch.train` is
written once, on top of a `Backend`: NumPy here, and numba, PyTorch and Triton in files of their
own. A backend that computes a few of the operations faster overrides these and inherits the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

# BLAS libraries have fast paths for products of small matrices.
_ROWS_PER_PRODUCT = 704
_ENTRIES_PER_PRODUCT = 1152
_WIDEST_SMALL_MATRIX = 64
_VALUES_PREPARED_TOGETHER = 131_072  # enough work between two steps of a thread
SMALLEST_SPREAD = 1e-13  # a smaller spread is that of a constant
TIE = 1e-9  # squared distance within which two centers are equally near


class Backend:
    """Operations on PyTorch tensors; `NumpyBackend` overrides what NumPy calls differently."""

    #: How many batches it pays to work on at the same time, each in a thread and a `lane`.
    lanes = 1
    #: How many rows are trained together, at most; None for as many as there are.
    rows_trained_together: int | None = None
    #: How many values are searched for outliers together.
    values_searched_together = 2**24
    #: At most this share of the series of a batch is selected, to go on without the others.
    share_worth_selecting = 0.5
    #: The class of problems with more inputs than rows, if not `batch.problem.WideProblem`.
    wide_problem: Any = None

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    # Sums over rows --------------------------------------------------------------------------

    def contract(self, P: Any, Q: Any) -> Any:
        """P Q', summed over rows: (B, p, N) and (B, q, N) give (B, p, q)."""
        return P @ Q.swapaxes(1, 2)

    def rows(self, X: Any, weight: Any, n: Any) -> tuple[Any, Any, Any]:
        """Standardized inputs with the rows' weight, (B, d + 1, N); their means and spreads."""
        Z, mean, spread = standardize(X, weight[:, None], n[:, None], self.xp)
        return self.xp.concatenate([Z, weight[:, None]], axis=1), mean, spread

    def assign(self, rows: Any, centers: Any) -> tuple[Any, Any]:
        """Give each row to its nearest center: one pass of Lloyd's algorithm.

        `rows` has shape (B, d + 1, N): the inputs, and the rows' weight, which is 1, or 0 for
        padding, where the inputs are 0 too. `centers` has shape (B, c, d). Returned are the sums of
        inputs and weights over the rows of each center, (B, c, d + 1), and the sums of their
        distances from it, (B, c). A row between two equally near centers belongs to both.
        """
        xp = self.xp
        own = (centers**2).sum(axis=2)[:, :, None]
        # Squared distances less the rows' own squares: one product.
        distance = xp.concatenate([-2.0 * centers, own], axis=2) @ rows
        lowest = xp.amin(distance, axis=1, keepdims=True)
        member = self.float(distance <= lowest + TIE)
        square = (rows[:, :-1] ** 2).sum(axis=1)
        away = xp.sqrt(xp.clip(lowest[:, 0] + square, 0.0, None)) * rows[:, -1]
        return self.contract(member, rows), self.contract(member, away[:, None])[..., 0]

    def products(self, rows: Any, y: Any, centers: Any, beta: Any, slope: Any) -> Products:
        """The sums over rows that training needs; see `Products`."""
        return Products(self, rows, y, centers, beta, slope)

    # Small systems ---------------------------------------------------------------------------

    def root(self, A: Any, lift: Any = None) -> Any:
        """L^-1, where L is the Cholesky factor of A, or of A + diag(lift).

        Shapes are (B, p, p) and (B, p). The result is NaN where there is no such factor. The
        inverse of A is the product of the transpose of L^-1 with L^-1.
        """
        A = A if lift is None else A + self.diagonal(lift)
        lower, failed = self.xp.linalg.cholesky_ex(A)
        eye = self.xp.eye(A.shape[1], dtype=A.dtype, device=A.device)
        lower = self.xp.where((failed > 0)[:, None, None], eye, lower)
        inverse = self.xp.linalg.inv(lower)
        return self.xp.where((failed > 0)[:, None, None], self.xp.nan * eye, inverse)

    def solve(self, A: Any, b: Any) -> Any:
        """Solutions of A x = b, (B, p, p) and (B, p)."""
        return self.xp.linalg.solve(A, b[:, :, None])[..., 0]

    # Series ----------------------------------------------------------------------------------

    def neighbors(self, series: Any, season_length: int, before: int, later: int) -> Any:
        """Median of the values so many seasons before and after, NaN where there is none."""
        xp = self.xp
        infinite = xp.where(xp.isfinite(series), series, xp.inf)
        reach = max(before, later) * season_length
        edge = xp.full((len(series), reach), xp.inf, **self.kind(series))
        padded = xp.concatenate([edge, infinite, edge], axis=1)
        length = series.shape[1]
        shifts = [reach + j * season_length for j in range(-before, later + 1) if j]
        around = [padded[:, shift : shift + length] for shift in shifts]
        count = sum(xp.isfinite(values) + 0 for values in around)
        # Sort the values by exchanging neighbors: missing ones go last.
        for end in range(len(around) - 1, 0, -1):
            for i in range(end):
                low, high = around[i], around[i + 1]
                around[i], around[i + 1] = xp.minimum(low, high), xp.maximum(low, high)
        middle = xp.ones_like(series) * xp.nan
        for n in range(1, len(around) + 1):
            value = 0.5 * (around[(n - 1) // 2] + around[n // 2])
            middle = xp.where(count == n, value, middle)
        return middle

    # Arrays ----------------------------------------------------------------------------------

    def lane(self) -> AbstractContextManager[Any]:
        """A context in which the work of one thread does not wait for that of others."""
        return nullcontext()

    def batch_size(self, length: int, n_lags: int, n_centers: int) -> int:  # noqa: ARG002
        """How many series to prepare and train at once."""
        return max(1, _VALUES_PREPARED_TOGETHER // length)

    def to_device(self, values: Any) -> Any:
        """Bring a NumPy array to where the computations are."""
        return self.xp.from_numpy(values)

    def to_numpy(self, values: Any) -> Any:
        """The same as a NumPy array."""
        return values.cpu().numpy()

    def kind(self, like: Any) -> dict[str, Any]:
        """Type and place of an array, to make others like it."""
        return {"dtype": like.dtype, "device": like.device}

    def arange(self, n: int, like: Any) -> Any:
        """0, 1, ..., n - 1, where another array is."""
        return self.xp.arange(n, device=like.device)

    def float(self, mask: Any) -> Any:
        """A mask as zeros and ones."""
        return self.xp.asarray(mask, dtype=self.xp.float64)

    def integers(self, values: Any) -> Any:
        """Whole numbers as integers, to count with."""
        return self.xp.asarray(values, dtype=self.xp.int64)

    def diagonal(self, values: Any) -> Any:
        """Matrices with the given diagonals, (B, p) to (B, p, p)."""
        return self.xp.diag_embed(values)

    def diagonal_of(self, A: Any) -> Any:
        """Diagonals of matrices, (B, p, p) to (B, p)."""
        return self.xp.diagonal(A, 0, 1, 2)

    def highest(self, values: Any) -> Any:
        """Largest value along the last axis."""
        return self.xp.amax(values, axis=-1)

    def lowest(self, values: Any) -> Any:
        """Smallest value along the last axis."""
        return self.xp.amin(values, axis=-1)

    def sorted(self, values: Any) -> Any:
        """Values in ascending order along the last axis."""
        return values.sort(-1).values

    def running_max(self, values: Any) -> Any:
        """Largest of the values so far, along the second axis."""
        return values.cummax(1).values

    def flip(self, values: Any) -> Any:
        """Values in reverse order along the second axis."""
        return self.xp.flip(values, (1,))

    def take(self, values: Any, index: Any, axis: int) -> Any:
        """Values at positions along an axis."""
        return values.gather(axis, index)

    def select(self, values: Any, index: Any) -> Any:
        """Some of the series, by their positions (NumPy integers)."""
        return values[self.xp.from_numpy(index).to(values.device)]

    def any(self, mask: Any) -> bool:
        """Whether any is true, or might be: on a device it takes longer to ask."""
        return self.count(mask) > 0

    def count(self, mask: Any) -> int:
        """How many are true, or might be: on a device it takes longer to ask."""
        return len(mask)

    def worth_selecting(self, mask: Any, n: int, share: Any = 0.0) -> Any:
        """Positions of the n series of a mask; None if working on all of them takes no longer."""
        if n < len(mask) and n <= (share or self.share_worth_selecting) * len(mask):
            return self.xp.argwhere(mask)[:, 0]
        return None


class NumpyBackend(Backend):
    """Operations on NumPy arrays."""

    rows_trained_together: int | None = 8_192  # what the caches of a processor hold
    values_searched_together = 2**15

    def __init__(self) -> None:
        super().__init__(np)

    def contract(self, P: Any, Q: Any) -> Any:
        """P Q', in blocks of rows and columns small enough for the fast paths of BLAS."""
        (batch, p, n), q = P.shape, Q.shape[1]
        blocks = -(-n // _ROWS_PER_PRODUCT)
        if max(p, q) > _WIDEST_SMALL_MATRIX:
            return P @ Q.swapaxes(1, 2)
        size = n // blocks
        left = P[..., : blocks * size].reshape(batch, p, blocks, size).swapaxes(1, 2)
        right = Q[..., : blocks * size].reshape(batch, q, blocks, size).transpose(0, 2, 3, 1)
        product = np.empty((batch, p, q))
        width = min(_ENTRIES_PER_PRODUCT // p, 24 if P is Q else q)
        for first in range(0, q, width):
            part = slice(first, first + width)
            np.sum(left @ right[..., part], axis=1, out=product[..., part])
        if n > blocks * size:
            product += P[..., blocks * size :] @ Q[..., blocks * size :].swapaxes(1, 2)
        return product

    def root(self, A: Any, lift: Any = None) -> Any:
        """L^-1, where L is the Cholesky factor of A, or of A + diag(lift)."""
        roots = A.copy() if lift is None else A + self.diagonal(lift)
        for i, matrix in enumerate(roots):
            lower, failed = dpotrf(matrix.T, lower=1, overwrite_a=0)
            roots[i] = np.nan if failed else dtrtri(lower, lower=1, overwrite_c=1)[0]
        return roots

    def to_device(self, values: Any) -> Any:
        """The same array."""
        return values

    def to_numpy(self, values: Any) -> Any:
        """The same array."""
        return values

    def kind(self, like: Any) -> dict[str, Any]:
        """Type of an array."""
        return {"dtype": like.dtype}

    def arange(self, n: int, like: Any) -> Any:  # noqa: ARG002
        """0, 1, ..., n - 1."""
        return np.arange(n)

    def diagonal(self, values: Any) -> Any:
        """Matrices with the given diagonals."""
        return values[:, :, None] * np.eye(values.shape[1])

    def sorted(self, values: Any) -> Any:
        """Values in ascending order along the last axis."""
        return np.sort(values, axis=-1)

    def running_max(self, values: Any) -> Any:
        """Largest of the values so far, along the second axis."""
        return np.maximum.accumulate(values, axis=1)

    def take(self, values: Any, index: Any, axis: int) -> Any:
        """Values at positions along an axis."""
        return np.take_along_axis(values, index, axis)

    def select(self, values: Any, index: Any) -> Any:
        """Some of the series."""
        return values[index]

    def count(self, mask: Any) -> int:
        """How many are true."""
        return int(mask.sum())


#: Operations on NumPy arrays.
NUMPY = NumpyBackend()


def backend_for(device: str) -> Backend:
    """Return the operations for ``"cpu"``, ``"cuda"``, or a numbered card such as ``"cuda:1"``.

    Raises ImportError without PyTorch, RuntimeError without such a card, and ValueError where there
    is no such kind of device.
    """
    if device == "cpu":
        return _processor_backend()
    from rbfdiffnet.batch.torch_backend import card_backend

    return card_backend(device)


def place_on(device: str) -> Callable[[Any], Any]:
    """Return a function that brings an array of NumPy to a device."""
    return np.asarray if device == "cpu" else backend_for(device).to_device


def to_numpy(array: Any) -> Any:
    """Return an array of NumPy, or a tensor on any device, as an array of NumPy."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def _processor_backend() -> Backend:
    """The compiled operations where numba is installed and works, and NumPy's elsewhere."""
    if find_spec("numba") is None:
        return NUMPY
    from rbfdiffnet.batch import numba_backend

    return numba_backend.NUMBA if numba_backend.AVAILABLE else NUMPY


class Products:
    r"""Sums over the rows of a training problem: all that training does with long arrays.

    .. math::

        G_j = \varphi_j\,\big(a_0 - 2 \beta_j u\, a \cdot (x - \mu_j)\big), \qquad
        J_i = \sum_j w_j\, \partial G_j / \partial a_i

    `rows` has shape (B, d + 1, N) and is made by `Backend.rows`; y has shape (B, N), `centers`
    (B, c, d), and `beta` and `slope` = -2 beta u have shape (B, c). One array holds all columns:
    G(a), the rows, the target and the slopes J.
    """

    #: What all parts of the series have in common.
    shared: tuple[str, ...] = ("backend",)

    def __init__(
        self, backend: Any, rows: Any, y: Any, centers: Any, beta: Any, slope: Any
    ) -> None:
        self.backend, self.centers, self.slope = backend, centers, slope
        self.phi = _gaussians(rows, centers, beta, backend.xp)
        c, d = centers.shape[1], centers.shape[2]
        sizes = (len(rows), c + 2 * d + 3, rows.shape[2])
        self.columns = backend.xp.empty(sizes, **backend.kind(rows))
        self.columns[:, c : c + d + 1] = rows
        self.columns[:, c + d + 1] = y

    def gram(self, a: Any) -> Any:
        """Products of G(a) with itself, the rows and the target: (B, c, c + d + 2)."""
        xp, phi, (c, d) = self.backend.xp, self.phi, self.centers.shape[1:]
        G, rows = self.columns[:, :c], self.columns[:, c : c + d + 1]
        along = xp.concatenate([a[:, None, 1:] @ rows[:, :-1], rows[:, -1:]], axis=1)
        xp.matmul(xp.stack([self.slope, self.constant(a)], axis=2), along, out=G)
        G *= phi
        return self.backend.contract(G, self.columns[:, : c + d + 2])

    def constant(self, a: Any) -> Any:
        """What G(a) / phi is at x = 0, (B, c)."""
        return a[:, :1] - self.slope * (self.centers @ a[:, 1:, None])[..., 0]

    def curvature(self, a: Any, b: Any) -> tuple[Any, Any, Any]:
        r"""What the Hessian of the objective is made of, after `gram` of the same a.

        .. math:: K_{ji} = \sum_n A_{jn} J_{in} - r_n\, \partial A_{jn} / \partial a_i, \qquad
            \sum_n r_n J_{in}, \qquad \sum_n J_{in} J_{kn}

        where A is G(a) and the rows, and r what the linear coefficients b, (B, c + d + 1) with w
        first, leave of the target. The shapes are (B, c + d + 1, 1 + d), (B, 1 + d) and
        (B, 1 + d, 1 + d).
        """
        xp, (c, d) = self.backend.xp, self.centers.shape[1:]
        moments, products = self.slope_sums(a, b)
        R = -self.slope[:, :, None] * (self.centers * moments[:, :, :1] - moments[:, :, 1:])
        R = xp.concatenate([moments[:, :, :1], R], axis=2)
        # J'r, as r = y - A b.
        along = products[:, c + d + 1] - (b[:, None] @ products[:, : c + d + 1])[:, 0]
        K = xp.concatenate([products[:, :c] - R, products[:, c : c + d + 1]], axis=1)
        return K, along, products[:, c + d + 2 :]

    def slope_sums(self, a: Any, b: Any) -> tuple[Any, Any]:  # noqa: ARG002
        """Sums over rows of phi (r, x r), (B, c, 1 + d), and of all columns times J."""
        phi, (c, d), columns = self.phi, self.centers.shape[1:], self.columns
        xp, w = self.backend.xp, b[:, :c]
        x, weight, y = columns[:, c : c + d], columns[:, c + d], columns[:, c + d + 1]
        mixed = self.mixing(w).swapaxes(1, 2) @ phi
        J = columns[:, c + d + 2 :]
        J[:, 0] = mixed[:, 0]
        xp.multiply(x, mixed[:, -1:], out=J[:, 1:])
        xp.subtract(mixed[:, 1:-1], J[:, 1:], out=J[:, 1:])
        r = (y - (b[:, None] @ columns[:, : c + d + 1])[:, 0]) * weight
        residuals = xp.concatenate([r[:, None], x * r[:, None]], axis=1)
        return self.backend.contract(phi, residuals), self.backend.contract(columns, J)

    def mixing(self, w: Any) -> Any:
        """By what the phi are multiplied to be J_0, J_i + x_i v, and v: (B, c, d + 2)."""
        xp, weighted = self.backend.xp, -(w * self.slope)[:, :, None]
        return xp.concatenate([w[:, :, None], weighted * self.centers, weighted], axis=2)

    def part(self, which: Any) -> Products:
        """Products of some of the series."""
        part = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(part, name, value if name in self.shared else value[which])
        return part


def _gaussians(rows: Any, centers: Any, beta: Any, xp: Any) -> Any:
    """exp(-beta |x - center|^2), 0 in padding: (B, c, N)."""
    square = (rows[:, :-1] ** 2).sum(axis=1)[:, None]
    own = (centers**2).sum(axis=2)[:, :, None]
    left = beta[:, :, None] * xp.concatenate([2.0 * centers, -own, xp.ones_like(own)], axis=2)
    phi = left @ xp.concatenate([rows, -square], axis=1)
    phi = xp.exp(phi, out=phi)
    phi *= rows[:, -1:]
    return phi


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
    """Return the number of rows that n are padded to: equal blocks, of multiples of 16."""
    blocks = -(-n // _ROWS_PER_PRODUCT)
    return blocks * 16 * -(-n // (16 * blocks))

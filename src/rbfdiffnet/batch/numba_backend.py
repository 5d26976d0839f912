"""Operations compiled by numba, for processors: the extra ``[fast]``.

What compiling saves are passes over memory. Rows come in blocks that stay in the processor's cache
from one product to the next: of a block nothing but inputs, targets and Gaussians is read, and G
and J (`rbfdiffnet.batch.backend.Products`) are made again where they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from rbfdiffnet.batch import problem
from rbfdiffnet.batch.backend import TIE, NumpyBackend, Products

try:
    from numba import njit

    AVAILABLE = True
except ImportError:  # the extra is not installed, or does not work with this NumPy
    AVAILABLE = False

_ROWS_PER_BLOCK = 328

Function = TypeVar("Function", bound=Callable[..., Any])


class CompiledWideProblem(problem.WideProblem):
    """The problem of few rows, solved for one series after the other, in the processor's cache."""

    def descend(self, result: tuple[Any, Any, Any, Any], root: Any, n_steps: int) -> None:
        """Damped Newton steps from what is known at a; the result is changed in place."""
        a, w, value, ridge = result
        names = ("phi", "slope", "span", "inner", "y", "M", "My", "total")
        arrays = tuple(getattr(self, name) for name in names)
        rho = self.n * (ridge + problem.UNPENALIZED)
        rules = (problem.ENOUGH, problem.FIRST_DAMPING, problem.MOST_DAMPING)
        _descend(arrays, rho, root, n_steps, rules, a, w, value)


class NumbaBackend(NumpyBackend):
    """Operations on NumPy arrays, with compiled loops where these save time."""

    wide_problem = CompiledWideProblem

    rows_trained_together = 16_384
    share_worth_selecting = 1.0  # a part of the series is a list of their positions

    def assign(self, rows: Any, centers: Any) -> tuple[Any, Any]:
        """Give each row to its nearest center: one pass of Lloyd's algorithm."""
        sums = np.empty((len(rows), centers.shape[1], rows.shape[1] + 1))
        _assign(rows, centers, TIE, _block_size(rows.shape[2]), sums)
        return sums[:, :, :-1], sums[:, :, -1]

    def root(self, A: Any, lift: Any = None) -> Any:
        """L^-1, where L is the Cholesky factor of A, or of A + diag(lift)."""
        roots = np.empty(A.shape)
        lift = np.zeros(A.shape[:2]) if lift is None else lift
        _roots(np.ascontiguousarray(A), lift, roots)
        return roots

    def products(self, rows: Any, y: Any, centers: Any, beta: Any, slope: Any) -> Products:
        """The sums over rows that training needs."""
        return _CompiledProducts(self, rows, y, centers, beta, slope)


#: Compiled operations on NumPy arrays.
NUMBA = NumbaBackend()


class _CompiledProducts(Products):
    """Products of columns of which only a block is in memory at a time.

    `which` are the positions of the series in `rows`, `y` and `phi`, which are never copied.
    """

    shared = ("backend", "rows", "y", "phi")

    def __init__(
        self, backend: NumbaBackend, rows: Any, y: Any, centers: Any, beta: Any, slope: Any
    ) -> None:
        self.backend, self.rows, self.y = backend, rows, y
        self.centers, self.slope, self.which = centers, slope, np.arange(len(rows))
        size = _block_size(rows.shape[2])
        self.phi = np.empty((len(rows), -(-rows.shape[2] // size), centers.shape[1], size))
        _exponents(rows, centers, beta, self.phi)
        np.exp(self.phi, out=self.phi)  # NumPy has a faster one than numba

    def gram(self, a: Any) -> Any:
        """Products of G(a) with itself, the rows and the target."""
        c, d = self.centers.shape[1:]
        out = np.empty((len(a), c, c + d + 2))
        _gram(self._data(), self.slope, self.constant(a), a, out)
        return out

    def slope_sums(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Sums over rows of phi (r, x r), and of all columns times J."""
        c, d = self.centers.shape[1:]
        moments, products = np.empty((len(a), c, 1 + d)), np.empty((len(a), c + 2 * d + 3, 1 + d))
        mixing = np.ascontiguousarray(self.mixing(b[:, :c]).swapaxes(1, 2))
        constant = self.constant(a)
        _slope_sums(self._data(), self.slope, constant, a, b, mixing, moments, products)
        return moments, products

    def _data(self) -> tuple[Any, ...]:
        return self.which, self.rows, self.y, self.phi


def _block_size(n_rows: int) -> int:
    """Rows of a block: as equal as multiples of 8 can be."""
    blocks = -(-n_rows // _ROWS_PER_BLOCK)
    return 8 * -(-n_rows // (8 * blocks))


def _compiled(function: Function) -> Function:
    """Compile a function by numba, if numba is there.

    Constants of other files must be arguments: what is kept on disk does not see them change. Sums
    are not reordered: whether they would be depends on where arrays lie in memory. Arrays must be
    contiguous: for each layout numba would compile the function again.
    """
    if not AVAILABLE:
        return function
    options = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    compiled: Function = njit(cache=True, **options)(function)
    return compiled


@_compiled
def _product(A: Any, B: Any, out: Any) -> None:
    """A B."""
    np.dot(A, B, out)


@_compiled
def _contract(A: Any, B: Any, out: Any) -> None:
    """A B', for matrices with rows last."""
    np.dot(A, B.T, out)


@_compiled
def _copy_block(rows: Any, first: int, out: Any) -> None:
    """Copy rows from the first on, (k, N) to (k, size); zeros follow the last row."""
    here = min(out.shape[1], rows.shape[1] - first)
    out[:, :here] = rows[:, first : first + here]
    out[:, here:] = 0.0


@_compiled
def _distances(rows: Any, centers: Any, left: Any, square: Any, out: Any) -> None:
    """Squared distances less the rows' own squares, (c, size), and these squares, (size,)."""
    c, d = centers.shape
    for j in range(c):
        own = 0.0
        for i in range(d):
            left[j, i] = -2.0 * centers[j, i]
            own += centers[j, i] ** 2
        left[j, d] = own
    _product(left, rows, out)
    square[:] = 0.0
    for i in range(d):
        for t in range(square.size):
            square[t] += rows[i, t] ** 2


@_compiled
def _assign(rows: Any, centers: Any, tie: float, size: int, out: Any) -> None:
    """Sums of rows, weights and distances over the rows nearest to each center."""
    c, d = centers.shape[1:]
    tile, left, part = np.empty((d + 2, size)), np.empty((c, d + 1)), np.empty((c, d + 2))
    distance, low, square = np.empty((c, size)), np.empty(size), np.empty(size)
    for s in range(len(rows)):
        out[s] = 0.0
        for first in range(0, rows.shape[2], size):
            _copy_block(rows[s], first, tile[: d + 1])
            _distances(tile[: d + 1], centers[s], left, square, distance)
            low[:] = distance[0]
            for j in range(1, c):
                for t in range(size):
                    low[t] = min(low[t], distance[j, t])
            for j in range(c):
                for t in range(size):
                    distance[j, t] = 1.0 if distance[j, t] <= low[t] + tie else 0.0
            for t in range(size):
                tile[d + 1, t] = np.sqrt(max(low[t] + square[t], 0.0)) * tile[d, t]
            _contract(distance, tile, part)
            out[s] += part


@_compiled
def _exponents(rows: Any, centers: Any, beta: Any, phi: Any) -> None:
    """Exponents of the Gaussians in blocks, minus infinity in padding."""
    blocks, c, size = phi.shape[1:]
    d = centers.shape[2]
    tile, left, square = np.empty((d + 1, size)), np.empty((c, d + 1)), np.empty(size)
    for s in range(len(rows)):
        for k in range(blocks):
            _copy_block(rows[s], k * size, tile)
            _distances(tile, centers[s], left, square, phi[s, k])
            for j in range(c):
                for t in range(size):
                    exponent = -beta[s, j] * (phi[s, k, j, t] + square[t])
                    phi[s, k, j, t] = exponent if tile[d, t] > 0.0 else -np.inf


@_compiled
def _fill_columns(
    rows: Any, y: Any, first: int, phi: Any, slope: Any, constant: Any, a: Any, columns: Any
) -> None:
    """G(a), the rows and the target of a block; one more row of `columns` is used on the way."""
    c, size = phi.shape
    d = rows.shape[0] - 1
    _copy_block(rows, first, columns[c : c + d + 1])
    _copy_block(y, first, columns[c + d + 1 : c + d + 2])
    along = columns[c + d + 2 : c + d + 3]
    _product(a[:, 1:].copy(), columns[c : c + d], along)
    for j in range(c):
        for t in range(size):
            columns[j, t] = phi[j, t] * (slope[j] * along[0, t] + constant[j])


@_compiled
def _gram(data: Any, slope: Any, constant: Any, a: Any, out: Any) -> None:
    """Products of G(a) with itself, the rows and the target."""
    which, rows, y, phi = data
    blocks, c, size = phi.shape[1:]
    width = out.shape[2]
    columns, own, others = np.empty((width + 1, size)), np.empty((c, c)), np.empty((c, width - c))
    for k in range(len(which)):
        s = which[k]
        out[k] = 0.0
        for block in range(blocks):
            at = (block * size, phi[s, block], slope[k], constant[k], a[k : k + 1], columns)
            _fill_columns(rows[s], y[s : s + 1], *at)
            _contract(columns[:c], columns[:c], own)  # BLAS is faster with two small products
            _contract(columns[:c], columns[c:width], others)
            out[k, :, :c] += own
            out[k, :, c:] += others


@_compiled
def _slope_sums(
    data: Any, slope: Any, constant: Any, a: Any, b: Any, mixing: Any, moments: Any, products: Any
) -> None:
    """Sums over rows of phi (r, x r), and of all columns times J."""
    which, rows, y, phi = data
    blocks, c, size = phi.shape[1:]
    d = rows.shape[1] - 1
    p, q, width = c + d + 1, 1 + d, products.shape[1]
    columns, mixed = np.empty((width, size)), np.empty((d + 2, size))
    residuals = np.empty((q, size))
    left, part, more = np.empty((1, p + 1)), np.empty((c, q)), np.empty((width, q))
    for k in range(len(which)):
        s = which[k]
        moments[k] = 0.0
        products[k] = 0.0
        left[0, :p] = -b[k]
        left[0, p] = 1.0
        for block in range(blocks):
            at = (block * size, phi[s, block], slope[k], constant[k], a[k : k + 1], columns)
            _fill_columns(rows[s], y[s : s + 1], *at)
            _product(mixing[k], phi[s, block], mixed)
            _product(left, columns[: p + 1], residuals[:1])  # 0 in padding
            columns[p + 1] = mixed[0]
            for i in range(d):
                for t in range(size):
                    x = columns[c + i, t]
                    columns[p + 2 + i, t] = mixed[1 + i, t] - x * mixed[1 + d, t]
                    residuals[1 + i, t] = x * residuals[0, t]
            _contract(phi[s, block], residuals, part)
            _contract(columns, columns[p + 1 :], more)
            moments[k] += part
            products[k] += more


@_compiled
def _roots(A: Any, lift: Any, out: Any) -> None:
    """L^-1 of the Cholesky factors L of A + diag(lift), NaN where there is none.

    Rows take their places one after the other. Of the rows below them is left, on the left, what
    the rows done add to them, and on the right what remains of A:

        row j /= l,  row i -= l_i row j  for i > j,  where l = L_jj and l_i = L_ij.

    Two rows at a time halve the passes over what remains.
    """
    batch, p = A.shape[:2]
    rest, row, after = np.empty((p, p)), np.empty(p), np.empty(p)
    for s in range(batch):
        rest[:] = A[s]
        for i in range(p):
            rest[i, i] += lift[s, i]
        scale = 1.0
        for j in range(0, p, 2):
            scale = 1.0 / np.sqrt(rest[j, j])
            for k in range(p):
                row[k] = rest[j, k] * scale
            row[j] = scale
            for k in range(p):
                out[s, j, k] = row[k] if k <= j else 0.0
            if j + 1 == p:
                break
            rest[j + 1, j] = 0.0
            factor = row[j + 1]
            for k in range(p):
                after[k] = rest[j + 1, k] - factor * row[k]
            scale = 1.0 / np.sqrt(after[j + 1])
            after[j + 1] = 1.0
            for k in range(p):
                after[k] *= scale
            for k in range(p):
                out[s, j + 1, k] = after[k] if k <= j + 1 else 0.0
            row[j + 1] = 0.0
            for i in range(j + 2, p):
                one, other = row[i], after[i]
                rest[i, j] = 0.0
                rest[i, j + 1] = 0.0
                for k in range(p):
                    rest[i, k] -= one * row[k] + other * after[k]
        if not (scale > 0.0 and scale < np.inf):  # a bad pivot spoils those after it
            out[s] = np.nan


@_compiled
def _descend(
    arrays: Any, rho: Any, root: Any, n_steps: int, rules: Any, a: Any, w: Any, value: Any
) -> None:
    """Damped Newton steps for a, one series after the other, as by `problem.Problem.descend`."""
    phi, slope, span, inner, y, M, My, total = arrays
    enough, first, most = rules
    c, N = phi.shape[1:]
    size, d = span.shape[1:]
    C, G, GM, T = np.empty((c, c)), np.empty((c, N)), np.empty((c, N)), np.empty((c + 1, N))
    g, K, WV = np.empty(size), np.empty((c, size)), np.empty((size, d))
    H, W, lifted = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))
    for s in range(len(a)):
        if np.isnan(value[s]):
            continue
        C[:] = root[s, :, :c]
        GM[:] = root[s, :, c:]
        damping, mean, better = first, 0.0, True
        for _ in range(n_steps):
            if better:
                at = phi[s], slope[s], span[s], inner[s], M[s], My[s]
                mean = _newton(at, a[s], w[s], rho[s], C, GM, (T, K, W, WV, g, H))
            lifted[:] = H
            for i in range(size):
                lifted[i, i] += damping * mean + 1e-300
            x = np.linalg.solve(lifted.T, g)
            trial = (1.0 - x[size - 1]) * a[s] - np.dot(x[: size - 1], span[s, : size - 1])
            trial /= max(np.sqrt(np.dot(trial, trial)), 1e-12)
            along = np.dot(span[s, : size - 1], trial)
            for j in range(c):
                for t in range(N):
                    ahead = slope[s, j, 0] * (along[t] - along[N + j])
                    G[j, t] = phi[s, j, t] * (ahead + along[N + c])
            moment = np.dot(G, M[s])
            system = np.dot(moment, G.T)
            for j in range(c):
                system[j, j] += rho[s] * np.dot(trial, trial)
            inverse, right = np.linalg.inv(system), np.dot(moment, y[s])
            w_new = np.dot(inverse, right)
            value_new = total[s] - np.dot(right, w_new)
            better = value_new < value[s]
            done = better and value[s] - value_new < enough * value_new
            if better:
                a[s], w[s], value[s], GM[:], C[:] = trial, w_new, value_new, moment, inverse
            damping *= 0.2 if better else 20.0
            if done or not damping < most:
                break


@_compiled
def _newton(at: Any, a: Any, w: Any, rho: float, C: Any, GM: Any, out: Any) -> Any:
    """As `problem.WideProblem.newton`; fills g and H, the transpose of W V'V + tau I."""
    phi, slope, span, inner, M, My = at
    T, K, W, WV, g, H = out
    c, N = phi.shape
    size, d = span.shape
    tau, r, q = rho * np.dot(w, w), My - np.dot(w, GM), np.zeros(N)
    T[c] = 0.0
    for j in range(c):
        for t in range(N):
            T[j, t] = -w[j] * slope[j, 0] * phi[j, t]
            T[c, t] += w[j] * phi[j, t]
            q[t] -= T[j, t]
    K[:, N : size - 1] = np.dot(GM, T.T)
    for j in range(c):
        total = 0.0
        for t in range(N):
            pull = phi[j, t] * r[t]
            total += pull
            K[j, t] = GM[j, t] * q[t] - slope[j, 0] * pull
        K[j, N + j] += slope[j, 0] * total
        K[j, N + c] -= total
        K[j, size - 1] = 2.0 * rho * w[j]
    np.dot(-K.T.copy(), np.dot(C, K), W)
    TM = np.dot(T, M)
    corner = np.dot(TM, T.T)
    for i in range(N):
        for t in range(N):
            W[i, t] += q[i] * M[i, t] * q[t]
        g[i] = -q[i] * r[i]
    for i in range(c + 1):
        for t in range(N):
            W[N + i, t] += TM[i, t] * q[t]
            W[t, N + i] += TM[i, t] * q[t]
        for j in range(c + 1):
            W[N + i, N + j] += corner[i, j]
        g[N + i] = -np.dot(T[i], r)
    g[size - 1] = tau
    span[size - 1] = a
    inner[size - 1] = np.dot(span, a)
    inner[:, size - 1] = inner[size - 1]
    np.dot(inner, W, H)
    for i in range(size):
        H[i, i] += tau
    np.dot(W, span, WV)
    diagonal = np.full(d, tau)
    for j in range(size):
        for i in range(d):
            diagonal[i] += WV[j, i] * span[j, i]
    return np.abs(diagonal).mean()

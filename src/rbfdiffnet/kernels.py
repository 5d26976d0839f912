"""The training of `rbfdiffnet.batched` compiled by numba, series by series: the extra ``[fast]``.

The same steps in the same order, so the networks are the same but for rounding. What it saves are
passes over memory: rows come in blocks that stay in the processor's cache from one product to
the next. The functions are small, take all arrays they need, and are kept on disk once compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rbfdiffnet import batched
from rbfdiffnet.backend import TIE
from rbfdiffnet.batched import BatchNetworks

try:
    from numba import njit

    AVAILABLE = True
except ImportError:  # the extra is not installed

    def njit(**options: Any) -> Any:  # type: ignore[no-redef]  # noqa: ARG001
        """Leave functions as they are."""
        return lambda function: function

    AVAILABLE = False

__all__ = ["AVAILABLE", "fit_batch_compiled"]

_BLOCK = 328  # rows

# Constants of other files are arguments: what is kept on disk does not see them change.
_compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


def fit_batch_compiled(
    X: Any,
    y: Any,
    weight: Any,
    *,
    n_centers: int = 28,
    width_factor: float = 4.0,
    n_steps: int = 12,
) -> BatchNetworks:
    """Train a network for every series of a batch, as `rbfdiffnet.batched.fit_batch` does.

    Parameters
    ----------
    X : ndarray of shape (B, d, N)
    y, weight : ndarrays of shape (B, N)
    n_centers, width_factor, n_steps
        As for `rbfdiffnet.batched.fit_batch`.

    Returns
    -------
    BatchNetworks

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.batched import fit_batch
    >>> from rbfdiffnet.kernels import fit_batch_compiled
    >>> X = np.random.default_rng(0).normal(size=(1, 2, 100))
    >>> y, ones = np.sin(X[:, 0]) + X[:, 1], np.ones((1, 100))
    >>> one, other = fit_batch(X, y, ones, n_centers=5), fit_batch_compiled(X, y, ones, n_centers=5)
    >>> bool(np.abs(one.a - other.a).max() < 1e-9)
    True
    """
    n = weight.sum(axis=1)
    Z, x_shift, x_scale = batched._standardize(X, weight[:, None], n[:, None], np)
    t, y_shift, y_scale = batched._standardize(y, weight, n, np)
    rows = np.concatenate([Z, weight[:, None], t[:, None]], axis=1)
    work = _Workspace(X.shape[2], n_centers, X.shape[1])
    fits = [work.fit(rows[i], n[i], width_factor, n_steps) for i in range(len(X))]
    centers, beta, a, b, unit, value, ridge = (np.stack(v) for v in zip(*fits, strict=True))
    return BatchNetworks(
        centers=centers,
        beta=beta,
        a=a,
        w=b[:, :n_centers],
        linear=b[:, n_centers:],
        x_shift=x_shift,
        x_scale=x_scale,
        y_shift=y_shift,
        y_scale=y_scale,
        unit=unit,
        largest=np.abs(y * weight).max(axis=1),
        value=value,
        ridge=ridge,
    )


class _Workspace:
    """Arrays for the training of one series, and its steps."""

    def __init__(self, n: int, c: int, d: int) -> None:
        blocks = -(-n // _BLOCK)
        size = 8 * -(-n // (8 * blocks))
        p = c + d + 1
        self.padded = np.zeros((d + 2, blocks * size))
        self.columns = np.zeros((blocks, p + d + 2, size))  # G, inputs, weight, target, J
        self.phi = np.empty((blocks, c, size))
        self.gram, self.moment = np.zeros((p, p)), np.zeros(p)
        self.root = np.zeros((p, p))

    def fit(self, rows: Any, n: float, width_factor: float, n_steps: int) -> tuple[Any, ...]:
        """Train one network on inputs, weight and target, of shape (d + 2, N), in units."""
        columns, phi, gram, moment = self.columns, self.phi, self.gram, self.moment
        blocks, c, size = phi.shape
        d, p = len(rows) - 2, len(gram)
        self.padded[:, -rows.shape[1] :] = rows
        data = columns[:, c : p + 1]
        data[:] = self.padded.reshape(-1, blocks, size).swapaxes(0, 1)
        centers, beta = np.empty((c, d)), np.empty(c)
        limits = (batched._SMALLEST_WIDTH, TIE, batched._LLOYD_STEPS)
        unit = _place(columns, n, width_factor, *limits, phi, centers, beta)
        np.exp(phi, out=phi)
        fixed = (data @ data.swapaxes(1, 2)).sum(axis=0)
        gram[c:, c:], moment[c:], total = fixed[:-1, :-1], fixed[:-1, -1], fixed[-1, -1]
        gradient, hessian, eye = np.empty(1 + d), np.empty((1 + d, 1 + d)), np.eye(1 + d)
        a = trial = np.full(1 + d, (1.0 + d) ** -0.5)
        b, value, ridge = np.full(p, np.nan), np.inf, np.nan
        damping = batched._FIRST_DAMPING
        for step in range(n_steps + 1):
            if step > 0:
                lift = damping * np.abs(np.diagonal(hessian)).mean() + 1e-300
                trial = a - np.linalg.solve(hessian + lift * eye, gradient)
                trial /= max(np.sqrt(trial @ trial), 1e-12)
            _gram(columns, phi, centers, beta, unit, trial, gram, moment)
            penalties = (batched._LINEAR_RIDGE, batched._UNPENALIZED)
            problem = (gram, moment, c, trial, n, total, self.root, *penalties)
            b_new = np.empty(p)
            if step == 0:
                scores = [_project(*problem, r, b_new)[1] for r in batched._RIDGES]
                ridge = batched._RIDGES[int(np.argmin(scores))]
            new, _ = _project(*problem, ridge, b_new)
            better = new < value
            if better:
                enough = value - new < batched._ENOUGH * new
                a, b, value = trial, b_new, new
                if enough or step == n_steps:
                    break
                state = (unit, a, n * (ridge + batched._UNPENALIZED), self.root, b)
                _newton(columns, phi, centers, beta, *state, gradient, hessian)
            if step > 0:
                damping *= 0.2 if better else 20.0
                if damping >= batched._MOST_DAMPING:
                    break
        return centers, beta, a, b, unit, value, ridge


@_compiled
def _product(A: Any, B: Any, out: Any) -> None:
    """A B."""
    np.dot(A, B, out)


@_compiled
def _contract(A: Any, B: Any, out: Any) -> None:
    """A B', for matrices with rows last."""
    np.dot(A, B.T, out)


@_compiled
def _place(
    columns: Any,
    total: float,
    width_factor: float,
    smallest: float,
    tie: float,
    n_steps: int,
    phi: Any,
    centers: Any,
    beta: Any,
) -> float:
    """Centers and widths; the exponents of the Gaussians go to phi. Returns the mean width."""
    blocks, _, size = columns.shape
    c, d = centers.shape
    left, sums = np.empty((c, d + 1)), np.zeros((c, d + 1))
    part = np.empty((c, d + 1))
    distance, low, square = np.empty((c, size)), np.empty(size), np.empty((blocks, size))
    away = np.zeros(c)
    for j in range(c):
        at = blocks * size - 1 - int((j + 0.5) * total / c)
        for i in range(d):
            centers[j, i] = columns[at // size, c + i, at % size]
    overall = 0.0
    for k in range(blocks):
        for t in range(size):
            square[k, t] = 0.0
        for i in range(d):
            for t in range(size):
                square[k, t] += columns[k, c + i, t] ** 2
        for t in range(size):
            overall += square[k, t]
    for step in range(n_steps + 1):
        for j in range(c):
            own = 0.0
            for i in range(d):
                left[j, i] = -2.0 * centers[j, i]
                own += centers[j, i] ** 2
            left[j, d] = own
        for j in range(c):
            for i in range(d + 1):
                sums[j, i] = 0.0
        for k in range(blocks):
            rows = columns[k, c : c + d + 1]
            _product(left, rows, distance)
            for t in range(size):
                low[t] = distance[0, t]
            for j in range(1, c):
                for t in range(size):
                    low[t] = min(low[t], distance[j, t])
            for j in range(c):
                for t in range(size):
                    distance[j, t] = 1.0 if distance[j, t] <= low[t] + tie else 0.0
            _contract(distance, rows, part)
            for j in range(c):
                for i in range(d + 1):
                    sums[j, i] += part[j, i]
            if step == n_steps:
                for t in range(size):
                    low[t] = np.sqrt(max(low[t] + square[k, t], 0.0)) * columns[k, c + d, t]
                for j in range(c):
                    s = 0.0
                    for t in range(size):
                        s += distance[j, t] * low[t]
                    away[j] += s
        if step < n_steps:
            for j in range(c):
                if sums[j, d] > 0.0:
                    for i in range(d):
                        centers[j, i] = sums[j, i] / max(sums[j, d], 1.0)
    spread = np.sqrt(overall / total)
    mean, good = 0.0, 0
    for j in range(c):
        away[j] /= max(sums[j, d], 1.0)
        if away[j] > smallest * spread:
            mean += away[j]
            good += 1
    mean /= max(good, 1)
    substitute = mean if mean > 0.0 else (spread if spread > 0.0 else 1.0)
    unit = 0.0
    for j in range(c):
        sigma = width_factor * (away[j] if away[j] > smallest * spread else substitute)
        beta[j] = 0.5 / sigma**2
        unit += sigma / c
    for k in range(blocks):
        _product(left, columns[k, c : c + d + 1], phi[k])
        for j in range(c):
            for t in range(size):
                weight = columns[k, c + d, t]
                exponent = -beta[j] * (phi[k, j, t] + square[k, t])
                phi[k, j, t] = exponent if weight > 0.0 else -np.inf
    return unit


@_compiled
def _gram(
    columns: Any, phi: Any, centers: Any, beta: Any, unit: float, a: Any, gram: Any, moment: Any
) -> None:
    """Write G(a), the Gram matrix of all columns but J, and their products with the target."""
    blocks, _, size = columns.shape
    c, d = centers.shape
    cross, rest = np.empty((c, c)), np.empty((c, d + 2))
    for j in range(c):
        moment[j] = 0.0
        for i in range(c + d + 1):
            gram[j, i] = 0.0
    slope, constant, along = np.empty(c), np.empty(c), np.empty(size)
    for j in range(c):
        slope[j] = -2.0 * beta[j] * unit
        at = 0.0
        for i in range(d):
            at += centers[j, i] * a[1 + i]
        constant[j] = a[0] - slope[j] * at
    for k in range(blocks):
        for t in range(size):
            along[t] = 0.0
        for i in range(d):
            for t in range(size):
                along[t] += a[1 + i] * columns[k, c + i, t]
        for j in range(c):
            for t in range(size):
                columns[k, j, t] = phi[k, j, t] * (slope[j] * along[t] + constant[j])
        _contract(columns[k, :c], columns[k, :c], cross)
        _contract(columns[k, :c], columns[k, c : c + d + 2], rest)
        for j in range(c):
            for i in range(c):
                gram[j, i] += cross[j, i]
            for i in range(d + 1):
                gram[j, c + i] += rest[j, i]
            moment[j] += rest[j, d + 1]
    for j in range(c):
        for i in range(d + 1):
            gram[c + i, j] = gram[j, c + i]


@_compiled
def _project(
    gram: Any,
    moment: Any,
    c: int,
    a: Any,
    n: float,
    total: float,
    root: Any,
    linear_ridge: float,
    trace: float,
    ridge: float,
    b: Any,
) -> tuple[float, float]:
    """L^-1 of the Cholesky factor L of A'A + D, and b; returns objective and score of the ridge.

    NaN where there is no factor.
    """
    p = len(moment)
    square = 0.0
    for i in range(len(a)):
        square += a[i] ** 2
    penalty, lower = np.empty(p), np.empty((p, p))
    for i in range(p):
        penalty[i] = n * ((ridge + trace) * square if i < c else linear_ridge)
    penalty[p - 1] = n * trace
    for i in range(p):
        for j in range(i + 1):
            s = gram[i, j] + (penalty[i] if i == j else 0.0)
            for k in range(j):
                s -= lower[i, k] * lower[j, k]
            if i > j:
                lower[i, j] = s / lower[j, j]
            elif s > 0.0:
                lower[i, i] = np.sqrt(s)
            else:
                return np.nan, np.nan
    for i in range(p):
        for j in range(p):
            root[i, j] = 0.0
        root[i, i] = 1.0
        for k in range(i):
            for j in range(k + 1):
                root[i, j] -= lower[i, k] * root[k, j]
        for j in range(i + 1):
            root[i, j] /= lower[i, i]
    value, loss, shrunk = total, 0.0, 0.0
    for i in range(p):
        b[i] = 0.0
    for i in range(p):
        half = 0.0
        for j in range(i + 1):
            half += root[i, j] * moment[j]
            shrunk += penalty[j] * root[i, j] ** 2
        value -= half**2
        for j in range(i + 1):
            b[j] += root[i, j] * half
    loss = value
    for i in range(p):
        loss -= penalty[i] * b[i] ** 2
    return value, n * loss / max(n - (p - shrunk), 1.0) ** 2


@_compiled
def _newton(
    columns: Any,
    phi: Any,
    centers: Any,
    beta: Any,
    unit: float,
    a: Any,
    rho: float,
    root: Any,
    b: Any,
    gradient: Any,
    hessian: Any,
) -> None:
    """Gradient and Hessian of F / 2 at a, whose G(a) is in its place."""
    blocks, width, size = columns.shape
    c, d = centers.shape
    p = c + d + 1
    left = np.empty((d + 2, c))
    for j in range(c):
        scaled = 2.0 * unit * beta[j] * b[j]
        left[0, j] = b[j]
        for i in range(d):
            left[1 + i, j] = scaled * centers[j, i]
        left[1 + d, j] = scaled
    slopes, r = np.empty((d + 2, size)), np.empty(size)
    rz, moments, part = np.empty((1 + d, size)), np.zeros((c, 1 + d)), np.empty((c, 1 + d))
    products, more = np.zeros((width, 1 + d)), np.empty((width, 1 + d))
    for k in range(blocks):
        _product(left, phi[k], slopes)
        for t in range(size):
            columns[k, p + 1, t] = slopes[0, t]
            r[t] = columns[k, p, t]
        for i in range(d):
            for t in range(size):
                columns[k, p + 2 + i, t] = (
                    slopes[1 + i, t] - columns[k, c + i, t] * slopes[1 + d, t]
                )
        for j in range(p):
            for t in range(size):
                r[t] -= b[j] * columns[k, j, t]
        for t in range(size):
            rz[0, t] = r[t] * columns[k, c + d, t]
        for i in range(d):
            for t in range(size):
                rz[1 + i, t] = rz[0, t] * columns[k, c + i, t]
        _contract(phi[k], rz, part)
        for j in range(c):
            for i in range(1 + d):
                moments[j, i] += part[j, i]
        _contract(columns[k], columns[k, p + 1 :], more)
        for j in range(width):
            for i in range(1 + d):
                products[j, i] += more[j, i]
    K = np.empty((p, 1 + d))
    for j in range(p):
        for i in range(1 + d):
            K[j, i] = products[j, i]
    size_w = 0.0
    for j in range(c):
        size_w += rho * b[j] ** 2
        scale = 2.0 * unit * beta[j]
        K[j, 0] += 2.0 * rho * b[j] * a[0] - moments[j, 0]
        for i in range(d):
            slope = scale * (centers[j, i] * moments[j, 0] - moments[j, 1 + i])
            K[j, 1 + i] += 2.0 * rho * b[j] * a[1 + i] - slope
    for i in range(1 + d):
        s = products[p, i]
        for j in range(p):
            s -= b[j] * products[j, i]
        gradient[i] = size_w * a[i] - s
    for i in range(1 + d):
        for j in range(1 + d):
            hessian[i, j] = products[p + 1 + i, j]
        hessian[i, i] += size_w
    half = np.empty(1 + d)
    for k in range(p):
        for i in range(1 + d):
            half[i] = 0.0
        for j in range(k + 1):
            for i in range(1 + d):
                half[i] += root[k, j] * K[j, i]
        for i in range(1 + d):
            for j in range(1 + d):
                hessian[i, j] -= half[i] * half[j]

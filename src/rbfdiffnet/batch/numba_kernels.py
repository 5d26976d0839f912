"""The compiled part of `rbfdiffnet.batch.numba_fit`: what numba turns into machine code.

Rows come in blocks that stay in the processor's cache from one product to the next. There are few
functions, as each call from Python holds up other threads, and not one alone, as numba takes
more than twice as long for functions of twice the size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

try:
    from numba import njit

    AVAILABLE = True
except ImportError:  # the extra is not installed
    AVAILABLE = False

__all__ = ["AVAILABLE", "attempt", "newton", "place"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _compiled(function: Function) -> Function:
    """Compile a function by numba, if it is there.

    Constants of other files must be arguments: what is kept on disk does not see them change. Sums
    are not reordered: whether they would be depends on where arrays lie in memory.
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
def place(
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
    left, sums = np.empty((c, d + 1)), np.empty((c, d + 1))
    part = np.empty((c, d + 1))
    distance, low, square = np.empty((c, size)), np.empty(size), np.empty((blocks, size))
    away = np.empty(c)
    for j in range(c):
        away[j] = 0.0
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
def attempt(
    columns: Any,
    phi: Any,
    centers: Any,
    beta: Any,
    unit: float,
    n: float,
    fixed: Any,
    ridges: Any,
    linear_ridge: float,
    trace: float,
    gram: Any,
    root: Any,
    first: bool,
    ridge: float,
    trial: Any,
    b_new: Any,
) -> tuple[float, float]:
    """Solve for b, given a.

    Writes b, G(a) and L^-1; returns the objective, NaN where A'A + D is not positive definite, and
    the penalty, which is chosen at the first attempt.
    """
    blocks, _, size = columns.shape
    c, d = centers.shape
    p, q = c + d + 1, 1 + d
    moment, penalty, lower = np.empty(p), np.empty(p), np.empty((p, p))
    cross, rest = np.empty((c, c)), np.empty((c, d + 2))
    slope, constant = np.empty(c), np.empty(c)
    direction, along = np.empty((1, d)), np.empty((1, size))

    # G(a) and its products with itself, the inputs and the target.
    for i in range(d):
        direction[0, i] = trial[1 + i]
    for j in range(c):
        slope[j] = -2.0 * beta[j] * unit
        at = 0.0
        for i in range(d):
            at += centers[j, i] * trial[1 + i]
        constant[j] = trial[0] - slope[j] * at
        moment[j] = 0.0
        for i in range(p):
            gram[j, i] = 0.0
    for k in range(blocks):
        _product(direction, columns[k, c : c + d], along)
        for j in range(c):
            for t in range(size):
                columns[k, j, t] = phi[k, j, t] * (slope[j] * along[0, t] + constant[j])
        _contract(columns[k, :c], columns[k, :c], cross)
        _contract(columns[k, :c], columns[k, c : p + 1], rest)
        for j in range(c):
            for i in range(c):
                gram[j, i] += cross[j, i]
            for i in range(q):
                gram[j, c + i] += rest[j, i]
            moment[j] += rest[j, q]
    total = fixed[q, q]
    for i in range(q):
        moment[c + i] = fixed[i, q]
        for j in range(q):
            gram[c + i, c + j] = fixed[i, j]
        for j in range(c):
            gram[c + i, j] = gram[j, c + i]

    # L^-1 of the Cholesky factor L of A'A + D, and b. First for every penalty, to choose one.
    lowest, new, best = np.inf, np.nan, ridge
    for r in range(0 if first else len(ridges), len(ridges) + 1):
        candidate = ridges[r] if r < len(ridges) else best
        for i in range(p):
            penalty[i] = n * (candidate + trace if i < c else linear_ridge)
        penalty[p - 1] = n * trace
        definite = True
        for i in range(p):
            for j in range(i + 1):
                s = gram[i, j]
                for k in range(j):
                    s -= lower[i, k] * lower[j, k]
                if i > j:
                    lower[i, j] = s / lower[j, j]
                else:
                    s += penalty[i]
                    definite = definite and s > 0.0
                    lower[i, i] = np.sqrt(s)
        for i in range(p):
            for j in range(i):
                root[i, j] = 0.0
            root[i, i] = 1.0
            for k in range(i):
                for j in range(k + 1):
                    root[i, j] -= lower[i, k] * root[k, j]
            for j in range(i + 1):
                root[i, j] /= lower[i, i]
        new, shrunk = total, 0.0
        for i in range(p):
            b_new[i] = 0.0
        for i in range(p):
            s = 0.0
            for j in range(i + 1):
                s += root[i, j] * moment[j]
                shrunk += penalty[j] * root[i, j] ** 2
            new -= s**2
            for j in range(i + 1):
                b_new[j] += root[i, j] * s
        if not definite:
            new = np.nan
        loss = new
        for i in range(p):
            loss -= penalty[i] * b_new[i] ** 2
        score = n * loss / max(n - (p - shrunk), 1.0) ** 2
        if r < len(ridges) and score < lowest:
            lowest, best = score, candidate
    return new, best


@_compiled
def newton(
    columns: Any,
    phi: Any,
    centers: Any,
    beta: Any,
    unit: float,
    rho: float,
    a: Any,
    b: Any,
    root: Any,
    gradient: Any,
    hessian: Any,
) -> None:
    """Gradient and Hessian of F / 2 at a, whose G(a) is in its place."""
    blocks, width, size = columns.shape
    c, d = centers.shape
    p, q = c + d + 1, 1 + d
    left, slopes, rz = np.empty((d + 2, c)), np.empty((d + 2, size)), np.empty((q, size))
    moments, part = np.empty((c, q)), np.empty((c, q))
    products, more = np.empty((width, q)), np.empty((width, q))
    residual, half = np.empty((1, p + 1)), np.empty(q)
    for j in range(p):
        residual[0, j] = -b[j]
    residual[0, p] = 1.0
    for j in range(c):
        scaled = 2.0 * unit * beta[j] * b[j]
        left[0, j] = b[j]
        for i in range(d):
            left[1 + i, j] = scaled * centers[j, i]
        left[1 + d, j] = scaled
        for i in range(q):
            moments[j, i] = 0.0
    for j in range(width):
        for i in range(q):
            products[j, i] = 0.0
    for k in range(blocks):
        _product(left, phi[k], slopes)
        _product(residual, columns[k, : p + 1], rz[:1])  # 0 in padding
        for t in range(size):
            columns[k, p + 1, t] = slopes[0, t]
        for i in range(d):
            for t in range(size):
                x = columns[k, c + i, t]
                columns[k, p + 2 + i, t] = slopes[1 + i, t] - x * slopes[1 + d, t]
                rz[1 + i, t] = x * rz[0, t]
        _contract(phi[k], rz, part)
        for j in range(c):
            for i in range(q):
                moments[j, i] += part[j, i]
        _contract(columns[k], columns[k, p + 1 :], more)
        for j in range(width):
            for i in range(q):
                products[j, i] += more[j, i]
    weights = 0.0
    for j in range(c):
        weights += rho * b[j] ** 2
    for i in range(q):
        s = products[p, i]
        for j in range(p):
            s -= b[j] * products[j, i]
        gradient[i] = weights * a[i] - s
        for j in range(q):
            hessian[i, j] = products[p + 1 + i, j]
        hessian[i, i] += weights
    # K = A'J - R + 2 rho w a', in the place of A'J.
    for j in range(c):
        products[j, 0] += 2.0 * rho * b[j] * a[0] - moments[j, 0]
        for i in range(d):
            change = centers[j, i] * moments[j, 0] - moments[j, 1 + i]
            change *= 2.0 * unit * beta[j]
            products[j, 1 + i] += 2.0 * rho * b[j] * a[1 + i] - change
    for k in range(p):
        for i in range(q):
            half[i] = 0.0
        for j in range(k + 1):
            for i in range(q):
                half[i] += root[k, j] * products[j, i]
        for i in range(q):
            for j in range(q):
                hessian[i, j] -= half[i] * half[j]

"""Centers and widths of many networks at once: Lloyd's algorithm from evenly spaced rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rbfdiffnet.batch.backend import TIE, Backend

_STEPS = 6
_SMALLEST_WIDTH = 1e-3  # of the spread of the inputs


def place_centers(
    rows: Any, n: Any, c: int, width_factor: float, backend: Backend
) -> tuple[Any, Any]:
    """Centers (B, c, d) among the n (B,) last of the rows (B, d + 1, N), and beta (B, c)."""
    series = backend.arange(len(rows), rows)[:, None]
    centers = rows[series, :-1, _first_rows(rows, n, c, backend)]
    square = (rows[:, :-1] ** 2).sum(axis=1).sum(axis=1)
    spread = backend.xp.sqrt(square / n)[:, None]
    return _lloyd(centers, lambda at: backend.assign(rows, at), spread, width_factor, backend.xp)


def place_by_products(
    inner: Any, weight: Any, n: Any, c: int, width_factor: float, backend: Backend
) -> tuple[Any, Any]:
    """The same from nothing but inner products of rows, (B, N, N), and the rows' weight (B, N).

    Centers are means of rows: (B, c, N) is how much of each row a center has.
    """
    xp, square = backend.xp, backend.diagonal_of(inner)

    def assign(centers: Any) -> tuple[Any, Any]:
        near = centers @ inner
        distance = (near * centers).sum(axis=2)[:, :, None] - 2.0 * near
        lowest = xp.amin(distance, axis=1, keepdims=True)
        member = backend.float(distance <= lowest + TIE) * weight[:, None]
        away = xp.sqrt(xp.clip(lowest + square[:, None], 0.0, None))
        sums = xp.concatenate([member, member.sum(axis=2)[:, :, None]], axis=2)
        return sums, (member * away).sum(axis=2)

    first = _first_rows(inner, n, c, backend)[:, :, None]
    centers = backend.float(backend.arange(inner.shape[2], inner)[None, None] == first)
    spread = xp.sqrt(square.sum(axis=1) / n)[:, None]
    return _lloyd(centers, assign, spread, width_factor, xp)


def _first_rows(rows: Any, n: Any, c: int, backend: Backend) -> Any:
    """Positions of the rows that centers start from, (B, c)."""
    back = (backend.arange(c, rows)[None] + 0.5) * n[:, None] / c
    return rows.shape[2] - 1 - backend.integers(back)


def _lloyd(
    centers: Any, assign: Callable[[Any], Any], spread: Any, width_factor: float, xp: Any
) -> tuple[Any, Any]:
    """Centers after some steps of Lloyd's algorithm; widths from the clusters, as beta.

    `assign` is like that of a `Backend`, and `spread` (B, 1) that of all rows.
    """
    for _ in range(_STEPS):
        sums, _ = assign(centers)
        count = sums[:, :, -1:]
        centers = xp.where(count > 0, sums[:, :, :-1] / xp.clip(count, 1.0, None), centers)
    sums, distances = assign(centers)
    sigma = distances / xp.clip(sums[:, :, -1], 1.0, None)
    # A cluster of one row, or of copies, has no width of its own: it gets the mean of the others.
    good = sigma > _SMALLEST_WIDTH * spread
    total = xp.where(good, sigma, xp.zeros_like(sigma)).sum(axis=1)[:, None]
    mean = total / xp.clip(good.sum(axis=1)[:, None], 1, None)
    substitute = xp.where(mean > 0, mean, xp.where(spread > 0, spread, xp.ones_like(spread)))
    sigma = width_factor * xp.where(good, sigma, substitute + 0.0 * sigma)
    return centers, 0.5 / sigma**2

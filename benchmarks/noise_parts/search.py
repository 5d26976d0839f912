"""Choose settings by cross-validation on a lattice, uphill and down, not all over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

N_FOLDS = 5


def folds(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to train on and rows to test on; each fold is a stretch of time."""
    rows = np.arange(n)
    return [(np.delete(rows, fold), fold) for fold in np.array_split(rows, N_FOLDS)]


def validated(make: Callable[..., Any], X: np.ndarray, y: np.ndarray) -> Callable[..., float]:
    """The mean squared error over the folds of ``make(**settings)``, as a function of settings."""

    def loss(**settings: Any) -> float:
        errors = [
            np.sum((make(**settings).fit(X[train], y[train]).predict(X[test]) - y[test]) ** 2)
            for train, test in folds(len(y))
        ]
        return float(sum(errors)) / len(y)

    return loss


def lattice_search(
    loss: Callable[..., float],
    axes: dict[str, Sequence[Any]],
    starts: Iterable[tuple[int, ...]],
) -> dict[str, Any]:
    """Step from the best of some places to the best of its neighbors, until none is better.

    ``axes`` are the settings' values in order, places are positions on the axes, and neighbors
    differ by one step on one axis. Every place is tried at most once.
    """
    names, values = list(axes), list(axes.values())
    seen: dict[tuple[int, ...], float] = {}

    def at(place: tuple[int, ...]) -> dict[str, Any]:
        return {name: axis[i] for name, axis, i in zip(names, values, place, strict=True)}

    def look(places: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
        for place in places:
            if place not in seen and all(
                0 <= i < len(v) for i, v in zip(place, values, strict=True)
            ):
                seen[place] = loss(**at(place))
        return min(seen, key=seen.__getitem__)

    best, before = look(starts), None
    while best != before:
        before = best
        best = look(
            tuple(i + step * (k == axis) for k, i in enumerate(before))
            for axis in range(len(names))
            for step in (-1, 1)
        )
    return at(best)

"""What the reader says of a series that is sampled in its own way: forecasts from many origins.

The network was trained on 5 to 40 values a period. Where a series has more, it reads the means of
blocks of values, and what it says is interpolated.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import Akima1DInterpolator

from rbfdiffnet.noise.reader.network import BEFORE, SEEN, read
from rbfdiffnet.support.arrays import Array, Ints

#: Blocks in a quarter of a period, and those of all ways to read a series.
BLOCKS, ALL_BLOCKS = 4, (3, 4)
#: Fewest blocks that are read, and fewest values.
FEWEST = 32
_PASSED = SEEN // 2  # blocks between origins of one pass, at most
_TOUCHED = 3  # blocks before an origin, and after the last step, that interpolation may use
_FARTHEST = 10.0  # standard deviations of a value, as in training
_MEDIAN = 1


def forecast(s: Array, h: int, quarter: int) -> Array:
    """Return the forecast of h values after a series (T,), NaN where missing.

    The series repeats itself after 4 quarters. It is read in blocks of two sizes, and upside down
    as well; the forecast is the mean.
    """
    end = np.array([len(s)])
    ways = [(sign, blocks) for sign in (1.0, -1.0) for blocks in ALL_BLOCKS]
    paths = [
        sign * forecast_from(sign * s, end, h, quarter, blocks, _TOUCHED)[0]
        for sign, blocks in ways
    ]
    return np.asarray(np.mean(paths, axis=0))


def forecast_from(
    s: Array, origins: Ints, h: int, quarter: int, blocks: int = BLOCKS, beyond: int = 0
) -> Array:
    """Return the medians of h values from each origin on, shape (n, h), knowing s[:origin] only.

    Interpolation looks at some blocks ``beyond`` a step: with `_TOUCHED` of them a forecast does
    not depend on how far one asks. Without them it is a little quicker.
    """
    first = s[: origins.min()]
    size = max(min(-(-quarter // blocks), first.size // FEWEST), 1)
    shift, scale = float(np.nanmean(first)), float(np.nanstd(first)) or 1.0
    z = np.clip((s - shift) / scale, -_FARTHEST, _FARTHEST)
    ahead = -(-h // size) + (beyond if size > 1 else 0)
    found = np.empty((origins.size, _TOUCHED + ahead))
    left = np.ones(origins.size, dtype=bool)
    # One pass serves the last origin that is left, and those that lie whole blocks before it.
    while left.any():
        away = origins[left].max() - origins
        own = left & (away % size == 0) & (away <= _PASSED * size)
        found[own] = _read_blocks(z, origins[own], size, ahead)
        left &= ~own
    if size > 1:
        middles = (np.arange(-_TOUCHED, ahead) + 0.5) * size - 0.5
        found = Akima1DInterpolator(middles, found, axis=1)(np.arange(h), extrapolate=True)
    else:
        found = found[:, _TOUCHED:]
    return np.asarray(found * scale + shift)


def _read_blocks(z: Array, origins: Ints, size: int, ahead: int) -> Array:
    """Return the means of a few blocks before and of those after each origin.

    Whole blocks lie between the origins.
    """
    last = int(origins.max())
    parts = z[last % size : last].reshape(-1, size)[-SEEN:]
    count = np.isfinite(parts).sum(axis=1)
    x = np.nansum(parts, axis=1) / np.maximum(count, 1)
    known = (count > 0).astype(np.float64)
    at = len(x) - 1 - (last - origins) // size
    told = read(x[None], known[None], at)[0, :, :, _MEDIAN]
    touched, path = told[:, BEFORE - _TOUCHED : BEFORE], told[:, BEFORE:]
    while path.shape[1] < ahead:
        paths = zip(at.tolist(), path, strict=True)
        more = [_go_on(x[: k + 1], known[: k + 1], own) for k, own in paths]
        path = np.concatenate([path, more], axis=1)
    return np.concatenate([touched, path[:, :ahead]], axis=1)


def _go_on(x: Array, known: Array, path: Array) -> Array:
    """Return the values after a path, which is taken for what came."""
    x = np.concatenate([x, path])[-SEEN:]
    known = np.concatenate([known, np.ones(path.size)])[-SEEN:]
    return read(x[None], known[None], np.array([x.size - 1]))[0, 0, BEFORE:, _MEDIAN]

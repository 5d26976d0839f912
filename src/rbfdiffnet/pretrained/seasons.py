"""The longer season that a season is part of: by convention, or found in the series."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import fft

from rbfdiffnet.batch.backend import to_numpy
from rbfdiffnet.pretrained.inputs import namespace, running_sums, take
from rbfdiffnet.support.arrays import Ints

#: Longer seasons by the season: a year of business days, a year of days, a week of hours.
USUAL = {5: 260, 7: 364, 24: 168, 48: 336, 96: 672}
_FEWEST_TURNS = 3  # of a season that is found
_CLEAR = 0.5  # share of the squared seasonal change that a found season may leave
_NEARLY = 1.1  # of the smallest change: the shortest such season is taken


def choose_longer_seasons(values: Any, lengths: Ints, season: int, longer: int | None) -> Ints:
    """Return the longer season that was given, of rows that are longer, 0 for none.

    None asks for the usual one, or one that is found; see `find_longer_seasons`. Values may be on
    a device.
    """
    if longer is None:
        return find_longer_seasons(values, lengths, season)
    return np.where(lengths > longer, longer, 0)


def find_longer_seasons(values: Any, lengths: Ints, season: int) -> Ints:
    """Return the longer season of each row, 0 for none.

    Rows of `values` (B, T) end in the last column, and the last `lengths` (B,) values count. A
    season is found where values change far less over it than over the season that was given, over
    its usual longer season, and over nearby numbers of steps.
    """
    usual = USUAL.get(season, 0)
    longer = np.where(lengths > usual, usual, 0)
    longest = int(lengths.max(initial=0)) // _FEWEST_TURNS
    if season < 2 or longest < season:
        return longer
    change = to_numpy(_squared_changes(values, lengths, longest))
    steps = np.arange(longest + 1)
    change[(steps > lengths[:, None] // _FEWEST_TURNS) | (steps < 2)] = np.inf
    rows = np.arange(len(change))
    near = change <= _NEARLY * change.min(axis=1, keepdims=True) + 1e-12
    best = np.argmax(near & np.isfinite(change), axis=1)
    least = change[rows, best]
    other = change[:, season]
    if 0 < usual <= longest:
        other = np.fmin(other, change[:, usual])
    aside, last = np.maximum(best // 8, 1), lengths // _FEWEST_TURNS
    left, right = change[rows, best - aside], change[rows, np.minimum(best + aside, last)]
    beside = np.fmin(np.where(left < np.inf, left, np.nan), right)
    clear = (least < _CLEAR * other) & (least < _CLEAR * beside) & np.isfinite(other)
    return np.where(clear & (best % season != 0) | clear & (best > season), best, longer)


def _squared_changes(values: Any, lengths: Ints, longest: int) -> Any:
    """Return mean squared changes over 0, 1, ..., longest steps, (B, longest + 1)."""
    xp, n_columns = namespace(values), values.shape[1]
    n, at, lag = lengths[:, None], np.arange(n_columns), np.arange(longest + 1)
    first = np.minimum(n_columns - n + lag, n_columns)
    pairs = np.maximum(n - lag, 1)
    transform: Any = fft
    if xp is not np:
        transform = xp.fft
        place = partial(xp.as_tensor, device=values.device)
        n, at, lag, first, pairs = (place(a) for a in (n, at, lag, first, pairs))
    seen = at >= n_columns - n
    mean = xp.where(seen, values, 0.0 * values).sum(1)[:, None] / xp.clip(n, 1, None)
    x = xp.where(seen, values - mean, 0.0 * values)
    largest = xp.amax(abs(x), 1)[:, None]
    x = x / xp.where(largest > 0.0, largest, 0.0 * largest + 1.0)
    size = fft.next_fast_len(n_columns + longest, real=True)
    spectrum = transform.rfft(x, size)
    product = transform.irfft(abs(spectrum) ** 2, size)[:, : longest + 1]
    sums = running_sums(x * x)
    late, early = sums[:, -1:] - take(sums, first), sums[:, n_columns - lag]
    return xp.clip(late + early - 2.0 * product, 0.0, None) / pairs

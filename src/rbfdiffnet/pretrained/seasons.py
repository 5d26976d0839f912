"""The longer season that a season is part of: by convention, or found in the series."""

from __future__ import annotations

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from rbfdiffnet.support.arrays import Array, Ints

#: Longer seasons by the season: a year of business days, a year of days, a week of hours.
USUAL = {5: 260, 7: 364, 24: 168, 48: 336, 96: 672}
_FEWEST_TURNS = 3  # of a season that is found
_CLEAR = 0.5  # share of the squared seasonal change that a found season may leave
_NEARLY = 1.1  # of the smallest change: the shortest such season is taken


def choose_longer_seasons(values: Array, lengths: Ints, season: int, longer: int | None) -> Ints:
    """Return the longer season that was given, of rows that are longer, 0 for none.

    None asks for the usual one, or one that is found; see `find_longer_seasons`.
    """
    if longer is None:
        return find_longer_seasons(values, lengths, season)
    return np.where(lengths > longer, longer, 0)


def find_longer_seasons(values: Array, lengths: Ints, season: int) -> Ints:
    """Return the longer season of each row, 0 for none.

    Rows of `values` (B, T) end in the last column, and the last `lengths` (B,) values count. A
    season is found where values change far less over it than over the season that was given, over
    its usual longer season, and over nearby numbers of steps.
    """
    usual = USUAL.get(season, 0)
    longer = np.where(lengths > usual, usual, 0)
    longest = int(lengths.max(initial=0)) // _FEWEST_TURNS
    if season < 2 or longest <= season:
        return longer
    change = _squared_changes(values, lengths, longest)
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


def _squared_changes(values: Array, lengths: Ints, longest: int) -> Array:
    """Return mean squared changes over 0, 1, ..., longest steps, (B, longest + 1)."""
    n_columns = values.shape[1]
    seen = np.arange(n_columns) >= n_columns - lengths[:, None]
    mean = np.where(seen, values, 0.0).sum(axis=1) / np.maximum(lengths, 1)
    x = np.where(seen, values - mean[:, None], 0.0)
    largest = np.abs(x).max(axis=1, keepdims=True, initial=0.0)
    x = x / np.where(largest > 0.0, largest, 1.0)
    size = next_fast_len(n_columns + longest, real=True)
    spectrum = rfft(x, size, axis=1)
    product = irfft(np.abs(spectrum) ** 2, size, axis=1)[:, : longest + 1]
    sums = np.concatenate([np.zeros((len(x), 1)), np.cumsum(x * x, axis=1)], axis=1)
    lag = np.arange(longest + 1)
    first = np.minimum(n_columns - lengths[:, None] + lag, n_columns)
    late = sums[:, -1:] - np.take_along_axis(sums, first, 1)
    early = sums[:, n_columns - lag]
    pairs = np.maximum(lengths[:, None] - lag, 1)
    return np.asarray(np.maximum(late + early - 2.0 * product, 0.0) / pairs)

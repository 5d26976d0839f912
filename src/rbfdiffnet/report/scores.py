r"""How good forecasts were in backtests: of every series, of all, and in words.

For a series with errors :math:`e_t = \hat y_t - y_t` in all windows of a backtest, and with the
values :math:`y_1, \dots, y_T` before the last of them,

.. math:: \text{MASE} = \frac{\text{mean} |e_t|}{\text{mean} |y_t - y_{t-m}|}, \qquad
    \text{RMSSE} = \sqrt{\frac{\text{mean}\, e_t^2}{\text{mean} (y_t - y_{t-1})^2}}

where m is the length of a season, and the scale of RMSSE begins with the first value that is not
zero. Both are missing where the scale is zero. All models are scored on the same rows: those where
the value and the forecasts of every model are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.frequency import Frequency
from rbfdiffnet.grid import to_wall
from rbfdiffnet.report.tables import Model, Table

__all__ = ["BASELINE", "Scores", "score", "season_of", "with_baseline"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BASELINE = "SeasonalNaive"


@dataclass(frozen=True)
class Scores:
    """Scores of models, each of shape (n_series, n_models); NaN for series without a score.

    Attributes
    ----------
    models : list of Model
    mase, rmsse, mae, bias : ndarray
        Bias is the mean of forecast minus value.
    best : ndarray
        1 for the model with the lowest mean absolute error, shared where several have it.
    coverage : dict of (str, str) to float
        Share of values inside an interval, by model and level, over all rows.
    total : dict of str to ndarray of shape (n_models,)
        MASE and RMSSE averaged over series, MAE and bias over rows, bias also as a share of
        the mean size of the values ("relative bias"), and "best" as a share of series.
    rows, left_out, windows, steps : int
        Rows scored and not scored; the most windows of a series; the most steps of a window.
    """

    models: list[Model]
    mase: Array
    rmsse: Array
    mae: Array
    bias: Array
    best: Array
    coverage: dict[tuple[str, str], float]
    total: dict[str, Array]
    rows: int
    left_out: int
    windows: int
    steps: int


def season_of(history: Table) -> int:
    """Return the usual number of steps in a season of the table's frequency, 1 if there is none."""
    times = to_wall(history.times, history.zone) if history.dates else history.times
    found = Frequency.infer(times.view("M8[ns]") if history.dates else times, history.series)
    return 1 if found is None else found.season_length


def score(
    backtest: Table, history: Table, target: str, models: Sequence[Model], season: int, n: int
) -> Scores:
    """Score the models of a backtest.

    Parameters
    ----------
    backtest, history : Table
        Both with the column ``target``.
    target : str
    models : sequence of Model
    season : int
        Length of a season.
    n : int
        Number of series.

    Returns
    -------
    Scores
    """
    assert backtest.cutoffs is not None
    actual = backtest.columns[target]
    forecasts = np.stack([backtest.columns[model.name] for model in models], axis=1)
    known = np.isfinite(actual) & np.isfinite(forecasts).all(axis=1)
    series, y = backtest.series[known], actual[known]
    errors = forecasts[known] - y[:, None]

    def by_series(values: Array) -> Array:
        """Mean over the rows of each series."""
        sums = np.stack([np.bincount(series, column, n) for column in values.T], axis=1)
        return _ratio(sums, np.bincount(series, minlength=n)[:, None])

    mae = by_series(np.abs(errors))
    absolute, squared = _scales(history, target, _last_cutoffs(backtest, n), season, n)
    mase = _ratio(mae, absolute[:, None])
    rmsse = np.sqrt(_ratio(by_series(errors**2), squared[:, None]))
    lowest = mae == np.min(mae, axis=1, keepdims=True)
    best = _ratio(lowest.astype(np.float64), lowest.sum(axis=1, keepdims=True))
    bias = errors.mean(axis=0) if len(y) else np.full(len(models), np.nan)
    windows = np.unique(np.stack([backtest.series, backtest.cutoffs]), axis=1, return_counts=True)
    return Scores(
        models=list(models),
        mase=mase,
        rmsse=rmsse,
        mae=mae,
        bias=by_series(errors),
        best=best,
        coverage=_coverage(backtest, actual, known, models),
        total={
            "MASE": _mean(mase),
            "RMSSE": _mean(rmsse),
            "MAE": np.abs(errors).mean(axis=0) if len(y) else bias,
            "bias": bias,
            "relative bias": _ratio(bias, np.abs(y).mean() if len(y) else 0.0),
            "best": _mean(best),
        },
        rows=int(known.sum()),
        left_out=int((~known).sum()),
        windows=int(np.bincount(windows[0][0]).max()),
        steps=int(windows[1].max()),
    )


def with_baseline(backtest: Table, history: Table, target: str, season: int) -> Table:
    r"""Add the seasonal naive forecast, the latest season repeated, unless it is there.

    .. math:: \hat y_{c+k} = y_{c + k - m \lceil k / m \rceil}

    for cutoff c, steps counted by the dates that occur in any series; the latest known value where
    that one is missing.
    """
    if BASELINE in backtest.columns:
        return backtest
    assert backtest.cutoffs is not None
    known = np.isfinite(history.columns[target])
    axis = np.unique(np.concatenate([history.times, backtest.times]))
    width = len(axis) + 1
    # Where each value stands in one line of all series, one after the other.
    place = history.series[known] * width + np.searchsorted(axis, history.times[known])
    values = history.columns[target][known]

    start = backtest.series * width
    cutoff = np.searchsorted(axis, backtest.cutoffs, side="right") - 1
    step = np.searchsorted(axis, backtest.times) - cutoff
    wanted = start + cutoff + step + season * (-step // season)
    latest = np.searchsorted(place, start + cutoff, side="right") - 1
    found = np.searchsorted(place, wanted, side="right") - 1
    there = (found >= 0) & (place[found] == wanted)
    some = (latest >= 0) & (place[latest] >= start)
    naive = np.where(there, values[found], np.where(some, values[latest], np.nan))
    columns = {**backtest.columns, BASELINE: naive}
    return Table(
        backtest.series, backtest.times, columns, backtest.dates, backtest.zone, backtest.cutoffs
    )


def _last_cutoffs(backtest: Table, n: int) -> Ints:
    last = np.full(n, np.iinfo(np.int64).min)
    assert backtest.cutoffs is not None
    np.maximum.at(last, backtest.series, backtest.cutoffs)
    return last


def _scales(history: Table, target: str, until: Ints, season: int, n: int) -> tuple[Array, Array]:
    """Mean absolute seasonal step and mean squared step of every series up to a time."""
    past = history.times <= until[history.series]
    series, y = history.series[past], history.columns[target][past]

    def mean_step(lag: int, power: int, use: npt.NDArray[np.bool_]) -> Array:
        step = np.abs(y[lag:] - y[:-lag]) ** power
        good = (series[lag:] == series[:-lag]) & np.isfinite(step) & use[:-lag]
        owner = series[lag:][good]
        return _ratio(np.bincount(owner, step[good], n), np.bincount(owner, minlength=n))

    sold = np.cumsum((y != 0.0) & np.isfinite(y))
    begins = np.searchsorted(series, np.arange(n))  # the first row of each series
    before = np.append(0, sold)[begins]
    started = sold > before[series]
    return mean_step(season, 1, np.full(len(y), True)), mean_step(1, 2, started)


def _coverage(
    backtest: Table, actual: Array, known: npt.NDArray[np.bool_], models: Sequence[Model]
) -> dict[tuple[str, str], float]:
    shares = {}
    for model in models:
        for level in model.levels:
            low, high = (backtest.columns[end] for end in model.ends(level))
            use = known & np.isfinite(low) & np.isfinite(high)
            inside = (low[use] <= actual[use]) & (actual[use] <= high[use])
            shares[model.name, level] = float(inside.mean()) if use.any() else np.nan
    return shares


def _ratio(values: npt.ArrayLike, by: npt.ArrayLike) -> Array:
    """Quotient, missing where the divisor is zero."""
    top, bottom = np.broadcast_arrays(np.asarray(values, float), np.asarray(by, float))
    quotient = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=quotient, where=bottom > 0.0)
    return quotient


def _mean(scores: Array) -> Array:
    """Mean over the series that have a score of every model."""
    good = np.isfinite(scores).all(axis=1)
    if not good.any():
        return np.full(scores.shape[1], np.nan)
    return np.asarray(scores[good].mean(axis=0))

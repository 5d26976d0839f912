r"""Errors of backtests: of every window, of every series, of all.

For a window of h known values, with errors :math:`e_k = \hat y_{T+k} - y_{T+k}`,

.. math::
    \mathrm{MASE} = \frac{\frac1h \sum_k |e_k|}{\operatorname{mean}_{t \le T} |y_t - y_{t-m}|},
    \qquad \mathrm{RMSSE} = \sqrt{\frac{\frac1h \sum_k e_k^2}
    {\operatorname{mean}_{f < t \le T} (y_t - y_{t-1})^2}}

where m is the length of a season, or 1 where not more than a season was seen, and f the time of the
first value that is not zero. Both scales are from the values before the window, on the regular grid
of the series, and skip missing values. A window whose scale is zero has neither error, whatever the
forecasts. The MASE of a series is the mean over its windows, that of a model the mean over series,
and so is RMSSE; MAE, bias and the share of values inside intervals are over rows.

All models are scored on the same rows: those whose value and whose forecasts of every model are
known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbfdiffnet.evaluation.backtest_frames import BacktestRows, ModelColumns
from rbfdiffnet.evaluation.scales import (
    divide,
    mean_change,
    mean_squared_step,
    scale_squared_error,
)
from rbfdiffnet.panel.panel import Panel

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """Scores of models on every series; NaN for series without a score.

    `mase`, `rmsse`, `mae` and `bias` (mean of forecast minus value) have shape (n_series,
    n_models). `rows` counts the scored rows of every series, `size` is the mean absolute value in
    these rows. `inside`, by model and level, has shape (n_series, 2): how many values were inside
    their interval, and of how many. `left_out` counts rows without a score, `windows` the windows
    of the series with most, `steps` the steps of the longest window.
    """

    models: tuple[ModelColumns, ...]
    mase: Array
    rmsse: Array
    mae: Array
    bias: Array
    rows: Ints
    size: Array
    inside: Mapping[tuple[str, str], Ints]
    left_out: int
    windows: int
    steps: int

    @classmethod
    def concatenate(cls, parts: Sequence[Scores]) -> Scores:
        """Put scores of the same models on different series together, one after the other."""
        first = parts[0]
        by_series = ("mase", "rmsse", "mae", "bias", "rows", "size")
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in by_series
        }
        return cls(
            first.models,
            inside={
                key: np.concatenate([part.inside[key] for part in parts]) for key in first.inside
            },
            left_out=sum(part.left_out for part in parts),
            windows=max(part.windows for part in parts),
            steps=max(part.steps for part in parts),
            **arrays,
        )

    @property
    def n_scored(self) -> int:
        """How many series have scores."""
        return int(np.count_nonzero(self.rows))

    @property
    def best(self) -> Array:
        """1 for the model with the lowest MAE on a series, shared where several have it."""
        lowest = self.mae == np.min(self.mae, axis=1, keepdims=True)
        return divide(lowest.astype(np.float64), lowest.sum(axis=1, keepdims=True))

    def total(self) -> dict[str, Array]:
        """Return the scores of each model on all series, by name.

        ``MASE``, ``RMSSE`` and ``best`` are means over series, ``MAE`` and ``bias`` over rows;
        ``relative bias`` is a share of the mean size of the values.
        """
        share = divide(self.rows, self.rows.sum())
        bias = _average_rows(share, self.bias)
        return {
            "MASE": _average_series(self.mase),
            "RMSSE": _average_series(self.rmsse),
            "MAE": _average_rows(share, self.mae),
            "bias": bias,
            "relative bias": divide(bias, _average_rows(share, self.size[:, None])),
            "best": _average_series(self.best),
        }

    def coverage(self, model: str, level: str) -> float:
        """Return the share of values inside an interval."""
        inside, of = self.inside[model, level].sum(axis=0)
        return float(inside / of) if of else float("nan")


def score_models(
    panel: Panel,
    rows: BacktestRows,
    columns: Mapping[str, Array],
    target: str,
    models: Sequence[ModelColumns],
    season_length: int,
) -> Scores:
    """Score models by columns of shape (n_rows,): values, forecasts and ends of intervals.

    `rows` says where the rows stand in the panel, from which errors take their scale.
    """
    n, actual = panel.n_series, columns[target]
    forecasts = np.stack([columns[model.name] for model in models], axis=1)
    there = rows.on_grid & (rows.series >= 0)
    known = there & np.isfinite(actual) & np.isfinite(forecasts).all(axis=1)
    series, y = rows.series[known], actual[known]
    errors = forecasts[known] - y[:, None]

    keys, window = np.unique(np.stack([series, rows.seen[known]]), axis=1, return_inverse=True)
    window = window.ravel()
    owner, seen = keys
    seasonal, single = _scales(panel, owner, seen, season_length)
    absolute = _average_groups(np.abs(errors), window, len(owner))
    squared = _average_groups(errors**2, window, len(owner))
    mase = divide(absolute, seasonal[:, None])
    rmsse = scale_squared_error(squared, single[:, None])
    inside = {}
    for model in models:
        for level in model.levels:
            low, high = (columns[end][known] for end in model.ends(level))
            use = np.isfinite(low) & np.isfinite(high)
            within = use & (low <= y) & (y <= high)
            counts = [np.bincount(series[mask], minlength=n) for mask in (within, use)]
            inside[model.name, level] = np.stack(counts, axis=1)
    return Scores(
        tuple(models),
        mase=_average_groups(mase, owner, n),
        rmsse=_average_groups(rmsse, owner, n),
        mae=_average_groups(np.abs(errors), series, n),
        bias=_average_groups(errors, series, n),
        rows=np.bincount(series, minlength=n),
        size=_average_groups(np.abs(y)[:, None], series, n)[:, 0],
        inside=inside,
        left_out=int((~known).sum()),
        windows=int(np.bincount(owner).max()) if len(owner) else 0,
        steps=int(rows.ahead[known].max()) if len(y) else 0,
    )


def _scales(panel: Panel, series: Ints, seen: Ints, season_length: int) -> tuple[Array, Array]:
    """Return the scales of windows from the first `seen` values of their series, shape (n,) each.

    The first is the mean absolute change over a season, or over one step where not more than a
    season was seen; the second is the mean squared step. Both are NaN where no change is known.
    """
    starts = panel.offsets[series]
    stops = np.minimum(starts + seen, panel.offsets[series + 1])
    seasonal = np.full(len(series), np.nan)
    lags = np.where(seen > season_length, season_length, 1)
    for lag in np.unique(lags).tolist():
        own = lags == lag
        seasonal[own] = mean_change(panel.y, starts[own], stops[own], lag, power=1)
    return seasonal, mean_squared_step(panel.y, starts, stops)


def _average_groups(values: Array, group: Ints, n: int) -> Array:
    """Average the known values of each column in each group; a row has all values or none."""
    good = np.isfinite(values).all(axis=1)
    group, values = group[good], values[good]
    sums = np.stack([np.bincount(group, column, n) for column in values.T], axis=1)
    return divide(sums, np.bincount(group, minlength=n)[:, None])


def _average_series(scores: Array) -> Array:
    """Average over the series that have scores."""
    good = np.isfinite(scores).all(axis=1)
    if not good.any():
        return np.full(scores.shape[1], np.nan)
    return np.asarray(scores[good].mean(axis=0))


def _average_rows(share: Array, values: Array) -> Array:
    """Average over rows, given means of series and their shares of all rows."""
    if not np.isfinite(share).all():
        return np.full(values.shape[1], np.nan)
    return np.asarray(share @ np.where(share[:, None] > 0.0, values, 0.0))

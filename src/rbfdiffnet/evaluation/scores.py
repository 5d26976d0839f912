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

from rbfdiffnet.evaluation.models import Model
from rbfdiffnet.evaluation.windows import Windows, scales
from rbfdiffnet.panel.panel import Panel

__all__ = ["Scores", "score"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """Scores of models, each of shape (n_series, n_models); NaN for series without a score.

    Attributes
    ----------
    models : tuple of Model
    mase, rmsse, mae, bias : ndarray of shape (n_series, n_models)
        Bias is the mean of forecast minus value.
    rows : ndarray of int of shape (n_series,)
        How many rows were scored.
    size : ndarray of shape (n_series,)
        Mean absolute value in these rows.
    inside : dict of (str, str) to ndarray of shape (n_series, 2)
        By model and level, how many values were inside their interval, and of how many.
    left_out, windows, steps : int
        Rows not scored; the most windows of a series; the most steps of a window.
    """

    models: tuple[Model, ...]
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
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        """Put scores of the same models on different series together."""
        first = parts[0]
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _BY_SERIES
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
        return _ratio(lowest.astype(np.float64), lowest.sum(axis=1, keepdims=True))

    def total(self) -> dict[str, Array]:
        """Return the scores of each model on all series, by name.

        ``MASE``, ``RMSSE`` and ``best`` are means over series, ``MAE`` and ``bias`` over rows;
        ``relative bias`` is a share of the mean size of the values.
        """
        share = _ratio(self.rows, self.rows.sum())
        bias = _weighted(share, self.bias)
        return {
            "MASE": _mean(self.mase),
            "RMSSE": _mean(self.rmsse),
            "MAE": _weighted(share, self.mae),
            "bias": bias,
            "relative bias": _ratio(bias, _weighted(share, self.size[:, None])),
            "best": _mean(self.best),
        }

    def coverage(self, model: str, level: str) -> float:
        """Return the share of values inside an interval."""
        inside, of = self.inside[model, level].sum(axis=0)
        return float(inside / of) if of else float("nan")


_BY_SERIES = ("mase", "rmsse", "mae", "bias", "rows", "size")


def score(
    panel: Panel,
    windows: Windows,
    columns: Mapping[str, Array],
    target: str,
    models: Sequence[Model],
    season_length: int,
) -> Scores:
    """Score models.

    Parameters
    ----------
    panel : Panel
        The series, from which errors take their scale.
    windows : Windows
        Where the rows stand in it.
    columns : mapping of str to ndarray of shape (n_rows,)
        Values, forecasts and ends of intervals.
    target : str
        The column of the values.
    models : sequence of Model
    season_length : int

    Returns
    -------
    Scores

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.panel import Panel
    >>> from rbfdiffnet.evaluation import Model, Windows, score
    >>> df = pd.DataFrame({"unique_id": "a", "ds": range(6), "y": [1, 3, 1, 3, 2, 2]})
    >>> folds = df[4:].assign(cutoff=3, m=[3, 2])
    >>> panel = Panel.from_frame(df, freq=1)
    >>> columns = {name: folds[name].to_numpy(float) for name in ("y", "m")}
    >>> scores = score(panel, Windows.of(panel, folds), columns, "y", [Model("m")], 1)
    >>> scores.total()["MASE"].item(), scores.total()["MAE"].item()
    (0.25, 0.5)
    """
    n, actual = panel.n_series, columns[target]
    forecasts = np.stack([columns[model.name] for model in models], axis=1)
    there = windows.on_grid & (windows.series >= 0)
    known = there & np.isfinite(actual) & np.isfinite(forecasts).all(axis=1)
    series, y = windows.series[known], actual[known]
    errors = forecasts[known] - y[:, None]

    keys, window = np.unique(np.stack([series, windows.seen[known]]), axis=1, return_inverse=True)
    window = window.ravel()
    owner, seen = keys
    seasonal, single = scales(panel, owner, seen, season_length)
    absolute = _grouped(np.abs(errors), window, len(owner))
    squared = _grouped(errors**2, window, len(owner))
    mase = _ratio(absolute, seasonal[:, None])
    rmsse = np.sqrt(_ratio(squared, single[:, None]))
    inside = {}
    for model in models:
        for level in model.levels:
            low, high = (columns[end][known] for end in model.ends(level))
            use = np.isfinite(low) & np.isfinite(high)
            within = use & (low <= y) & (y <= high)
            counts = [np.bincount(series[rows], minlength=n) for rows in (within, use)]
            inside[model.name, level] = np.stack(counts, axis=1)
    return Scores(
        tuple(models),
        mase=_grouped(mase, owner, n),
        rmsse=_grouped(rmsse, owner, n),
        mae=_grouped(np.abs(errors), series, n),
        bias=_grouped(errors, series, n),
        rows=np.bincount(series, minlength=n),
        size=_grouped(np.abs(y)[:, None], series, n)[:, 0],
        inside=inside,
        left_out=int((~known).sum()),
        windows=int(np.bincount(owner).max()) if len(owner) else 0,
        steps=int(windows.ahead[known].max()) if len(y) else 0,
    )


def _grouped(values: Array, group: Ints, n: int) -> Array:
    """Mean of the known values in each group, of every column; a row has all or none."""
    good = np.isfinite(values).all(axis=1)
    group, values = group[good], values[good]
    sums = np.stack([np.bincount(group, column, n) for column in values.T], axis=1)
    return _ratio(sums, np.bincount(group, minlength=n)[:, None])


def _ratio(values: npt.ArrayLike, by: npt.ArrayLike) -> Array:
    """Quotient, missing where the divisor is zero."""
    top, bottom = np.broadcast_arrays(np.asarray(values, float), np.asarray(by, float))
    quotient = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=quotient, where=bottom > 0.0)
    return quotient


def _mean(scores: Array) -> Array:
    """Mean over the series that have scores."""
    good = np.isfinite(scores).all(axis=1)
    if not good.any():
        return np.full(scores.shape[1], np.nan)
    return np.asarray(scores[good].mean(axis=0))


def _weighted(share: Array, values: Array) -> Array:
    """Mean over rows, from means of series."""
    if not np.isfinite(share).all():
        return np.full(values.shape[1], np.nan)
    return np.asarray(share @ np.where(share[:, None] > 0.0, values, 0.0))

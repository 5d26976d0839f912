r"""Errors of forecasts in long frames (pandas or polars), one row for each series.

The usual ones (``mae``, ``mse``, ``rmse``, ``bias``, ``mape``, ``smape``, ``mase``,
``quantile_loss``, ``mqloss``, ``coverage``, ``calibration``, ``scaled_crps``) are those of
utilsforecast, over the rows whose value is known. `evaluate_quantiles` has all scores of quantiles
and intervals at once, `revisions` tells how much forecasts of the same date moved.

`rmsse` and `wrmsse` are those of the M5 competition, whose scale leaves out the time before an item
was first sold:

.. math::

    \mathrm{RMSSE} = \sqrt{\frac{\frac1h \sum_{t=T+1}^{T+h} (y_t - \hat y_t)^2}
    {\frac{1}{T-f} \sum_{t=f+1}^{T} (y_t - y_{t-1})^2}}, \qquad
    \mathrm{WRMSSE} = \frac{\sum_i w_i \, \mathrm{RMSSE}_i}{\sum_i w_i}

where :math:`T` training values are followed by :math:`h` forecasts, :math:`f` is the time of the
first training value that is not zero, and :math:`w_i` is the weight of series :math:`i`.

Where the scale is zero (the training values never change, or there is only one, or nothing was
ever sold) there is no unit to measure an error in: an exact forecast has the error 0, which is 0
in any unit, and the error of any other forecast is missing rather than infinite. Missing errors
(NaN in pandas, null in polars) are left out of means and of the weights of WRMSSE, since one
infinite error would decide the mean alone.

References
----------
S. Makridakis, E. Spiliotis and V. Assimakopoulos (2022), "M5 accuracy competition: Results,
findings, and conclusions", International Journal of Forecasting 38, 1346-1364.

Examples
--------
>>> import pandas as pd
>>> from utilsforecast.evaluation import evaluate
>>> from rbfdiffnet.evaluation.metrics import mae, rmsse
>>> train = pd.DataFrame({"unique_id": "a", "ds": range(5), "y": [0, 0, 1, 3, 1]})
>>> test = pd.DataFrame({"unique_id": "a", "ds": [5, 6], "y": [1, 3], "model": [2, 2]})
>>> evaluate(test, metrics=[mae, rmsse], train_df=train)
  unique_id metric  model
0         a    mae    1.0
1         a  rmsse    0.5
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
from narwhals.stable.v2.typing import IntoDataFrame, IntoDataFrameT

from rbfdiffnet.evaluation.losses import ensemble_crps, interval_score, quantile_crps
from rbfdiffnet.evaluation.quantile_frames import evaluate_quantiles, quantile_columns
from rbfdiffnet.evaluation.revisions import revisions, summarize_revisions
from rbfdiffnet.evaluation.scores import mean_squared_step, scale_squared_error
from rbfdiffnet.evaluation.usual_metrics import (
    bias,
    calibration,
    coverage,
    mae,
    mape,
    mase,
    mqloss,
    mse,
    quantile_loss,
    rmse,
    scaled_crps,
    smape,
)
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import (
    as_floats,
    as_names,
    check_flag,
    check_number,
    check_size,
)

__all__ = ["bias", "calibration", "coverage", "ensemble_crps", "evaluate_quantiles", "mae", "mape"]
__all__ += ["mase", "mqloss", "mse", "path_crps", "quantile_columns", "quantile_crps"]
__all__ += ["quantile_loss", "revisions", "rmse", "rmsse", "rmsse_score", "scaled_crps", "smape"]
__all__ += ["summarize_revisions", "winkler_score", "wrmsse"]


_COUNT, _SCALE, _WEIGHT = "__count", "__scale", "__weight"


def rmsse_score(actual: npt.ArrayLike, forecast: npt.ArrayLike, train: npt.ArrayLike) -> float:
    """RMSSE of one series, in arrays: paper, eq. (rmsse), with its root.

    Parameters
    ----------
    actual, forecast : array-like of shape (h,)
        Missing actual values (NaN) are skipped.
    train : array-like of shape (T,)
        The values before, in order of time; steps from or to a missing value are skipped.

    Returns
    -------
    float
        NaN where the scale is zero and the forecast is not exact, where no actual value is known,
        and where a forecast is missing.

    See Also
    --------
    rmsse : The same for many series in a frame.

    Examples
    --------
    >>> from rbfdiffnet.evaluation.metrics import rmsse_score
    >>> rmsse_score(actual=[1, 3], forecast=[2, 2], train=[0, 0, 1, 3, 1])
    0.5
    """
    given = {"actual": actual, "forecast": forecast, "train": train}
    target, model, past = (as_floats(name, values) for name, values in given.items())
    if target.ndim != 1 or target.shape != model.shape or past.ndim != 1:
        raise ValueError(
            "actual and forecast must have the same length, one value a step, and train must be "
            f"one series; got shapes {target.shape}, {model.shape} and {past.shape}."
        )
    for name, values in zip(given, (target, model, past), strict=True):
        check_size(name, values)
    known = ~np.isnan(target)
    if not known.any():
        return math.nan
    squared = np.mean((target - model)[known] ** 2, keepdims=True)
    scale = mean_squared_step(past, np.array([0]), np.array([past.size]))
    return float(_scale_or_exact(squared, scale)[0])


def rmsse(
    df: IntoDataFrameT,
    models: Sequence[str],
    train_df: IntoDataFrameT,
    id_col: str = "unique_id",
    target_col: str = "y",
    cutoff_col: str = "cutoff",
    time_col: str = "ds",
) -> IntoDataFrameT:
    """RMSSE of every series, by the rule of the M5 competition.

    Parameters
    ----------
    df : pandas or polars DataFrame
        Actual values and forecasts. Rows without an actual value are skipped. With a cutoff
        column, as cross-validation gives it, every window has its own row in the result.
    models : sequence of str
        The columns of the forecasts.
    train_df : pandas or polars DataFrame
        The values to take the scale from, in any order of rows; with cutoffs, those up to the
        cutoff are taken.
    id_col, target_col, cutoff_col, time_col : str
        Names of the columns.

    Returns
    -------
    pandas or polars DataFrame, like ``df``
        The series (after the cutoff, if there is one) and a column for each model; missing (NaN
        in pandas, null in polars) where the scale is zero and the forecast is not exact, and
        where no actual value is known.

    Raises
    ------
    ValueError
        If a series has no training values, or a forecast is missing.

    See Also
    --------
    wrmsse : Its weighted mean.

    Examples
    --------
    The scale of ``b`` begins with its first sale; ``c`` never changed, so only the exact forecast
    has an error.

    >>> import pandas as pd
    >>> from rbfdiffnet.evaluation.metrics import rmsse
    >>> train = pd.DataFrame({"unique_id": list("aaabbbbccc"), "ds": [1, 2, 3, 0, 1, 2, 3, 1, 2, 3],
    ...                       "y": [1, 3, 1, 0, 0, 2, 6, 5, 5, 5]})
    >>> test = pd.DataFrame({"unique_id": list("abc"), "ds": 4, "y": [3, 6, 5],
    ...                      "naive": [1, 6, 5], "mean": [2, 2, 4]})
    >>> rmsse(test, ["naive", "mean"], train)
      unique_id  naive  mean
    0         a    1.0   0.5
    1         b    0.0   1.0
    2         c    0.0   NaN
    """
    models = _read_models(models, id_col, target_col, cutoff_col, time_col)
    frame = _frame("df", df, [id_col], [target_col, *models])
    past = _frame("train_df", train_df, [id_col, time_col], [target_col])
    frame = frame.with_columns(*map(_nan_to_null, (target_col, *models)))
    past = past.with_columns(_nan_to_null(target_col))
    keys = [cutoff_col, id_col] if cutoff_col in frame.columns else [id_col]
    if cutoff_col in keys and cutoff_col not in past.columns:
        windows = frame.select(*keys).unique()
        past = past.join(windows, on=id_col).filter(nw.col(time_col) <= nw.col(cutoff_col))
    _check_complete(frame, past, keys, target_col, models, time_col)

    errors = [((nw.col(target_col) - nw.col(model)) ** 2).alias(model) for model in models]
    scores = frame.select(*keys, *errors).group_by(*keys).agg(nw.col(*models).mean())
    scores = scores.join(_scales(past, keys, target_col, time_col), on=keys, how="left")
    scores = scores.sort(*keys)
    squared = np.stack([scores[model].to_numpy() for model in models], axis=1)
    found = _scale_or_exact(squared, scores[_SCALE].to_numpy()[:, None])
    scaled = [
        nw.new_series(model, column, dtype=nw.Float64, backend=scores.implementation)
        for model, column in zip(models, found.T, strict=True)
    ]
    scores = scores.select(*keys).with_columns(*scaled)
    result: IntoDataFrameT = nw.maybe_reset_index(
        scores.with_columns(*map(_nan_to_null, models))
    ).to_native()
    return result


def wrmsse(
    df: IntoDataFrameT,
    models: Sequence[str],
    train_df: IntoDataFrameT,
    weights: Mapping[Any, float] | IntoDataFrame,
    id_col: str = "unique_id",
    target_col: str = "y",
    cutoff_col: str = "cutoff",
    time_col: str = "ds",
) -> IntoDataFrameT:
    """Weighted mean of the RMSSE of all series, by the rule of the M5 competition.

    Parameters
    ----------
    df, models, train_df
        As in :func:`rmsse`.
    weights : mapping or DataFrame
        The weight of every series, at least 0: a mapping from series to weight, or a frame with
        the column ``id_col`` and a column ``weight``. In M5 it is the revenue of the last 28
        training days. The weights need not add up to 1; those of other series do not count.
    id_col, target_col, cutoff_col, time_col : str
        Names of the columns.

    Returns
    -------
    pandas or polars DataFrame, like ``df``
        One row (with cutoffs, one for each) and a column for each model. A series whose RMSSE is
        missing is left out together with its weight.

    Raises
    ------
    ValueError
        If a series has no weight or two, or a weight is negative or not finite.

    See Also
    --------
    rmsse : What is averaged.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.evaluation.metrics import wrmsse
    >>> train = pd.DataFrame({"unique_id": list("aaabbb"), "ds": [1, 2, 3] * 2,
    ...                       "y": [1, 3, 1, 2, 6, 2]})
    >>> test = pd.DataFrame({"unique_id": list("ab"), "ds": 4, "y": [3, 6], "naive": [1, 4]})
    >>> wrmsse(test, ["naive"], train, weights={"a": 30, "b": 10})
       naive
    0  0.875
    """
    models = _read_models(models, id_col, target_col, cutoff_col, time_col)
    native = rmsse(df, models, train_df, id_col, target_col, cutoff_col, time_col)
    scores = nw.from_native(native, eager_only=True)
    weight = nw.new_series(
        _WEIGHT,
        _look_up(weights, scores[id_col].to_list(), id_col),
        dtype=nw.Float64,
        backend=scores.implementation,
    )
    # A missing score takes its weight along.
    present = [nw.when(~nw.col(m).is_null()).then(nw.col(_WEIGHT)) for m in models]
    columns = [f"{_WEIGHT}_{m}" for m in models]
    parts = scores.with_columns(weight).with_columns(
        *((nw.col(m) * nw.col(_WEIGHT)).alias(m) for m in models),
        *(w.alias(column) for w, column in zip(present, columns, strict=True)),
    )
    sums = nw.col(*models, *columns).sum()
    windows = [cutoff_col] if cutoff_col in parts.columns else []
    totals = parts.group_by(*windows).agg(sums).sort(*windows) if windows else parts.select(sums)
    means = [
        nw.when(nw.col(w) > 0.0).then(nw.col(m) / nw.col(w)).alias(m)
        for m, w in zip(models, columns, strict=True)
    ]
    return nw.maybe_reset_index(totals.select(*windows, *means)).to_native()


def winkler_score(
    df: IntoDataFrameT,
    models: Sequence[str],
    level: float,
    id_col: str = "unique_id",
    target_col: str = "y",
    cutoff_col: str = "cutoff",
) -> IntoDataFrameT:
    r"""Winkler score (interval score) of every series: narrow intervals that hold the values win.

    .. math:: W = u - l + \frac{2}{\alpha} \bigl((l - y)_+ + (y - u)_+\bigr), \qquad
        \alpha = 1 - \frac{\text{level}}{100}

    Parameters
    ----------
    df : pandas or polars DataFrame
        Actual values and the ends of intervals, ``Model-lo-80`` and ``Model-hi-80``. Rows where
        one of them is missing are skipped.
    models : sequence of str
        Names of the models.
    level : float
        Level of the intervals in percent.
    id_col, target_col, cutoff_col : str
        Names of the columns.

    Returns
    -------
    pandas or polars DataFrame, like ``df``
        The series (after the cutoff, if there is one) and a column for each model: the mean score,
        in units of the values.

    See Also
    --------
    evaluate_quantiles : All levels and models at once, for each step ahead too.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.evaluation.metrics import winkler_score
    >>> df = pd.DataFrame({"unique_id": ["a", "b"], "y": [5.0, 7.0], "M-lo-80": 4.0, "M-hi-80": 6})
    >>> winkler_score(df, ["M"], level=80)
      unique_id     M
    0         a   2.0
    1         b  12.0
    """
    models = _read_models(models, id_col, target_col, cutoff_col)
    check_number("level", level, above=0, below=100)
    ends = {model: [f"{model}-{end}-{level:g}" for end in ("lo", "hi")] for model in models}
    needed = [target_col, *(name for own in ends.values() for name in own)]
    frame = _frame("df", df, [id_col], needed).with_columns(*map(_nan_to_null, needed))
    y, *columns = (frame[name].to_numpy().astype(np.float64) for name in needed)
    for name, values in zip(needed, (y, *columns), strict=True):
        check_size(f"Column {name!r}", values)
    pairs = zip(models, columns[::2], columns[1::2], strict=True)
    found = {m: interval_score(y, low, high, level / 100.0) for m, low, high in pairs}
    keys = [c for c in (cutoff_col, id_col) if c in frame.columns]
    result: IntoDataFrameT = _average_series(frame, keys, found)
    return result


def path_crps(
    df: IntoDataFrameT,
    models: Sequence[str],
    fair: bool = True,
    id_col: str = "unique_id",
    target_col: str = "y",
    cutoff_col: str = "cutoff",
    time_col: str = "ds",
) -> IntoDataFrameT:
    """CRPS of every series, from sample paths.

    Parameters
    ----------
    df : pandas or polars DataFrame
        A row for each series, date (and cutoff, if there is one) and path, in any order, with the
        actual value repeated. Dates may have different numbers of paths. Rows without a value or a
        forecast are skipped.
    models : sequence of str
        The columns of the forecasts.
    fair : bool, default=True
        Take the fair estimator rather than the usual one, as `ensemble_crps` defines them. Dates
        with one path have no fair score.
    id_col, target_col, cutoff_col, time_col : str
        Names of the columns.

    Returns
    -------
    pandas or polars DataFrame, like ``df``
        The series (after the cutoff, if there is one) and a column for each model: the mean over
        dates, in units of the values.

    See Also
    --------
    ensemble_crps : What is averaged.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.evaluation.metrics import path_crps
    >>> paths = pd.DataFrame({"unique_id": "a", "ds": [1, 2] * 3, "path": [0, 0, 1, 1, 2, 2],
    ...                       "y": [2.0, 5.0] * 3, "M": [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]})
    >>> path_crps(paths, ["M"]).round(3)
      unique_id      M
    0         a  1.167
    """
    models = _read_models(models, id_col, target_col, cutoff_col, time_col)
    check_flag("fair", fair)
    frame = _frame("df", df, [id_col, time_col], [target_col, *models])
    frame = frame.with_columns(*map(_nan_to_null, (target_col, *models)))
    series = [c for c in (cutoff_col, id_col) if c in frame.columns]
    keys = [*series, time_col]
    scores = frame.select(*keys).unique().sort(*keys)
    for model in models:
        known = frame.filter(~nw.col(model).is_null() & ~nw.col(target_col).is_null())
        known = known.sort(*keys, model)
        dates = known.select(*keys).group_by(*keys).agg(nw.len().alias(_COUNT)).sort(*keys)
        counts = dates[_COUNT].to_numpy().astype(np.int64)
        y, x = (known[name].to_numpy() for name in (target_col, model))
        score = np.full(len(counts), np.nan)
        first = np.cumsum(counts) - counts
        for m in np.unique(counts[counts > int(fair)]).tolist():
            at = first[counts == m]
            score[counts == m] = ensemble_crps(y[at], x[at[:, None] + np.arange(m)], fair)
        column = nw.new_series(model, score, dtype=nw.Float64, backend=dates.implementation)
        scores = scores.join(dates.select(*keys).with_columns(column), on=keys, how="left")
    found = {model: scores[model].to_numpy() for model in models}
    result: IntoDataFrameT = _average_series(scores, series, found)
    return result


def _average_series(frame: nw.DataFrame[Any], keys: list[str], scores: Mapping[str, Array]) -> Any:
    """Average the known scores of rows for each series, and return a native frame."""
    columns = [
        nw.new_series(name, values, dtype=nw.Float64, backend=frame.implementation)
        for name, values in scores.items()
    ]
    rows = nw.maybe_reset_index(frame.select(*keys)).with_columns(*columns)
    rows = rows.with_columns(*map(_nan_to_null, scores))
    means = rows.group_by(*keys).agg(nw.col(*scores).mean()).sort(*keys)
    return nw.maybe_reset_index(means).to_native()


def _read_models(models: Any, *others: Any) -> list[str]:
    """Return the names of models; none may be that of another column in use."""
    names = as_names("models", [models] if isinstance(models, str) else models)
    for name in names:
        if name in others:
            raise ValueError(f"models names {name!r}, which is no column of forecasts.")
    return names


def _frame(what: str, df: Any, names: list[str], numbers: list[str]) -> nw.DataFrame[Any]:
    """Return a frame behind one interface, its columns checked."""
    try:
        frame: nw.DataFrame[Any] = nw.from_native(df, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"{what} must be a pandas or polars data frame; got {type(df).__name__}."
        ) from error
    for name in (*names, *numbers):
        if not isinstance(name, str) or name not in frame.columns:
            known = ", ".join(map(repr, frame.columns))
            raise ValueError(f"{what} has no column {name!r}, only {known}.")
    for name in numbers:
        column = frame[name]
        if column.dtype in (nw.String, nw.Datetime, nw.Date, nw.Duration, nw.Categorical):
            raise TypeError(f"Column {name!r} of {what} must hold numbers, not {column.dtype}.")
    return frame


def _nan_to_null(column: str) -> nw.Expr:
    """Turn NaN, which is a value to polars, into a missing value as in pandas."""
    value = nw.col(column).cast(nw.Float64)
    return nw.when(~(value.is_null() | value.is_nan())).then(value).alias(column)


def _scales(
    past: nw.DataFrame[Any], keys: list[str], target_col: str, time_col: str
) -> nw.DataFrame[Any]:
    """Return the mean squared step of every series from its first sale on."""
    past = past.sort(*keys, time_col)
    series = past.group_by(*keys).agg(nw.len().alias(_COUNT)).sort(*keys)
    counts = series[_COUNT].to_numpy().astype(np.int64)
    stops = np.cumsum(counts)
    scale = mean_squared_step(past[target_col].to_numpy(), stops - counts, stops)
    column = nw.new_series(_SCALE, scale, dtype=nw.Float64, backend=series.implementation)
    return series.select(*keys).with_columns(column)


def _scale_or_exact(squared: Array, scale: Array) -> Array:
    """Return the RMSSE, which is 0 for exact forecasts even where there is no scale."""
    return np.where(squared == 0.0, 0.0, scale_squared_error(squared, scale))


def _check_complete(
    frame: nw.DataFrame[Any],
    past: nw.DataFrame[Any],
    keys: list[str],
    target_col: str,
    models: Sequence[str],
    time_col: str,
) -> None:
    """Raise an error where training values or forecasts are missing."""
    known = frame.filter(~nw.col(target_col).is_null())
    for model in models:
        missing = known.filter(nw.col(model).is_null())
        if len(missing):
            columns = [c for c in (*reversed(keys), time_col) if c in missing.columns]
            where = ", ".join(f"{c}={missing[c][0]}" for c in columns)
            raise ValueError(
                f"Column '{model}' has no forecast for {where}, where '{target_col}' is known "
                f"({len(missing)} such rows); forecast them or drop the rows."
            )
    untrained = frame.select(*keys).unique().join(past.select(*keys).unique(), on=keys, how="anti")
    if len(untrained):
        where = ", ".join(f"{c}={untrained[c][0]}" for c in reversed(keys))
        raise ValueError(
            f"train_df has no rows for {where} ({len(untrained)} such series); the scale of RMSSE "
            "comes from the values before the forecasts."
        )


def _look_up(weights: Mapping[Any, float] | IntoDataFrame, series: list[Any], id_col: str) -> Array:
    """Return the weight of every series in the list."""
    if isinstance(weights, Mapping):
        table = dict(weights)
    else:
        frame = _frame("weights", weights, [id_col], ["weight"])
        table = dict(zip(frame[id_col].to_list(), frame["weight"].to_list(), strict=True))
        if len(table) < len(frame):
            repeated = frame.filter(nw.col(id_col).is_duplicated())[id_col][0]
            raise ValueError(f"weights has several rows for series {repeated!r}; keep one.")
    for name in series:
        if name not in table:
            raise ValueError(f"weights has none for series {name!r}; give every series one.")
    found = as_floats("weights", [table[name] for name in series])
    bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0.0)))
    if bad.size:
        raise ValueError(
            f"The weight of series {series[bad[0]]!r} is {found[bad[0]]}; weights must be finite "
            "and at least 0."
        )
    return found

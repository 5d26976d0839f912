"""Revisions: how much the forecast of the same date moves from one origin to the next.

What is public here is exported by `metrics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from rbfdiffnet.evaluation.backtest_frames import QuantileName
from rbfdiffnet.evaluation.quantile_frames import BacktestNames, Windows, count_steps
from rbfdiffnet.evaluation.scores import divide
from rbfdiffnet.panel.frames import make_frame
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.checks import as_names


def revisions(
    cv_frame: Any,
    models: Sequence[str] | None = None,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    cutoff_col: str = "cutoff",
) -> Any:
    r"""Tell how much the forecast of the same date moved since the origin before.

    .. math:: r_{t \mid T} = \hat y_{t \mid T} - \hat y_{t \mid T'}

    where :math:`T'` is the latest cutoff before :math:`T` from which the date :math:`t` of the
    series was forecast. Plans are made from forecasts, and each time these move, plans have to be
    made again: of two models with the same errors, the one with small revisions is the easier to
    work with.

    Parameters
    ----------
    cv_frame : pandas or polars DataFrame
        A backtest whose windows overlap, as `RBFDiffNet.cross_validation` gives it with
        ``step_size`` below ``h``; or forecasts that were kept day by day. ``unique_id, ds,
        cutoff`` and columns of forecasts, in any order of rows.
    models : sequence of str, optional
        Columns of forecasts; by default all columns of numbers but the target, quantiles and ends
        of intervals.
    id_col, time_col, target_col, cutoff_col : str
        Names of the columns.

    Returns
    -------
    pandas or polars DataFrame, like ``cv_frame``
        The frame, with a column ``Model-revision`` for each model: the forecast of the row minus
        that of the same series and date from the cutoff before. It is missing where there is no
        such cutoff, or one of the two forecasts is missing.

    Raises
    ------
    ValueError
        If no date was forecast from two cutoffs, or one was forecast twice from the same.

    See Also
    --------
    summarize_revisions : How large they are, beside errors, for each step ahead.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.evaluation.metrics import revisions
    >>> folds = pd.DataFrame({"unique_id": "a", "ds": [4, 5, 5, 6], "cutoff": [3, 3, 4, 4],
    ...                       "y": [7.0, 8.0, 8.0, 9.0], "M": [7.0, 7.0, 9.0, 9.0]})
    >>> revisions(folds)
      unique_id  ds  cutoff    y    M  M-revision
    0         a   4       3  7.0  7.0         NaN
    1         a   5       3  8.0  7.0         NaN
    2         a   5       4  8.0  9.0         2.0
    3         a   6       4  9.0  9.0         NaN
    """
    names = BacktestNames(id_col, time_col, target_col, cutoff_col)
    frame = names.read(cv_frame)
    before = _find_earlier(frame, names)
    moved = {}
    for model in _find_forecasts(frame, names, models):
        values = names.numbers(frame[model])
        moved[f"{model}-revision"] = values - _earlier(values, before)
    taken = next((name for name in moved if name in frame.columns), None)
    if taken is not None:
        raise ValueError(f"The frame has a column {taken!r} already; rename or drop it.")
    new = nw.from_native(make_frame(frame[id_col], moved, null=True), eager_only=True)
    return frame.with_columns(*(new[name] for name in moved)).to_native()


def summarize_revisions(
    cv_frame: Any,
    models: Sequence[str] | None = None,
    *,
    freq: Any = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    cutoff_col: str = "cutoff",
) -> Any:
    """Summarize revisions for each model and step ahead, beside errors.

    Parameters
    ----------
    cv_frame, models
        As in `revisions`; the target is needed, too.
    freq : str, int or pandas offset, optional
        Step of time; by default what the dates suggest.
    id_col, time_col, target_col, cutoff_col : str
        Names of the columns.

    Returns
    -------
    pandas or polars DataFrame, like ``cv_frame``
        A row for each model and step ahead that has revisions, with the columns

        - ``model``, and ``horizon``: steps from the cutoff of the later forecast;
        - ``n``: the revisions of dates whose value is known; all that follows is over these;
        - ``revision``: the mean absolute revision, in units of the values;
        - ``mae``: the mean absolute error of the later forecasts;
        - ``mae_before``: that of the forecasts that they replaced;
        - ``relative``: ``revision / mae``. Where forecasts move by more than they are off, 1 and
          above, while ``mae`` is hardly below ``mae_before``, they jump for nothing.

    See Also
    --------
    revisions : The revision of every row.

    Examples
    --------
    The first model moves a lot and is no better for it, the second moves little:

    >>> import pandas as pd
    >>> from rbfdiffnet.evaluation.metrics import summarize_revisions
    >>> folds = pd.DataFrame({"unique_id": "a", "ds": [4, 5, 5, 6, 6, 7],
    ...                       "cutoff": [3, 3, 4, 4, 5, 5], "y": [7.0, 8.0, 8.0, 8.0, 8.0, 8.0],
    ...                       "jumpy": [7.0, 7.0, 9.0, 9.0, 7.0, 7.0], "calm": 7.0})
    >>> summarize_revisions(folds)
       model  horizon  n  revision  mae  mae_before  relative
    0  jumpy        1  2       2.0  1.0         1.0       2.0
    1   calm        1  2       0.0  1.0         1.0       0.0
    """
    names = BacktestNames(id_col, time_col, target_col, cutoff_col)
    frame = names.read(cv_frame, target_col)
    before = _find_earlier(frame, names)
    ahead = count_steps(frame, names, freq)
    y = names.numbers(frame[target_col])
    parts: dict[str, list[Any]] = {name: [] for name in ("model", "horizon", "n")}
    means: dict[str, list[Array]] = {name: [] for name in ("revision", "mae", "mae_before")}
    for model in _find_forecasts(frame, names, models):
        later = names.numbers(frame[model])
        earlier = _earlier(later, before)
        used = np.isfinite(y) & np.isfinite(later) & np.isfinite(earlier)
        steps, group, n = np.unique(ahead[used], return_inverse=True, return_counts=True)
        parts["model"].append(np.full(len(steps), model, dtype=object))
        parts["horizon"].append(steps)
        parts["n"].append(n)
        rows = (later - earlier, later - y, earlier - y)
        for name, values in zip(means, rows, strict=True):
            means[name].append(np.bincount(group, np.abs(values[used]), len(steps)) / n)
    table = {name: np.concatenate(columns) for name, columns in (parts | means).items()}
    if not len(table["n"]):
        raise ValueError(f"No revised forecast is of a date whose {target_col!r} is known.")
    table["relative"] = divide(table["revision"], table["mae"])
    return make_frame(frame[id_col], table, null=True)


def _find_forecasts(frame: nw.DataFrame[Any], names: BacktestNames, models: Any) -> list[str]:
    """Return the columns of forecasts: those named, or all that may be."""
    columns = names.others(frame)
    if models is not None:
        wanted = as_names("models", models)
        missing = [name for name in wanted if name not in columns]
        if missing:
            raise ValueError(
                f"The frame has no forecasts {missing[0]!r}, only the columns "
                f"{', '.join(map(repr, columns))}."
            )
    else:
        numbers = [name for name in columns if frame[name].dtype.is_numeric()]
        wanted = [name for name in numbers if QuantileName.parse(name) is None]
    if not wanted:
        raise ValueError("The frame has no column of forecasts; name one in models.")
    return wanted


def _find_earlier(frame: nw.DataFrame[Any], names: BacktestNames) -> Ints:
    """Return the row with the same series and date from the cutoff before, -1 without one, (n,)."""
    rows = Windows.read(frame, names)
    if rows.cutoffs is None:
        raise ValueError(
            f"The frame has no column {names.cutoff!r}; give what RBFDiffNet.cross_validation "
            "returns with step_size below h."
        )
    order = np.lexsort((rows.cutoffs, rows.times, rows.series))
    series, times, cutoffs = (x[order] for x in (rows.series, rows.times, rows.cutoffs))
    same = (np.diff(series) == 0) & (np.diff(times) == 0)
    twice = np.flatnonzero(same & (np.diff(cutoffs) == 0))
    if len(twice):
        row = int(order[twice[0] + 1])
        raise ValueError(
            f"Series {str(rows.ids[int(series[twice[0]])])!r}: {rows.time[row]} was forecast twice "
            f"from the cutoff {frame[names.cutoff][row]}; keep one row."
        )
    if not same.any():
        raise ValueError(
            "No date was forecast from two cutoffs; make windows overlap, as "
            "cross_validation(step_size=...) does with steps below h."
        )
    before = np.full(len(order), -1)
    before[order[1:][same]] = order[:-1][same]
    return before


def _earlier(values: Array, before: Ints) -> Array:
    return np.where(before >= 0, values[before], np.nan)

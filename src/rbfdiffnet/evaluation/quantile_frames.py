"""Frames with quantiles of forecasts: which columns they are, how far ahead, and all their scores.

What is public here is exported by `metrics`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from rbfdiffnet.evaluation.backtest_frames import QuantileName, sort_quantiles
from rbfdiffnet.evaluation.losses import interval_score, quantile_crps
from rbfdiffnet.evaluation.scores import divide
from rbfdiffnet.panel.frames import (
    ColumnNames,
    FrameColumn,
    group_rows,
    make_frame,
    read_frame,
    read_keys,
    read_target,
    read_times,
    time_zone,
)
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.panel.grid import Grid, infer_frequency
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.checks import as_names, check_size

#: What to group rows by that is no column: steps ahead.
HORIZON = "horizon"
_RESULTS = ("model", "n", "quantiles", "wql", "crps")


@dataclass(frozen=True)
class BacktestNames(ColumnNames):
    """Names of the columns of a backtest that hold no forecasts."""

    cutoff: str = "cutoff"

    def read(self, df: Any, *needed: str) -> nw.DataFrame[Any]:
        """Return all columns of a frame, which has rows, ids, times and the columns needed."""
        frame = read_frame(df, [self.id, self.time, *needed, *getattr(df, "columns", ())])
        if len(frame) == 0:
            raise ValueError("The frame has no rows; give forecasts of at least one date.")
        return frame

    @staticmethod
    def numbers(column: FrameColumn) -> Array:
        """Return values or forecasts as floats, NaN where they are missing or infinite."""
        values = read_target(column)
        values = np.where(np.isfinite(values), values, np.nan)
        check_size(f"Column {column.name!r}", values)
        return values

    def others(self, frame: nw.DataFrame[Any]) -> list[str]:
        """Return the columns that may hold forecasts."""
        own = (self.id, self.time, self.target, self.cutoff)
        return [name for name in frame.columns if name not in own]


def quantile_columns(
    df: Any,
    models: Sequence[str] | None = None,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    cutoff_col: str = "cutoff",
) -> dict[str, dict[float, str]]:
    """Find the columns of quantiles of every model in a frame.

    ``Model-lo-80`` is the quantile of probability 0.1, ``Model-hi-80`` that of 0.9, ``Model-q-25``
    that of 0.25. The column ``Model`` is taken for the median where there is no other median.

    Parameters
    ----------
    df : pandas or polars DataFrame
        Forecasts; other columns do not matter.
    models : sequence of str, optional
        Names of models; by default all that have a quantile or an interval. Name them where names
        of models themselves end like names of quantiles.
    id_col, time_col, target_col, cutoff_col : str
        Names of columns that hold no forecasts.

    Returns
    -------
    dict of dict
        For every model its columns by their probabilities, ascending: as `mqloss` and
        `scaled_crps` take them.

    Raises
    ------
    ValueError
        If there is no model with a quantile, or a level or a quantile is not between 0 and 100 %.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbfdiffnet.evaluation.metrics import quantile_columns, scaled_crps
    >>> df = pd.DataFrame({"unique_id": ["a", "a"], "ds": [1, 2], "y": [3.0, 5.0], "M": [4.0, 4.0],
    ...                    "M-lo-80": [2.0, 2.0], "M-hi-80": [6.0, 6.0]})
    >>> quantile_columns(df)
    {'M': {0.1: 'M-lo-80', 0.5: 'M', 0.9: 'M-hi-80'}}
    >>> found = quantile_columns(df)["M"]
    >>> scaled_crps(df, {"M": list(found.values())}, np.array(list(found)))
      unique_id     M
    0         a  0.15
    """
    names = BacktestNames(id_col, time_col, target_col, cutoff_col)
    return _find_quantiles(names.others(names.read(df)), models)


def _find_quantiles(columns: Sequence[str], models: Any) -> dict[str, dict[float, str]]:
    parsed = {name: QuantileName.parse(name) for name in columns}
    if models is None:
        owners = {parts.model for parts in parsed.values() if parts is not None}
        # A column with quantiles of its own is a forecast, whatever its name ends in.
        own = [parts.model for name, parts in parsed.items() if parts and name not in owners]
        wanted = list(dict.fromkeys(own))
        if not wanted:
            raise ValueError(
                "The frame has no column of a quantile or an interval, such as 'Model-q-10' or "
                "'Model-lo-80' and 'Model-hi-80'; forecast with levels or quantiles."
            )
    else:
        wanted = as_names("models", models)
    found = {}
    for model in wanted:
        own = [
            name
            for name, parts in parsed.items()
            if parts is not None and parts.model == model and name not in wanted
        ]
        found[model] = sort_quantiles(own, model if model in columns else None)
        if not found[model]:
            raise ValueError(
                f"The frame has no forecasts of the model {model!r}, only the columns "
                f"{', '.join(map(repr, columns))}."
            )
    return found


def evaluate_quantiles(
    cv_frame: Any,
    models: Sequence[str] | None = None,
    by: str | None = None,
    *,
    freq: Any = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    cutoff_col: str = "cutoff",
) -> Any:
    r"""Score the quantiles and intervals of all models at once.

    Parameters
    ----------
    cv_frame : pandas or polars DataFrame
        What `RBFDiffNet.cross_validation` returns: ``unique_id, ds, cutoff, y`` and forecasts with
        intervals (``Model-lo-80``) or quantiles (``Model-q-10``), of any models. The cutoff may be
        left out.
    models : sequence of str, optional
        By default all models with a quantile or an interval (see `quantile_columns`).
    by : str, optional
        ``"horizon"`` for a row for each step ahead, or a column for a row for each of its values,
        as ``"unique_id"`` or ``"cutoff"``; by default one row for each model.
    freq : str, int or pandas offset, optional
        Step of time to count steps ahead by; by default what the dates suggest. They are counted
        from the cutoff; where there is none, the first date of each series is step 1, and no date
        may be repeated.
    id_col, time_col, target_col, cutoff_col : str
        Names of the columns.

    Returns
    -------
    pandas or polars DataFrame, like ``cv_frame``
        A row for each model, or for each model and value of ``by``, sorted, with the columns

        - ``model``, and ``by`` if there is one;
        - ``n``: how many rows were scored: those whose value and all quantiles of all models are
          known, so that models are compared on the same rows. Without any, scores are missing;
        - ``quantiles``: which were found, in percent. Only models with the same can be compared
          by the next two;
        - ``wql``: the weighted quantile loss, :math:`2 \sum \rho / \sum |y|` with the mean loss
          :math:`\rho` of the quantiles, also called scaled CRPS. It has no unit; 0 is perfect;
        - ``crps``: the same in units of the values, :math:`2 \operatorname{mean} \rho`;
        - ``coverage-80`` for each level with both ends: the share of values inside, ends included;
        - ``winkler-80``: the Winkler score, the width and a penalty for values outside;
        - ``width-80``: the mean width of the interval;
        - ``below-10`` for each quantile: the share of values at or below it, ideally 0.1.

    Raises
    ------
    TypeError, ValueError
        If a column is missing or holds no numbers, if there are no quantiles, if no row can be
        scored, or if steps ahead cannot be counted.

    See Also
    --------
    quantile_columns : Which columns are taken.
    rbfdiffnet.report.plots.plot_calibration : A picture of shares below quantiles.
    rbfdiffnet.report.plots.plot_coverage : A picture of coverage by step ahead.

    Examples
    --------
    Intervals of constant width hold fewer values the further ahead they are:

    >>> import pandas as pd
    >>> from rbfdiffnet.evaluation.metrics import evaluate_quantiles
    >>> folds = pd.DataFrame({"unique_id": list("aaaa"), "ds": [4, 5, 7, 8], "cutoff": [3, 3, 6, 6],
    ...                       "y": [10.0, 13.0, 9.0, 14.0], "M": 10.0})
    >>> folds = folds.assign(**{"M-lo-80": 8.0, "M-hi-80": 12.0})
    >>> columns = ["model", "n", "quantiles", "wql", "coverage-80", "winkler-80"]
    >>> evaluate_quantiles(folds)[columns].round(3)
      model  n   quantiles    wql  coverage-80  winkler-80
    0     M  4  10, 50, 90  0.125          0.5        11.5
    >>> evaluate_quantiles(folds, by="horizon")[["horizon", "n", "coverage-80", "below-90"]]
       horizon  n  coverage-80  below-90
    0        1  2          1.0       1.0
    1        2  2          0.0       0.0
    """
    names = BacktestNames(id_col, time_col, target_col, cutoff_col)
    frame = names.read(cv_frame, target_col)
    found = _find_quantiles(names.others(frame), models)
    columns = dict.fromkeys(column for own in found.values() for column in own.values())
    y = names.numbers(frame[target_col])
    forecasts = {column: names.numbers(frame[column]) for column in columns}
    known = np.isfinite(np.stack([y, *forecasts.values()])).all(axis=0)
    if not known.any():
        raise ValueError(
            f"No row has both a value in {target_col!r} and all quantiles of "
            f"{', '.join(map(repr, found))}; there is nothing to score."
        )
    group, keys = _group_rows(frame, by, names, freq)
    n_groups = 1 if keys is None else len(keys)
    group, y = group[known], y[known]
    n = np.bincount(group, minlength=n_groups)
    scores: dict[str, list[Array]] = {}
    for place, own in enumerate(found.values()):
        quantiles = {p: forecasts[column][known] for p, column in own.items()}
        for name, values in _score_rows(y, quantiles).items():
            missing = [np.full(n_groups, np.nan)] * len(found)
            sums = np.bincount(group, values, n_groups)
            scores.setdefault(name, missing)[place] = divide(sums, n)
    size = divide(np.bincount(group, np.abs(y), n_groups), n)
    wql = {"wql": [divide(crps, size) for crps in scores["crps"]]}
    texts = [", ".join(f"{100.0 * p:g}" for p in own) for own in found.values()]
    table: dict[str, Any] = {"model": np.repeat(np.array([*found], dtype=object), n_groups)}
    if by is not None and keys is not None:
        table[by] = keys[np.tile(np.arange(n_groups), len(found))].to_native()
    table["n"] = np.tile(n, len(found))
    table["quantiles"] = np.repeat(np.array(texts, dtype=object), n_groups)
    table |= {name: np.concatenate(parts) for name, parts in _in_order(wql | scores)}
    return make_frame(frame[id_col], table, null=True)


def _score_rows(y: Array, quantiles: Mapping[float, Array]) -> dict[str, npt.NDArray[Any]]:
    """Return the scores of rows, by the names of their columns; all arrays have shape (n,)."""
    stacked = np.stack([*quantiles.values()], axis=-1)
    scores: dict[str, npt.NDArray[Any]] = {"crps": quantile_crps(y, stacked, [*quantiles])}
    for p, low in quantiles.items():
        high = quantiles.get(round(1.0 - p, 12))
        if p < 0.5 and high is not None:
            level = 1.0 - 2.0 * p
            scores[f"coverage-{100.0 * level:g}"] = (low <= y) & (y <= high)
            scores[f"winkler-{100.0 * level:g}"] = interval_score(y, low, high, level)
            scores[f"width-{100.0 * level:g}"] = high - low
    return scores | {f"below-{100.0 * p:g}": y <= values for p, values in quantiles.items()}


def _in_order(scores: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Sort scores by what they are, then by level or quantile."""
    kinds = ("wql", "crps", "coverage", "winkler", "width", "below")

    def place(item: tuple[str, Any]) -> tuple[int, float]:
        kind, _, percent = item[0].partition("-")
        return kinds.index(kind), float(percent or 0)

    return sorted(scores.items(), key=place)


def _group_rows(
    frame: nw.DataFrame[Any], by: str | None, names: BacktestNames, freq: Any
) -> tuple[Ints, FrameColumn | None]:
    """Return the group of each row, and the values of the groups, ascending; None for one group."""
    if by is None:
        return np.zeros(len(frame), dtype=np.int64), None
    if not isinstance(by, str):
        raise ValueError(f"by must be the name of a column; got {by!r}.")
    if by == HORIZON and by not in frame.columns:
        steps = {by: count_steps(frame, names, freq)}
        frame = nw.from_native(make_frame(frame[names.id], steps), eager_only=True)
    if by not in frame.columns:
        raise ValueError(f"by must be 'horizon' or a column of the frame; got {by!r}.")
    if by in _RESULTS:
        raise ValueError(f"by={by!r} is a column of the result, too; rename that of the frame.")
    column = frame[by]
    null = np.flatnonzero(column.is_null().to_numpy())
    if len(null):
        raise ValueError(f"Column {by!r} has no value in row {null[0]}; fill it, or drop the row.")
    codes, first = group_rows(column)
    keys = nw.maybe_reset_index(column[first])
    order = keys.alias("key").to_frame().with_row_index("row").sort("key")["row"].to_numpy()
    return np.argsort(order)[codes], nw.maybe_reset_index(keys[order])


@dataclass(frozen=True)
class Windows:
    """Series, times and cutoffs of rows, as numbers; all arrays have shape (n_rows,).

    `ids` are the names of the series, `time` is the column that times were read from. Without
    cutoffs `cutoffs` is None.
    """

    series: Ints
    times: Ints
    cutoffs: Ints | None
    ids: FrameColumn
    time: FrameColumn

    @classmethod
    def read(cls, frame: nw.DataFrame[Any], names: BacktestNames) -> Windows:
        """Read the keys of the rows of a backtest; each cutoff must be before its date."""
        codes, ids, time = read_keys(frame, names, None)
        times, cutoffs = read_times(time), None
        if names.cutoff in frame.columns:
            column = frame[names.cutoff]
            null = np.flatnonzero(column.is_null().to_numpy())
            if len(null):
                raise ValueError(
                    f"Series {str(ids[int(codes[null[0]])])!r}: column {names.cutoff!r} has no "
                    f"value in row {null[0]}; fill it, or drop the row."
                )
            cutoffs = read_times(column)
            if time.dtype.is_integer() != column.dtype.is_integer():
                raise TypeError(
                    f"Columns {names.time!r} and {names.cutoff!r} must both hold dates or both "
                    "hold whole numbers."
                )
            late = np.flatnonzero(cutoffs >= times)
            if len(late):
                raise ValueError(
                    f"Series {str(ids[int(codes[late[0]])])!r}: the cutoff of row {late[0]}, "
                    f"{column[int(late[0])]}, is not before its date, {time[int(late[0])]}."
                )
        return cls(codes, times, cutoffs, ids, time)


def _refuse_repeated(rows: Windows, names: BacktestNames) -> None:
    """Raise ValueError if a date of a series is repeated, so that several windows must be there."""
    order = np.lexsort((rows.times, rows.series))
    same = (np.diff(rows.times[order]) == 0) & (np.diff(rows.series[order]) == 0)
    for row in order[1:][same][:1].tolist():
        raise ValueError(
            f"Series {str(rows.ids[int(rows.series[row])])!r} has several rows for "
            f"{rows.time[row]}, so there are several windows, and steps ahead cannot be counted "
            f"without the column {names.cutoff!r}, as cross_validation returns it."
        )


def count_steps(frame: nw.DataFrame[Any], names: BacktestNames, freq: Any = None) -> Ints:
    """Count steps from the cutoff of each row; without cutoffs a series begins with step 1."""
    rows = Windows.read(frame, names)
    integer, zone = rows.time.dtype.is_integer(), time_zone(rows.time)
    times, owners = rows.times, rows.series
    if rows.cutoffs is not None:
        times, owners = np.append(times, rows.cutoffs), np.append(owners, owners)
    frequency = (
        infer_frequency(times, owners, zone, integer=integer)
        if freq is None
        else Frequency.parse(freq)
    )
    if frequency is None:
        raise ValueError(f"The step of time cannot be told from {names.time!r}; pass freq.")
    if integer != (frequency.kind == "integer"):
        raise ValueError(
            f"freq={frequency.alias!r} does not suit {names.time!r}, which holds "
            f"{'whole numbers' if integer else 'dates'}."
        )
    n = len(rows.ids)
    if rows.cutoffs is None:
        _refuse_repeated(rows, names)
    grid = Grid.from_times(frequency, times, owners, n, zone)
    steps, _ = grid.locate(rows.times, rows.series)
    if rows.cutoffs is not None:
        return steps - grid.locate(rows.cutoffs, rows.series)[0]
    first = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(first, rows.series, steps)
    return np.asarray(steps - first[rows.series] + 1)

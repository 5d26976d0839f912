r"""Errors of backtests, averaged over series and windows.

.. math::
    \mathrm{MASE} = \frac{\frac1h \sum_k |e_k|}{\frac{1}{T-m} \sum_{t=m+1}^T |y_t - y_{t-m}|},
    \qquad e_k = \hat y_{T+k} - y_{T+k}

RMSSE is that of `rbfdiffnet.metrics`. Where the scale is zero, an error is missing rather than
infinite, and left out of the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet.panel import Panel

__all__ = ["Score", "score", "verdict"]

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Score:
    """Mean errors of a method.

    Parameters
    ----------
    model : str
    n_series : int
        How many series they are from.
    mase, rmsse, mae, bias : float
        The bias is positive where forecasts are too high.
    coverage : dict of str to float
        Share of values inside the intervals, in percent, by level.
    seconds : float
        What the forecasts took; NaN where they were made with others.

    Examples
    --------
    >>> from rbfdiffnet.cli.scoring import Score
    >>> Score("naive", 3, mase=1.0, rmsse=1.1, mae=12.5, bias=-1.0).seconds
    nan
    """

    model: str
    n_series: int
    mase: float
    rmsse: float
    mae: float
    bias: float
    coverage: Mapping[str, float] = field(default_factory=dict)
    seconds: float = float("nan")


def score(
    panel: Panel,
    folds: pd.DataFrame,
    model: str,
    season_length: int,
    levels: Sequence[float] = (),
    seconds: float = float("nan"),
) -> Score:
    """Score one method.

    Parameters
    ----------
    panel : Panel
        The series, from which errors take their scale: from what precedes each window.
    folds : DataFrame
        ``unique_id, ds, cutoff, y`` and a column for the method.
    model : str
        That column.
    season_length : int
    levels : sequence of float, default=()
        Levels of the intervals that are there, too.
    seconds : float, optional

    Returns
    -------
    Score

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.scoring import score
    >>> from rbfdiffnet.panel import Panel
    >>> df = pd.DataFrame({"unique_id": "a", "ds": range(6), "y": [1, 3, 1, 3, 2, 2]})
    >>> folds = df[4:].assign(cutoff=3, m=[3, 2])
    >>> found = score(Panel.from_frame(df, freq=1), folds, "m", season_length=1)
    >>> found.mase, found.mae, found.bias
    (0.25, 0.5, 0.5)
    """
    known = folds[folds["y"].notna() & folds[model].notna()]
    windows = known[["unique_id", "cutoff"]].drop_duplicates()
    group = known.groupby(["unique_id", "cutoff"], observed=True, sort=False).ngroup().to_numpy()
    error = (known[model] - known["y"]).to_numpy(dtype=np.float64)
    size = np.bincount(group, minlength=len(windows))
    absolute = np.bincount(group, np.abs(error), len(windows)) / size
    squared = np.bincount(group, error**2, len(windows)) / size
    bias = np.bincount(group, error, len(windows)) / size
    series, steps, _ = panel.rows_of(windows.rename(columns={"cutoff": "ds"}))
    naive, rough = _scales(panel, series, steps + 1, season_length)
    return Score(
        model,
        int(windows["unique_id"].nunique()),
        mase=_mean(_ratio(absolute, naive)),
        rmsse=_mean(_ratio(np.sqrt(squared), np.sqrt(rough))),
        mae=_mean(absolute),
        bias=_mean(bias),
        coverage={
            f"{level:g}": 100.0 * float(_inside(known, model, level).mean())
            for level in levels
            if f"{model}-lo-{level:g}" in known.columns
        },
        seconds=seconds,
    )


def verdict(ours: Score, other: Score) -> str:
    """Say in one sentence who won, and by how much.

    Examples
    --------
    >>> from rbfdiffnet.cli.scoring import Score, verdict
    >>> a, b = (Score(name, 1, m, m, m, 0.0) for name, m in (("ours", 0.9), ("naive", 1.2)))
    >>> verdict(a, b)
    'ours won against naive: its MASE, 0.9000, is 25 % below 1.200.'
    >>> verdict(b, a)
    'naive lost to ours: its MASE, 1.200, is 33 % above 0.9000.'
    """
    from rbfdiffnet.cli.text import format_number

    name, mine, theirs = "MASE", ours.mase, other.mase
    if not (np.isfinite(mine) and np.isfinite(theirs)):  # nothing ever changed
        name, mine, theirs = "MAE", ours.mae, other.mae
    if not (np.isfinite(mine) and np.isfinite(theirs)):
        return f"{ours.model} and {other.model} cannot be compared: no values to compare with."
    if mine == theirs:
        return f"A tie: {ours.model} and {other.model} both have a {name} of {format_number(mine)}."
    result, side = ("won against", "below") if mine < theirs else ("lost to", "above")
    gap = f"{100.0 * abs(mine / theirs - 1.0):.2g} % " if theirs > 0.0 else ""
    return (
        f"{ours.model} {result} {other.model}: its {name}, {format_number(mine)}, is "
        f"{gap}{side} {format_number(theirs)}."
    )


def _scales(panel: Panel, series: Ints, seen: Ints, season_length: int) -> tuple[Array, Array]:
    """Mean absolute seasonal and mean squared single steps before each origin."""
    naive, rough = np.full(len(series), np.nan), np.full(len(series), np.nan)
    for i in np.unique(series):
        y = panel.y[panel.offsets[i] : panel.offsets[i + 1]]
        sold = np.flatnonzero(np.nan_to_num(y) != 0.0)
        first = int(sold[0]) if sold.size else len(y)
        for row in np.flatnonzero(series == i) if len(series) < 1000 else _own(series, i):
            past = y[: seen[row]]
            season = season_length if season_length < len(past) else 1
            naive[row] = _mean(np.abs(past[season:] - past[:-season]))
            rough[row] = _mean(np.diff(past[first:]) ** 2)
    return naive, rough


def _own(series: Ints, i: Any) -> range:
    """Rows of a series, which lie together."""
    start = int(np.searchsorted(series, i))
    return range(start, int(np.searchsorted(series, i, side="right")))


def _ratio(error: Array, scale: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = error / scale
    return np.where(scale > 0.0, ratio, np.where(error == 0.0, 0.0, np.nan))


def _inside(folds: pd.DataFrame, model: str, level: float) -> Any:
    low, high = (folds[f"{model}-{side}-{level:g}"] for side in ("lo", "hi"))
    return (folds["y"] >= low) & (folds["y"] <= high)


def _mean(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")

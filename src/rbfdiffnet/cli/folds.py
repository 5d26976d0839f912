"""What the forecasts of a backtest say of totals and of quantiles."""

from __future__ import annotations

import pandas as pd

from rbfdiffnet.evaluation.backtest_frames import QuantileName
from rbfdiffnet.report.verdict import ExpectedError

_OURS = "RBFDiffNet"


def judge_totals(
    folds: pd.DataFrame, forecast: pd.DataFrame, totals: str | int
) -> ExpectedError | None:
    """Return how far off totals were in a backtest; None if its windows have none as long.

    Those count that have as many known values as the longest total of their series in `forecast`
    has steps.
    """
    windows = [folds["unique_id"].astype(str), folds["cutoff"]]
    if isinstance(totals, str):
        period = folds["ds"].dt.tz_localize(None).dt.to_period(totals)
    else:
        period = folds.groupby(windows).cumcount() // totals
    known = folds[["y", _OURS]].notna().all(axis=1)
    groups = folds[known].groupby([*(own[known] for own in windows), period[known].rename("total")])
    sums, sizes = groups[["y", _OURS]].sum(), groups.size()
    longest = forecast.groupby(forecast["unique_id"].astype(str))["steps"].max()
    whole = sums[sizes.to_numpy() == longest[sums.index.get_level_values(0)].to_numpy()]
    if not len(whole):
        return None
    error, size = (whole[_OURS] - whole["y"]).abs(), whole["y"].abs().sum()
    return ExpectedError(float(error.mean()), 100.0 * float(error.sum() / size) if size else None)


def count_below_quantiles(folds: pd.DataFrame) -> dict[str, float]:
    """Return how many known values lay at or below each quantile, both in percent."""
    known = folds[folds["y"].notna()]
    names = {column: QuantileName.parse(column) for column in folds.columns}
    return {
        name.percent: 100.0 * float((known["y"] <= known[column]).mean())
        for column, name in names.items()
        if name is not None and (name.model, name.kind) == (_OURS, "q") and len(known)
    }


def describe_quantiles(shares: dict[str, float]) -> list[str]:
    """Say in a sentence how many values lay below quantiles, if there are any."""
    parts = [f"at or below the {percent} % quantile" for percent in shares]
    held = [f"{own:.0f} %" for own in shares.values()]
    if not parts:
        return []
    others = "".join(f", {own} {part}" for own, part in zip(held[1:], parts[1:], strict=True))
    return [f"Step by step, {held[0]} of the values of the backtest lay {parts[0]}{others}."]

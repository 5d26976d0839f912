"""Who was better in a backtest, by how much, and on how many series: or that this is not known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rbfdiffnet.evaluation.backtest_frames import BASELINE, LAST
from rbfdiffnet.evaluation.scores import Scores
from rbfdiffnet.support.text import format_number

_EQUAL = 0.01  # smaller differences of errors are not called differences
_FEWEST = 10  # series that a verdict needs; half of them in smaller panels


@dataclass(frozen=True)
class Comparison:
    """Two models on the same rows.

    The measure is MASE, or MAE where no series has a MASE. The first model had the lower MAE on
    `closer` series of the `n_scored` that were scored, of the `n_series` that there are.
    """

    model: str
    other: str
    measure: str
    mine: float
    theirs: float
    closer: int
    n_scored: int
    n_series: int

    @property
    def share(self) -> float:
        """How much higher the error of the first is, as a share of the other's."""
        if self.theirs > 0.0:
            return self.mine / self.theirs - 1.0
        return math.inf if self.mine > self.theirs else 0.0

    @property
    def outcome(self) -> str:
        """``"won"``, ``"lost"``, ``"equal"``, or ``"unknown"`` from too few series or values."""
        few = self.n_scored < (_FEWEST if self.n_series >= _FEWEST else self.n_series / 2)
        if few or not (math.isfinite(self.mine) and math.isfinite(self.theirs)):
            return "unknown"
        if abs(self.share) < _EQUAL:
            return "equal"
        return "won" if self.share < 0.0 else "lost"


def compare(scores: Scores, model: str, other: str, n_series: int) -> Comparison:
    """Compare two of the models that were scored; `n_series` counts series scored or not."""
    names = [found.name for found in scores.models]
    mine, theirs = names.index(model), names.index(other)
    total = scores.total()
    measure = "MASE" if np.isfinite(total["MASE"]).all() else "MAE"
    return Comparison(
        model,
        other,
        measure,
        float(total[measure][mine]),
        float(total[measure][theirs]),
        int(np.count_nonzero(scores.mae[:, mine] < scores.mae[:, theirs])),
        scores.n_scored,
        n_series,
    )


def find_better_rule(scores: Scores) -> str:
    """Return the name of the better of the simple rules, which a model has to beat."""
    total, names = scores.total(), [found.name for found in scores.models]
    error = total["MASE"] if np.isfinite(total["MASE"]).all() else total["MAE"]
    rules = [name for name in (BASELINE, LAST) if name in names]
    return min(rules, key=lambda name: float(error[names.index(name)]))


def describe_comparison(found: Comparison) -> str:
    """Say who won, by how much, and on how many series."""
    if not (math.isfinite(found.mine) and math.isfinite(found.theirs)):
        return f"{found.model} and {found.other} cannot be compared: no values to compare with."
    mine, theirs = (format_number(value) for value in (found.mine, found.theirs))
    few = found.n_scored < found.n_series
    count = f"{found.n_scored:,}{f' of {found.n_series:,}' if few else ''} series"
    both = f"{found.measure} {mine} and {theirs}"
    if found.outcome == "unknown":
        return f"{found.model} and {found.other}: no verdict from {count} ({both})."
    closer = f"; closer on {found.closer:,}" if found.n_scored > 1 else ""
    if found.outcome == "equal":
        return f"{found.model} and {found.other} are about equal: {both} ({count}{closer})."
    result, side = ("won against", "below") if found.outcome == "won" else ("lost to", "above")
    gap = f"{format_percent(abs(found.share))} " if math.isfinite(found.share) else ""
    return (
        f"{found.model} {result} {found.other}: its {found.measure}, {mine}, is {gap}{side} "
        f"{theirs} ({count}{closer})."
    )


def format_percent(share: float, space: str = " ") -> str:
    """Write a share in percent, without exponents."""
    value = 100.0 * share
    digits = 1 if value < 9.95 or 99.0 <= value < 99.95 else 0
    return f"{value:,.{digits}f}{space}%"

"""Notes on what was unusual about a series: typed, and turned into words where users see them."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Kinds of notes that code asks for; a kind that is counted, such as "missing date", is a noun.
NO_MODEL, OUTLIER, BEGINS_LATE = "no model", "outlier", "begins late"
MISSING_DATE, REPEATED_DATE = "missing date", "repeated date"
MISSING_VALUE, FAR_INPUT, NEW_INPUT = "missing value", "far input", "new input"
NOT_FINITE, HELD_BACK, FEW_ERRORS = "no finite forecast", "held back", "few errors"
NOISE_TREATED, NOISE_LEFT, NOT_JUDGED = "noise treated", "noise left", "not judged"
NARROW, ENDED_INPUT, OFF_GRID = "narrow", "ended input", "off-grid date"
CLOSED, AT_BOUND, SKEWED_TOTAL = "closed", "at bound", "skewed total"

FORECAST_ZERO = "forecast 0"
FORECAST_NAIVE = "forecast by the last season, or the last value"
FORECAST_LAST_SEASON = "forecast by the last season"
FORECAST_LIKE = "forecast like these series"
#: Kinds of notes, as programs read them, on series that are forecast by a simple rule.
FALLBACK_KINDS = ("no_model", "no_finite_forecast")
#: What was done with series that have no model.
FALLBACK_ACTIONS = (FORECAST_ZERO, FORECAST_NAIVE, FORECAST_LAST_SEASON, FORECAST_LIKE)


@dataclass(frozen=True)
class Note:
    """Something unusual about a series of a panel, and what was done about it.

    A note either counts things of its kind and names the first date, or has a detail in words.
    """

    series: int
    kind: str
    action: str
    count: int = 0
    first: str = ""
    detail: str = ""

    @property
    def code(self) -> str:
        """The kind as one word, without names of columns: ``no_model``, ``infinite_value``."""
        return re.sub(r"\W+", "_", re.sub(r" '.*'", "", self.kind))

    @property
    def problem(self) -> str:
        """What was unusual, in words."""
        if not self.count:
            return self.detail
        return f"{self.count} {self.kind}{'' if self.count == 1 else 's'}, first {self.first}"

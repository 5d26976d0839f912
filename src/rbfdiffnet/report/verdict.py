"""Can I trust this? The answer of a backtest in sentences, also when it is no."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

from rbfdiffnet.evaluation import (
    BASELINE,
    LAST,
    Comparison,
    Coverage,
    Scores,
    compare,
    compare_near_and_far,
    find_better_rule,
)
from rbfdiffnet.support.text import format_number, format_percent

_CLOSE = 0.05  # smaller shares are not called a bias
_LITTLE = 30  # values that say little
_PERCENT = "\N{NO-BREAK SPACE}%"
_RULES = {BASELINE: "repeating the last season", LAST: "repeating the last value"}


@dataclass(frozen=True)
class Figure:
    """A number to show large, what it is, and whether it is good, bad or neither."""

    number: str
    label: str
    tone: str = "plain"


@dataclass(frozen=True)
class ExpectedError:
    """How far off forecasts were on average, in units of the values and in percent of their size.

    The percentage is None where all values are zero.
    """

    absolute: float
    percent: float | None

    @classmethod
    def of(cls, scores: Scores, model: str) -> ExpectedError:
        """Return the mean error of a model over all rows."""
        j, total = scores.names.index(model), scores.total()
        share = float(total["relative MAE"][j])
        return cls(float(total["MAE"][j]), 100.0 * share if math.isfinite(share) else None)

    @property
    def number(self) -> str:
        """The error in units of the values, as text."""
        return format_number(self.absolute, digits=3)

    @property
    def share(self) -> str:
        """The percentage as text, nothing where it is not known."""
        return "" if self.percent is None else _percent(self.percent / 100.0)

    def describe(self, n_series: int, of: str = "a forecast") -> str:
        """Say in a sentence what to expect, from a backtest of so many series."""
        share = self.share and f", or {self.share}"
        panel = " over all series" if n_series > 1 else ""
        return f"Expect {of} to be off by {self.number}{share}, on average{panel}."


@dataclass(frozen=True)
class Verdict:
    """A first sentence, more sentences, figures, and the error to expect, if that is known."""

    lead: str
    more: list[str]
    figures: list[Figure]
    expected_error: ExpectedError | None = None

    def sentences(self) -> list[str]:
        """Return all sentences, the first one first, with ordinary spaces."""
        return [text.replace("\N{NO-BREAK SPACE}", " ") for text in (self.lead, *self.more)]

    def wrap(self, width: int) -> list[str]:
        """Return all sentences as lines for a terminal; numbers and percent signs stay together."""
        lines = textwrap.wrap(" ".join([self.lead, *self.more]), width)
        return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def verdict(scores: Scores | None, main: str, n_series: int) -> Verdict:
    """Say what a backtest tells about the forecasts of the model ``main``.

    ``scores`` is None where there was no backtest.
    """
    if scores is None or scores.n_scored == 0:
        made = "No backtest was made" if scores is None else "The backtest has no known values"
        return Verdict(
            f"{made}, so nothing is known about how good these forecasts are.",
            ["Forecast values that are known already, and compare, before relying on them."],
            [],
        )
    mine = scores.names.index(main)
    rows = int(scores.rows.sum())
    found = compare(scores, main, find_better_rule(scores), n_series)
    lead, figures = _describe_result(scores, found)
    more: list[str] = []
    expected = None if found.outcome == "unknown" else ExpectedError.of(scores, main)
    if expected is not None:
        more.append(expected.describe(scores.n_scored))
        size = expected.share and f", {expected.share} of the size of the values"
        figures.append(Figure(expected.number, f"mean error to expect{size}"))
    _judge_intervals(scores, mine, more, figures)
    bias = float(scores.total()["relative bias"][mine])
    if abs(bias) >= _CLOSE:
        word = "high" if bias > 0 else "low"
        more.append(f"The forecasts were too {word} on average, by {_percent(abs(bias))}.")
    if rows < _LITTLE:
        values = "1 value" if rows == 1 else f"{rows} values"
        more.append(f"All this rests on {values} only, which is little evidence.")
    elif scores.windows == 1:
        more.append("All this rests on one window a series; more windows would say more.")
    if scores.n_scored < n_series:
        rest = n_series - scores.n_scored
        were = "was" if rest == 1 else "were"
        more.append(f"{rest:,} of {n_series:,} series {were} not backtested.")
    if scores.left_out == 1:
        more.append("1 row of the backtest is not counted: its value or a forecast is missing.")
    elif scores.left_out:
        more.append(
            f"{scores.left_out:,} rows of the backtest are not counted: their values, or forecasts "
            "of one of the models, are missing."
        )
    return Verdict(lead, more, figures, expected)


def _describe_result(scores: Scores, found: Comparison) -> tuple[str, list[Figure]]:
    windows = f"{scores.windows} window{'s' if scores.windows > 1 else ''}"
    steps = f"{scores.steps} step{'s' if scores.steps > 1 else ''}"
    where = f"In backtests over {windows} of {steps},"
    if found.model in (BASELINE, LAST):
        own = f"the mean error ({found.measure}) of {found.model} was {found.mine:.2f}"
        return f"{where} {own}.", []
    rival = _RULES[found.other]
    rule = f"{rival} ({found.other})"  # as in the tables
    closer = f"They were closer on {found.closer:,} of {found.n_scored:,} series."
    if found.outcome == "unknown":
        few = f"Only {found.n_scored:,} of {found.n_series:,} series could be backtested"
        return f"{few}: too few to say how good these forecasts are. {closer}", []
    share = found.share
    label, error = f"mean error against {rival}", "the forecasts' mean error"
    if found.outcome == "equal":
        lead = f"{where} the forecasts were about as far off as {rule}: no better, no worse."
        figure = Figure(f"± 0{_PERCENT}", label)
    elif found.outcome == "won":
        lead = f"{where} {error} was {_percent(-share)} lower than by {rule}."
        figure = Figure(f"\N{MINUS SIGN}\N{NO-BREAK SPACE}{_percent(-share)}", label, "good")
    else:
        much = _percent(share) if math.isfinite(share) else "infinitely"
        lead = (
            f"{where} {error} was {much} higher than by {rule}: the simple rule was the better "
            "forecast."
        )
        figure = Figure(f"+ {much}", label, "bad")
    if found.n_scored == 1:
        return lead, [figure]
    wins = Figure(f"{found.closer:,}", f"of {found.n_scored:,} series closer than {rival}")
    return f"{lead} {closer}", [figure, wins]


def _judge_intervals(scores: Scores, mine: int, more: list[str], figures: list[Figure]) -> None:
    model = scores.models[mine]
    counts = {level: Coverage.count(scores, model.name, level) for level in model.levels}
    counts = {level: found for level, found in counts.items() if found.n}
    if not counts:
        return
    held = " and ".join(
        f"{'their' if i == 0 else 'the'} {level}{_PERCENT} intervals contained "
        f"{_percent(found.share)}"
        for i, (level, found) in enumerate(counts.items())
    )

    def how_bad(level: str) -> tuple[bool, float]:
        found = counts[level]
        return found.outcome in ("narrow", "wide"), abs(found.share - found.level)

    worst = max(counts, key=how_bad)
    found = counts[worst]
    than = "more" if found.share > found.level else "fewer"
    opinion = {
        "close": ", about what they promise",
        "chance": f": {than} than promised, which with {found.n:,} values may be chance",
        "narrow": ": they are too narrow, so expect more surprises than they promise",
        "wide": ": they are wider than they need to be",
    }[found.outcome]
    more.append(f"{held[0].upper()}{held[1:]} of the actual values{opinion}.")
    for level in counts:
        both = compare_near_and_far(scores, model.name, level)
        if both is not None:
            near, far = (str(part).replace(" %", _PERCENT) for part in both)
            more.append(f"The {level}{_PERCENT} intervals contained {near}, but {far}.")
            break
    for short in scores.holdings[model.name].find_shortfalls():
        if short.often_zero is not None or found.outcome != "narrow":  # not the same once more
            text = short.describe("\N{NO-BREAK SPACE}")
            more.append(f"{text[0].upper()}{text[1:]}: much less, and more than chance explains.")
    for level, found in counts.items():
        tone = {"close": "good", "narrow": "bad"}.get(found.outcome, "plain")
        label = f"of values inside the {level}{_PERCENT} intervals"
        figures.append(Figure(_percent(found.share), label, tone))


def _percent(share: float) -> str:
    return format_percent(share, "\N{NO-BREAK SPACE}")

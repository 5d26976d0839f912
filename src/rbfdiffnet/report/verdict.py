"""Can I trust this? The answer of a backtest in sentences, also when it is no."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rbfdiffnet.evaluation import (
    BASELINE,
    LAST,
    Comparison,
    Scores,
    compare,
    find_better_rule,
    format_percent,
)

_CLOSE = 0.05  # smaller differences of shares inside intervals are not called differences
_CHANCE = 2.0  # standard deviations that chance may take
_LITTLE = 30  # values that say little
_PERCENT = "\N{NO-BREAK SPACE}%"


@dataclass(frozen=True)
class Figure:
    """A number to show large, what it is, and whether it is good, bad or neither."""

    number: str
    label: str
    tone: str = "plain"


@dataclass(frozen=True)
class Verdict:
    """A first sentence, more sentences, and figures."""

    lead: str
    more: list[str]
    figures: list[Figure]


def verdict(scores: Scores | None, main: str, season: int, n_series: int) -> Verdict:
    """Say what a backtest tells about the forecasts of the model ``main``.

    ``scores`` is None where there was no backtest, and ``season`` is 1 where there is none.
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
    lead, figures = _describe_result(scores, found, season)
    more: list[str] = []
    _judge_intervals(scores, mine, more, figures)
    share = float(scores.total()["relative bias"][mine])
    if abs(share) >= _CLOSE:
        word = "high" if share > 0 else "low"
        more.append(f"The forecasts were too {word} on average, by {_percent(abs(share))}.")
    if rows < _LITTLE:
        more.append(f"All this rests on {rows} values only, which is little evidence.")
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
    return Verdict(lead, more, figures)


def _describe_result(scores: Scores, found: Comparison, season: int) -> tuple[str, list[Figure]]:
    windows = f"{scores.windows} window{'s' if scores.windows > 1 else ''}"
    steps = f"{scores.steps} step{'s' if scores.steps > 1 else ''}"
    where = f"In backtests over {windows} of {steps},"
    if found.model in (BASELINE, LAST):
        own = f"the mean error ({found.measure}) of {found.model} was {found.mine:.2f}"
        return f"{where} {own}.", []
    seasonal = season > 1 and found.other == BASELINE
    rival = "seasonal naive" if seasonal else "the last value, repeated"
    closer = f"They were closer on {found.closer:,} of {found.n_scored:,} series."
    if found.outcome == "unknown":
        few = f"Only {found.n_scored:,} of {found.n_series:,} series could be backtested"
        return f"{few}: too few to say how good these forecasts are. {closer}", []
    share = found.share
    label, error = f"mean error against {rival}", "the forecasts' mean error"
    if found.outcome == "equal":
        lead = f"{where} the forecasts were about as far off as {rival}: no better, no worse."
        figure = Figure(f"± 0{_PERCENT}", label)
    elif found.outcome == "won":
        lead = f"{where} {error} was {_percent(-share)} lower than that of {rival}."
        figure = Figure(f"\N{MINUS SIGN}\N{NO-BREAK SPACE}{_percent(-share)}", label, "good")
    else:
        much = _percent(share) if math.isfinite(share) else "infinitely"
        lead = (
            f"{where} {error} was {much} higher than that of {rival}: the simple rule was the "
            "better forecast."
        )
        figure = Figure(f"+ {much}", label, "bad")
    if found.n_scored == 1:
        return lead, [figure]
    wins = Figure(f"{found.closer:,}", f"of {found.n_scored:,} series closer than {rival}")
    return f"{lead} {closer}", [figure, wins]


def _judge_intervals(scores: Scores, mine: int, more: list[str], figures: list[Figure]) -> None:
    model = scores.models[mine]
    shares = {level: scores.coverage(model.name, level) for level in model.levels}
    shares = {level: share for level, share in shares.items() if math.isfinite(share)}
    if not shares:
        return
    held = " and ".join(
        f"{'their' if i == 0 else 'the'} {level}{_PERCENT} intervals contained {_percent(share)}"
        for i, (level, share) in enumerate(shares.items())
    )
    gaps = {level: share - float(level) / 100 for level, share in shares.items()}
    n = {level: int(scores.inside[model.name, level][:, 1].sum()) for level in shares}
    chance = {level: by_chance(float(level) / 100, n[level], scores.steps) for level in shares}
    sure = {level for level, gap in gaps.items() if abs(gap) > max(_CLOSE, chance[level])}
    worst = max(gaps, key=lambda level: (level in sure, abs(gaps[level])))
    if abs(gaps[worst]) <= _CLOSE:
        opinion = ", about what they promise"
    elif worst not in sure:
        than = "more" if gaps[worst] > 0 else "fewer"
        opinion = f": {than} than promised, which with {n[worst]:,} values may be chance"
    elif gaps[worst] < 0:
        opinion = ": they are too narrow, so expect more surprises than they promise"
    else:
        opinion = ": they are wider than they need to be"
    more.append(f"{held[0].upper()}{held[1:]} of the actual values{opinion}.")
    for level, share in shares.items():
        close = abs(gaps[level]) <= _CLOSE
        tone = "good" if close else "bad" if level in sure and gaps[level] < 0 else "plain"
        figures.append(
            Figure(_percent(share), f"of values inside the {level}{_PERCENT} intervals", tone)
        )


def by_chance(level: float, n: int, steps: int) -> float:
    r"""Return how far a share of n values may be from a level without meaning anything.

    .. math:: 2 \sqrt{\frac{\gamma (1 - \gamma)}{n / \sqrt h}}

    Errors of a window go together, so h of them count as :math:`\sqrt h`.
    """
    return _CHANCE * math.sqrt(level * (1.0 - level) * math.sqrt(steps) / n)


def _percent(share: float) -> str:
    return format_percent(share, "\N{NO-BREAK SPACE}")

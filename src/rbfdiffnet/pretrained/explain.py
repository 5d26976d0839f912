r"""Forecasts of the pretrained network as weights on what was seen.

.. math:: f_k = \sum_i w_{ki} x_i + \sum_q c_{kq} s_{kq} + o_k

where x are values and means of the series, s deviations of phases of its season, and the weights
are those of the centers, mixed by the gates. Nothing is approximated: the network is linear in x
and s once the gates are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbfdiffnet.pretrained.exemplars import Exemplar, load_exemplars
from rbfdiffnet.pretrained.inputs import LEVEL_SIZES, SeriesInputs
from rbfdiffnet.pretrained.network import Mixture, interpolation, load_weights, mix, most_values
from rbfdiffnet.pretrained.seasons import choose_longer_seasons
from rbfdiffnet.support.arrays import Array

_PHASES = (
    *(f"this phase, {j} season{'s' if j > 1 else ''} ago" for j in range(1, 5)),
    "this phase, 5 to 8 seasons ago",
    "this phase, 9 to 16 seasons ago",
    "this phase, 17 to 32 seasons ago",
    "phases around it, 1 season ago",
    "phases around it, last 6 seasons",
    "this phase, 1 season ago, at the level now",
    "this phase, last 4 seasons, at the level now",
    "this phase of the longer season, 1 ago",
    "this phase of the longer season, 2 ago",
    "this phase of the longer season, 3 to 6 ago",
    "around it in the longer season, 1 ago",
    "around it in the longer season, 2 to 4 ago",
    "growth as since the season before",
    "growth as over three seasons",
)
_FIRST_GROWTH = 16
_FEWEST, _MOST = 0.005, 12  # gate of a center that is shown, and how many are
_LAGS, _MOST_LAGS = 48, 200  # whose response is looked at, unless two seasons are more
_MOST_RESPONSES = 64
_SMALL_STEP = 1e-3  # units
_MOST_AT_ONCE = 5_000  # steps ahead of series


@dataclass(frozen=True)
class Part:
    """One term of forecasts; all but its names have shape (h,) or are one number."""

    kind: str
    name: str
    contribution: Array
    value: Array | float
    weight: Array | float


@dataclass(frozen=True)
class Active:
    """A center that is active: its exemplar, its gate, and what it alone would forecast (h,).

    The last one of an explanation stands for all centers that are not shown, and has no exemplar.
    """

    name: str
    gate: float
    alone: Array
    exemplar: Exemplar | None


@dataclass(frozen=True)
class Response:
    """How much higher the forecasts (h,) were if one value, so many steps back, were one higher.

    Gates are held as they are. The last value is one step back.
    """

    lag: int
    value: float
    weight: Array


@dataclass(frozen=True)
class Explanation:
    """Parts whose contributions add up to the medians, active centers and responses.

    The most active center comes first. Gates add up to 1, and what the centers would forecast
    alone, times their gates, to the medians.
    """

    parts: list[Part]
    active: list[Active]
    response: list[Response]


def explain(y: Array, h: int, season: int, longer: int | None = None) -> Explanation:
    """Explain the medians of a series without gaps; seasons are those of `network.forecast`."""
    weights, y = load_weights(), y[-most_values(season, longer or 0) :]
    scale = float(np.exp2(np.frexp(np.abs(y).max())[1]))
    values, length = y[None] / scale, np.array([y.size])
    long = choose_longer_seasons(values, length, season, longer)
    inputs = SeriesInputs(values, length, np.array([season]), long)
    between, level = interpolation(h), inputs.level()
    seen, phase = inputs.gates(level), inputs.phase(inputs.steps(h))[0]
    mixture = mix(seen, weights, between.shape[1])
    unit, last = float(inputs.unit[0]) * scale * float(inputs.varies[0]), float(y[-1])
    parts = _level_parts(between @ mixture.level[0], unit * level[0], last)
    for q, name in enumerate(_PHASES):
        s, w = unit * phase[:, q], between @ mixture.phase[0, :, q]
        if np.any(s):
            kind = "growth" if q >= _FIRST_GROWTH else "season"
            parts.append(Part(kind, name, w * s, s, w))
    offset = unit * (between @ mixture.offset[0])
    parts.append(Part("bias", "offsets of the exemplars", offset, np.nan, np.nan))
    shown, gates = _split_gates(mixture.gates[0])
    own = mix(seen, weights, between.shape[1], gates=gates / gates.sum(axis=1, keepdims=True))
    total = ((own.level * level).sum(-1) + own.offset) @ between.T
    alone = last + unit * (total + ((between @ own.phase) * phase).sum(-1))
    exemplars: list[Exemplar | None] = [load_exemplars()[i] for i in shown]
    exemplars += [None] * (len(gates) - len(shown))
    n_others = mixture.gates.shape[1] - len(shown)
    active = [
        Active(one.name if one else f"{n_others} other exemplars", float(gate), row, one)
        for one, gate, row in zip(exemplars, gates.sum(axis=1), alone, strict=True)
    ]
    return Explanation(parts, active, _respond(inputs, mixture, between, scale))


def _split_gates(gates: Array) -> tuple[list[int], Array]:
    """Return the most active centers, and the gates of each alone and of the others (k, K)."""
    order = np.argsort(-gates, kind="stable")[:_MOST]
    shown = order[gates[order] >= _FEWEST]
    each = np.zeros((shown.size + 1, gates.size))
    each[np.arange(shown.size), shown] = gates[shown]
    each[-1] = gates
    each[-1, shown] = 0.0
    return shown.tolist(), each[: shown.size + bool(each[-1].any())]


def _respond(
    inputs: SeriesInputs, mixture: Mixture, between: Array, scale: float
) -> list[Response]:
    """Return the responses to the latest values of one series, of which the largest are kept.

    Each value in turn is moved a little. All but growth, and seasons that grow, is linear in the
    values, so that the step does not matter.
    """
    n, m, h = int(inputs.n[0, 0]), int(inputs.m[0, 0]), len(between)
    if not inputs.varies[0]:
        return []
    lags = np.arange(1, min(n, max(_LAGS, 2 * m), _MOST_LAGS) + 1)
    step = float(inputs.unit[0]) * (_SMALL_STEP if inputs.positive[0] else 1.0)
    values = np.repeat(inputs.values, lags.size + 1, axis=0)
    values[lags, -lags] += step
    ones = np.ones(len(values), dtype=np.int64)
    moved = SeriesInputs(values, n * ones, m * ones, int(inputs.longer[0, 0]) * ones)
    moved.positive = inputs.positive[0] & (ones > 0)
    found = moved.level() @ (between @ mixture.level[0]).T
    steps, most = moved.steps(h), max(_MOST_AT_ONCE // len(values), 1)
    for first in range(0, h, most):
        some = slice(first, first + most)
        phase = moved.phase(steps[:, some])
        found[:, some] += (phase * (between[some] @ mixture.phase[0])).sum(-1)
    found = moved.base[:, None] + moved.unit[:, None] * found
    weights = (found[1:] - found[0]) / step
    kept = np.sort(np.argsort(-np.abs(weights).max(axis=1), kind="stable")[:_MOST_RESPONSES])
    return [
        Response(int(lags[i]), scale * float(inputs.values[0, -lags[i]]), weights[i]) for i in kept
    ]


def _level_parts(weights: Array, away: Array, last: float) -> list[Part]:
    """Return the parts of inputs of the level, given as distances (d,) from the last value.

    Weights (h, d) on distances become weights on values: the last value has the rest.
    """
    edges = np.cumsum(LEVEL_SIZES)[:-1]
    lags, usual, usual_longer, seasons, spans, long, shares = np.split(np.arange(away.size), edges)
    named = [(i, f"lag {k + 2}") for k, i in enumerate(lags)]
    named += [(i, f"mean of season {k + 1}, counted back") for k, i in enumerate(seasons)]
    named += [(i, f"mean of the last {2 ** (k + 1)} values") for k, i in enumerate(spans)]
    named += [(i, f"mean of longer season {k + 1}, counted back") for k, i in enumerate(long)]
    named += [
        (i, f"mean of the last {n}") for n, i in zip(("quarter", "half"), shares, strict=True)
    ]
    named = [(i, name) for i, name in named if away[i] != 0.0]
    rest = 1.0 - weights[:, [i for i, _ in named]].sum(axis=1)
    parts = [Part("level", "lag 1", rest * last, last, rest)]
    for i, name in named:
        value, w = last + float(away[i]), weights[:, i]
        parts.append(Part("level", name, w * value, value, w))
    for name, some in (("season", usual), ("longer season", usual_longer)):
        if np.any(away[some]):
            total = weights[:, some] @ away[some]
            parts.append(Part("level", f"{name} of the lags", total, np.nan, np.nan))
    return parts

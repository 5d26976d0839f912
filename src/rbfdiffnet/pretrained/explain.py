r"""Forecasts of the pretrained network as weights on what was seen.

.. math:: f_k = \sum_i w_{ki} x_i + \sum_q c_{kq} s_{kq} + o_k

where x are values and means of the series, s deviations of phases of its season, and the weights
are those of the centers, mixed by the gates. Nothing is approximated: the network is linear in x
and s once the gates are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbfdiffnet.pretrained.inputs import LEVEL_SIZES, SeriesInputs
from rbfdiffnet.pretrained.network import interpolation, load_weights, mix, most_values
from rbfdiffnet.pretrained.seasons import find_longer_seasons
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
_FEWEST = 0.005  # activation of a center that is shown


@dataclass(frozen=True)
class Part:
    """One term of forecasts; all but its names have shape (h,) or are one number."""

    kind: str
    name: str
    contribution: Array
    value: Array | float
    weight: Array | float


@dataclass(frozen=True)
class Explanation:
    """Parts whose contributions add up to the medians, and the active centers.

    `centers` are their numbers, the most active one first, `activations` their gates, and
    `alone` (centers, h) what each would forecast if it alone counted.
    """

    parts: list[Part]
    centers: Array
    activations: Array
    alone: Array


def explain(y: Array, h: int, season: int) -> Explanation:
    """Explain the medians of a series without gaps."""
    weights, y = load_weights(), y[-most_values(season) :]
    scale = float(np.exp2(np.frexp(np.abs(y).max())[1]))
    values, length = y[None] / scale, np.array([y.size])
    longer = find_longer_seasons(values, length, season)
    inputs = SeriesInputs(values, length, np.array([season]), longer)
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
    order = np.argsort(-mixture.gates[0], kind="stable")
    shown = order[mixture.gates[0, order] >= _FEWEST]
    alone = np.empty((shown.size, h))
    for row, center in zip(alone, shown, strict=True):
        own = mix(seen, weights, between.shape[1], gates=np.eye(len(order))[[center]])
        total = between @ ((own.level[0] * level).sum(-1) + own.offset[0])
        row[:] = last + unit * (total + ((between @ own.phase[0]) * phase).sum(-1))
    return Explanation(parts, shown, mixture.gates[0, shown], alone)


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

r"""Forecasts of the pretrained network as weights on what was seen.

.. math:: f_k = \sum_i w_{ki} x_i + \sum_q c_{kq} s_{kq} + o_k

where x are values and means of the series, s deviations of phases of its season, and the weights
are those of the centers, mixed by the gates. Nothing is approximated: the network is linear in x
and s once the gates are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbfdiffnet.pretrained.inputs import SeriesInputs
from rbfdiffnet.pretrained.network import interpolation, load_weights, mix
from rbfdiffnet.pretrained.seasons import find_longer_seasons
from rbfdiffnet.support.arrays import Array

_N_LAGS, _N_USUAL, _N_SEASONS, _N_SPANS, _N_LONG = 31, 32, 8, 11, 3
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
    weights = load_weights()
    scale = float(np.exp2(np.frexp(np.abs(y).max())[1]))
    values, length = y[None] / scale, np.array([y.size])
    longer = find_longer_seasons(values, length, season)
    inputs = SeriesInputs(values, length, np.array([season]), longer)
    between, level = interpolation(h), inputs.level()
    mixture = mix(inputs.gates(level), weights, between.shape[1])
    on_level, on_phase = between @ mixture.level[0], between @ mixture.phase[0]
    unit = float(inputs.unit[0]) * scale * float(inputs.varies[0])
    phase = inputs.phase(inputs.steps(h))[0]
    u, last = unit * level[0], float(y[-1])
    parts = []
    edges = np.cumsum([_N_LAGS, _N_USUAL, _N_USUAL, _N_SEASONS, _N_SPANS, _N_LONG])
    lags, usual, usual_longer, seasons, spans, long, shares = np.split(np.arange(u.size), edges)
    named = [(i, f"lag {k + 2}") for k, i in enumerate(lags)]
    named += [(i, f"mean of season {k + 1}, counted back") for k, i in enumerate(seasons)]
    named += [(i, f"mean of the last {2 ** (k + 1)} values") for k, i in enumerate(spans)]
    named += [(i, f"mean of longer season {k + 1}, counted back") for k, i in enumerate(long)]
    named += [
        (i, f"mean of the last {w}") for w, i in zip(("quarter", "half"), shares, strict=True)
    ]
    named = [(i, name) for i, name in named if u[i] != 0.0]
    at = [i for i, _ in named]
    own = 1.0 - on_level[:, at].sum(axis=1)
    parts.append(Part("level", "lag 1", own * last, last, own))
    for i, name in named:
        w = on_level[:, i]
        parts.append(Part("level", name, w * (last + u[i]), last + u[i], w))
    for name, some in (("season", usual), ("longer season", usual_longer)):
        if np.any(u[some]):
            total = on_level[:, some] @ u[some]
            parts.append(Part("level", f"{name} of the lags", total, np.nan, np.nan))
    for q, name in enumerate(_PHASES):
        s, w = unit * phase[:, q], on_phase[:, q]
        if np.any(s):
            kind = "growth" if name.startswith("growth") else "season"
            parts.append(Part(kind, name, w * s, s, w))
    offset = unit * (between @ mixture.offset[0])
    parts.append(Part("bias", "offsets of the exemplars", offset, np.nan, np.nan))
    order = np.argsort(-mixture.gates[0], kind="stable")
    shown = order[mixture.gates[0, order] >= _FEWEST]
    alone = []
    for center in shown:
        one = np.zeros_like(mixture.gates)
        one[0, center] = 1.0
        other = mix(inputs.gates(level), weights, between.shape[1], gates=one)
        total = between @ ((other.level[0] * level).sum(-1) + other.offset[0])
        alone.append(last + unit * (total + ((between @ other.phase[0]) * phase).sum(-1)))
    return Explanation(parts, shown, mixture.gates[0, shown], np.array(alone).reshape(-1, h))

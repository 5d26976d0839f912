r"""The forward pass of the pretrained network.

.. math:: f_k(x) = \lambda_k \cdot u + \sum_j g_j(x) \bigl(b_{jk} + A_{jk} \cdot u
    + C_{jk} \cdot s_k + Z_{jk} \cdot E(x)\bigr), \qquad
    g_j = \frac{\varphi_j}{\sum_i \varphi_i}, \quad
    \varphi_j = e^{\gamma_j - \beta_j \|E(x) - \mu_j\|^2}

where u are the inputs of the level, s_k those of the phase of step k, and x those of the gates (see
`inputs`). This is a normalized differential network of order 1 with a direction of its own for
every center: the derivative of a Gaussian along a direction is the Gaussian times a linear
function. Around every center there is a linear forecaster, and the gates g say how much each
counts for this series now. E is a learned metric.

Weights of the steps ahead are given at `KNOTS` and interpolated in log k between them, so there is
a forecast of any step, and it does not depend on how far one asks. Quantiles are the median plus
and minus sums of positive distances, so they never cross.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from scipy import special

from rbfdiffnet.batch.backend import place_on, to_numpy
from rbfdiffnet.pretrained.inputs import LONGEST, SeriesInputs, namespace
from rbfdiffnet.pretrained.seasons import choose_longer_seasons
from rbfdiffnet.support.arrays import Array, Arrays, Ints
from rbfdiffnet.support.parallel import parallel_map

#: Steps ahead at which the network has weights.
KNOTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
#: Probabilities of the quantiles.
PROBABILITIES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
MEDIAN = PROBABILITIES.index(0.5)
#: Usual distances between the quantiles: those of a normal variable.
SPACING = 1.5 * np.diff(special.ndtri(PROBABILITIES))
#: What gates may be, see `find_gates`; weights of other networks than ours say which of these.
GATINGS = ("normalized", "unnormalized", "hidden")
_SHARPNESS = 4.0  # of the gates, divided by the number of dimensions
_FILE = "weights.npz"
_DIGEST = "f69bd917bcceb64b482ae4a36d6b273acc29429fc69562ed30932cd9f46e7020"
_FAR = 128  # steps ahead
_VALUES_IN_CACHE, _VALUES_ON_CARD = 2**18, 2**24  # of a block of series


@dataclass(frozen=True)
class Outlook:
    """Forecasts of n series: quantiles (n, h, q) at `PROBABILITIES`, and means (n, h)."""

    quantiles: Array
    mean: Array

    @property
    def median(self) -> Array:
        """The medians (n, h)."""
        return self.quantiles[:, :, MEDIAN]


@cache
def load_weights() -> Arrays:
    """Read the weights that come with the package."""
    return read_weights(open_weights())


def open_weights() -> BytesIO:
    """Return the file that comes with the package, and check that it is the right one."""
    content = files(__package__).joinpath(_FILE).read_bytes()
    if sha256(content).hexdigest() != _DIGEST:
        raise RuntimeError(
            "The weights of the pretrained network are damaged; install rbfdiffnet again."
        )
    return BytesIO(content)


def read_weights(file: Any) -> Arrays:
    """Read weights from a file of `pretrained.train`, without its exemplars."""
    with np.load(file, allow_pickle=False) as archive:
        names = [name for name in archive.files if not name.startswith("exemplar")]
        return {name: archive[name].astype(np.float64) for name in names}


def forecast(
    series: Sequence[Array],
    h: int,
    season: int,
    *,
    longer: int | None = None,
    device: str = "cpu",
    weights: Arrays | None = None,
    n_jobs: int = 1,
) -> Outlook:
    """Forecast series of at least one value each, without gaps.

    `longer` is the longer season, 0 for none; None takes the usual one, or one that is found in the
    series. Blocks of series are spread over `n_jobs` threads.
    """
    weights = weights or load_weights()
    place = place_on(device)
    fixed = {"spacing": SPACING, "between": interpolation(h)}
    at_device = {name: place(array) for name, array in {**weights, **fixed}.items()}
    longest = most_values(season, longer or 0)
    sizes = np.array([min(y.size, longest) for y in series], dtype=np.int64)
    order = np.argsort(sizes, kind="stable")
    quantiles = np.empty((len(series), h, len(PROBABILITIES)))
    mean = np.empty((len(series), h))

    def look(rows: Any) -> None:
        lengths = sizes[rows]
        values = np.zeros((rows.size, int(lengths[-1])))
        shown = np.arange(values.shape[1]) >= values.shape[1] - lengths[:, None]
        values[shown] = np.concatenate([series[i][-longest:] for i in rows.tolist()])
        # Powers of two: no rounding, and no overflow of squares and sums.
        scale = np.exp2(np.frexp(np.abs(values).max(axis=1))[1])
        placed = place(values / scale[:, None])
        long = choose_longer_seasons(placed, lengths, season, longer)
        own = (_shorten(lengths), np.array([season]), _shorten(long))
        inputs = SeriesInputs(placed, *(place(steps) for steps in own))
        with np.errstate(all="ignore"):  # in this thread
            found = _forward(inputs, h, at_device)
        quantiles[rows], mean[rows] = (
            to_numpy(part) * scale.reshape(-1, *[1] * (part.ndim - 1)) for part in found
        )

    on_card = device != "cpu"
    blocks = _blocks(order, sizes, h, _VALUES_ON_CARD if on_card else _VALUES_IN_CACHE)
    parallel_map(look, blocks, 1 if on_card else n_jobs)
    return Outlook(_keep_wide(quantiles, season), mean)


def _keep_wide(quantiles: Array, season: int) -> Array:
    """Return quantiles (n, h, q) that go on to spread farther ahead than `_FAR` steps.

    So far ahead few simulated series taught the network. The spread, as a mean over a season, grows
    there at least by the power of the steps by which it grew from a quarter of them on: a half for
    random walks, 0 for noise.
    """
    n, h, _ = quantiles.shape
    if h <= _FAR:
        return quantiles
    span = min(max(season, 1), _FAR)
    spread = quantiles[:, :, -1] - quantiles[:, :, 0]
    total = np.concatenate([np.zeros((n, 1)), np.cumsum(spread, axis=1)], axis=1)
    usual = total[:, span:] - total[:, :-span]  # from step span on
    far, early = usual[:, _FAR - span :], usual[:, max(_FAR // 4 - span, 0)]
    with np.errstate(all="ignore"):
        power = np.log(far[:, 0] / early) / np.log(_FAR / max(_FAR // 4, span))
        power = np.clip(np.where(np.isfinite(power), power, 0.0), 0.0, 0.5)[:, None]
        least = far[:, :1] * (np.arange(_FAR, h + 1) / _FAR) ** power
        factor = np.where(far > 0.0, np.maximum(least / far, 1.0), 1.0)[:, 1:, None]
    middle = quantiles[:, _FAR:, MEDIAN : MEDIAN + 1]
    wide = middle + factor * (quantiles[:, _FAR:] - middle)
    return np.concatenate([quantiles[:, :_FAR], wide], axis=1)


def _shorten(steps: Ints) -> Ints:
    """Return one number for all series where it is the same."""
    return steps[:1] if (steps == steps[:1]).all() else steps


def most_values(season: int, longer: int = 0) -> int:
    """Return how many of the latest values of a series are looked at."""
    return max(LONGEST, 3 * max(season, longer))


def _blocks(order: Any, sizes: Any, h: int, most: int) -> list[Any]:
    """Return positions of series of about the same length, in blocks of so many values."""
    blocks, first = [], 0
    while first < order.size:
        shortest = int(sizes[order[first]])
        count = max(most // (shortest + 32 * (h + 10)), 16)  # a step ahead looks at 32 values
        alike = np.searchsorted(sizes[order[first : first + count]], 1.5 * shortest + 64, "right")
        blocks.append(order[first : first + int(alike)])
        first += int(alike)
    return blocks


def _forward(inputs: SeriesInputs, h: int, weights: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return quantiles (B, h, q) and means (B, h) in units of the values."""
    xp, level = inputs.xp, inputs.level()
    between = weights["between"]
    gating = GATINGS[int(weights.get("gating", 0))]
    mixture = mix(inputs.gates(level), weights, between.shape[-1], gating)
    found = respond(mixture, level, inputs.phase(inputs.steps(h)), between, weights["spacing"])

    def restore(values: Any) -> Any:
        shape = (-1, *[1] * (values.ndim - 1))
        values = xp.where(inputs.varies.reshape(shape), values, 0.0 * values)
        return inputs.base.reshape(shape) + inputs.unit.reshape(shape) * values

    return restore(found[0]), restore(found[1])


@dataclass(frozen=True)
class Mixture:
    """The weights of every series at the knots, mixed from those of the centers by its gates.

    `gates` (B, K), `level` (B, knots, d), `phase` (B, knots, q), `offset` (B, knots) and `spread`
    (B, knots, quantiles).
    """

    gates: Any
    level: Any
    phase: Any
    offset: Any
    spread: Any


def mix(
    x: Any,
    weights: Mapping[str, Any],
    n_knots: int,
    gating: str = "normalized",
    gates: Any = None,
) -> Mixture:
    """Mix the weights of the first knots for inputs of the gates x (B, g), or by given gates."""
    w = weights
    found, place = find_gates(x, w, gating)
    gates = found if gates is None else gates

    def combine(name: str) -> Any:
        own = w[name][:, :n_knots]
        found = gates @ own.reshape(own.shape[0], -1)
        return found.reshape(found.shape[0], *own.shape[1:])

    return Mixture(
        gates,
        w["common_level_weights"][:n_knots] + combine("level_weights"),
        w["common_phase_weights"][:n_knots] + combine("phase_weights"),
        4.0 * combine("offsets") + (combine("place_weights") * place[:, None]).sum(-1),
        combine("spreads"),
    )


def respond(
    mixture: Mixture, level: Any, phase: Any, between: Any, spacing: Any
) -> tuple[Any, Any]:
    """Return quantiles (B, k, q) and means (B, k) of steps ahead, in units of each series.

    `between` (k, knots), or (B, k, knots), leads from the knots to the steps.
    """
    xp = namespace(level)
    at_knots = (mixture.level * level[:, None]).sum(-1) + mixture.offset
    median = (between @ at_knots[..., None])[..., 0]
    median = median + ((between @ mixture.phase) * phase).sum(-1)
    spread = between @ mixture.spread
    total = xp.cumsum(softplus(spread[..., :-1]) * spacing, axis=-1)
    middle = total[..., MEDIAN - 1 : MEDIAN]
    away = xp.concatenate([-middle, total - middle], axis=-1)
    return median[..., None] + away, median + spread[..., -1] * away[..., MEDIAN + 2]


def find_gates(x: Any, weights: Mapping[str, Any], gating: str = "normalized") -> tuple[Any, Any]:
    """Return the gates (B, K) and the place E(x) of each series.

    Gates are "normalized", so that they sum to 1; "unnormalized"; or "hidden": no basis functions
    but what the metric is made of, which makes a plain multilayer network.
    """
    w, xp = weights, namespace(x)
    hidden = x @ w["input_weight"].T + w["input_bias"]
    block = 0
    while f"block{block}_up_weight" in w:
        name = f"block{block}_"
        z = normalize(hidden) * w[name + "scale"] + w[name + "shift"]
        z = z @ w[name + "up_weight"].T + w[name + "up_bias"]
        z = 0.5 * z * (1.0 + _erf(z / math.sqrt(2.0)))
        hidden = hidden + z @ w[name + "down_weight"].T + w[name + "down_bias"]
        block += 1
    place = normalize(hidden @ w["metric_weight"].T + w["metric_bias"])
    if gating == "hidden":
        return hidden, place
    centers = w["centers"]
    distance = (place * place).sum(1)[:, None] - 2.0 * place @ centers.T
    distance = distance + (centers * centers).sum(1)[None]
    rate = xp.exp(w["log_rates"]) * (_SHARPNESS / centers.shape[1])
    height = w["heights"] - rate * distance
    if gating == "unnormalized":
        return xp.exp(xp.clip(height, None, 20.0)), place
    gates = xp.exp(height - xp.amax(height, axis=1)[:, None])
    return gates / gates.sum(1)[:, None], place


def normalize(values: Any) -> Any:
    """Return rows of mean 0 and variance 1."""
    values = values - values.mean(1)[:, None]
    variance = (values * values).mean(1)[:, None]
    return values / (variance + 1e-5) ** 0.5


def softplus(values: Any) -> Any:
    """Return log(1 + e^x) without overflow."""
    xp = namespace(values)
    return xp.clip(values, 0.0, None) + xp.log1p(xp.exp(-abs(values)))


def _erf(values: Any) -> Any:
    return special.erf(values) if isinstance(values, np.ndarray) else values.erf()


def interpolation(h: int) -> Array:
    """Return the weights (h, knots) of the knots that the steps 1 to h lie between."""
    knots, steps = np.log(KNOTS), np.log(np.arange(1, h + 1))
    upper = np.clip(np.searchsorted(knots, steps), 1, knots.size - 1)
    share = np.clip((steps - knots[upper - 1]) / (knots[upper] - knots[upper - 1]), 0.0, 1.0)
    found = np.zeros((h, knots.size))
    found[np.arange(h), upper - 1] = 1.0 - share
    found[np.arange(h), upper] += share
    return found[:, : int(upper.max()) + 1]

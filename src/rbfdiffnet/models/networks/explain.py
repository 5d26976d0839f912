r"""Split forecasts of a network into additive terms, exactly.

A forecast of step k is, in this order, undone below:

.. math:: \hat z_k = \ell_k + b + \sum_i \lambda_i x_{ki} + \sum_j w_j g_j(x_k), \qquad
    \hat u = H + A \hat z, \qquad \hat y_k = \hat u_k\,(1 + \textstyle\sum_q e_{kq})
    \;\text{ or }\; \hat u_k + \textstyle\sum_q e_{kq}

Undoing differences and scales is linear (A adds up and scales, H are the last known values), so
every term of z has its own share of u, and every effect its own share of y. What the guards
against runaway forecasts, the logarithm's inverse or a lower bound change is a part of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rbfdiffnet.models.base import Terms
from rbfdiffnet.models.networks.series_model import SeriesModel
from rbfdiffnet.series.effects import Effects
from rbfdiffnet.series.series import Series
from rbfdiffnet.series.transforms import Difference, Rescale
from rbfdiffnet.support.arrays import Array


def explain_series(
    model: SeriesModel,
    series: Series,
    u: Array,
    y: Array,
    rows: Sequence[Array],
    ahead: Array,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    nearest: list[str],
) -> Terms:
    """Return the terms of forecasts y (h,) of one series by its network.

    `u` are the same before effects, `rows` the inputs of the network, block by block, `names`
    those of inputs known in advance and of other inputs.
    """
    terms = Terms()
    ahead_names, extra_names = names
    history = model.base_windows(series, np.array([series.y.size]))
    way = _WayBack(model, history, y.size)
    inputs = np.concatenate(rows)  # a row for each block
    path, levels = _path_and_levels(model, history, inputs[:1, : len(extra_names)], len(rows))
    if way.is_linear:
        last = model.preparation.steps.invert(np.zeros((1, y.size)), history)[0]
        terms.add("history", "last values", last)
    if model.windows.level != "none":
        terms.add("level", f"{model.windows.level} of the window", way.share(levels))
    _add_network_terms(terms, way, inputs, levels, extra_names, nearest)
    restored = model.preparation.steps.invert(path[:, : y.size], history)[0]
    if model.windows.tracker is not None:
        terms.add_rest("noise", "median over the states that the noise allows", restored)
    if not way.is_linear:
        terms.add_rest("transforms", "back from the transformed scale", restored)
    bounded = model.preparation.clip(restored)
    terms.add_rest("guard", "guard against runaway forecasts", bounded)
    add_effects(terms, model.preparation.effects, u, ahead, ahead_names)
    if model.preparation.log:
        terms.add_rest("logarithm", "back from logarithms", y)
    return terms


@dataclass(frozen=True)
class _WayBack:
    """How parts of z become parts of u: over h steps after a history (1, history)."""

    model: SeriesModel
    history: Array
    h: int

    @property
    def is_linear(self) -> bool:
        """Whether undoing the steps of the preparation is linear."""
        steps = self.model.preparation.steps.steps
        return all(isinstance(step, Difference | Rescale) for step in steps)

    def over_horizon(self, values: Array) -> Array:
        """Return values for each block and output, (blocks, block) or (blocks,), as (h,)."""
        shape = len(values), self.model.windows.block
        full = np.broadcast_to(values if values.ndim == 2 else values[:, None], shape)
        return np.asarray(full.reshape(-1)[: self.h])

    def share(self, values: Array) -> Array:
        """Return what a part of z adds to u; to z itself where the way back is not linear."""
        values = self.over_horizon(values)
        if not self.is_linear:
            return values
        steps, nothing = self.model.preparation.steps, np.zeros_like(self.history)
        rest = steps.invert(np.zeros((1, self.h)), nothing)
        return np.asarray((steps.invert(values[None], nothing) - rest)[0])


def _add_network_terms(
    terms: Terms,
    way: _WayBack,
    inputs: Array,
    levels: Array,
    extra_names: tuple[str, ...],
    nearest: list[str],
) -> None:
    """Add the terms of the network: its bias, its linear part and its exemplars."""
    windows = way.model.windows
    network, unit, n_blocks = windows.network, windows.unit, len(inputs)
    bias, linear, exemplars = network.contributions(inputs)
    activations = network.activations(inputs)

    def repeat(weights: Array) -> Array:
        return way.over_horizon(np.broadcast_to(weights, (n_blocks, windows.block)))

    terms.add("bias", "bias", way.share(np.broadcast_to(unit * bias, (n_blocks, windows.block))))
    ages = [f"lag {age}" for age in reversed(windows.lags)]
    for c, name in enumerate((*extra_names, *ages)):
        j = c - inputs.shape[1] + network.n_lags
        if j < 0:  # an input of the basis functions only
            continue
        is_lag = c >= len(extra_names)
        value = inputs[:, c] * unit + levels if is_lag else inputs[:, c]
        weight = _slope(network, j) * (1.0 if is_lag else unit)
        share = way.share(unit * linear[:, j])
        terms.add("linear", name, share, value=way.over_horizon(value), weight=repeat(weight))
    for c in range(len(network.centers)):
        terms.add(
            "exemplar",
            f"exemplar {c + 1}",
            way.share(unit * exemplars[:, c]),
            weight=repeat(network.w[c]),
            activation=way.over_horizon(activations[:, c]),
            nearest=nearest[c],
        )


def _path_and_levels(
    model: SeriesModel, history: Array, extra: Array, n_blocks: int
) -> tuple[Array, Array]:
    """Return the path of z (1, steps) from the history on, and the level of each block."""
    windows = model.windows
    z = model.preparation.steps.apply(history)
    path, _ = windows.forecast(z, n_blocks * windows.block, extra)
    full = np.concatenate([z, path], axis=1)
    levels = np.empty(n_blocks)
    for k in range(n_blocks):
        _, level = windows.inputs(full[:, : z.shape[1] + k * windows.block], extra)
        levels[k] = level[0, 0]
    return path, levels


def _slope(network: Any, j: int) -> Array:
    """Return the weight of a linear input in units of the network's inputs and outputs."""
    scale = network.x_scale[len(network.x_scale) - network.n_lags + j]
    return np.asarray(network.linear[j] * network.y_scale / scale)


def add_effects(
    terms: Terms, effects: Effects | None, u: Array, ahead: Array, names: tuple[str, ...]
) -> None:
    """Add the terms that take u to y, or to its logarithm."""
    if effects is None:
        return
    parts = effects.parts(ahead)
    for q, name in enumerate(names):
        share = parts[:, q] * u if effects.relative else parts[:, q]
        terms.add("effect", name, share, value=ahead[:, q], weight=effects.gamma[q])
    terms.add_rest("guard", "effects are not below -100 %", effects.restore(u, ahead))


def operator_terms(
    model: SeriesModel, extra_names: tuple[str, ...]
) -> list[tuple[int, str, float]]:
    r"""Return order, input and coefficient :math:`a_{ki}` of the learned differential operator.

    Derivatives are by the inputs as the basis functions see them: standardized, times their metric.
    """
    windows = model.windows
    network = windows.network
    names = (*extra_names, *(f"lag {age}" for age in reversed(windows.lags)))
    active = [name for name, m in zip(names, network.metric, strict=True) if m > 0]
    a = network.a
    terms: list[tuple[int, str, float]] = []
    if network.order_zero:
        terms.append((0, "", float(a[0])))
        a = a[1:]
    for k, row in enumerate(a.reshape(network.order, len(active)), start=1):
        scale = network.unit**k
        terms += [(k, name, float(value * scale)) for name, value in zip(active, row, strict=True)]
    return terms

r"""Split forecasts into additive parts, exactly.

A forecast of step k is, in this order, undone below:

.. math:: \hat z_k = \ell_k + b + \sum_i \lambda_i x_{ki} + \sum_j w_j g_j(x_k), \qquad
    \hat u = H + A \hat z, \qquad \hat y_k = \hat u_k\,(1 + \textstyle\sum_q e_{kq})
    \;\text{ or }\; \hat u_k + \textstyle\sum_q e_{kq}

Undoing differences and scales is linear (H is what the history alone gives, A sums up and scales),
so every term of z has its own share of u, and every effect its own share of y. What the guards
against runaway forecasts, the logarithm's inverse or a lower bound change is a part of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.models.panel_model import Forecasts
from rbfdiffnet.models.series_model import SeriesModel
from rbfdiffnet.series.series import Series
from rbfdiffnet.series.transforms import Difference, Rescale

if TYPE_CHECKING:
    from rbfdiffnet.forecasting.pipeline import State
    from rbfdiffnet.models.stack.model import Mixture
    from rbfdiffnet.panel.panel import Panel

__all__ = ["explanation", "operator_table", "stack_explanation"]

Array = npt.NDArray[np.float64]


class _Terms:
    """Rows of an explanation, collected term by term over the horizon."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(
        self,
        part: str,
        term: str,
        contribution: Array,
        value: Any = np.nan,
        weight: Any = np.nan,
        activation: Any = np.nan,
        nearest: str = "",
    ) -> None:
        self.rows.append(
            {
                "part": part,
                "term": term,
                "value": np.broadcast_to(value, contribution.shape),
                "weight": np.broadcast_to(weight, contribution.shape),
                "activation": np.broadcast_to(activation, contribution.shape),
                "contribution": contribution,
                "nearest": nearest,
            }
        )

    @property
    def total(self) -> Array:
        return np.asarray(np.sum([row["contribution"] for row in self.rows], axis=0))


def explanation(state: State, forecasts: Forecasts, ahead: Sequence[Array], bounded: Array) -> Any:
    """Return the frame `RBFDiffNet.explain` promises."""
    h = bounded.shape[1]
    tables: list[_Terms] = []
    for i, series in enumerate(state.series):
        model = state.model.models[i]
        terms = _Terms()
        if model is None or not forecasts.rows[i]:
            terms.add("fallback", "the last season, or the last value", forecasts.values[i])
        else:
            names = state.exogenous.extra_names
            found = model.nearest(series, state.model.plan)
            nearest = [_dates(state, i, steps) for steps in found]
            _network_terms(terms, model, series, forecasts.rows[i], h, names, nearest)
            _effect_terms(terms, model, forecasts.base[i], ahead[i], state.exogenous.ahead_names)
            if model.preparation.log:
                _rest(terms, "logarithm", "back from logarithms", forecasts.values[i])
        _bound(terms, forecasts.values[i], bounded[i])
        tables.append(terms)
    return _frame(state.panel, tables, h)


def stack_explanation(
    panel: Panel, mixture: Mixture, chosen: Sequence[int], bounded: Array, fitted: Sequence[bool]
) -> Any:
    """Return the frame `RBFDiffNet.explain` promises, for forecasts that members were mixed to.

    Parameters
    ----------
    panel : Panel
        The chosen series.
    mixture : Mixture
        Of all series.
    chosen : sequence of int
        Positions of the chosen ones among all.
    bounded : ndarray of shape (n, h)
        Forecasts of all series as they were returned.
    fitted : sequence of bool
        Which of all series have members.
    """
    tables = []
    for i in chosen:
        terms = _Terms()
        if not fitted[i]:
            terms.add("fallback", "the last season, or the last value", mixture.values[i])
        elif not any(weights[i] for weights in mixture.weights.values()):
            terms.add("member", "median of the members", mixture.values[i])
        else:
            for name, weights in mixture.weights.items():
                member, weight = mixture.members[name][i], float(weights[i])
                terms.add("member", name, weight * member, value=member, weight=weight)
        _bound(terms, mixture.values[i], bounded[i])
        tables.append(terms)
    return _frame(panel, tables, bounded.shape[1])


def _network_terms(
    terms: _Terms,
    model: SeriesModel,
    series: Series,
    rows: Sequence[Array],
    h: int,
    extra_names: tuple[str, ...],
    nearest: list[str],
) -> None:
    """Terms of u."""
    windows, steps = model.windows, model.preparation.steps
    network, block = windows.network, windows.block
    history = model.base_windows(series, np.array([series.y.size]))
    inputs = np.concatenate(rows)  # a row for each block
    bias, linear, exemplars = network.contributions(inputs)
    phi = network.activations(inputs)

    def path(values: Array) -> Array:
        """Values for each block and output, (blocks, block) or (blocks,), over the horizon."""
        full = values if values.ndim == 2 else np.repeat(values[:, None], block, axis=1)
        return np.asarray(full.reshape(-1)[:h])

    linear_steps = all(isinstance(step, Difference | Rescale) for step in steps.steps)

    def share(values: Array) -> Array:
        """What a part of z adds to u; to z itself where the way back is not linear."""
        if not linear_steps:
            return values
        nothing = np.zeros_like(history)
        rest = steps.invert(np.zeros((1, h)), nothing)
        return np.asarray((steps.invert(values[None], nothing) - rest)[0])

    z = steps.apply(history)
    levels = np.empty(len(rows))
    path_z, _ = windows.forecast(z, len(rows) * block, inputs[:1, : len(extra_names)])
    full = np.concatenate([z, path_z], axis=1)
    for k in range(len(rows)):
        end = z.shape[1] + k * block
        _, level = windows.inputs(full[:, :end], inputs[:1, : len(extra_names)])
        levels[k] = level[0, 0]
    if linear_steps:
        terms.add("history", "last values", steps.invert(np.zeros((1, h)), history)[0])
    if windows.level != "none":
        terms.add("level", f"{windows.level} of the window", share(path(levels)))
    constant = np.broadcast_to(windows.unit * bias, (len(rows), block))
    terms.add("bias", "bias", share(path(constant)))
    ages = [f"lag {age}" for age in reversed(windows.lags)]
    for c, name in enumerate((*extra_names, *ages)):
        j = c - inputs.shape[1] + network.n_lags
        if j < 0:  # an input of the basis functions only
            continue
        is_lag = c >= len(extra_names)
        value = inputs[:, c] * windows.unit + levels if is_lag else inputs[:, c]
        weight = _slope(network, j) * (1.0 if is_lag else windows.unit)
        terms.add(
            "linear",
            name,
            share(path(windows.unit * linear[:, j])),
            value=path(value),
            weight=path(np.broadcast_to(weight, (len(rows), block))),
        )
    for c in range(len(network.centers)):
        terms.add(
            "exemplar",
            f"exemplar {c + 1}",
            share(path(windows.unit * exemplars[:, c])),
            weight=path(np.broadcast_to(network.w[c], (len(rows), block))),
            activation=path(phi[:, c]),
            nearest=nearest[c],
        )
    restored = steps.invert(path_z[:, :h], history)[0]
    if windows.tracker is not None:
        _rest(terms, "noise", "median over the states that the noise allows", restored)
    if not linear_steps:
        _rest(terms, "transforms", "back from the transformed scale", restored)
    clipped = np.clip(restored, model.preparation.low, model.preparation.high)
    _rest(terms, "guard", "guard against runaway forecasts", clipped)


def _slope(network: Any, j: int) -> Array:
    """Weight of a linear input in units of the inputs and outputs of the network."""
    scale = network.x_scale[len(network.x_scale) - network.n_lags + j]
    return np.asarray(network.linear[j] * network.y_scale / scale)


def _effect_terms(
    terms: _Terms, model: SeriesModel, u: Array, ahead: Array, names: tuple[str, ...]
) -> None:
    """Terms that take u to y, or to its logarithm."""
    effects = model.preparation.effects
    if effects is None:
        return
    parts = effects.parts(ahead)
    for q, name in enumerate(names):
        share = parts[:, q] * u if effects.relative else parts[:, q]
        terms.add("effect", name, share, value=ahead[:, q], weight=effects.gamma[q])
    _rest(terms, "guard", "effects are not below -100 %", effects.restore(u, ahead))


def _bound(terms: _Terms, values: Array, bounded: Array) -> None:
    """Add what a bound changes."""
    if np.any(bounded != values):
        terms.add("bound", "lower bound", bounded - values)


def _rest(terms: _Terms, part: str, name: str, total: Array) -> None:
    """Add what is left to a total, if there is more than rounding."""
    left = total - terms.total
    if np.any(np.abs(left) > 1e-10 * np.abs(total)):
        terms.add(part, name, left)


def _dates(state: State, i: int, steps: npt.NDArray[np.int64]) -> str:
    return ", ".join(state.panel.format_date(i, int(step)) for step in steps if step >= 0)


def _frame(panel: Panel, tables: list[_Terms], h: int) -> Any:
    """One frame: series by series, step by step, term by term."""
    n_terms = np.array([len(t.rows) for t in tables], dtype=np.int64)
    texts: dict[str, list[str]] = {"part": [], "term": [], "nearest": []}
    numbers: dict[str, list[Array]] = {
        name: [] for name in ("value", "weight", "activation", "contribution")
    }
    for t in tables:
        for name, column in numbers.items():
            column.append(np.stack([row[name] for row in t.rows], axis=1).ravel())
        for text, words in texts.items():
            words += [row[text] for row in t.rows] * h
    series = np.repeat(np.arange(panel.n_series), n_terms * h)
    step = np.concatenate(
        [np.repeat(np.arange(h), n) for n in n_terms] + [np.empty(0, dtype=np.int64)]
    )
    flat = {name: np.concatenate([*column, np.empty(0)]) for name, column in numbers.items()}
    chosen = panel.select(series)
    first = panel.lengths[series] + step
    columns = {
        "part": np.array(texts["part"], dtype=object),
        "term": np.array(texts["term"], dtype=object),
        **flat,
        "nearest": np.array(texts["nearest"], dtype=object),
    }
    return chosen.make_frame(first, np.ones(series.size, dtype=np.int64), columns)


def operator_table(state: State) -> Any:
    """Return the frame `RBFDiffNet.equation` promises."""
    series: list[int] = []
    orders: list[int] = []
    inputs: list[str] = []
    values: list[float] = []
    for i, model in enumerate(state.model.models):
        if model is None or not model.windows.network.order:
            continue
        for order, name, value in operator_terms(model, state.exogenous.extra_names):
            series.append(i)
            orders.append(order)
            inputs.append(name)
            values.append(value)
    return state.panel.make_table(
        np.array(series, dtype=np.int64),
        {
            "order": np.array(orders, dtype=np.int64),
            "input": np.array(inputs, dtype=object),
            "coefficient": np.array(values, dtype=np.float64),
        },
    )


def operator_terms(
    model: SeriesModel, extra_names: tuple[str, ...]
) -> list[tuple[int, str, float]]:
    r"""Order, input and coefficient :math:`a_{ki}` of the operator.

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

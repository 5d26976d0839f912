r"""What every trainer minimizes, and a quadratic that touches it from above.

.. math::

    E(a, w, \lambda) = \frac{1}{\sum_n v_n} \sum_n v_n\,
    \ell\Big(y_n - \sum_j w_j \sum_p a_p \theta_{pjn} - \lambda \cdot s_n\Big) + \text{penalty}

where :math:`\theta` is the `DifferentialBasis`, :math:`s_n` the linear inputs of row n (lags and,
where wanted, a constant 1 as the last of them) and :math:`v_n` the sample weights. The penalty is

========  =========================================================================================
ridge     :math:`\tfrac12 \alpha |w|^2 |a|^2 + \tfrac12 \alpha_{lin} |\lambda|^2`
lasso     :math:`\alpha (|w|_1 + |a|_1) + \alpha_{lin} |\lambda|_1`, corners rounded off
========  =========================================================================================

The constant is never penalized, and a trace of ridge (`TRACE`) on everything linear keeps
rank-deficient problems solvable. Scaling w up and a down by the same factor changes nothing in
the network; the ridge penalty does not change either, and the lasso is lowest where both weigh the
same. With several outputs, w and :math:`\lambda` have a column for each and a is shared: one
differential operator, a vector of networks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from rbfdiffnet.network.basis import DifferentialBasis
from rbfdiffnet.network.losses import CustomLoss, Loss
from rbfdiffnet.support.arrays import Array

PENALTIES = ("ridge", "lasso")

TRACE = 1e-10  # ridge on every linear weight, per row
_CORNER = 1e-4  # of the lasso's absolute value


@dataclass(frozen=True)
class Weights:
    """The trained weights: a (terms,), w (c, m) and linear (q, m)."""

    a: Array
    w: Array
    linear: Array

    def flatten(self) -> Array:
        """Return all weights in one vector."""
        return np.concatenate([self.a, self.w.ravel(), self.linear.ravel()])

    def unflatten(self, flat: Array) -> Weights:
        """Return the weights of a vector from `flatten`, with the shapes of self."""
        a, w, linear = np.split(flat, [self.a.size, self.a.size + self.w.size])
        return Weights(a, w.reshape(self.w.shape), linear.reshape(self.linear.shape))

    def with_unit_a(self) -> Weights:
        """Return the same network with a of length 1 and the largest component of a positive."""
        size = np.linalg.norm(self.a) * np.sign(self.a[np.abs(self.a).argmax()])
        if size == 0.0:
            start = np.zeros_like(self.a)
            start[0] = 1.0
            return Weights(start, np.zeros_like(self.w), self.linear)
        return Weights(self.a / size, self.w * size, self.linear)


@dataclass(frozen=True)
class Solution:
    """Where a trainer ended, with the objective there."""

    weights: Weights
    value: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class Quadratic:
    r"""Weighted least squares that touches the objective from above at some weights.

    .. math::

        \tfrac12 \sum_{on} v_{on} (z_{on} - f_{on})^2
        + \tfrac12 |a|^{2h} \sum_{jo} p_{oj} w_{jo}^2 + \tfrac12 \sum_p p^a_p a_p^2
        + \tfrac12 \sum_{io} p_{o,c+i} \lambda_{io}^2

    h is 1 if ``homogeneous`` (ridge), else 0. Where all outputs share ``row_weight`` and
    ``penalty`` their first axis has length 1.
    """

    row_weight: Array  # (m or 1, n)
    target: Array  # (m, n)
    penalty: Array  # (m or 1, c + q)
    penalty_a: Array  # (terms,)
    homogeneous: bool
    _linear_grams: dict[int, Array] = field(default_factory=dict, repr=False)

    @cached_property
    def uniform(self) -> bool:
        """Whether every row counts once."""
        return bool(np.all(self.row_weight == 1.0))

    def weigh(self, rows: Array, group: int) -> Array:
        """Multiply an array over rows (the last axis) by the row weights of a group."""
        return rows if self.uniform else rows * self.row_weight[group]

    def linear_gram(self, linear: Array, group: int) -> Array:
        """Return weighted inner products of the linear inputs, computed once for each group."""
        if group not in self._linear_grams:
            self._linear_grams[group] = self.weigh(linear, group) @ linear.T
        return self._linear_grams[group]

    def groups(self) -> list[list[int]]:
        """Return lists of the outputs that share row weights and penalty."""
        outputs = list(range(len(self.target)))
        return [outputs] if len(self.row_weight) == 1 else [[o] for o in outputs]

    def value(self, weights: Weights, residual: Array) -> float:
        """Return the value at some weights, given their residual."""
        size = float(weights.a @ weights.a) if self.homogeneous else 1.0
        n_centers = len(weights.w)
        squares = np.sum(self.row_weight * residual**2) + self.penalty_a @ weights.a**2
        squares += size * np.sum(self.penalty[:, :n_centers].T * weights.w**2)
        squares += np.sum(self.penalty[:, n_centers:].T * weights.linear**2)
        return 0.5 * float(squares)


@dataclass(frozen=True)
class Objective:
    """The data and settings of one training problem."""

    basis: DifferentialBasis
    linear: Array  # (q, n): the linear inputs, the last of them the constant 1 if `constant`
    target: Array  # (m, n)
    weight: Array  # (n,)
    constant: bool
    penalty: str = "ridge"
    alpha: float = 0.0
    alpha_linear: float = 0.0
    loss: Loss | CustomLoss = Loss()  # noqa: RUF009 - frozen

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return float(self.weight.sum())

    @property
    def is_quadratic(self) -> bool:
        """Whether `quadratic` is the objective itself, given a."""
        return self.loss.kind == "squared" and self.penalty == "ridge"

    def with_alpha(self, alpha: float, alpha_linear: float) -> Objective:
        """Return the same problem under another penalty strength."""
        return replace(self, alpha=alpha, alpha_linear=alpha_linear)

    def predict(self, weights: Weights) -> Array:
        """Return the network's output, shape (m, n)."""
        return weights.w.T @ self.basis.contract(weights.a) + weights.linear.T @ self.linear

    def value(self, weights: Weights) -> float:
        """Return the objective E: paper, eq. (loss)."""
        residual = self.target - self.predict(weights)
        return self._mean(self.loss.value(residual)) + self._penalty(weights)[0]

    def gradient(self, weights: Weights) -> tuple[float, Weights]:
        """Return the objective E and its derivatives by all weights."""
        features = self.basis.contract(weights.a)
        residual = self.target - weights.w.T @ features - weights.linear.T @ self.linear
        slope = -self.loss.slope(residual) * self.weight / self.total
        extra, d_penalty = self._penalty(weights)
        by_a = sum(
            self.basis.jacobian(column) @ s for column, s in zip(weights.w.T, slope, strict=True)
        )
        value = self._mean(self.loss.value(residual)) + extra
        return value, Weights(
            by_a + d_penalty.a,
            features @ slope.T + d_penalty.w,
            self.linear @ slope.T + d_penalty.linear,
        )

    def quadratic(self, weights: Weights | None) -> Quadratic:
        """Return the quadratic that touches the objective, times the total weight, at weights.

        Weights may be None where the quadratic does not depend on them (`is_quadratic`).
        """
        n_centers, n_linear = self.basis.phi.shape[0], self.linear.shape[0]
        trace = np.full(n_centers + n_linear, TRACE)
        if weights is None or self.loss.kind == "squared" or isinstance(self.loss, CustomLoss):
            row_weight, target = self.weight[None], self.target
        else:
            curvature, shift = self.loss.majorizer(self.target - self.predict(weights))
            row_weight, target = curvature * self.weight, self.target - shift
        if weights is None or self.penalty == "ridge":
            penalty = trace + np.concatenate([np.full(n_centers, self.alpha), self._linear_alpha()])
            penalty, penalty_a, homogeneous = penalty[None], np.zeros(self.basis.n_terms), True
        else:
            penalty = np.concatenate(
                [
                    self.alpha / _smooth_abs(weights.w),
                    self._linear_alpha()[:, None] / _smooth_abs(weights.linear),
                ]
            ).T
            penalty = penalty + trace
            penalty_a, homogeneous = self.alpha / _smooth_abs(weights.a) + TRACE, False
        if len(row_weight) != len(penalty):  # one is shared by all outputs, the other is not
            n_groups = self.target.shape[0]
            row_weight = np.broadcast_to(row_weight, (n_groups, row_weight.shape[1]))
            penalty = np.broadcast_to(penalty, (n_groups, penalty.shape[1]))
        scale = self.total
        return Quadratic(row_weight, target, scale * penalty, scale * penalty_a, homogeneous)

    def _mean(self, values: Array) -> float:
        return float((values @ self.weight).sum() / self.total)

    def _linear_alpha(self) -> Array:
        strength = np.full(self.linear.shape[0], self.alpha_linear)
        if self.constant:
            strength[-1] = 0.0
        return strength

    def _penalty(self, weights: Weights) -> tuple[float, Weights]:
        """Return the value and the derivatives of the penalty."""
        a, w, linear = weights.a, weights.w, weights.linear
        strength = self._linear_alpha()[:, None]
        if self.penalty == "ridge":
            size_a, size_w = float(a @ a), float(np.sum(w * w))
            alpha, strength = self.alpha + TRACE, strength + TRACE
            value = 0.5 * alpha * size_w * size_a + 0.5 * float(np.sum(strength * linear**2))
            return value, Weights(alpha * size_w * a, alpha * size_a * w, strength * linear)
        value = self.alpha * float(_smooth_abs(w).sum() + _smooth_abs(a).sum())
        value += float(np.sum(strength * _smooth_abs(linear)))
        value += 0.5 * TRACE * float(np.sum(w**2) + np.sum(a**2) + np.sum(linear**2))
        return value, Weights(
            self.alpha * a / _smooth_abs(a) + TRACE * a,
            self.alpha * w / _smooth_abs(w) + TRACE * w,
            strength * linear / _smooth_abs(linear) + TRACE * linear,
        )


def _smooth_abs(x: Array) -> Array:
    """Return the absolute value with its corner rounded off."""
    return np.sqrt(x**2 + _CORNER**2)

"""BFGS over all weights together: the paper's trainer, and the one that takes any loss."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from scipy import optimize

from rbfdiffnet.network.basis import Array
from rbfdiffnet.network.objective import Objective, Solution, Weights

_HOPELESS = 100.0  # times the objective without the lags
_MOST_WEIGHTS = 600  # beyond, the dense inverse Hessian costs more than it gives


def taylor_start(objective: Objective, w: Array) -> Weights:
    r"""Return the paper's start: paper, eq. (start).

    .. math::

        \lambda_i = 1 / l, \qquad a_{ki} = 0.001^k / k!

    with the given weights w (c, m) of a plain network, and no bias. Data that are not centered can
    make the mean of the lags far worse than nothing; then :math:`\lambda = 0`.
    """
    basis = objective.basis
    n_lags = objective.linear.shape[0] - int(objective.constant)
    linear = np.full((objective.linear.shape[0], w.shape[1]), 1.0 / max(n_lags, 1))
    if objective.constant:
        linear[-1] = 0.0
    orders = range(1 - int(basis.order_zero), basis.order + 1)
    parts = [
        np.full(basis.x.shape[0] if k else 1, 0.001**k / factorial(k) / basis.unit**k)
        for k in orders
    ]
    start = Weights(np.concatenate(parts), w, linear)
    without = Weights(start.a, w, np.zeros_like(linear))
    hopeless = objective.value(start) > _HOPELESS * objective.value(without)
    return without if hopeless else start


def minimize(
    objective: Objective, start: Weights, *, max_iter: int = 2000, tol: float = 1e-6
) -> Solution:
    """Minimize the objective from one start, with any loss and penalty: paper, eq. (bfgs).

    Training ends where the largest component of the gradient is below `tol` times the objective at
    the start. The solution is never above the start.
    """

    def flat_gradient(flat: Array) -> tuple[float, Array]:
        value, gradient = objective.gradient(start.unflatten(flat))
        return value, gradient.flatten()

    first = objective.value(start)
    x = start.flatten()
    method: Any = "BFGS" if x.size <= _MOST_WEIGHTS else "L-BFGS-B"
    options: Any = {"maxiter": max_iter, "gtol": tol * max(abs(first), 1e-12)}
    with np.errstate(over="ignore", invalid="ignore"):  # far trial steps, which are refused
        result: Any = optimize.minimize(flat_gradient, x, jac=True, method=method, options=options)
    ended = int(result.nit) < max_iter  # also where rounding allows no further step
    if not result.fun < first:
        return Solution(start, first, int(result.nit), ended)
    return Solution(start.unflatten(result.x), float(result.fun), int(result.nit), ended)

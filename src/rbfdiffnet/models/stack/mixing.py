r"""How much each member of a stack counts.

.. math:: \min_v \; \frac{1}{e} \text{mean}_i \Big| \sum_m v_m e_{mi} \Big| + \rho \sum_m
    \Big( v_m - \frac{1}{M} \Big)^2, \qquad v_m \ge 0, \quad \sum_m v_m = 1

over the errors :math:`e_{mi}` that the members made at the ends of all series, which were held back
from them, each series in its own units, with e the mean size of the errors; or with squares instead
of sizes. The fewer errors, the stronger the pull :math:`\rho` toward equal weights. One set of
weights serves a whole panel.
"""

from __future__ import annotations

import numpy as np

from rbfdiffnet.support.arrays import Array

_TOWARD_EQUAL = 0.02  # at least
_FEW_ERRORS = 30.0  # divided by the number of errors: more, where they say little
_NOTHING = 1e-9  # a smaller weight counts as 0
_ROUND = 1e-3  # of the mean size, within which absolute errors are rounded


def fit_weights(errors: Array, *, squared: bool = False) -> Array:
    """Find the weights of members, shape (M,), whose mixture errs least.

    ``errors`` (M, n) have signs and comparable units. With ``squared``, squares of the errors
    count, for means instead of medians.
    """
    from scipy.optimize import LinearConstraint, minimize

    n_members = len(errors)
    equal = np.full(n_members, 1.0 / n_members)
    size = float(np.abs(errors).mean()) if errors.size else 0.0
    if n_members == 1 or not size > 0.0:
        return equal

    pull = max(_TOWARD_EQUAL, _FEW_ERRORS / errors.shape[1])

    def value(v: Array) -> tuple[float, Array]:
        mixed, away = v @ errors / size, v - equal
        if squared:
            cost, rise = mixed**2, 2.0 * mixed
        else:
            cost = np.sqrt(mixed**2 + _ROUND**2)
            rise = mixed / cost
        slope = errors @ rise / (size * mixed.size) + 2.0 * pull * away
        return float(cost.mean() + pull * away @ away), slope

    whole = LinearConstraint(np.ones((1, n_members)), 1.0, 1.0)
    bounds = [(0.0, 1.0)] * n_members
    found = minimize(value, equal, jac=True, method="SLSQP", bounds=bounds, constraints=whole)
    weights = np.where(found.x > _NOTHING, found.x, 0.0)
    return np.asarray(weights / weights.sum())

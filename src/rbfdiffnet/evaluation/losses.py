r"""Losses of quantiles, intervals and samples, over arrays of any shape.

For a value :math:`y`, the quantile :math:`\hat q_p` of probability :math:`p`, and an interval
:math:`[l, u]` that should hold the share :math:`\gamma` of the values,

.. math::
    \rho_p(y, \hat q_p) = \max\bigl(p \, (y - \hat q_p), (p - 1) (y - \hat q_p)\bigr), \qquad
    W_\gamma(y, l, u) = u - l + \frac{2}{1 - \gamma} \bigl((l - y)_+ + (y - u)_+\bigr)

are the quantile loss and the Winkler score. Both are lowest, on average, for the true quantiles.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import as_floats, check_flag, check_size


def pinball(actual: Array, forecast: Array, probability: float | Array) -> Array:
    """Return the quantile loss of every value."""
    error = actual - forecast
    return np.maximum(probability * error, (probability - 1.0) * error)


def interval_score(actual: Array, low: Array, high: Array, level: float) -> Array:
    """Return the Winkler score of every value; `level` is a share below 1."""
    outside = np.maximum(low - actual, 0.0) + np.maximum(actual - high, 0.0)
    return high - low + 2.0 / (1.0 - level) * outside


def quantile_crps(
    actual: npt.ArrayLike, forecasts: npt.ArrayLike, quantiles: npt.ArrayLike
) -> Array:
    r"""CRPS of every value, approximated by quantiles.

    .. math:: \mathrm{CRPS}(y) \approx \frac{2}{K} \sum_{k=1}^{K} \rho_{p_k}(y, \hat q_{p_k})

    where :math:`\rho` is the quantile loss. With evenly spaced quantiles it tends to the CRPS as
    there are more of them; few or unevenly spaced ones are a score of these quantiles. Divided by
    the mean size of the values it is the weighted quantile loss.

    Parameters
    ----------
    actual : array-like of any shape
        Values; NaN has a NaN score.
    forecasts : array-like of the shape of ``actual`` and one more axis, of length K
        The quantiles of every value.
    quantiles : array-like of shape (K,)
        Their probabilities, between 0 and 1.

    Returns
    -------
    ndarray of the shape of ``actual``
        In units of the values; 0 is perfect.

    See Also
    --------
    ensemble_crps : From samples rather than quantiles.
    evaluate_quantiles : The mean over the rows of a frame, with other scores.

    Examples
    --------
    >>> from rbfdiffnet.evaluation.metrics import quantile_crps
    >>> quantile_crps([10.0, 14.0], [[8.0, 10.0, 12.0]] * 2, [0.1, 0.5, 0.9]).round(3)
    array([0.267, 2.933])
    """
    y, q, p = _with_last_axis(actual, forecasts, "forecasts", as_floats("quantiles", quantiles))
    if not ((p > 0.0) & (p < 1.0)).all():
        raise ValueError(f"quantiles must lie between 0 and 1; got {p.tolist()}.")
    return np.asarray(2.0 * pinball(y[..., None], q, p).mean(axis=-1))


def ensemble_crps(actual: npt.ArrayLike, samples: npt.ArrayLike, fair: bool = True) -> Array:
    r"""CRPS of every value, from samples of its distribution.

    .. math::
        \mathrm{CRPS}(y) = \frac1m \sum_i |x_i - y| - \frac{1}{2 m (m - 1)} \sum_{i,j} |x_i - x_j|

    for samples :math:`x_1, \dots, x_m`. This is the fair estimator, whose mean does not depend on
    how many samples there are. The usual one divides by :math:`2 m^2`: it scores the samples as if
    they were the whole distribution, and few samples are worse than many.

    Parameters
    ----------
    actual : array-like of any shape
        Values; NaN has a NaN score.
    samples : array-like of the shape of ``actual`` and one more axis, of length m
        Samples of every value, in any order: a step of m sample paths, or members of an ensemble.
    fair : bool, default=True
        Take the fair estimator, which needs two samples, rather than the usual one.

    Returns
    -------
    ndarray of the shape of ``actual``
        In units of the values. The fair estimate of a good forecast may be below 0.

    See Also
    --------
    path_crps : The same for frames of sample paths.

    Examples
    --------
    >>> from rbfdiffnet.evaluation.metrics import ensemble_crps
    >>> ensemble_crps([2.0, 5.0], [[1.0, 2.0, 3.0]] * 2)
    array([0.        , 2.33333333])
    >>> ensemble_crps([2.0, 5.0], [[1.0, 2.0, 3.0]] * 2, fair=False)
    array([0.22222222, 2.55555556])
    """
    y, x, _ = _with_last_axis(actual, samples, "samples")
    m = x.shape[-1]
    fewest = 2 if check_flag("fair", fair) else 1
    if m < fewest:
        raise ValueError(f"fair={fair} needs at least {fewest} samples of each value; got {m}.")
    x = np.sort(x, axis=-1)
    weights = 2.0 * np.arange(m) - (m - 1)  # of sorted samples in half the sum of distances
    spread = x @ weights / (m * (m - 1) if fair else m * m)
    return np.asarray(np.abs(x - y[..., None]).mean(axis=-1) - spread)


def _with_last_axis(
    actual: npt.ArrayLike, many: npt.ArrayLike, name: str, last: Array | None = None
) -> tuple[Array, Array, Array]:
    """Check that an array has one axis more than the values, as long as `last` if it is given."""
    y, x = as_floats("actual", actual), as_floats(name, many)
    last = np.empty(x.shape[-1:]) if last is None else last
    if last.ndim != 1 or last.size == 0 or x.shape != (*y.shape, last.size):
        raise ValueError(
            f"{name} must have the shape of actual and one more axis, as long as there are {name} "
            f"of each value; got shapes {x.shape} and {y.shape}"
            + (f" with {last.shape} quantiles." if name == "forecasts" else ".")
        )
    check_size("actual", y)
    check_size(name, x)
    return y, x, last

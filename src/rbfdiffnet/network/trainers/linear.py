r"""Plain RBF networks: the weights are linear, so ridge has a closed form and lasso a path.

.. math::

    w^* = (\Phi \Phi' + \gamma I)^{-1} \Phi y

with :math:`\Phi` the basis functions (c rows) at the training points. (The paper prints
:math:`\Phi y` with the transposed layout, where it has to be :math:`\Phi' y`.)

A lasso needs only inner products of the rows, and the products of folds add up: cross-validation
over five folds goes through the rows once.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from rbfdiffnet.network.basis import Array
from rbfdiffnet.network.objective import Objective, Weights
from rbfdiffnet.network.trainers.varpro import project

_N_FOLDS = 5
_N_ALPHAS, _SMALLEST_ALPHA = 100, 1e-3  # strengths to choose from; the last, of the first
_PLAIN_ALPHA = 1e-3  # where there is nothing to choose from
_LEAST_ALPHA = 1e-10  # without any, coordinate descent need not end
_TOL_TO_CHOOSE, _TOL = 1e-4, 1e-10  # duality gap, as a fraction of the target's square


def ridge(objective: Objective) -> Weights:
    r"""Ridge regression on the basis functions, in closed form: paper, eq. (ridge).

    .. math::

        w^* = (\Phi V \Phi' + \gamma I)^{-1} \Phi V y

    with the linear inputs among the rows of :math:`\Phi`, V the weights of the rows and
    :math:`\gamma` the penalty times their sum. The basis has no derivatives.
    """
    return project(objective, objective.quadratic(None), np.ones(1)).weights


def lasso(
    features: Array,
    target: Array,
    weight: Array,
    *,
    alpha: float | None = None,
    folds: npt.NDArray[np.intp] | None = None,
) -> tuple[Array, Array, Array]:
    r"""Lasso of each target (m, n) on the features (c, n) and a bias: paper, eq. (lasso).

    .. math::

        \min_{w, w_0} \frac{1}{2 \sum_n v_n} \sum_n v_n (y_n - w_0 - w \cdot \varphi_n)^2
        + \alpha |w|_1

    Without `alpha`, cross-validation over the folds of the rows (see `assign_folds`) chooses it for
    each target. Returns w (c, m), the biases (m,) and the strengths (m,).
    """
    grams, means = _inner_products(np.concatenate([features, target]), weight, folds)
    c, everything = len(features), _center(grams.sum(axis=0))
    w, used = np.zeros((c, len(target))), np.zeros(len(target))
    for o, y in enumerate(target):
        keep = np.append(np.arange(c), c + o)
        if alpha is not None:
            used[o] = alpha
        elif len(grams) > 1 and np.ptp(y) > 0:
            each = np.append(keep, -1)
            used[o] = _cross_validate_alpha(grams[:, each[:, None], each])
        else:  # a single distinct row, or nothing to explain
            used[o] = _PLAIN_ALPHA
        gram = everything[np.ix_(keep, keep)]
        strength = np.maximum(used[o : o + 1], _LEAST_ALPHA)
        w[:, o] = _descend(gram, strength, tol=_TOL, max_iter=10_000)[:, 0]
    return w, means[c:] - means[:c] @ w, used


def _inner_products(
    rows: Array, weight: Array, folds: npt.NDArray[np.intp] | None
) -> tuple[Array, Array]:
    """Return weighted inner products (n_folds, k + 1, k + 1), and the means (k,) of k rows.

    The products are those of the rows less their means, and of a constant 1, fold by fold.
    """
    means = np.average(rows, axis=1, weights=weight)
    columns = np.concatenate([rows - means[:, None], np.ones((1, rows.shape[1]))])
    parts = [slice(None)] if folds is None else [folds == f for f in np.unique(folds)]
    return np.stack([(columns[:, f] * weight[f]) @ columns[:, f].T for f in parts]), means


def _center(gram: Array) -> Array:
    """Take the means out of inner products, and divide by the weight; the constant comes last."""
    total = gram[-1, -1]
    mean = gram[-1, :-1] / total
    return np.asarray(gram[:-1, :-1] / total - np.outer(mean, mean))


def _cross_validate_alpha(grams: Array) -> float:
    """Return the strength with the lowest mean squared error, averaged over the folds left out."""
    largest = float(np.abs(_center(grams.sum(axis=0))[:-1, -1]).max())
    alphas = np.geomspace(1.0, _SMALLEST_ALPHA, _N_ALPHAS) * max(largest, 1e-15)
    errors = np.zeros(_N_ALPHAS)
    for f, left_out in enumerate(grams):
        train = np.delete(grams, f, axis=0).sum(axis=0)
        w = _descend(_center(train), alphas, tol=_TOL_TO_CHOOSE, max_iter=1000)
        mean = train[-1, :-1] / train[-1, -1]
        # Residuals are y - w . features - bias: a product of the columns with these weights.
        residual = np.vstack([-w, np.ones(_N_ALPHAS), mean[:-1] @ w - mean[-1]])
        errors += np.einsum("ka,ka->a", residual, left_out @ residual) / left_out[-1, -1]
    return float(alphas[np.argmin(errors)])


def _descend(gram: Array, alphas: Array, *, tol: float, max_iter: int) -> Array:
    """Run coordinate descent for descending strengths; the target is the last row of the Gram."""
    # Given the products, scikit-learn uses only the shape of X and the length of y.
    X = np.zeros((1, len(gram) - 1), order="F")
    length = np.sqrt(np.maximum(gram[-1:, -1], 0.0))
    with warnings.catch_warnings():  # near the end of the path: harmless
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, w, _ = lasso_path(
            X,
            length,
            alphas=alphas,
            precompute=np.ascontiguousarray(gram[:-1, :-1]),
            Xy=np.ascontiguousarray(gram[:-1, -1]),
            check_input=False,
            tol=tol,
            max_iter=max_iter,
        )
    return np.asarray(w)


def assign_folds(X: Array) -> npt.NDArray[np.intp]:
    """Return the fold of every row: distinct rows are dealt out in sorted order.

    Copies of a row stay together. So the folds depend neither on the order of the rows nor on
    whether a row is repeated or has a larger weight.
    """
    _, index = np.unique(X, axis=0, return_inverse=True)
    return np.asarray(index).ravel() % _N_FOLDS

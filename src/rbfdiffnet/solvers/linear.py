r"""Plain RBF networks: the weights are linear, so ridge has a closed form and lasso a path.

.. math::

    w^* = (\Phi \Phi' + \gamma I)^{-1} \Phi y

with :math:`\Phi` the basis functions (c rows) at the training points. (The paper prints
:math:`\Phi y` with the transposed layout, where it has to be :math:`\Phi' y`.)
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LassoCV

from rbfdiffnet.basis import Array

_N_FOLDS = 5


def lasso(
    features: Array,
    target: Array,
    weight: Array,
    *,
    alpha: float | None = None,
    folds: npt.NDArray[np.intp] | None = None,
) -> tuple[Array, Array, Array]:
    r"""Lasso of each target on the features and a bias.

    .. math::

        \min_{w, w_0} \frac{1}{2 \sum_n v_n} \sum_n v_n (y_n - w_0 - w \cdot \varphi_n)^2
        + \alpha |w|_1

    Parameters
    ----------
    features : ndarray of shape (c, n)
    target : ndarray of shape (m, n)
    weight : ndarray of shape (n,)
    alpha : float, optional
        Strength; chosen by cross-validation if omitted.
    folds : ndarray of shape (n,), optional
        Fold of every row, as given by `repeatable_folds`; needed to choose alpha.

    Returns
    -------
    w : ndarray of shape (c, m)
    bias : ndarray of shape (m,)
    alpha : ndarray of shape (m,)
        The strength used for each target.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.solvers.linear import lasso
    >>> features = np.array([[0.0, 1.0, 2.0, 3.0]])
    >>> w, bias, _ = lasso(features, 2.0 * features + 1.0, np.ones(4), alpha=1e-6)
    >>> w.round(3), bias.round(3)
    (array([[2.]]), array([1.]))
    """
    w, bias, used = np.zeros((len(features), len(target))), np.zeros(len(target)), []
    for o, y in enumerate(target):
        if alpha is not None:
            model = Lasso(max(alpha, 1e-10), max_iter=10_000)  # it refuses 0
        elif folds is not None and folds.max() > 0 and np.ptp(y) > 0:
            splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in set(folds)]
            model = LassoCV(cv=splits)
        else:  # a single distinct row, or nothing to explain
            model = Lasso(1e-3)
        with warnings.catch_warnings():  # near the end of the path: harmless
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(features.T, y, sample_weight=weight)
        w[:, o], bias[o] = model.coef_, model.intercept_
        used.append(float(getattr(model, "alpha_", alpha if alpha is not None else 1e-3)))
    return w, bias, np.array(used)


def repeatable_folds(X: Array) -> npt.NDArray[np.intp]:
    """Fold of every row: distinct rows are dealt out in sorted order, copies stay together.

    So the folds depend neither on the order of the rows nor on whether a row is repeated or
    weighted.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.solvers.linear import repeatable_folds
    >>> repeatable_folds(np.array([[3.0], [1.0], [2.0], [1.0]]))
    array([2, 0, 1, 0])
    """
    _, index = np.unique(X, axis=0, return_inverse=True)
    return np.asarray(index).ravel() % _N_FOLDS

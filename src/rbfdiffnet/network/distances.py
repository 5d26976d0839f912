"""Squared distances between rows, the one thing that basis functions see of their inputs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "squared_distances"]

Array = npt.NDArray[np.float64]


def squared_distances(X: Array, centers: Array, *, expand: bool = True) -> Array:
    r"""Squared distances :math:`\lVert x_n - \mu_j \rVert^2` between rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    centers : ndarray of shape (c, d)
    expand : bool, default=True
        Use :math:`|x|^2 + |\mu|^2 - 2 x \cdot \mu`, clamped at 0, which is one matrix product;
        otherwise add up squared differences one axis at a time, which never cancels.

    Returns
    -------
    ndarray of shape (n, c)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.basis import squared_distances
    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0]]))
    array([[ 0.],
           [25.]])
    """
    if expand:
        squares = (-2.0 * X) @ centers.T
        squares += np.einsum("nd,nd->n", X, X)[:, None]
        squares += np.einsum("cd,cd->c", centers, centers)
        return np.asarray(np.maximum(squares, 0.0, out=squares))
    squares = np.zeros((X.shape[0], centers.shape[0]))
    for i in range(X.shape[1]):
        squares += np.subtract.outer(X[:, i], centers[:, i]) ** 2
    return squares

r"""Banded symmetric systems, many at once: solutions, determinants and parts of the inverse.

A band of width l, cut into square blocks of b >= l rows, is block tridiagonal:

.. math:: H = \begin{pmatrix} D_0 & E_0' \\ E_0 & D_1 & E_1' \\ & E_1 & D_2 & \ddots \\
    & & \ddots & \ddots \end{pmatrix}, \qquad
    \tilde D_{k+1} = D_{k+1} - E_k \tilde D_k^{-1} E_k'

Every step is a product of small matrices, for all systems of a batch at the same time, and the cost
grows with the length T like :math:`T b^2`. The same recursion, run backwards, gives those entries
of the inverse that lie near its diagonal, which is where the covariances of neighboring values are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Factor", "factor"]

Array = npt.NDArray[np.float64]

_SMALLEST_BLOCK = 24


@dataclass(frozen=True)
class Factor:
    r"""A factored batch of banded symmetric positive definite matrices H.

    Attributes
    ----------
    inverse : ndarray of shape (n_blocks, B, b, b)
        :math:`\tilde D_k^{-1}`
    gain : ndarray of shape (n_blocks - 1, B, b, b)
        :math:`E_k \tilde D_k^{-1}`
    log_determinant : ndarray of shape (B,)
    length : int
        Number T of rows of each matrix.
    """

    inverse: Array
    gain: Array
    log_determinant: Array
    length: int

    def solve(self, right: Array) -> Array:
        """Return the solution X of H X = right, both of shape (B, T, p)."""
        n_blocks, batch, size, _ = self.inverse.shape
        padded = np.zeros((batch, n_blocks * size, right.shape[2]))
        padded[:, : self.length] = right
        y = padded.reshape(batch, n_blocks, size, -1).swapaxes(0, 1).copy()
        for k in range(n_blocks - 1):
            y[k + 1] -= self.gain[k] @ y[k]
        x = self.inverse @ y
        for k in range(n_blocks - 2, -1, -1):
            x[k] -= self.gain[k].swapaxes(1, 2) @ x[k + 1]
        return x.swapaxes(0, 1).reshape(batch, n_blocks * size, -1)[:, : self.length]

    def inverse_windows(self, width: int) -> Array:
        """Return the blocks of the inverse that belong to ``width`` values in a row.

        Parameters
        ----------
        width : int
            At most one more than the width of the band.

        Returns
        -------
        ndarray of shape (B, T - width + 1, width, width)
        """
        n_blocks, batch, size, _ = self.inverse.shape
        pairs = np.zeros((n_blocks, batch, 2 * size, 2 * size))
        last = self.inverse[-1]
        pairs[-1, :, :size, :size] = last
        for k in range(n_blocks - 2, -1, -1):
            below = -last @ self.gain[k]
            pairs[k, :, size:, size:] = last
            pairs[k, :, size:, :size] = below
            pairs[k, :, :size, size:] = below.swapaxes(1, 2)
            last = self.inverse[k] - self.gain[k].swapaxes(1, 2) @ below
            pairs[k, :, :size, :size] = last
        block, offset = np.divmod(np.arange(self.length - width + 1), size)
        at = offset[:, None] + np.arange(width)
        windows = pairs[block[:, None, None], :, at[:, :, None], at[:, None, :]]
        return np.asarray(np.moveaxis(windows, -1, 0))


def factor(band: Array) -> Factor:
    r"""Factor symmetric positive definite matrices given by their lower bands.

    Parameters
    ----------
    band : ndarray of shape (B, l + 1, T)
        Entry ``[:, k, t]`` is :math:`H_{t + k, t}`.

    Returns
    -------
    Factor

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.noise.blocks import factor
    >>> band = np.array([[[2.0, 2.0, 2.0], [-1.0, -1.0, 0.0]]])
    >>> factor(band).solve(np.ones((1, 3, 1))).ravel().round(6)
    array([1.5, 2. , 1.5])
    """
    diagonal, below = _blocks(band)
    n_blocks = len(diagonal)
    inverse = np.empty_like(diagonal)
    gain = np.empty_like(below)
    total = np.zeros(band.shape[0])
    current = diagonal[0]
    for k in range(n_blocks):
        root = np.linalg.cholesky(current)
        total += 2.0 * np.log(np.einsum("bii->bi", root)).sum(axis=1)
        root = np.linalg.inv(root)
        inverse[k] = root.swapaxes(1, 2) @ root
        if k < n_blocks - 1:
            gain[k] = below[k] @ inverse[k]
            current = diagonal[k + 1] - gain[k] @ below[k].swapaxes(1, 2)
            current = (current + current.swapaxes(1, 2)) / 2.0
    return Factor(inverse, gain, total, band.shape[2])


def _blocks(band: Array) -> tuple[Array, Array]:
    """Return the diagonal blocks and those below them, each of shape (n_blocks, B, b, b).

    The last block is filled up with ones on the diagonal.
    """
    batch, width, length = band.shape
    size = max(_SMALLEST_BLOCK, width - 1)
    n_blocks = -(-length // size)
    full = np.zeros((batch, width, n_blocks * size))
    full[:, :, :length] = band
    full[:, 0, length:] = 1.0
    parts = full.reshape(batch, width, n_blocks, size).transpose(2, 0, 1, 3)
    diagonal = np.zeros((n_blocks, batch, size, size))
    below = np.zeros((n_blocks, batch, size, size))
    for k in range(width):
        inside, across = np.arange(size - k), np.arange(size - k, size)
        diagonal[:, :, inside + k, inside] = parts[:, :, k, : size - k]
        diagonal[:, :, inside, inside + k] = parts[:, :, k, : size - k]
        below[:, :, across + k - size, across] = parts[:, :, k, size - k :]
    return diagonal, below[:-1]

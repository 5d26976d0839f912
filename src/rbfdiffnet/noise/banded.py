r"""A banded symmetric positive definite system: solutions, determinant, windows of the inverse.

SciPy factors the matrix, H = LL', and solves. The entries of the inverse near its diagonal, which
are the covariances of neighboring values, follow from blocks of at least l rows, where l is the
width of the band. L then has blocks on and right below its diagonal only, and from the last block
to the first:

.. math:: \Sigma_{k+1,k} = -\Sigma_{k+1,k+1} G_k, \qquad
    \Sigma_{kk} = (L_{kk} L_{kk}')^{-1} - \Sigma_{k+1,k}' G_k, \qquad
    G_k = L_{k+1,k} L_{kk}^{-1}
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve_banded, cholesky_banded

Array = npt.NDArray[np.float64]

_SMALLEST_BLOCK = 24


@dataclass(frozen=True)
class BandedCholesky:
    """The factor L of a matrix H = LL' of T rows, by its lower band of shape (l + 1, T)."""

    band: Array

    @classmethod
    def factor(cls, band: Array) -> BandedCholesky:
        """Factor H, given by its lower band: entry [k, t] is H[t + k, t], shape (l + 1, T)."""
        return cls(cholesky_banded(band, lower=True, check_finite=False))

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of H."""
        return 2.0 * float(np.log(self.band[0]).sum())

    def solve(self, right: Array) -> Array:
        """Solve H X = right, both of shape (T,) or (T, p)."""
        return np.asarray(cho_solve_banded((self.band, True), right, check_finite=False))

    def inverse_windows(self, width: int) -> Array:
        """Return the blocks of the inverse for every run of ``width`` <= l + 1 values.

        The result has shape (T - width + 1, width, width).
        """
        diagonal, below = self._blocks()
        n_blocks, size, _ = diagonal.shape
        roots = np.linalg.inv(diagonal)
        inverse = roots.swapaxes(1, 2) @ roots
        gain = below @ roots[:-1]
        pairs = np.zeros((n_blocks, 2 * size, 2 * size))
        last = pairs[-1, :size, :size] = inverse[-1]
        for k in range(n_blocks - 2, -1, -1):
            under = -last @ gain[k]
            pairs[k, size:, size:] = last
            pairs[k, size:, :size] = under
            pairs[k, :size, size:] = under.T
            last = pairs[k, :size, :size] = inverse[k] - gain[k].T @ under
        block, offset = np.divmod(np.arange(self.band.shape[1] - width + 1), size)
        at = offset[:, None] + np.arange(width)
        return pairs[block[:, None, None], at[:, :, None], at[:, None, :]]

    def _blocks(self) -> tuple[Array, Array]:
        """Return the blocks of L on its diagonal (n, b, b) and right below it (n - 1, b, b).

        Ones on the diagonal fill up the last block.
        """
        width, length = self.band.shape
        size = max(_SMALLEST_BLOCK, width - 1)
        n_blocks = -(-length // size)
        full = np.zeros((width, n_blocks * size))
        full[:, :length] = self.band
        full[0, length:] = 1.0
        bands = full.reshape(width, n_blocks, size)
        diagonal = np.zeros((n_blocks, size, size))
        below = np.zeros((n_blocks, size, size))
        for k in range(width):
            inside, across = np.arange(size - k), np.arange(size - k, size)
            diagonal[:, inside + k, inside] = bands[k, :, : size - k]
            below[:, across + k - size, across] = bands[k, :, size - k :]
        return diagonal, below[:-1]

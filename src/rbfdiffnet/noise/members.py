"""What continues a series in a committee: maps over lags, and analogs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rbfdiffnet.network.basis import squared_distances
from rbfdiffnet.network.network import Network
from rbfdiffnet.support.arrays import Array

_SHARP = 1e6  # beta, above which rounding may lift exponents far above 0


class Member(Protocol):
    """Something that continues a series."""

    @property
    def reach(self) -> int:
        """Number of latest values that it looks at."""

    def roll(self, histories: Array, h: int, low: Array, high: Array) -> Array:
        """Continue histories (B, L, k) by h steps within bounds (k,), shape (B, h, k)."""


@dataclass(frozen=True)
class LaggedMap:
    """A network over lags that lie ``delay`` steps apart, which goes on by as many at once.

    Its inputs are the values of all k sensors at the oldest lag, then at the next one, and so on.
    ``penalty`` is that on its weights.
    """

    network: Network
    delay: int
    penalty: float

    @property
    def n_lags(self) -> int:
        """Number of lags."""
        return self.network.n_lags // self.network.y_shift.size

    @property
    def reach(self) -> int:
        """Number of latest values that it looks at."""
        return self.n_lags * self.delay

    def roll(self, histories: Array, h: int, low: Array, high: Array) -> Array:
        """Continue histories (B, L, k) by h steps within bounds (k,), shape (B, h, k)."""
        net, (n, _, width) = self.network, histories.shape
        size, blocks, inputs = self.n_lags, -(-h // self.delay), net.n_lags
        shift, scale = net.y_shift, net.y_scale  # also of the inputs
        low, high = (low - shift) / scale, (high - shift) / scale
        path = np.empty((n, size + blocks, self.delay, width))
        latest = histories[:, -self.reach :].reshape(n, size, self.delay, width)
        path[:, :size] = (latest - shift) / scale
        # Exponents and linear part are products with x, |x|^2 and 1.
        row = np.ones((n, self.delay, inputs + 2))
        square = net.metric**2
        beta, centers = net.beta[:, None], net.centers
        to_exponent = np.concatenate(
            [2.0 * beta * net.metric * centers, -beta, -beta * (centers**2).sum(axis=1)[:, None]], 1
        ).T
        linear = np.insert(net.linear, inputs, 0.0, axis=0)
        is_sharp = beta.max() > _SHARP
        for k in range(blocks):
            row[:, :, :inputs] = path[:, k : k + size].swapaxes(1, 2).reshape(n, -1, inputs)
            np.matmul(row[:, :, :inputs] ** 2, square, out=row[:, :, inputs])
            phi = row.reshape(-1, inputs + 2) @ to_exponent
            if is_sharp:
                np.minimum(phi, 0.0, out=phi)
            np.exp(phi, out=phi)
            ahead = (phi @ net.w).reshape(n, -1, width) + row @ linear
            path[:, size + k] = np.clip(ahead, low, high)
        return np.asarray(path[:, size:].reshape(n, -1, width)[:, :h] * scale + shift)


@dataclass(frozen=True)
class Analogs:
    """The past of a series (T, k), which goes on as it did after the most similar ``width`` values.

    The past is copied on from there; where it ends, the copy is copied.
    """

    past: Array
    width: int

    @property
    def reach(self) -> int:
        """Number of latest values that it looks at."""
        return self.width

    def roll(self, histories: Array, h: int, low: Array, high: Array) -> Array:
        """Continue histories (B, L, k) by h steps within bounds (k,), shape (B, h, k)."""
        at = np.arange(len(self.past) - 2 * self.width + 1)[:, None] + np.arange(self.width)
        windows = self.past[at].reshape(len(at), -1)
        latest = histories[:, -self.width :].reshape(len(histories), -1)
        start = squared_distances(latest, windows).argmin(axis=1) + self.width
        away = np.arange(h) % (len(self.past) - start)[:, None]
        return np.asarray(np.clip(self.past[start[:, None] + away], low, high))

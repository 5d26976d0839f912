r"""A network that continues windows of a series.

.. math:: (\hat z_{t+1}, \ldots, \hat z_{t+b}) = \ell_t + u f\Big(x_t,
    \frac{z_{t+1-l_q} - \ell_t}{u}, \ldots, \frac{z_{t+1-l_1} - \ell_t}{u}\Big)

where :math:`l_1 < \ldots < l_q` are the lags, x further inputs known at time t, u the spread of the
training targets and :math:`\ell_t` the level of the window: the mean of its lags, the latest of
them, or 0. With a
block of b = 1 step the forecasts are fed back (the recursive strategy, the paper's); with b = h one
network has all steps as outputs (the direct strategy). Beyond b steps, blocks are fed back.

A network fed with its own output can run away, so steps are bounded (`support.stability`).

Where the observations are noisy (`rbfdiffnet.noise`), windows are filtered first and a cloud of
them is sent on; the forecast is its median.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rbfdiffnet.batch.train import train
from rbfdiffnet.network.network import Network
from rbfdiffnet.network.train import Settings, fit_network
from rbfdiffnet.noise.filtering import MEMORY, StateFilter
from rbfdiffnet.series.windows import cut_windows
from rbfdiffnet.support.stability import LEAP

__all__ = [
    "LEVELS",
    "WindowModel",
    "affordable_centers",
    "fit_windows",
    "fit_windows_fast",
    "targets_known",
    "window_rows",
]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LEVELS = ("mean", "last", "none")

_FEWEST_ROWS_PER_CENTER = 8
_MOST_FILLED = 0.25  # of a block of targets
_DECIMALS = 9
_LEAST = 1e-9  # penalty where there is no noise


@dataclass(frozen=True)
class WindowModel:
    """A network over windows.

    Attributes
    ----------
    network : Network
    lags : tuple of int
        Ages of the inputs, ascending; 1 is the latest value.
    level : {"mean", "last", "none"}
    block : int
        Number of outputs.
    unit : float
        The spread u.
    largest : float
        Largest distance of a training target from its level, in units.
    tracker : StateFilter or None
        Where noise in the observations was found: the network is the map of clean windows, and
        states are filtered out of noisy histories before it continues them.
    """

    network: Network
    lags: tuple[int, ...]
    level: str
    block: int
    unit: float
    largest: float
    tracker: StateFilter | None = None

    @property
    def reach(self) -> int:
        """How many values back a forecast looks: to the oldest lag, or further for filtering."""
        return self.lags[-1] + (0 if self.tracker is None else MEMORY)

    @property
    def limit(self) -> float:
        """Largest distance of a step from its level, in units; see `support.stability`."""
        return LEAP * self.largest

    def forecast(self, z: Array, h: int, extra: Array) -> tuple[Array, list[Array]]:
        """Continue a batch of series.

        Parameters
        ----------
        z : ndarray of shape (B, L)
            The latest values, at least ``reach``.
        h : int
        extra : ndarray of shape (B, q)
            Further inputs.

        Returns
        -------
        forecast : ndarray of shape (B, h)
        rows : list of ndarray of shape (B, q + n_lags)
            The network's inputs, for every block.
        """
        if self.tracker is not None:
            return self._tracked(z, h)
        batch, length = z.shape
        blocks = -(-h // self.block)
        path = np.concatenate([z, np.empty((batch, blocks * self.block))], axis=1)
        rows = []
        for k in range(blocks):
            end = length + k * self.block
            inputs, level = self.inputs(path[:, :end], extra)
            step = np.clip(self.network.predict(inputs), -self.limit, self.limit)
            path[:, end : end + self.block] = self.unit * step + level
            rows.append(inputs)
        return path[:, length : length + h], rows

    def rolled(
        self, z: Array, h: int, n: int | None = None, after: Mask | None = None
    ) -> tuple[Array, Array, Array]:
        """Continue noisy histories from the states filtered out of them.

        Only where there is a tracker.

        Parameters
        ----------
        z : ndarray of shape (B, L)
            NaN where missing.
        h : int
        n : int, optional
            How many windows of each cloud to send on; by default all.
        after : ndarray of bool of shape (B,), optional
            Which of the histories to continue; by default all.

        Returns
        -------
        path : ndarray of shape (B, h)
            Medians of the clouds.
        spread : ndarray of shape (B, h)
            Standard deviations of the observations to come, by the cloud and the noise: they grow
            as quickly as the series can be told apart from others.
        states : ndarray of shape (B, n_lags)
            The clean windows that the clouds lie around.
        """
        if self.tracker is None:
            raise ValueError("Without a tracker there are no clouds.")
        followed = enumerate(self.tracker.clouds(z))
        clouds = np.array([cloud for k, cloud in followed if after is None or after[k]])
        if n is not None:
            clouds = clouds[:, :: max(clouds.shape[1] // n, 1)]
        ahead = self.tracker.roll(clouds, h)
        spread = np.sqrt(ahead.var(axis=1) + self.tracker.noise**2)
        return np.median(ahead, axis=1), spread, np.median(clouds, axis=1)

    def _tracked(self, z: Array, h: int) -> tuple[Array, list[Array]]:
        """Continue series from states filtered out of their noise."""
        path, _, states = self.rolled(z, h)
        whole = np.concatenate([states, path], axis=1)
        return path, [whole[:, k : k + len(self.lags)] for k in range(h)]

    def inputs(self, z: Array, extra: Array) -> tuple[Array, Array]:
        """Return the network's inputs after the values z, and the level of the window, (B, 1)."""
        lags = z[:, [-age for age in reversed(self.lags)]]
        level = window_level(lags, self.level)
        return np.concatenate([extra, (lags - level) / self.unit], axis=1), level


def window_level(lags: Array, level: str) -> Array:
    """Level of windows of shape (..., n_lags), oldest first: shape (..., 1)."""
    if level == "mean":
        return np.asarray(lags.mean(axis=-1, keepdims=True))
    if level == "last":
        return lags[..., -1:]
    return np.zeros((*lags.shape[:-1], 1))


def window_rows(
    z: Array, known: Mask, extra: Array, *, lags: tuple[int, ...], level: str, block: int
) -> tuple[Array, Array]:
    """Return the rows one series gives to learn from.

    Rows whose targets were not observed (for blocks: more than a quarter of them) are left out.

    Parameters
    ----------
    z : ndarray of shape (T,)
    known : ndarray of bool of shape (T,)
    extra : ndarray of shape (T, q)
        Further inputs, known at the time of the window's latest value.
    lags, level, block
        As for `WindowModel`.

    Returns
    -------
    X : ndarray of shape (n, q + n_lags)
    Y : ndarray of shape (n, block)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.window_model import window_rows
    >>> z = np.arange(6.0)
    >>> X, Y = window_rows(z, z != 4, np.zeros((6, 0)), lags=(1, 3), level="last", block=1)
    >>> X.tolist(), Y.tolist()
    ([[-2.0, 0.0], [-2.0, 0.0]], [[1.0], [1.0]])
    """
    reach = lags[-1]
    n = z.size - reach - block + 1
    if n < 1:
        return np.empty((0, extra.shape[1] + len(lags))), np.empty((0, block))
    inputs = np.stack([z[reach - age : reach - age + n] for age in reversed(lags)], axis=1)
    targets = cut_windows(z[reach:], block)
    use = targets_known(known, lags=lags, block=block)
    latest = extra[reach - 1 : reach - 1 + n]
    base = window_level(inputs, level)
    X = np.concatenate([latest, inputs - base], axis=1)
    return X[use], (targets - base)[use]


def targets_known(known: Mask, *, lags: tuple[int, ...], block: int) -> Mask:
    """Tell for each window of a series whether enough of its targets were observed.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.window_model import targets_known
    >>> targets_known(np.array([True, True, False, True]), lags=(1,), block=1).tolist()
    [True, False, True]
    """
    if known.size < lags[-1] + block:
        return np.empty(0, dtype=bool)
    seen = cut_windows(known[lags[-1] :], block)
    return np.asarray(seen.mean(axis=1) >= 1.0 - _MOST_FILLED)


def fit_windows(
    X: Array,
    Y: Array,
    settings: Settings,
    *,
    lags: tuple[int, ...],
    level: str,
) -> WindowModel:
    """Train a network on rows of windows; short series get fewer basis functions.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.train import Settings
    >>> from rbfdiffnet.models.window_model import fit_windows, window_rows
    >>> z = np.sin(np.arange(100) / 3.0)
    >>> none = np.zeros((100, 0))
    >>> X, Y = window_rows(z, z < 2, none, lags=(1, 2), level="none", block=1)
    >>> model = fit_windows(X, Y, Settings(n_centers=4), lags=(1, 2), level="none")
    >>> forecast, _ = model.forecast(z[None], 5, none[:1])
    >>> bool(np.abs(forecast[0] - np.sin(np.arange(100, 105) / 3.0)).max() < 1e-3)
    True
    """
    if isinstance(settings.centers, str):
        settings = replace(settings, n_centers=affordable_centers(settings.n_centers, len(X)))
    X, Y, unit = _in_units(X, Y, len(lags))
    if settings.alpha is None and settings.penalty == "ridge" and _repeats(X, Y):
        settings = replace(settings, alpha=_LEAST, alpha_linear=_LEAST)
    fit = fit_network(X, Y, np.ones(len(X)), settings)
    return WindowModel(fit.network, lags, level, Y.shape[1], unit, float(np.abs(Y).max()))


def fit_windows_fast(
    X: Array, Y: Array, *, n_centers: int, lags: tuple[int, ...], level: str
) -> WindowModel:
    """Train a network of one output by `rbfdiffnet.batch.train`.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.models.window_model import fit_windows_fast, window_rows
    >>> z = np.sin(np.arange(100) / 3.0)
    >>> none = np.zeros((100, 0))
    >>> X, Y = window_rows(z, z < 2, none, lags=(1, 2), level="none", block=1)
    >>> model = fit_windows_fast(X, Y, n_centers=4, lags=(1, 2), level="none")
    >>> forecast, _ = model.forecast(z[None], 5, none[:1])
    >>> bool(np.abs(forecast[0] - np.sin(np.arange(100, 105) / 3.0)).max() < 1e-3)
    True
    """
    X, Y, unit = _in_units(X, Y, len(lags))
    inputs = np.ascontiguousarray(X.T)[None]
    n_centers = affordable_centers(n_centers, len(X))
    networks = train(inputs, Y.T, np.ones((1, len(X))), n_centers=n_centers)
    return WindowModel(networks.network(0), lags, level, 1, unit, float(networks.largest[0]))


def affordable_centers(n_centers: int, n_rows: int) -> int:
    """Return the number of basis functions for a number of rows."""
    return min(n_centers, max(1, n_rows // _FEWEST_ROWS_PER_CENTER))


def _repeats(X: Array, Y: Array) -> bool:
    """Whether every row has been seen before, always with the same targets.

    Then a series repeats itself exactly. It has as many different rows as its period has steps, and
    how well each is forecast from the others says nothing: the penalty need not be chosen.
    """
    _, counts = np.unique(np.concatenate([X, Y], axis=1), axis=0, return_counts=True)
    return counts.min() > 1 and len(np.unique(X, axis=0)) == len(counts)


def _in_units(X: Array, Y: Array, n_lags: int) -> tuple[Array, Array, float]:
    """Lags and targets in units of the targets' spread, and that unit.

    Rounded: in a periodic series lags differ by nothing but rounding errors, which would otherwise
    be taken for inputs.
    """
    spread = float(Y.std())
    unit = spread if spread > 0.0 else 1.0
    lags = np.round(X[:, -n_lags:] / unit, _DECIMALS)
    return np.concatenate([X[:, :-n_lags], lags], axis=1), np.round(Y / unit, _DECIMALS), unit

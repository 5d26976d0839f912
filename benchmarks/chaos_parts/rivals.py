"""Rivals: functions from a series (n,) and a number of steps to a forecast (h,).

Settings are chosen anew for every series, by forecasts inside of it: of h steps from .6, .7 and .8
of its length, or where that takes long by errors of one step in its last 30 %.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from noise_parts import kernel_ridge, reservoir
from rbfdiffnet.series.windows import lag_windows
from rbfdiffnet.support.arrays import Array

Rival = Callable[[Array, int], Array]

CONTEXTS = (2, 4, 8, 16, 32, 64, 128)  # values that parroting may compare
LAGS = (2, 4, 8, 12)  # of kernel ridge and the Gaussian process
DIMENSIONS = (2, 3, 4, 6, 8, 12)  # of pyEDM's windows
THETAS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)  # how local its linear maps are
DRAWS = 12  # settings of the echo state network that are compared
SPARSE = tuple(product((3, 6), (2, 3), (1e-3, 1e-2, 5e-2)))  # lags, degree, threshold
HELD = 0.3


def choose(s: Array, h: int, settings: Iterable[Any], roll: Callable[..., Array]) -> Array:
    """Forecast with those settings whose earlier forecasts were closest."""
    origins = [s.size * tenths // 10 for tenths in (6, 7, 8)]

    def error(setting: Any) -> float:
        wrong = [roll(s[:end], h, setting)[: s.size - end] - s[end : end + h] for end in origins]
        return float(np.mean(np.concatenate(wrong) ** 2))

    return roll(s, h, min(settings, key=error))


def parroting(s: Array, h: int) -> Array:
    """Copy what followed the values most like the latest ones; earlier copies choose how many."""
    return choose(s, h, [n for n in CONTEXTS if 2 * n <= s.size * 6 // 10 - h], _copy)


def _copy(s: Array, h: int, n: int) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(s[:-h], n)
    end = n + int(np.argmin(((windows - s[-n:]) ** 2).sum(axis=1)))
    return s[end : end + h]


def one_step(fit: Callable[[Array, Array], Any], s: Array, h: int, n_lags: int) -> Array:
    """Learn the value after n_lags values, and feed forecasts back, within reason."""
    mean, scale = s.mean(), s.std()
    z = (s - mean) / scale
    model = fit(*lag_windows(z, n_lags))
    path = list(z[-n_lags:])
    for _ in range(h):
        ahead = float(np.ravel(model.predict(np.array([path[-n_lags:]])))[0])
        path.append(float(np.clip(np.nan_to_num(ahead), -9.0, 9.0)))
    return mean + scale * np.array(path[n_lags:])


def ridge(s: Array, h: int) -> Array:
    """Kernel ridge, its width and penalty by cross-validation."""
    return choose(s, h, LAGS, partial(one_step, kernel_ridge.fit))


def gaussian_process(s: Array, h: int) -> Array:
    """A Gaussian process of scikit-learn, its length scale and noise by likelihood."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    def fit(X: Array, y: Array) -> Any:
        kernel = ConstantKernel(1.0, (1e-2, 1e4)) * RBF(2.0, (0.1, 1e3))
        noise = WhiteKernel(1e-2, (1e-10, 1.0))
        return GaussianProcessRegressor(kernel + noise, random_state=0).fit(X, y)

    return choose(s, h, LAGS, partial(one_step, fit))


def sparse_identification(s: Array, h: int) -> Array:
    """A sparse polynomial of delayed values, found by pysindy."""
    import pysindy

    def roll(past: Array, steps: int, setting: tuple[int, int, float]) -> Array:
        n_lags, degree, threshold = setting

        def fit(X: Array, y: Array) -> Any:
            terms = pysindy.PolynomialLibrary(degree=degree).fit(X)
            weights = pysindy.STLSQ(threshold=threshold).fit(terms.transform(X), y[:, None])
            return _Sparse(terms, weights.coef_[0])

        return one_step(fit, past, steps, n_lags)

    return choose(s, h, SPARSE, roll)


class _Sparse:
    def __init__(self, terms: Any, weights: Array) -> None:
        self.terms, self.weights = terms, weights

    def predict(self, X: Array) -> Array:
        return np.asarray(self.terms.transform(X)) @ self.weights


def simplex(s: Array, h: int) -> Array:
    """Simplex projection of pyEDM: weighted means of what followed the nearest windows.

    Every step is forecast at once, which is closer than to feed the means back.
    """
    import pyEDM

    apart = sorted({1, h // 4, h // 2, h} - {0})
    grid = [{"E": size} for size in DIMENSIONS]
    frame, last = _frame(s), [s.size - 1, s.size]
    best = min(grid, key=lambda each: sum(_held(pyEDM.Simplex, s, Tp=k, **each) for k in apart))
    found = [
        pyEDM.Simplex(frame, "s", "s", [1, s.size], last, Tp=k, **best) for k in range(1, h + 1)
    ]
    return np.array([each["Predictions"].iloc[-1] for each in found])


def s_map(s: Array, h: int) -> Array:
    """S-maps of pyEDM: linear maps that count near windows more, fed with what they say."""
    import pyEDM

    grid = [{"E": size, "theta": theta} for size in DIMENSIONS for theta in THETAS]
    best = min(grid, key=lambda each: _held(pyEDM.SMap, s, Tp=1, **each))
    last = [s.size - 1, s.size]
    found = pyEDM.SMap(_frame(s), "s", "s", [1, s.size], last, generateSteps=h, **best)
    return found["predictions"]["Predictions"].to_numpy(float)


def _held(method: Callable[..., Any], s: Array, **settings: Any) -> float:
    """Mean squared error of a method of pyEDM in the last part of a series."""
    known = int(s.size * (1.0 - HELD))
    found = method(_frame(s), "s", "s", [1, known], [known + 1, s.size], **settings)
    found = found["predictions"] if isinstance(found, dict) else found
    return float(((found["Observations"] - found["Predictions"]) ** 2).mean())


def _frame(s: Array) -> pd.DataFrame:
    return pd.DataFrame({"time": np.arange(1, s.size + 1), "s": s})


def echo_state_network(s: Array, h: int) -> Array:
    """Run a network of reservoirpy over the series, then feed it what it says."""
    from reservoirpy.nodes import Ridge

    z = (s - s.mean()) / s.std()
    chosen = reservoir.search(z, DRAWS, seed=0)
    network, readout = reservoir.make_reservoir(chosen, seed=0), Ridge(chosen.penalty)
    states = network.run(z[:, None])
    readout.fit(states[reservoir.WARM_UP : -1], z[reservoir.WARM_UP + 1 :, None])
    path = [readout.step(states[-1])]
    while len(path) < h:
        path.append(readout.step(network.step(path[-1])))
    return s.mean() + s.std() * np.concatenate(path)


#: Rivals by name, each with the package it needs.
RIVALS: dict[str, tuple[Rival, str]] = {
    "parroting": (parroting, "numpy"),
    "kernel ridge": (ridge, "numpy"),
    "Gaussian process": (gaussian_process, "sklearn"),
    "simplex projection": (simplex, "pyEDM"),
    "S-map": (s_map, "pyEDM"),
    "sparse polynomial": (sparse_identification, "pysindy"),
    "echo state network": (echo_state_network, "reservoirpy"),
}


def is_installed(name: str) -> bool:
    """Tell whether the package that a rival needs is installed."""
    return importlib.util.find_spec(RIVALS[name][1]) is not None

r"""The forward pass of the reader, which goes through a series as it was observed.

After every value it tells the clean values around it: `BEFORE` of them up to this one, and `AHEAD`
after it. It was trained on random systems (`simulate`), so it learns nothing from the series, but
compares: in each of its layers, the windows of the series itself are the centers of a normalized
network of Gaussians,

.. math:: y_t = \sum_{s \le t} g_{ts} V x_s, \qquad g_{ts} = \frac{\varphi_{ts}}{\sum_{r \le t}
    \varphi_{tr}}, \quad \varphi_{ts} = e^{-\beta \lVert R_t Q x_t - R_s K x_s \rVert^2}

where x was divided by its root mean square, Q x and K x are divided by their lengths, and the
rotations R turn with time, so that distances depend on how long ago a window was. In every layer a
mixture of several such networks (heads), and then :math:`W (\max(U x, 0))^2`, are added to x.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np

from rbfdiffnet.support.arrays import Array, Arrays, Ints

#: Values of which the network knows at most, that it tells about before and after, and in a window.
SEEN, BEFORE, AHEAD, WINDOW = 192, 16, 32, 16
#: Probabilities of its quantiles.
PROBABILITIES = (0.1, 0.5, 0.9)
#: Dimensions in which a head compares windows.
HEAD = 32
_PERIODS = 4.0, 800.0  # of the rotations
_FILE = "weights.npz"
_DIGEST = "f6e0c791f99416290cd054c473ba5430a6bce74fdca2439e023dcd4d9273c000"


def rotations() -> tuple[Array, Array]:
    """Return cosines and sines of the rotations of all times, each (SEEN, HEAD / 2)."""
    half = HEAD // 2
    shortest, longest = _PERIODS
    speed = 2.0 * np.pi / shortest * (shortest / longest) ** (np.arange(half) / (half - 1))
    angle = np.arange(SEEN)[:, None] * speed
    return np.cos(angle), np.sin(angle)


@cache
def load_weights() -> Arrays:
    """Return the weights that come with the package."""
    content = files(__package__).joinpath(_FILE).read_bytes()
    if sha256(content).hexdigest() != _DIGEST:
        raise RuntimeError("The weights of the reader are damaged; install rbfdiffnet again.")
    return read_weights(BytesIO(content))


def read_weights(file: Any) -> Arrays:
    """Read the weights of a file of `train`, in which matrices are whole numbers."""
    with np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name].astype(np.float32) for name in archive.files}
    scales = {name: arrays.pop(name) for name in list(arrays) if name.endswith(".scale")}
    return {name: a * scales.get(f"{name}.scale", np.float32(1.0)) for name, a in arrays.items()}


def read(x: Array, known: Array, at: Ints, weights: Arrays | None = None) -> Array:
    """Read standardized series (B, N), 0 where not ``known`` (B, N); N is `SEEN` at most.

    Returns the quantiles of the clean values around the values ``at`` (m,), shape
    (B, m, BEFORE + AHEAD, 3).
    """
    w = load_weights() if weights is None else weights
    B, N = x.shape
    width, heads = w["embed.bias"].size, w["beta"].shape[1]
    cos, sin = (v[:N].astype(np.float32) for v in rotations())
    y = _dot(_windows(x, known), w["embed.weight"]) + w["embed.bias"]
    later = np.triu(np.full((N, N), -np.inf, dtype=np.float32), 1)

    def split(v: Array) -> Array:  # (B, N, width) to (B, heads, N, HEAD)
        return v.reshape(B, N, heads, HEAD).swapaxes(1, 2)

    def place(v: Array) -> Array:
        v = v / np.maximum(np.sqrt((v * v).sum(axis=-1, keepdims=True)), 1e-12)
        a, b = v[..., : HEAD // 2], v[..., HEAD // 2 :]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

    for k, beta in enumerate(np.exp(w["beta"])):
        own = {name: w[f"layers.{k}.{name}.weight"] for name in _MATRICES}
        z = _rescale(y)
        query, key = (place(split(_dot(z, own[name]))) for name in ("query", "key"))
        # Of the squared distance between vectors of length one, only the product matters.
        gates = (query * (2.0 * beta[:, None, None])) @ key.swapaxes(-1, -2)
        gates += later
        np.exp(gates - gates.max(axis=-1, keepdims=True), out=gates)
        gates /= gates.sum(axis=-1, keepdims=True)
        mixed = (gates @ split(_dot(z, own["value"]))).swapaxes(1, 2).reshape(B, N, width)
        y = y + _dot(mixed, own["mix"])
        inner = np.maximum(_dot(_rescale(y), own["rise"]), 0.0)
        y = y + _dot(inner * inner, own["fall"])
    out = _dot(_rescale(y[:, at]), w["out.weight"]) + w["out.bias"]
    low, middle, high = np.moveaxis(out.reshape(B, len(at), BEFORE + AHEAD, 3), -1, 0)
    ends = (middle - np.logaddexp(0.0, low), middle, middle + np.logaddexp(0.0, high))
    return np.stack(ends, axis=-1).astype(np.float64)


_MATRICES = ("query", "key", "value", "mix", "rise", "fall")


def _windows(x: Array, known: Array) -> Array:
    """Return the latest values at every time and which of them are known, (B, N, 2 WINDOW)."""
    both = []
    for v in (x, known):
        padded = np.pad(v.astype(np.float32), ((0, 0), (WINDOW - 1, 0)))
        both.append(np.lib.stride_tricks.sliding_window_view(padded, WINDOW, axis=1))
    return np.concatenate(both, axis=-1)


def _rescale(v: Array) -> Array:
    """Divide vectors by their root mean square."""
    size = np.sqrt((v * v).mean(axis=-1, keepdims=True) + np.finfo(np.float32).eps)
    return np.asarray(v / size)


def _dot(v: Array, matrix: Array) -> Array:
    return np.asarray(v @ matrix.T)

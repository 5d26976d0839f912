r"""Many small networks at once: K-Means, penalty and variable projection with a leading batch axis.

.. math::

    F(a) = \min_b \lVert y - A(a)\, b \rVert^2 + n \big(\rho \lVert a \rVert^2 \lVert w \rVert^2
    + \rho_\lambda \lVert \lambda \rVert^2\big), \qquad
    A(a) = [G(a), s, 1], \quad b = (w, \lambda, w_0), \quad
    G_j = \varphi_j\,\big(a_0 - 2 \beta_j u\, a \cdot (x - \mu_j)\big)

where u is the unit of the first derivatives. Given a, everything else is a linear solve of
c + d + 1 unknowns; a itself is found by damped Newton steps with the exact Hessian of F:

.. math::

    F'' = J'J + n\rho \lVert w \rVert^2 I - K' (A'A + D)^{-1} K, \qquad
    K = A'J - R + 2 n \rho\, w a', \qquad R_{ji} = \sum_n r_n\, \partial G_{jn} / \partial a_i

All arrays have the series as their first axis and rows as their last, contiguous one; the same
code runs on NumPy arrays and on PyTorch tensors, on any device. Rows of weight 0 are padding, so
series of different length share a batch. Nothing depends on random numbers or on the other series.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.network import Network

__all__ = ["BatchNetworks", "fit_batch", "forecast_batch"]

Array = npt.NDArray[np.float64]

_LLOYD_STEPS = 6
_RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1e4)  # on the RBF part; the last switches it off
_LINEAR_RIDGES = (1e-6, 1e-2)
_UNPENALIZED = 1e-9
_SMALLEST_WIDTH = 1e-3  # of the spread of the inputs
_FIRST_DAMPING = 1e-3
_LEAP = 2.0  # as in `rbfdiffnet.window_model`


@dataclass(frozen=True)
class BatchNetworks:
    """Trained networks of order 1, with order zero and intercept; a leading axis for the series.

    Attributes
    ----------
    centers : array of shape (B, c, d)
    beta, w : arrays of shape (B, c)
    a : array of shape (B, 1 + d)
    linear : array of shape (B, d + 1)
    x_shift, x_scale : arrays of shape (B, d)
    y_shift, y_scale, unit, largest, value : arrays of shape (B,)
        Shift and scale of the target, unit of the first derivatives, largest target and objective.
    ridge : array of shape (B, 2)
        The penalties chosen.
    """

    centers: Any
    beta: Any
    a: Any
    w: Any
    linear: Any
    x_shift: Any
    x_scale: Any
    y_shift: Any
    y_scale: Any
    unit: Any
    largest: Any
    value: Any
    ridge: Any

    def network(self, i: int) -> Network:
        """Return one of the networks (NumPy arrays only)."""
        d = self.x_shift.shape[1]
        return Network(
            centers=self.centers[i],
            beta=self.beta[i],
            a=self.a[i],
            w=self.w[i][:, None],
            linear=self.linear[i][:, None],
            x_shift=self.x_shift[i],
            x_scale=self.x_scale[i],
            metric=np.ones(d),
            y_shift=self.y_shift[i : i + 1],
            y_scale=self.y_scale[i : i + 1],
            n_lags=d,
            order=1,
            order_zero=True,
            intercept=True,
            normalize=False,
            unit=float(self.unit[i]),
        )

    def to_numpy(self) -> BatchNetworks:
        """Return the same in NumPy arrays."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return BatchNetworks(
            **{
                name: v if isinstance(v, np.ndarray) else v.cpu().numpy()
                for name, v in values.items()
            }
        )


def fit_batch(
    X: Any,
    y: Any,
    weight: Any,
    *,
    n_centers: int = 28,
    width_factor: float = 4.0,
    n_steps: int = 6,
    xp: Any = np,
) -> BatchNetworks:
    """Train a network for every series of a batch.

    Parameters
    ----------
    X : array of shape (B, d, N)
        Inputs, rows last.
    y : array of shape (B, N)
        Targets.
    weight : array of shape (B, N)
        1, or 0 for padding, which comes after all other rows.
    n_centers : int, default=28
    width_factor : float, default=4.0
    n_steps : int, default=6
        Newton steps for a.
    xp : module, default=numpy
        ``numpy`` or ``torch``, as the arrays are.

    Returns
    -------
    BatchNetworks

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.batched import fit_batch
    >>> from rbfdiffnet.datasets import logistic_map
    >>> from rbfdiffnet.windows import lag_windows
    >>> X, y = lag_windows(logistic_map(300), n_lags=2)
    >>> ones = np.ones((1, 298))
    >>> networks = fit_batch(X.T[None].copy(), y[None], ones, n_centers=10, n_steps=20)
    >>> error = networks.network(0).predict(X)[:, 0] - y
    >>> bool(np.abs(error).mean() < 0.01)
    True
    """
    n = weight.sum(axis=-1)
    Z, x_shift, x_scale = _standardize(X, weight[:, None], n[:, None], xp)
    t, y_shift, y_scale = _standardize(y, weight, n, xp)
    centers, beta, phi = _place(Z, weight, n, n_centers, width_factor, xp)
    unit = (0.5 / beta).sqrt().mean(axis=-1) if xp is not np else np.sqrt(0.5 / beta).mean(axis=-1)
    problem = _Problem(xp, Z, t, weight, n, centers, beta, phi * weight[:, None], unit)
    d = Z.shape[1]
    a = xp.ones_like(centers[:, 0, :1]) * (1.0 + d) ** -0.5
    a = xp.concatenate([a] * (1 + d), axis=1)
    ridge = problem.choose_ridge(a)
    a, b, value = problem.minimize(a, ridge, n_steps)
    c = centers.shape[1]
    return BatchNetworks(
        centers=centers,
        beta=beta,
        a=a,
        w=b[:, :c],
        linear=b[:, c:],
        x_shift=x_shift,
        x_scale=x_scale,
        y_shift=y_shift,
        y_scale=y_scale,
        unit=unit,
        largest=xp.abs(y * weight).max(axis=-1) if xp is np else (y * weight).abs().amax(-1),
        value=value,
        ridge=ridge,
    )


def forecast_batch(networks: BatchNetworks, window: Any, h: int, xp: Any = np) -> Any:
    """Continue windows recursively, as `rbfdiffnet.window_model.WindowModel.forecast` does.

    Parameters
    ----------
    networks : BatchNetworks
    window : array of shape (B, d)
        Latest values, oldest first.
    h : int
    xp : module, default=numpy

    Returns
    -------
    array of shape (B, h)
    """
    d = networks.centers.shape[2]
    a0, a1 = networks.a[:, :1], networks.a[:, 1:]
    slope = -2.0 * networks.beta * networks.unit[:, None]
    at = (networks.centers @ a1[:, :, None])[..., 0]
    square = (networks.centers**2).sum(axis=-1)
    limit = _LEAP * networks.largest
    steps = []
    for _ in range(h):
        z = (window - networks.x_shift) / networks.x_scale
        distance = (z**2).sum(axis=-1)[:, None] + square
        distance = distance - 2.0 * (networks.centers @ z[:, :, None])[..., 0]
        phi = xp.exp(-networks.beta * xp.clip(distance, 0.0, None))
        g = phi * (a0 + slope * ((a1 * z).sum(axis=-1)[:, None] - at))
        linear = (networks.linear[:, :d] * z).sum(axis=-1) + networks.linear[:, d]
        value = ((networks.w * g).sum(axis=-1) + linear) * networks.y_scale + networks.y_shift
        value = xp.minimum(xp.maximum(value, -limit), limit)
        steps.append(value)
        window = xp.concatenate([window[:, 1:], value[:, None]], axis=1)
    return xp.stack(steps, axis=1)


def _standardize(values: Any, weight: Any, n: Any, xp: Any) -> tuple[Any, Any, Any]:
    """Values with mean 0 and spread 1 along the last axis, 0 in padding; the mean, the spread."""
    mean = (values * weight).sum(axis=-1) / n
    centered = (values - mean[..., None]) * weight
    spread = xp.sqrt((centered**2).sum(axis=-1) / n)
    spread = xp.where(spread > 1e-13, spread, xp.ones_like(spread))
    return centered / spread[..., None], mean, spread


def _place(
    Z: Any, weight: Any, n: Any, c: int, width_factor: float, xp: Any
) -> tuple[Any, Any, Any]:
    """Centers by Lloyd's algorithm from evenly spaced rows, widths from the clusters, Gaussians."""
    square = (Z**2).sum(axis=1)[:, None]
    number = xp.arange(c) if xp is np else xp.arange(c, device=Z.device)
    first = (
        ((number[None] + 0.5) * n[:, None] / c).astype(int)
        if xp is np
        else (((number[None] + 0.5) * n[:, None] / c).long())
    )
    batch = np.arange(len(Z)) if xp is np else xp.arange(len(Z), device=Z.device)
    centers = Z[batch[:, None], :, first]
    with_one = xp.concatenate([Z, xp.ones_like(square)], axis=1)
    for step in range(_LLOYD_STEPS + 1):
        # Squared distances less the rows' own squares: one product.
        own = (centers**2).sum(axis=-1)[:, :, None]
        distance = xp.concatenate([-2.0 * centers, own], axis=2) @ with_one
        # Comparing with the minimum is many times faster than finding its position; a row
        # between two equally near centers belongs to both.
        member = (distance == _lowest(distance, xp)) * weight[:, None]
        if step == _LLOYD_STEPS:
            break
        count = member.sum(axis=-1)[:, :, None]
        mean = (member @ Z.swapaxes(1, 2)) / xp.clip(count, 1.0, None)
        centers = xp.where(count > 0, mean, centers)
    distance += square
    distance = xp.clip(distance, 0.0, None)
    count = xp.clip(member.sum(axis=-1), 1.0, None)
    sigma = (member * xp.sqrt(distance)).sum(axis=-1) / count
    # A cluster of one row, or of copies, has no width of its own: it gets the mean of the others.
    spread = xp.sqrt((square * weight[:, None]).sum(axis=-1) / n[:, None])
    floor = _SMALLEST_WIDTH * spread
    good = sigma > floor
    total = xp.where(good, sigma, xp.zeros_like(sigma)).sum(axis=-1)[:, None]
    mean = total / xp.clip(good.sum(axis=-1)[:, None], 1, None)
    substitute = xp.where(mean > 0, mean, xp.where(spread > 0, spread, xp.ones_like(spread)))
    sigma = width_factor * xp.where(good, sigma, substitute + 0.0 * sigma)
    beta = 0.5 / sigma**2
    return centers, beta, xp.exp(-beta[:, :, None] * distance)


@dataclass
class _Problem:
    """The training problem of a batch, in standardized units; padding is zero everywhere."""

    xp: Any
    Z: Any
    y: Any
    weight: Any
    n: Any
    centers: Any
    beta: Any
    phi: Any
    unit: Any

    def __post_init__(self) -> None:
        xp = self.xp
        self.rest = xp.concatenate([self.Z, self.weight[:, None]], axis=1)  # linear inputs
        fixed = xp.concatenate([self.rest, self.y[:, None]], axis=1)
        self.fixed = fixed.swapaxes(1, 2)
        self.rest_gram = self.rest @ self.fixed
        self.total = (self.y**2).sum(axis=-1)
        self.c, self.d = self.phi.shape[1], self.Z.shape[1]

    def features(self, a: Any) -> Any:
        """G(a), shape (B, c, N)."""
        xp = self.xp
        slope = -2.0 * self.beta * self.unit[:, None]
        constant = a[:, :1] - slope * (self.centers @ a[:, 1:, None])[..., 0]
        along = xp.concatenate([a[:, None, 1:] @ self.Z, self.weight[:, None]], axis=1)
        G = xp.stack([slope, constant], axis=2) @ along
        G *= self.phi
        return G

    def gram(self, G: Any) -> tuple[Any, Any]:
        """A'A and A'y."""
        xp = self.xp
        cross = G @ self.fixed  # with the linear inputs and y
        top = xp.concatenate([G @ G.swapaxes(1, 2), cross[:, :, :-1]], axis=2)
        bottom = xp.concatenate(
            [cross[:, :, :-1].swapaxes(1, 2), self.rest_gram[:, :, :-1]], axis=2
        )
        moment = xp.concatenate([cross[:, :, -1], self.rest_gram[:, :, -1]], axis=1)
        return xp.concatenate([top, bottom], axis=1), moment

    def penalty(self, a: Any, ridge: Any) -> Any:
        """Diagonal of D, shape (B, p)."""
        xp = self.xp
        rbf = self.n * (ridge[:, 0] + _UNPENALIZED) * (a**2).sum(axis=-1)
        linear = self.n * ridge[:, 1]
        parts = [rbf[:, None]] * self.c + [linear[:, None]] * self.d
        return xp.concatenate([*parts, self.n[:, None] * _UNPENALIZED], axis=1)

    def solve(self, a: Any, ridge: Any) -> tuple[Any, Any, Any, Any]:
        """G(a), the inverse of A'A + D, b and the objective."""
        G = self.features(a)
        gram, moment = self.gram(G)
        inverse = self.xp.linalg.inv(gram + _diagonal(self.penalty(a, ridge), self.xp))
        b = (inverse @ moment[:, :, None])[..., 0]
        return G, inverse, b, self.total - (moment * b).sum(axis=-1)

    def choose_ridge(self, a: Any) -> Any:
        """Penalties with the lowest generalized cross-validation error."""
        xp = self.xp
        gram, moment = self.gram(self.features(a))
        lowest, best = None, None
        for rbf in _RIDGES:
            for linear in _LINEAR_RIDGES:
                ones = xp.ones_like(self.n)[:, None]
                ridge = xp.concatenate([rbf * ones, linear * ones], axis=1)
                penalty = self.penalty(a, ridge)
                inverse = xp.linalg.inv(gram + _diagonal(penalty, xp))
                b = (inverse @ moment[:, :, None])[..., 0]
                loss = self.total - (moment * b).sum(axis=-1) - (penalty * b**2).sum(axis=-1)
                shrunk = (_diagonal(penalty, xp) * inverse).sum(axis=(1, 2))
                freedom = moment.shape[1] - shrunk
                score = self.n * loss / xp.clip(self.n - freedom, 1.0, None) ** 2
                if lowest is None:
                    lowest, best = score, ridge
                else:
                    better = score < lowest
                    lowest = xp.where(better, score, lowest)
                    best = xp.where(better[:, None], ridge, best)
        return best

    def newton(self, a: Any, ridge: Any, G: Any, inverse: Any, b: Any) -> tuple[Any, Any]:
        """Gradient and Hessian of F / 2 at a."""
        xp, c = self.xp, self.c
        w = b[:, :c]
        r = self.y - (w[:, None] @ G)[:, 0] - (b[:, None, c:] @ self.rest)[:, 0]
        scale = 2.0 * self.unit[:, None, None]
        weighted = (w * self.beta)[:, :, None]
        left = xp.concatenate([w[:, :, None], weighted * self.centers, weighted], axis=2)
        products = left.swapaxes(1, 2) @ self.phi
        J = products[:, :-1]
        J[:, 1:] -= self.Z * products[:, -1:]
        J[:, 1:] *= scale
        Jt = J.swapaxes(1, 2)
        rz = xp.concatenate([(r * self.weight)[:, None], self.Z * r[:, None]], axis=1)
        moments = self.phi @ rz.swapaxes(1, 2)  # (B, c, 1 + d)
        R = scale * self.beta[:, :, None] * (self.centers * moments[:, :, :1] - moments[:, :, 1:])
        R = xp.concatenate([moments[:, :, :1], R], axis=2)
        rho = (self.n * (ridge[:, 0] + _UNPENALIZED))[:, None]
        upper = G @ Jt - R + 2.0 * (rho * w)[:, :, None] * a[:, None]
        K = xp.concatenate([upper, self.rest @ Jt], axis=1)
        size = rho[:, 0] * (w**2).sum(axis=-1)
        gradient = -(J @ r[:, :, None])[..., 0] + size[:, None] * a
        hessian = J @ Jt - K.swapaxes(1, 2) @ (inverse @ K)
        return gradient, hessian + _diagonal(size[:, None] * xp.ones_like(a), xp)

    def minimize(self, a: Any, ridge: Any, n_steps: int) -> tuple[Any, Any, Any]:
        """Damped Newton steps on a; every series has its own damping and keeps what is better."""
        xp = self.xp
        G, inverse, b, value = self.solve(a, ridge)
        damping = xp.ones_like(value) * _FIRST_DAMPING
        for _ in range(n_steps):
            gradient, hessian = self.newton(a, ridge, G, inverse, b)
            size = xp.abs(hessian * _diagonal(xp.ones_like(a), xp)).sum(axis=(1, 2)) / a.shape[1]
            lift = (damping * size + 1e-300)[:, None] * xp.ones_like(a)
            step = xp.linalg.solve(hessian + _diagonal(lift, xp), -gradient[:, :, None])[..., 0]
            trial = a + step
            trial = trial / xp.clip(xp.sqrt((trial**2).sum(axis=-1)), 1e-12, None)[:, None]
            G_new, inverse_new, b_new, value_new = self.solve(trial, ridge)
            better = value_new < value
            a = xp.where(better[:, None], trial, a)
            b = xp.where(better[:, None], b_new, b)
            G = xp.where(better[:, None, None], G_new, G)
            inverse = xp.where(better[:, None, None], inverse_new, inverse)
            value = xp.where(better, value_new, value)
            damping = xp.where(better, 0.2 * damping, 20.0 * damping)
        return a, b, value


def _lowest(distance: Any, xp: Any) -> Any:
    """Smallest distance of each row, (B, 1, N)."""
    return distance.min(axis=1, keepdims=True) if xp is np else distance.amin(1, keepdim=True)


def _diagonal(values: Any, xp: Any) -> Any:
    """Matrices with the given diagonals, (B, p) to (B, p, p)."""
    if xp is np:
        return values[:, :, None] * np.eye(values.shape[1])
    return xp.diag_embed(values)

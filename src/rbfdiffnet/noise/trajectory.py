r"""The clean trajectory of a noisy series and the map it follows, found together.

.. math::

    s_t = z_t + N(0, R), \qquad z_{t+1} = f(z_{t-l+1}, \ldots, z_t) + N(0, Q), \qquad
    f(x) = \phi(x) \cdot w, \quad w \sim N(0, \tau^2)

A network trained on noisy windows learns a blurred map, whatever its penalty: the noise is in the
inputs. Here the latent series z is unknown, too, and

.. math:: F(z, w) = \sum_t \frac{m_t (s_t - z_t)^2}{R} + \sum_t \frac{(z_{t+1} - f(x_t))^2}{Q}
    + \frac{|w|^2}{\tau^2}

is minimized over both (:math:`m_t = 0` where an observation is missing). A round is one step of
Gauss and Newton: with the derivatives J of the residuals by z, the matrix
:math:`H = \mathrm{diag}(m) / R + J'J / Q` is banded of width l, and w follows from the Schur
complement :math:`S = \Phi'\Phi/Q + 1/\tau^2 - \Phi' J H^{-1} J' \Phi / Q^2`. Then the
variances are set to what the data say of them (MacKay's updates), and

.. math:: E = F + T \log R + n \log Q + p \log \tau^2 + \log |H| + \log |S|,

minus twice the logarithm of the evidence, tells maps apart. Windows known only up to a
covariance P pull the weights toward flatter maps. A share :math:`\kappa` of that pull,
:math:`\kappa (w' M w - 2 w' v) / Q` with M and v of `Basis.spread`, is added to F (but not to E):
all of it is too much, none of it lets maps follow their own noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.noise.blocks import factor
from rbfdiffnet.noise.maps import Basis, Regression

__all__ = ["Observed", "State", "band_of", "first_state", "improve", "smooth", "windows_of"]

Array = npt.NDArray[np.float64]

_SMALLEST_PROCESS = 0.01  # Q, in units of R
_FLAT = 1e-8  # precision of weights without a prior
_ANYWHERE = 1e-6  # precision of a value about which nothing is known
_UNKNOWN = 1.0  # variance of a value about which as much is known without its neighbors
_LARGEST_CHANGE = 4.0  # factor by which a variance may change in a round
_MOST_HALVINGS = 6


@dataclass(frozen=True)
class Observed:
    """A standardized series.

    Attributes
    ----------
    s : ndarray of shape (T,)
        Observations; any number where missing.
    seen : ndarray of shape (T,)
        1 where there is an observation, else 0.
    most_noise : float
        Largest variance R that is considered.
    least_noise : float
        Smallest.
    """

    s: Array
    seen: Array
    most_noise: float
    least_noise: float = 0.0

    def misfit(self, z: Array) -> float:
        """Sum of squared differences between observations and a latent series."""
        return float(np.sum(self.seen * (self.s - z) ** 2))


@dataclass(frozen=True)
class State:
    r"""A latent series, the map it follows, and how sure of them we are.

    Attributes
    ----------
    basis : Basis
    z : ndarray of shape (T,)
    w : ndarray of shape (p,)
    noise, process, prior : float
        The variances R, Q and :math:`\tau^2`.
    pull : tuple of ndarray
        M and v.
    evidence : float
        E, where it is known.
    """

    basis: Basis
    z: Array
    w: Array
    noise: float
    process: float
    prior: float
    pull: tuple[Array, Array]
    evidence: float = np.inf


def first_state(
    basis: Basis, fit: Regression, z: Array, noise: float, process: float | None = None
) -> State:
    """Return a state to start from: a latent series and a map fitted to it."""
    size = fit.w.size
    nothing = np.zeros((size, size)), np.zeros(size)
    process = 0.7 * fit.variance if process is None else process
    process = max(process, _SMALLEST_PROCESS * noise)
    return State(basis, z, fit.w, noise, process, fit.prior, nothing)


def windows_of(z: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    """All windows of a series, shape (T - width + 1, width)."""
    return np.lib.stride_tricks.sliding_window_view(z, width)


@dataclass(frozen=True)
class _Model:
    """The map along a latent series."""

    X: Array
    phi: Array
    features: Array
    residual: Array

    @classmethod
    def along(cls, z: Array, w: Array, basis: Basis) -> _Model:
        n_lags = basis.metric.size
        X = windows_of(z, n_lags)[:-1]
        phi = basis.activations(X)
        features = basis.features(X, phi)
        return cls(X, phi, features, z[n_lags:] - features @ w)


def improve(observed: Observed, state: State, rounds: int, pull: float) -> tuple[State, State]:
    """Improve a state for a number of rounds.

    A round gives the evidence of the state it starts from; so the last round is there to evaluate
    the state that the ones before it led to.

    Parameters
    ----------
    observed : Observed
    state : State
    rounds : int
    pull : float
        Share of the pull of uncertain windows.

    Returns
    -------
    last : State
    lowest : State
        The one of lowest evidence E among those passed.
    """
    model = _Model.along(state.z, state.w, state.basis)
    passed = []
    for _ in range(rounds):
        evidence, new, new_model = _round(observed, state, model, pull)
        passed.append(replace(state, evidence=evidence))
        state, model = new, new_model
    return passed[-1], min(passed, key=lambda state: state.evidence)


def _round(
    observed: Observed, state: State, model: _Model, pull: float
) -> tuple[float, State, _Model]:
    """One step of Gauss and Newton on latent series and weights, then the variances.

    Returns the evidence of the state, and the state after it.
    """
    basis, R, Q = state.basis, state.noise, state.process
    r = basis.n_smooth
    precision = np.full(state.w.size, _FLAT)
    precision[:r] = 1.0 / state.prior
    M, v = state.pull

    slopes = -basis.slopes(model.X, model.phi, state.w)
    J = np.concatenate([slopes, np.ones((len(slopes), 1))], axis=1)
    H = factor(band_of(J, Q, observed.seen / R + _ANYWHERE)[None])
    # Half gradients and second derivatives by z and w.
    by_z = _transposed(J, model.residual[:, None])[:, 0] / Q
    by_z -= observed.seen * (observed.s - state.z) / R
    by_w = precision * state.w + (pull * (M @ state.w - v) - model.features.T @ model.residual) / Q
    cross = _transposed(J, model.features) / -Q
    solved = H.solve(np.concatenate([cross, by_z[:, None]], axis=1)[None])[0]
    gain, alone = solved[:, :-1], solved[:, -1]
    S = (model.features.T @ model.features + pull * M) / Q - cross.T @ gain
    S[np.diag_indices_from(S)] += precision
    S_inverse, S_log = _inverse((S + S.T) / 2.0)
    w_step = -S_inverse @ (by_w - cross.T @ alone)
    z_step = -alone - gain @ w_step

    def value(z: Array, w: Array, model: _Model) -> float:
        flatness = pull * (w @ M @ w - 2.0 * w @ v)
        dynamics = (model.residual @ model.residual + flatness) / Q
        return float(observed.misfit(z) / R + dynamics + precision @ w**2)

    known, n = float(observed.seen.sum()), len(model.X)
    evidence = (
        observed.misfit(state.z) / R
        + float(model.residual @ model.residual) / Q
        + float(state.w[:r] @ state.w[:r]) / state.prior
        + known * np.log(R)
        + n * np.log(Q)
        + r * np.log(state.prior)
        + float(H.log_determinant[0])
        + S_log
    )
    before = value(state.z, state.w, model)
    z, w, new = state.z, state.w, model
    for halving in range(_MOST_HALVINGS):
        step = 0.5**halving
        z, w = state.z + step * z_step, state.w + step * w_step
        new = _Model.along(z, w, basis)
        if value(z, w, new) <= before:
            break
    else:
        z, w, new = state.z, state.w, model

    misfit, unexplained = observed.misfit(z), float(new.residual @ new.residual)
    size = float(w[:r] @ w[:r])
    # How much of the variances is taken up by what is still unknown of z and w.
    covariance = H.inverse_windows(J.shape[1])[0]
    variance = np.append(covariance[:, 0, 0], np.diag(covariance[-1])[1:])
    variance_by_w = np.einsum("tp,pq,tq->t", gain, S_inverse, gain, optimize=True)
    in_noise = float(observed.seen @ (variance + variance_by_w)) / R
    in_prior = float(np.trace(S_inverse[:r, :r])) / state.prior
    in_process = state.z.size + w.size - in_noise - in_prior
    noise = _limited(misfit / max(known - in_noise, 1e-3 * known), R)
    noise = float(np.clip(noise, observed.least_noise, observed.most_noise))
    process = _limited(unexplained / max(n - in_process, 1e-3 * n), Q)
    after = replace(
        state,
        z=z,
        w=w,
        noise=noise,
        process=max(process, _SMALLEST_PROCESS * noise),
        prior=_limited(size / max(r - in_prior, 1e-2), state.prior),
        pull=_pull(basis, new, covariance),
    )
    return evidence, after, new


def _pull(basis: Basis, model: _Model, covariance: Array) -> tuple[Array, Array]:
    """Pull of the windows about which something is known: in long gaps that is nothing."""
    known = np.einsum("nii->ni", covariance).max(axis=1) < _UNKNOWN
    return basis.spread(model.X[known], model.phi[known], covariance[known])


def smooth(observed: Observed, state: State, rounds: int = 10) -> State:
    """Improve the latent series alone, for a map and variances that stay as they are."""
    basis, R, Q = state.basis, state.noise, state.process
    z = state.z
    model = _Model.along(z, state.w, basis)
    for _ in range(rounds):
        slopes = -basis.slopes(model.X, model.phi, state.w)
        J = np.concatenate([slopes, np.ones((len(slopes), 1))], axis=1)
        H = factor(band_of(J, Q, observed.seen / R + _ANYWHERE)[None])
        by_z = _transposed(J, model.residual[:, None])[:, 0] / Q
        by_z -= observed.seen * (observed.s - z) / R
        z_step = -H.solve(by_z[None, :, None])[0, :, 0]
        before = observed.misfit(z) / R + float(model.residual @ model.residual) / Q
        for halving in range(_MOST_HALVINGS):
            tried = z + 0.5**halving * z_step
            new = _Model.along(tried, state.w, basis)
            if observed.misfit(tried) / R + float(new.residual @ new.residual) / Q <= before:
                z, model = tried, new
                break
        else:
            break
    return replace(state, z=z)


def band_of(J: Array, process: float, diagonal: Array) -> Array:
    """Lower band of J'J / Q + diag, shape (l + 1, T), for derivatives along windows (n, l + 1)."""
    n, width = J.shape
    band = np.zeros((width, diagonal.size))
    band[0] = diagonal
    scaled = J / process
    for k in range(width):
        for i in range(width - k):
            band[k, i : i + n] += scaled[:, i] * J[:, i + k]
    return band


def _transposed(J: Array, columns: Array) -> Array:
    """J' times columns of shape (n, p)."""
    n, width = J.shape
    result = np.zeros((n + width - 1, columns.shape[1]))
    for i in range(width):
        result[i : i + n] += J[:, i, None] * columns
    return result


def _inverse(S: Array) -> tuple[Array, float]:
    """Inverse and logarithm of the determinant of a symmetric positive definite matrix."""
    try:
        root = np.linalg.cholesky(S)
    except np.linalg.LinAlgError:  # by rounding
        S = S + 1e-8 * np.trace(S) / len(S) * np.eye(len(S))
        root = np.linalg.cholesky(S)
    inverse = np.linalg.inv(root)
    return inverse.T @ inverse, 2.0 * float(np.log(np.diag(root)).sum())


def _limited(new: float, old: float) -> float:
    return float(np.clip(new, old / _LARGEST_CHANGE, old * _LARGEST_CHANGE))

r"""The clean trajectory of a noisy series and the map it follows, found together.

.. math::

    s_t = z_t + N(0, R), \qquad z_{t+1} = f(z_{t-l+1}, \ldots, z_t) + N(0, Q), \qquad
    f(x) = \phi(x) \cdot w, \quad w \sim N(0, \tau^2)

A network trained on noisy windows learns a blurred map, whatever its penalty, because the noise is
in its inputs. Here the latent series z is unknown, too, and

.. math:: F(z, w) = \sum_t \frac{m_t (s_t - z_t)^2}{R} + \sum_t \frac{(z_{t+1} - f(x_t))^2}{Q}
    + \frac{|w|^2}{\tau^2}

is minimized over both (:math:`m_t = 0` where an observation is missing). A round is one
Gauss-Newton step: with the derivatives J of the residuals by z, the matrix
:math:`H = \mathrm{diag}(m) / R + J'J / Q` is banded of width l, and w follows from the Schur
complement :math:`S = \Phi'\Phi/Q + 1/\tau^2 - \Phi' J H^{-1} J' \Phi / Q^2`. Then MacKay's
updates estimate the variances, and

.. math:: E = F + T \log R + n \log Q + p \log \tau^2 + \log |H| + \log |S|,

minus twice the logarithm of the evidence, ranks the maps. Windows known only up to a covariance P
pull the weights toward flatter maps. A share :math:`\kappa` of that pull,
:math:`\kappa (w' M w - 2 w' v) / Q` with M and v of `MapBasis.spread`, is added to F (but not to
E): with all of it maps are too flat, and without any of it they follow their own noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import as_strided
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri

from rbfdiffnet.noise.maps import MapBasis, Regression
from rbfdiffnet.series.windows import cut_windows
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.progress import report_progress

_SMALLEST_PROCESS = 0.01  # Q, in units of R
_FLAT = 1e-8  # precision of weights without a prior
_ANYWHERE = 1e-6  # precision of a value about which nothing is known
_UNKNOWN = 1.0  # variance of a value about which as much is known without its neighbors
_LARGEST_CHANGE = 4.0  # factor by which a variance may change in a round
_MOST_HALVINGS = 6
_SETTLED = 0.02  # largest step of a latent series that moves no more, in units of the noise
_SMALLEST_BLOCK = 24  # rows of a banded matrix


@dataclass(frozen=True)
class Observations:
    """A standardized series ``s`` (T,), and bounds on the variance R of its noise.

    ``seen`` (T,) is 1 where there is an observation, else 0; there ``s`` may be any number.
    The pull is that of every ``thin``-th window, and changes of R and Q are taken to the power of
    ``haste``, because they go on in the same direction for many rounds. Several series may stand
    one after the other: ``joined`` (n,) is then 0 for windows that reach into the next one.
    """

    s: Array
    seen: Array
    most_noise: float
    least_noise: float = 0.0
    thin: int = 1
    haste: float = 1.0
    joined: Array | float = 1.0

    def misfit(self, z: Array) -> float:
        """Sum the squared differences between observations and a latent series."""
        return float(np.sum(self.seen * (self.s - z) ** 2))

    @cached_property
    def lone(self) -> Array | float:
        """1 for values (T,) of which neither observations nor others say anything, else 0."""
        if isinstance(self.joined, float):
            return 0.0
        around = np.convolve(self.joined, np.ones(self.s.size - self.joined.size + 1))
        return np.asarray(self.seen + around == 0.0, dtype=np.float64)


@dataclass(frozen=True)
class Estimate:
    r"""A latent series ``z`` (T,), the weights ``w`` (p,) of its map, and how sure of them we are.

    ``noise``, ``process`` and ``prior`` are the variances R, Q and :math:`\tau^2`, ``pull`` is
    (M, v), and ``evidence`` is E where it is known.
    """

    basis: MapBasis
    z: Array
    w: Array
    noise: float
    process: float
    prior: float
    pull: tuple[Array, Array]
    evidence: float = np.inf

    @property
    def precision(self) -> Array:
        """Precisions of the weights by their priors, shape (p,)."""
        precision = np.full(self.w.size, _FLAT)
        precision[: self.basis.n_smooth] = 1.0 / self.prior
        return precision

    @property
    def smooth_size(self) -> float:
        """Sum of squares of the weights that have a prior."""
        smooth = self.w[: self.basis.n_smooth]
        return float(smooth @ smooth)


def first_estimate(
    basis: MapBasis, fit: Regression, z: Array, noise: float, process: float | None = None
) -> Estimate:
    """Return an estimate to start from: a latent series and a map fitted to it."""
    size = fit.w.size
    nothing = np.zeros((size, size)), np.zeros(size)
    process = 0.7 * fit.variance if process is None else process
    process = max(process, _SMALLEST_PROCESS * noise)
    return Estimate(basis, z, fit.w, noise, process, fit.prior, nothing)


@dataclass(frozen=True)
class _MapAlong:
    """A map evaluated along a latent series: windows (n, l), features (n, p), residuals (n,).

    The last two are 0 for windows that are not ``joined``.
    """

    basis: MapBasis
    X: Array
    phi: Array
    residual: Array
    joined: Array

    @classmethod
    def evaluate(cls, observed: Observations, z: Array, w: Array, basis: MapBasis) -> _MapAlong:
        n_lags = basis.metric.size
        X = cut_windows(z, n_lags)[:-1]
        phi = basis.activations(X)
        joined = np.broadcast_to(observed.joined, len(X))
        residual = (z[n_lags:] - basis.values(X, phi, w)) * joined
        return cls(basis, X, phi, residual, joined)

    @cached_property
    def features(self) -> Array:
        return self.basis.features(self.X, self.phi) * self.joined[:, None]

    @property
    def n(self) -> float:
        """Number of windows that are joined."""
        return float(self.joined.sum())

    @property
    def unexplained(self) -> float:
        """Sum of the squared residuals."""
        return float(self.residual @ self.residual)


@dataclass(frozen=True)
class BandedCholesky:
    r"""The factor L of a banded matrix H = LL' of T rows, by its lower band of shape (l + 1, T).

    It is used in blocks of b >= l rows: :math:`L_{kk}` on the diagonal, and right below it blocks
    that are 0 but for a corner :math:`C_k` (l, l), which is at their upper right. So the first l
    rows of a block and the last l of the one before are all that neighbors share. The entries of
    the inverse near its diagonal, which are the covariances of neighboring values, follow from the
    last block to the first:

    .. math:: \Sigma_{k+1,k} = -\Sigma_{k+1,k+1} G_k, \qquad
        \Sigma_{kk} = (L_{kk} L_{kk}')^{-1} - \Sigma_{k+1,k}' G_k, \qquad
        G_k = L_{k+1,k} L_{kk}^{-1}
    """

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
        if right.ndim == 1:
            return np.asarray(cho_solve_banded((self.band, True), right, check_finite=False))
        roots, _ = self._blocks
        padded = np.zeros((roots.shape[0] * roots.shape[1], right.shape[1]))
        padded[: len(right)] = right
        return self.solve_back(self._forward(roots @ padded.reshape(*roots.shape[:2], -1)))

    def solve_products(self, J: Array, columns: Array) -> Array:
        r"""Return :math:`L^{-1} J' X` (T, p) for columns X (n, p), and J (n, l + 1) by its band.

        Row t of J is that of the values t to t + l. J' is multiplied with the inverse blocks, not
        with the many columns.
        """
        roots, _ = self._blocks
        (n_blocks, size, _), (n, width) = roots.shape, J.shape
        turned = np.zeros((n_blocks, size, size + width - 1))
        at = np.arange(size)
        for i in range(width):
            column = np.zeros(n_blocks * size)
            column[i : i + n] = J[:, i]
            turned[:, at, at + width - 1 - i] = column.reshape(n_blocks, size)
        padded = np.zeros((n_blocks * size + width - 1, columns.shape[1]))
        padded[width - 1 : width - 1 + n] = columns
        down, right = padded.strides
        shape = n_blocks, size + width - 1, columns.shape[1]
        overlapping = as_strided(padded, shape, (size * down, down, right), writeable=False)
        return self._forward((roots @ turned) @ overlapping)

    def solve_back(self, right: Array) -> Array:
        """Solve L' X = right, both of shape (T, p)."""
        roots, corners = self._blocks
        (n_blocks, size, _), n_lags = roots.shape, corners.shape[1]
        turned = roots.swapaxes(1, 2)
        padded = np.zeros((n_blocks * size, right.shape[1]))
        padded[: len(right)] = right
        result = turned @ padded.reshape(n_blocks, size, -1)
        up = turned[:-1, :, -n_lags:] @ corners.swapaxes(1, 2)
        for k in range(n_blocks - 2, -1, -1):
            result[k] -= up[k] @ result[k + 1, :n_lags]
        return np.asarray(result.reshape(len(padded), -1)[: len(right)])

    def _forward(self, blocks: Array) -> Array:
        """Take off what earlier blocks explain, in place, of (n, b, p); return rows (T, p)."""
        roots, corners = self._blocks
        n_lags = corners.shape[1]
        down = roots[1:, :, :n_lags] @ corners
        for k in range(1, len(blocks)):
            blocks[k] -= down[k - 1] @ blocks[k - 1, -n_lags:]
        return np.asarray(blocks.reshape(-1, blocks.shape[2])[: self.band.shape[1]])

    def inverse_windows(self, width: int) -> Array:
        """Return the blocks of the inverse for every run of ``width`` <= l + 1 values.

        The result has shape (T - width + 1, width, width).
        """
        roots, corners = self._blocks
        (n_blocks, size, _), n_lags = roots.shape, corners.shape[1]
        inverse = roots.swapaxes(1, 2) @ roots
        gain = corners @ roots[:-1, -n_lags:]
        pairs = np.zeros((n_blocks, 2 * size, 2 * size))
        last = pairs[-1, :size, :size] = inverse[-1]
        for k in range(n_blocks - 2, -1, -1):
            under = -last[:, :n_lags] @ gain[k]
            pairs[k, size:, size:] = last
            pairs[k, size:, :size] = under
            pairs[k, :size, size:] = under.T
            last = pairs[k, :size, :size] = inverse[k] - gain[k].T @ under[:n_lags]
        block, down, right = pairs.strides
        shape, strides = (n_blocks, size, width, width), (block, down + right, down, right)
        windows = as_strided(pairs, shape, strides, writeable=False)  # along the diagonals
        return windows.reshape(-1, width, width)[: self.band.shape[1] - width + 1]

    @cached_property
    def _blocks(self) -> tuple[Array, Array]:
        """The inverses of the diagonal blocks of L (n, b, b), and the corners (n - 1, l, l).

        Ones on the diagonal fill up the last block.
        """
        width, length = self.band.shape
        size, n_lags = max(_SMALLEST_BLOCK, width - 1), max(width - 1, 1)
        n_blocks = -(-length // size)
        full = np.zeros((width, n_blocks * size))
        full[:, :length] = self.band
        full[0, length:] = 1.0
        bands = full.reshape(width, n_blocks, size)
        diagonal = np.zeros((n_blocks, size, size))
        corners = np.zeros((n_blocks, n_lags, n_lags))
        for k in range(width):
            inside, across = np.arange(size - k), np.arange(size - k, size)
            diagonal[:, inside + k, inside] = bands[k, :, : size - k]
            corners[:, across + k - size, across - size + n_lags] = bands[k, :, size - k :]
        roots = np.zeros_like(diagonal)
        for root, block in zip(roots, diagonal, strict=True):
            root[:] = dtrtri(block, lower=1)[0]
        return roots, corners[:-1]


@dataclass(frozen=True)
class _Step:
    """A Gauss-Newton step (T,), (p,), and the factored second derivatives that it comes from.

    V (T, p) are the mixed ones, divided by the factor of H.
    """

    z: Array
    w: Array
    H: BandedCholesky
    V: Array
    S_inverse: Array
    log_determinant: float


def improve(
    observed: Observations, estimate: Estimate, rounds: int, share: float, enough: float = 0.0
) -> tuple[Estimate, Estimate]:
    """Improve an estimate for some rounds; return the last and the one of lowest evidence E.

    A round yields the evidence of the estimate that it starts from, so the last round only
    evaluates what the rounds before it led to. ``share`` is that of the pull. A change of E by
    less than ``enough`` ends the rounds.
    """
    along = _MapAlong.evaluate(observed, estimate.z, estimate.w, estimate.basis)
    passed: list[Estimate] = []
    for k in range(rounds):
        report_progress(k / rounds)
        step = _solve_step(observed, estimate, along, share)
        passed.append(replace(estimate, evidence=_evidence(observed, estimate, along, step)))
        settled = k > 1 and abs(passed[-1].evidence - passed[-2].evidence) < enough
        if settled or k == rounds - 1:
            break
        moved, along = _move(observed, estimate, along, step.z, step.w, share)
        estimate = _update_variances(observed, estimate, moved, along, step)
    return passed[-1], min(passed, key=lambda estimate: estimate.evidence)


def left_out_error(observed: Observations, estimate: Estimate, share: float) -> float:
    r"""Return about how far observations are from what the others alone say of them, squared.

    By generalized cross-validation it is the mean of :math:`(s_t - z_t)^2 / (1 - h)^2`, where h is
    the mean share that an observation has in its own clean value.
    """
    along = _MapAlong.evaluate(observed, estimate.z, estimate.w, estimate.basis)
    step = _solve_step(observed, estimate, along, share)
    covariance = step.H.inverse_windows(estimate.basis.metric.size + 1)
    known = float(observed.seen.sum())
    own = _explained(observed, estimate, step, covariance) / known
    return observed.misfit(estimate.z) / known / max(1.0 - own, 1e-3) ** 2


def smooth_latent(observed: Observations, estimate: Estimate, rounds: int = 10) -> Estimate:
    """Improve the latent series alone; the map and the variances stay as they are."""
    along = _MapAlong.evaluate(observed, estimate.z, estimate.w, estimate.basis)
    stay = np.zeros_like(estimate.w)
    for _ in range(rounds):
        _, H, by_z = _linearize(observed, estimate, along)
        step = -H.solve(by_z)
        moved, along = _move(observed, estimate, along, step, stay)
        settled = moved is estimate or np.abs(step).max() < _SETTLED * np.sqrt(estimate.noise)
        estimate = moved
        if settled:
            break
    return estimate


def _linearize(
    observed: Observations, estimate: Estimate, along: _MapAlong
) -> tuple[Array, BandedCholesky, Array]:
    """Return J (n, l + 1), the factored H, and half the gradient of F by z (T,)."""
    R, Q = estimate.noise, estimate.process
    slopes = -estimate.basis.slopes(along.X, along.phi, estimate.w)
    J = np.concatenate([slopes, np.ones((len(slopes), 1))], axis=1)
    J *= along.joined[:, None]
    H = BandedCholesky.factor(gram_band(J, Q, observed.seen / R + _ANYWHERE + observed.lone))
    by_z = _times_transpose(J, along.residual) / Q
    by_z -= observed.seen * (observed.s - estimate.z) / R
    return J, H, by_z


def _solve_step(
    observed: Observations, estimate: Estimate, along: _MapAlong, share: float
) -> _Step:
    """Solve for the Gauss-Newton step on the latent series and the weights together."""
    Q, w, precision = estimate.process, estimate.w, estimate.precision
    M, v = estimate.pull
    features = along.features
    J, H, by_z = _linearize(observed, estimate, along)
    by_w = precision * w + (share * (M @ w - v) - features.T @ along.residual) / Q
    V = H.solve_products(J / -Q, features)
    S = (features.T @ features + share * M) / Q - V.T @ V
    S[np.diag_indices_from(S)] += precision
    S_inverse, S_log = _invert(S)
    alone = H.solve(by_z)
    moved = (J * cut_windows(alone, J.shape[1])).sum(axis=1)
    w_step = -S_inverse @ (by_w + features.T @ moved / Q)
    z_step = H.solve(_times_transpose(J, features @ w_step) / Q) - alone
    return _Step(z_step, w_step, H, V, S_inverse, H.log_determinant + S_log)


def _evidence(observed: Observations, estimate: Estimate, along: _MapAlong, step: _Step) -> float:
    """Return E at an estimate, whose second derivatives a step comes with."""
    R, Q, prior = estimate.noise, estimate.process, estimate.prior
    return float(
        observed.misfit(estimate.z) / R
        + along.unexplained / Q
        + estimate.smooth_size / prior
        + observed.seen.sum() * np.log(R)
        + along.n * np.log(Q)
        + estimate.basis.n_smooth * np.log(prior)
        + step.log_determinant
    )


def _move(
    observed: Observations,
    estimate: Estimate,
    along: _MapAlong,
    z_step: Array,
    w_step: Array,
    share: float = 0.0,
) -> tuple[Estimate, _MapAlong]:
    """Take a step, or the first of its halves that does not increase F, or none."""
    M, v = estimate.pull
    precision = estimate.precision

    def objective(z: Array, w: Array, along: _MapAlong) -> float:
        flatness = share * (w @ M @ w - 2.0 * w @ v)
        dynamics = (along.unexplained + flatness) / estimate.process
        return float(observed.misfit(z) / estimate.noise + dynamics + precision @ w**2)

    before = objective(estimate.z, estimate.w, along)
    for halving in range(_MOST_HALVINGS):
        z, w = estimate.z + 0.5**halving * z_step, estimate.w + 0.5**halving * w_step
        new = _MapAlong.evaluate(observed, z, w, estimate.basis)
        if objective(z, w, new) <= before:
            return replace(estimate, z=z, w=w), new
    return estimate, along


def _update_variances(
    observed: Observations, before: Estimate, moved: Estimate, along: _MapAlong, step: _Step
) -> Estimate:
    """Set the variances by MacKay's updates, and the pull, after a step from ``before``.

    Each sum of squares is divided by the number of its terms, less what is still unknown of z and w
    takes up of them.
    """
    basis, R, Q, prior = before.basis, before.noise, before.process, before.prior
    r, n, known = basis.n_smooth, along.n, float(observed.seen.sum())
    covariance = step.H.inverse_windows(basis.metric.size + 1)
    in_noise = _explained(observed, before, step, covariance)
    in_prior = float(np.trace(step.S_inverse[:r, :r])) / prior
    in_process = moved.z.size - np.sum(observed.lone) + moved.w.size - in_noise - in_prior
    noise = observed.misfit(moved.z) / max(known - in_noise, 1e-3 * known)
    noise = _limit_change(noise, R, observed.haste)
    noise = float(np.clip(noise, observed.least_noise, observed.most_noise))
    process = along.unexplained / max(n - in_process, 1e-3 * n)
    process = _limit_change(process, Q, observed.haste)
    # Where nothing is known of the windows, they have no part in the pull.
    X, phi = along.X, along.phi
    sure = np.einsum("nii->ni", covariance).max(axis=1) < _UNKNOWN
    sure &= along.joined > 0.0
    if not sure.all():
        X, phi, covariance = X[sure], phi[sure], covariance[sure]
    return replace(
        moved,
        noise=noise,
        process=max(process, _SMALLEST_PROCESS * noise),
        prior=_limit_change(moved.smooth_size / max(r - in_prior, 1e-2), prior),
        pull=basis.spread(X, phi, covariance, observed.thin),
    )


def _explained(observed: Observations, estimate: Estimate, step: _Step, covariance: Array) -> float:
    """Return how many observations the latent series and the weights can follow."""
    variance = np.append(covariance[:, 0, 0], np.diag(covariance[-1])[1:])
    gain = step.H.solve_back(step.V) * np.sqrt(observed.seen)[:, None]
    by_w = float((step.S_inverse * (gain.T @ gain)).sum())
    return (float(observed.seen @ variance) + by_w) / estimate.noise


def gram_band(J: Array, process: float, diagonal: Array) -> Array:
    """Return the lower band (l + 1, T) of J'J / Q + diag, for derivatives J (n, l + 1)."""
    n, width = J.shape
    band = np.zeros((width, diagonal.size))
    band[0] = diagonal
    scaled = J / process
    for k in range(width):
        for i in range(width - k):
            band[k, i : i + n] += scaled[:, i] * J[:, i + k]
    return band


def _times_transpose(J: Array, values: Array) -> Array:
    """Multiply J' (T, n) with values (n,)."""
    n, width = J.shape
    result = np.zeros(n + width - 1)
    for i in range(width):
        result[i : i + n] += J[:, i] * values
    return result


def _invert(S: Array) -> tuple[Array, float]:
    """Return the inverse of a positive definite matrix, and its determinant's logarithm."""
    root, failed = dpotrf(S, lower=1)
    if failed:  # by rounding
        S = S + 1e-8 * np.trace(S) / len(S) * np.eye(len(S))
        root = np.linalg.cholesky(S)
    log_determinant = 2.0 * float(np.log(np.diag(root)).sum())
    lower = np.tril(dpotri(root, lower=1)[0])
    return lower + np.tril(lower, -1).T, log_determinant


def _limit_change(new: float, old: float, haste: float = 1.0) -> float:
    return float(old * np.clip((new / old) ** haste, 1.0 / _LARGEST_CHANGE, _LARGEST_CHANGE))

r"""Why trajectory learning is as it is: ``python benchmarks/noise_variants.py --out DIR``.

Trajectory learning without each of its parts, and other cures for noise in the inputs in its
place, on the series of ``benchmarks/noise.py``: noise of 10 and 40 %, 4 and 8 lags. The error is
that of ``clean_windows`` (``noise_parts/tasks.py``): how well the map itself was learned.

``noise_variants.csv`` in DIR has a row for each variant: the geometric mean of its errors and their
ratio to those of the full method, at each noise level and in all, and seconds of the processor. The
other cures start from what the full method found (the blurred map's basis, the size of the noise
and, for the network, the latent series); their seconds are what comes on top.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from noise_parts.data import SYSTEMS, Cell, make_cell
from noise_parts.search import folds
from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.network.basis import squared_distances
from rbfdiffnet.network.network import Network
from rbfdiffnet.noise import Trajectory, learn, learn_trajectory, search
from rbfdiffnet.noise.maps import CENTERS, MapBasis, MapShape, make_basis, place_centers, regress
from rbfdiffnet.noise.trajectory import improve
from rbfdiffnet.series.windows import lag_windows
from rbfdiffnet.support.parallel import one_blas_thread
from speed_parts.timing import Table

NOISE_LEVELS, LAGS = (0.1, 0.4), (4, 8)
FULL = "trajectory learning"
SIMEX_LEVELS, SIMEX_DRAWS = (0.5, 1.0, 1.5, 2.0), 10
COPIES = 10
RIDGES = 10.0 ** np.arange(-8.0, 1.1, 0.5)
LEAST = 1.5  # of s^2 / 2, in units of R: at 1 there are no unbiased moments

Variant = Callable[[Cell, Trajectory], Network]


@dataclass(frozen=True)
class Blurred:
    """The blurred map's basis, the standardized series it was learned from, and its noise R."""

    basis: MapBasis
    s: np.ndarray
    R: float
    shift: float
    scale: float

    @classmethod
    def of(cls, cell: Cell, found: Trajectory) -> Blurred:
        """The basis is rebuilt from the network, which is made of the same centers and width."""
        net = found.blurred
        shift, scale = float(net.x_shift[0]), float(net.x_scale[0])
        width = float(np.sqrt(0.5 / net.beta[0]))
        basis = make_basis((net.centers, 1.0), float(net.metric[-2]), width)
        return cls(basis, (cell.training - shift) / scale, (found.noise / scale) ** 2, shift, scale)

    def refitted(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Weights on other rows."""
        features = self.basis.features(X, self.basis.activations(X))
        return regress(features, y, n_flat=X.shape[1] + 1).w


def simex(cell: Cell, found: Trajectory) -> Network:
    r"""Add noise and extrapolate to where there is none.

    .. math:: w(\zeta) = \text{mean of the weights learned from } s + N(0, \zeta R), \qquad
        w(\zeta) \approx a + b \zeta + c \zeta^2, \qquad w(-1) \approx a - b + c

    The noise is in windows and targets alike. Predictions are linear in the weights, so weights and
    predictions are extrapolated at once.
    """
    start = Blurred.of(cell, found)
    w = simex_weights(start.s, start.R, cell.n_lags, start.refitted)
    return start.basis.network(w, start.shift, start.scale)


def simex_weights(
    s: np.ndarray, R: float, n_lags: int, fit: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Weights of ``fit``, extrapolated to a series without its noise of variance R."""
    rng = np.random.default_rng(0)

    def mean(level: float) -> np.ndarray:
        added = np.sqrt(level * R) * rng.normal(size=(SIMEX_DRAWS, s.size))
        return np.mean([fit(*lag_windows(s + each, n_lags)) for each in added], axis=0)

    levels = (0.0, *SIMEX_LEVELS)
    weights = np.stack([fit(*lag_windows(s, n_lags)), *map(mean, SIMEX_LEVELS)])
    return np.vander([-1.0], 3)[0] @ np.linalg.lstsq(np.vander(levels, 3), weights)[0]


def jittered(cell: Cell, found: Trajectory) -> Network:
    """Refit on copies of the windows, with noise of half the size on top; targets as they are."""
    start = Blurred.of(cell, found)
    X, y = lag_windows(start.s, cell.n_lags)
    X, y = np.tile(X, (COPIES, 1)), np.tile(y, COPIES)
    added = 0.5 * np.sqrt(start.R) * np.random.default_rng(0).normal(size=X.shape)
    return start.basis.network(start.refitted(X + added, y), start.shift, start.scale)


def deconvolved(
    U: np.ndarray, centers: np.ndarray, variance: float, noise: np.ndarray
) -> np.ndarray:
    r"""Unbiased versions of Gaussians at noisy places, shape (n, c).

    .. math:: g(u) = \prod_i \sqrt{\frac{s^2}{s^2 - v_i}}\, e^{-(u_i - \mu_i)^2 / 2 (s^2 - v_i)},
        \qquad E\, g(u + N(0, v)) = e^{-\lVert u - \mu \rVert^2 / 2 s^2}
    """
    left = variance - noise
    if left.min() <= 0.0:
        raise ValueError(
            f"Noise of variance {noise.max():g} is too much for Gaussians of {variance:g}: widen."
        )
    squares = squared_distances(U / np.sqrt(left), centers / np.sqrt(left))
    return np.sqrt(np.prod(variance / left)) * np.exp(-0.5 * squares)


def corrected_moments(
    basis: MapBasis, X: np.ndarray, y: np.ndarray, R: float
) -> tuple[np.ndarray, np.ndarray]:
    r"""Sums over clean windows of the features' products, and of features times targets.

    The product of two basis functions is again a Gaussian, of half the variance and midway between:

    .. math:: \varphi_j \varphi_k = e^{-\lVert \mu_j - \mu_k \rVert^2 / 4 s^2}\,
        e^{-\lVert u - (\mu_j + \mu_k) / 2 \rVert^2 / s^2}

    Features are the basis functions in coordinates of their prior, and a one.
    """
    variance, noise, U = 0.5 / basis.beta, R * basis.metric**2, X * basis.metric
    c = len(basis.centers)
    phi = np.concatenate([deconvolved(U, basis.centers, variance, noise), np.ones((len(X), 1))], 1)
    j, k = np.triu_indices(c)
    first, second = basis.centers[j], basis.centers[k]
    apart = np.exp(-((first - second) ** 2).sum(axis=1) / (4.0 * variance))
    gram = np.empty((c + 1, c + 1))
    products = deconvolved(U, (first + second) / 2.0, variance / 2.0, noise).sum(axis=0)
    gram[j, k] = gram[k, j] = apart * products
    gram[c] = gram[:, c] = phi.sum(axis=0)
    turn = np.zeros((c + 1, basis.n_smooth + 1))
    turn[c, -1] = 1.0
    turn[:c, :-1] = basis.roots
    return turn.T @ gram @ turn, turn.T @ (phi.T @ y)


def corrected(cell: Cell, found: Trajectory) -> Network:
    r"""Solve the normal equations that clean windows would give, as noisy ones estimate them.

    .. math:: (G_+ + \alpha I)\, w = b

    G need not be positive: in :math:`G_+` negative eigenvalues are 0. The basis is as wide as the
    blurred map's, as :math:`s^2 / 2 > R` asks for, or wider: width and :math:`\alpha` are those of
    least error :math:`w' G_+ w - 2 w' b` over five folds. Its G and b are corrected, too: the plain
    error of noisy windows is least for a blurred map.
    """
    start = Blurred.of(cell, found)
    X, y = lag_windows(start.s, cell.n_lags)
    decay = start.basis.decay
    centers, _ = place_centers(X, decay, CENTERS)
    least = max(start.basis.width, float(np.sqrt(2.0 * LEAST * start.R)))
    tried = []
    for width in (least, 2.0 * least, 4.0 * least):
        basis = make_basis((centers, 1.0), decay, width)
        sums = [corrected_moments(basis, X[test], y[test], start.R) for _, test in folds(len(y))]
        G, b = (sum(parts) for parts in zip(*sums, strict=True))
        errors = np.zeros(len(RIDGES))
        for G_held, b_held in sums:
            w = solutions(G - G_held, b - b_held)
            values, vectors = np.linalg.eigh(G_held)
            errors += np.maximum(values, 0.0) @ (vectors.T @ w) ** 2 - 2.0 * b_held @ w
        best = int(np.argmin(errors))
        tried.append((float(errors[best]), basis, solutions(G, b)[:, best]))
    _, basis, w = min(tried, key=lambda trial: trial[0])
    w = np.concatenate([w[:-1], np.zeros(cell.n_lags), w[-1:]])
    return basis.network(w, start.shift, start.scale)


def solutions(G: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Weights for every ridge, a column each; the ridge is for sums over as many rows as G's."""
    values, vectors = np.linalg.eigh(G)
    rows = G[-1, -1]  # the sum of ones
    return vectors @ ((vectors.T @ b)[:, None] / (np.maximum(values, 0.0)[:, None] + rows * RIDGES))


def is_too_narrow(cell: Cell, found: Trajectory) -> bool:
    """Whether exact moments do not exist for the blurred map's own width."""
    start = Blurred.of(cell, found)
    return bool(0.25 / start.basis.beta <= start.R)


def order_one(cell: Cell, found: Trajectory) -> Network:
    """The usual network, trained on the windows of the latent series."""
    return RBFDiffNetRegressor().fit(*lag_windows(found.latent, cell.n_lags)).network_


def learned(kind: type[search.MapSearch] = search.MapSearch, **changes: Any) -> Variant:
    """Trajectory learning with another kind of search, or some names of its module changed."""

    def variant(cell: Cell, _: Trajectory) -> Network:
        with patch.object(learn, "MapSearch", kind), patch.dict(vars(search), changes):
            return learn_trajectory(cell.training, cell.n_lags).network

    return variant


class LowestEvidence(search.MapSearch):
    """Returns the state of lowest evidence of all it passes, not the last."""

    def _refine(self, shape: MapShape) -> Any:
        _, lowest = super()._refine(shape)
        return lowest, lowest


class OneShape(search.MapSearch):
    """Keeps to the decay and width of the best first map."""

    def _refine(self, shape: MapShape) -> Any:
        (state,) = self._descend(shape, search._WIDER, (1.0,))
        return improve(self.observed, state, search._LAST_ROUNDS, search._LAST_PULL)


VARIANTS: dict[str, Variant] = {
    FULL: lambda cell, _: learn_trajectory(cell.training, cell.n_lags).network,
    "blurred map": lambda _, found: found.blurred,
    "SIMEX": simex,
    "jittered inputs": jittered,
    "exact moments": corrected,
    "order-1 network on the latent series": order_one,
    "no lag metric": learned(_DECAYS=(1.0,), _FINE_DECAYS=(1.0,)),
    "no pull": learned(_PULL=0.0, _LAST_PULL=0.0),
    "all of the pull": learned(_PULL=1.0, _LAST_PULL=1.0),
    "lowest evidence, not the last": learned(LowestEvidence),
    "no smoother maps on the way": learned(_WIDER=()),
    "240 centers": learned(count_centers=lambda n_rows, _=240: min(n_rows // 3, 240)),
    "decay and width of the first map": learned(OneShape),
}


def clean_error(cell: Cell, network: Network) -> float:
    """``clean_windows`` of ``noise_parts/tasks.py``."""
    X, y = lag_windows(cell.clean[cell.n_train - cell.n_lags :], cell.n_lags)
    return float(np.abs(network.predict(X)[:, 0] - y).mean() / cell.scale)


def run(cells: Sequence[Cell]) -> pd.DataFrame:
    """A row for every cell and variant."""
    rows = []
    for cell in cells:
        found = learn_trajectory(cell.training, cell.n_lags)
        about = {name: getattr(cell, name) for name in ("system", "noise", "n_lags", "seed")}
        about |= {"off": not found.on, "too_narrow": is_too_narrow(cell, found)}
        for name, variant in VARIANTS.items():
            start = time.process_time()
            network = variant(cell, found)
            seconds = time.process_time() - start
            row = {"variant": name, **about, "error": clean_error(cell, network)}
            rows.append({**row, "seconds": seconds})
            print(*rows[-1].values(), sep="  ", file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def summarize(frame: pd.DataFrame) -> Table:
    """A row for every variant: geometric means, and ratios to the full method."""
    rows = []
    for name in frame["variant"].unique():
        row: dict[str, Any] = {"variant": name}
        for level in (*frame["noise"].unique(), "all"):
            part = frame if level == "all" else frame[frame["noise"] == level]
            mean = np.exp(np.log(part["error"]).groupby(part["variant"]).mean())
            row[f"error_{level}"] = float(mean[name])
            row[f"ratio_{level}"] = float(mean[name] / mean[FULL])
        rows.append({**row, "seconds": float(frame["seconds"][frame["variant"] == name].mean())})
    return Table("variants", "geometric means of the error on clean windows", rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--seeds", type=int, default=2, help="how many, from 0")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    places = product(range(options.seeds), options.systems, NOISE_LEVELS, LAGS)
    cells = [make_cell(system, noise, n_lags, seed) for seed, system, noise, n_lags in places]
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those about trainings that stop at their limit
        frame = run(cells)
    table = summarize(frame)
    options.out.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(table.rows).to_csv(options.out / "noise_variants.csv", index=False)
    print(f"\n{table}\n")
    full = frame[frame["variant"] == FULL]
    print(f"{full['off'].sum()} of {len(full)} trajectories were off: then it is the blurred map.")
    print(
        f"{full['too_narrow'].sum()} of {len(full)} blurred maps are too narrow for exact moments, "
        "which were then taken of a wider basis."
    )


if __name__ == "__main__":
    main()

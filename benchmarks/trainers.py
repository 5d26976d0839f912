"""One fit of RBF-DiffNet, three ways, in one run: ``python benchmarks/trainers.py``.

The problem has the size of one daily series of the paper's second experiment: 1,900 rows, 14 lags,
28 centers, order 1. Centers and widths are the same for all, and their cost is listed apart.

==================  ===============================================================================
varpro              variable projection as in `rbfdiffnet.network.trainers`, one start, no
selection estimator           ``RBFDiffNetRegressor`` with everything given: K-Means, widths and
varpro dense als           the dense tensor of derivatives and 20 rounds of alternating
pseudo-inverses
                    over a, lambda and w, as in code published by the authors of the paper
dense bfgs          the dense tensor and BFGS on squared error, the paper's trainer
==================  ===============================================================================
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy import optimize
from threadpoolctl import threadpool_limits

from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.network.basis import GaussianBasis, derivatives
from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.network.choose import default_start
from rbfdiffnet.network.objective import Objective
from rbfdiffnet.network.trainers import minimize_varpro
from rbfdiffnet.network.widths import widths
from rbfdiffnet.series.windows import lag_windows


def weekly_series(n: int, seed: int) -> np.ndarray:
    """A noisy weekly pattern with a drifting level and a threshold in its dynamics."""
    rng = np.random.default_rng(seed)
    level = np.cumsum(0.1 * rng.normal(size=n))
    week = np.tile(rng.normal(size=7), n // 7 + 1)[:n]
    series = np.zeros(n)
    for t in range(1, n):
        pull = 0.7 if series[t - 1] > 0 else -0.3
        series[t] = pull * series[t - 1] + week[t] + 0.5 * rng.normal()
    return series + level


def dense_als(theta: np.ndarray, S: np.ndarray, y: np.ndarray, rounds: int = 20) -> np.ndarray:
    """Alternate pseudo-inverses over a, lambda and w on the dense tensor (n, c, d)."""
    _, c, d = theta.shape
    a, lam, w = np.full(d, 1e-3), np.full(S.shape[1], 1.0 / S.shape[1]), np.ones(c)
    for _ in range(rounds):
        a = np.linalg.pinv(np.einsum("j,nji->ni", w, theta)) @ (y - S @ lam)
        lam = np.linalg.pinv(S) @ (y - np.einsum("j,nji,i->n", w, theta, a))
        w = np.linalg.pinv(np.einsum("nji,i->nj", theta, a)) @ (y - S @ lam)
    return np.einsum("j,nji,i->n", w, theta, a) + S @ lam


def dense_bfgs(theta: np.ndarray, S: np.ndarray, y: np.ndarray) -> np.ndarray:
    """BFGS over w, a and lambda on the dense tensor."""
    n, c, d = theta.shape
    flat = theta.reshape(n, c * d)

    def predict(x: np.ndarray) -> np.ndarray:
        return flat @ np.outer(x[:c], x[c : c + d]).ravel() + S @ x[c + d :]

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        r = predict(x) - y
        moment = (r @ flat).reshape(c, d)
        gradient = np.concatenate([moment @ x[c : c + d], x[:c] @ moment, r @ S])
        return 0.5 * r @ r / n, gradient / n

    start = np.concatenate([np.ones(c), np.full(d, 1e-3), np.full(S.shape[1], 1 / S.shape[1])])
    return predict(optimize.minimize(objective, start, jac=True, method="BFGS").x)


def timed(function: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    """Median milliseconds and the last result, after a warm-up of half a second."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.5:
        result = function()
    durations = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = function()
        durations.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(durations)), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    X, y = lag_windows(weekly_series(1914, arguments.seed), n_lags=14)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    centers = kmeans(X, 28)
    beta = 0.5 / widths("cluster", X, centers) ** 2
    ones = np.ones(len(X))

    def our_way() -> np.ndarray:
        basis = GaussianBasis.evaluate(X, centers, beta, order=1, order_zero=False)
        linear = np.vstack([X.T, ones])
        objective = Objective(basis, linear, y[None], ones, True, alpha=1e-4)
        return objective.predict(minimize_varpro(objective, default_start(basis)).weights)[0]

    def whole_estimator() -> np.ndarray:
        model = RBFDiffNetRegressor(width_factor=1.0, metric="standard", alpha=1e-4, loss="squared")
        return model.fit(X, y).predict(X)

    ways = {
        "varpro": our_way,
        "estimator": whole_estimator,
        "dense als": lambda: dense_als(derivatives(X, centers, beta, 1)[1], X, y),
        "dense bfgs": lambda: dense_bfgs(derivatives(X, centers, beta, 1)[1], X, y),
    }
    with threadpool_limits(1):
        placing, _ = timed(lambda: kmeans(X, 28), arguments.repeats)
        results = {name: timed(way, arguments.repeats) for name, way in ways.items()}
    base = results["varpro"][0]
    print(f"{len(X)} rows, 14 lags, 28 centers, order 1, one thread")
    print(f"K-Means alone: {placing:.1f} ms\n")
    print(f"{'way':<12}{'ms':>9}{'times varpro':>15}{'training RMSE':>16}")
    for name, (milliseconds, fitted) in results.items():
        error = np.sqrt(np.mean((y - fitted) ** 2))
        print(f"{name:<12}{milliseconds:>9.1f}{milliseconds / base:>15.1f}{error:>16.4f}")


if __name__ == "__main__":
    main()

"""Losses and the parabolas that touch them, the choice of a penalty, and three trainers."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.exceptions import ConvergenceWarning

from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.datasets import mackey_glass
from rbfdiffnet.network.basis import GaussianBasis
from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.network.choose import leave_one_out_errors
from rbfdiffnet.network.losses import Loss
from rbfdiffnet.network.objective import Objective
from rbfdiffnet.network.projection import project
from rbfdiffnet.network.widths import widths
from rbfdiffnet.series.windows import lag_windows
from style import BLUE, GOLD, GRAY, GREEN, INK, RED, save


def losses(ax: Axes) -> None:
    r = np.linspace(-3.0, 3.0, 300)
    for loss, color in (
        (Loss("squared"), GRAY),
        (Loss("huber"), BLUE),
        (Loss("absolute"), GREEN),
        (Loss("quantile", quantile=0.9), GOLD),
    ):
        name = "quantile .9" if loss.kind == "quantile" else loss.kind
        ax.plot(r, loss.value(r), color=color, label=name)
    at, huber = np.array([2.0]), Loss("huber")
    (weight,), (shift,) = huber.majorizer(at)
    touch = 0.5 * weight * (r - shift) ** 2
    touch += huber.value(at) - 0.5 * weight * (at - shift) ** 2
    ax.plot(r, touch, color=RED, ls="--", lw=1.2, label="touching parabola")
    ax.plot(at, huber.value(at), "o", color=RED, ms=5)
    ax.set(title="Losses", xlabel="residual $r$", ylim=(-0.1, 6.9))
    ax.legend(fontsize=7, loc="upper center", ncols=2, columnspacing=1.0)


def penalty(ax: Axes) -> None:
    """Leave-one-out errors of a plain network, beside the errors on 2,000 new rows."""
    rng = np.random.default_rng(1)
    series = mackey_glass(2200, step=6.0) + 0.1 * rng.normal(size=2200)
    X, y = lag_windows((series - series.mean()) / series.std(), n_lags=4)
    rows, new = slice(0, 120), slice(150, 2150)
    centers = kmeans(X[rows], 40)
    beta = 0.5 / (2.0 * widths("cluster", X[rows], centers)) ** 2

    def objective(rows: slice, alpha: float) -> Objective:
        basis = GaussianBasis.evaluate(X[rows], centers, beta, order=0, order_zero=True)
        ones = np.ones((1, len(y[rows])))
        return Objective(basis, ones, y[rows][None], ones[0], True, alpha=alpha)

    alphas = 10.0 ** np.arange(-6.0, 1.01, 0.25)
    left_out, unseen, seen = [], [], []
    for alpha in alphas:
        problem = objective(rows, alpha)
        point = project(problem, problem.quadratic(None), np.ones(1))
        errors = np.abs(objective(new, alpha).predict(point.weights) - y[new])
        left_out.append(np.mean(leave_one_out_errors(problem, point)))
        unseen.append(np.mean(errors**2))
        seen.append(np.mean(point.residual**2))
    ax.semilogx(alphas, unseen, color=INK, lw=1.2, ls="--", label="on new rows")
    ax.semilogx(alphas, left_out, color=BLUE, label="leave-one-out")
    ax.semilogx(alphas, seen, color=GRAY, label="on the rows learned")
    known = np.isfinite(left_out)
    best = alphas[known][np.argmin(np.array(left_out)[known])]
    ax.axvline(best, ymax=0.65, color=RED, lw=1.0, ls=":")
    ax.set(
        title="Choosing the penalty", xlabel=r"$\alpha$", ylabel="mean squared error", ylim=(0, 0.8)
    )
    ax.legend(fontsize=7.5, loc="upper left")


def trainers(ax: Axes) -> None:
    X, y = lag_windows(mackey_glass(600, step=6.0), n_lags=4)
    same = {"loss": "squared", "alpha": 1e-6, "width_factor": 2.0, "metric": "standard"}
    lowest = min(
        RBFDiffNetRegressor(12, solver=solver, **same).fit(X, y).objective_
        for solver in ("varpro", "als", "bfgs")
    )
    for solver, color in (("varpro", RED), ("als", GOLD), ("bfgs", BLUE)):
        steps = np.unique(np.geomspace(1, 300, 28).astype(int))
        above = []
        for n in steps:
            network = RBFDiffNetRegressor(12, solver=solver, max_iter=int(n), **same)
            above.append(network.fit(X, y).objective_ / lowest)
        ax.loglog(steps, above, color=color, label=solver)
    ax.set(
        title="Three trainers",
        xlabel="iterations",
        ylabel="objective, of the lowest",
    )
    ax.legend(fontsize=8)


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    figure, axes = plt.subplots(1, 3, figsize=(8.4, 3.0))
    losses(axes[0])
    penalty(axes[1])
    trainers(axes[2])
    save(figure, "training.svg")


if __name__ == "__main__":
    main()

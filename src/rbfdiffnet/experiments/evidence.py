"""Where the paper's text and its numbers disagree, and what decides.

Each function runs what it takes and returns the evidence as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.experiments.logistic import LOGISTIC_MODELS, make_cell
from rbfdiffnet.experiments.paper_tables import PAPER_MEAN, paper_mae

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["noise_evidence", "ridge_evidence", "root_evidence", "seed_evidence"]

_NOISY_CELLS = ((0.08, 1), (0.12, 1), (0.08, 4), (0.12, 4))


def noise_evidence(n_seeds: int = 3) -> str:
    r"""Compare readings of the noise: variance or deviation, test part noisy or clean.

    .. math:: x_t = s_t + \omega e_t \qquad \text{or} \qquad x_t = s_t + \sqrt{\omega}\, e_t

    Parameters
    ----------
    n_seeds : int, default=3
        Seeds to average over.

    Returns
    -------
    str

    Examples
    --------
    >>> from rbfdiffnet.experiments.evidence import noise_evidence
    >>> print(noise_evidence(n_seeds=1))
    1. The noise level is a standard deviation, and the test part has no noise.
    ...
    """
    readings = {
        "deviation, test clean": (1.0, False),
        "deviation, test noisy": (1.0, True),
        "variance, test clean": (0.5, False),
        "variance, test noisy": (0.5, True),
    }
    columns = "".join(f"  omega={omega} l={lag}" for omega, lag in _NOISY_CELLS)
    lines = [
        "1. The noise level is a standard deviation, and the test part has no noise.",
        f"   Mean absolute error of u-RBFN, mean of {n_seeds} seeds:",
        f"   {'omega read as':<22}{columns}   distance from the paper",
    ]
    paper = np.array([paper_mae(omega, lag, "u-RBFN") for omega, lag in _NOISY_CELLS])
    for name, (power, noisy) in readings.items():
        errors = np.array(
            [
                np.mean([_u_rbfn_error(omega**power, lag, s, noisy) for s in range(n_seeds)])
                for omega, lag in _NOISY_CELLS
            ]
        )
        distance = float(np.abs(errors - paper).mean())
        cells = "".join(f"  {error:>14.3f}" for error in errors)
        lines.append(f"   {name:<22}{cells}   {distance:.3f}")
    lines.append(f"   {'paper':<22}" + "".join(f"  {value:>14.3f}" for value in paper))
    return "\n".join(lines)


def _u_rbfn_error(noise: float, lag: int, seed: int, noisy: bool) -> float:
    cell = make_cell(noise, lag, seed, noise_on_test=noisy)
    model = LOGISTIC_MODELS["u-RBFN"](lag, seed).fit(cell.X, cell.y)
    return float(np.abs(model.predict(cell.X_test) - cell.y_test).mean())


def root_evidence(table: pd.DataFrame) -> str:
    r"""Compare mean RMSSE with and without the root that the paper's formula lacks.

    Parameters
    ----------
    table : DataFrame
        What `rbfdiffnet.experiments.tables.m5_table` returned.

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.experiments.evidence import root_evidence
    >>> print(root_evidence(pd.DataFrame({"model": ["u-RBFN"], "rmsse": [1.1]})))
    2. RMSSE has its root.
       Mean over the series    with root  without root  paper
       u-RBFN                      1.100         1.210  1.020
    """
    lines = [
        "2. RMSSE has its root.",
        f"   {'Mean over the series':<22}  with root  without root  paper",
    ]
    for model in dict.fromkeys(table["model"]):
        errors = table.loc[table["model"] == model, "rmsse"].to_numpy()
        if model in PAPER_MEAN:
            lines.append(
                f"   {model:<22}  {errors.mean():>9.3f}  {np.mean(errors**2):>12.3f}"
                f"  {PAPER_MEAN[model]:.3f}"
            )
    return "\n".join(lines)


def ridge_evidence() -> str:
    r"""Compare the closed form of ridge regression with :math:`\Phi'y` and with :math:`\Phi y`.

    .. math:: w^* = (\Phi' \Phi + \gamma I)^{-1} \Phi' y

    The gradient of :math:`|\Phi w - y|^2 + \gamma |w|^2` must vanish there. For a network,
    :math:`\Phi y` is not even defined; it needs as many rows as centers, so the comparison takes a
    square :math:`\Phi`.

    Returns
    -------
    str

    Examples
    --------
    >>> from rbfdiffnet.experiments.evidence import ridge_evidence
    >>> print(ridge_evidence())
    3. The closed form of ridge regression has Phi'y where the paper prints Phi y.
    ...
    """
    from rbfdiffnet.basis import squared_distances

    gamma = 0.1
    cell = make_cell(0.02, 2, seed=0)
    tall = np.exp(-squared_distances(cell.X, cell.X[::100]))
    rows = slice(0, tall.shape[1])
    square, y = tall[rows], cell.y[rows]
    hessian = square.T @ square + gamma * np.eye(len(y))

    def gradient(right: np.ndarray) -> float:
        w = np.linalg.solve(hessian, right)
        return float(np.linalg.norm(2.0 * square.T @ (square @ w - y) + 2.0 * gamma * w))

    return "\n".join(
        [
            "3. The closed form of ridge regression has Phi'y where the paper prints Phi y.",
            f"   Phi is {tall.shape[0]} x {tall.shape[1]} and y has {tall.shape[0]} values, so "
            "Phi y is not defined;",
            f"   with as many rows as centers, the norm of the gradient of the loss is "
            f"{gradient(square.T @ y):.1e}",
            f"   at the solution with Phi'y, and {gradient(square @ y):.1e} with Phi y.",
        ]
    )


def seed_evidence(records: Sequence[dict[str, Any]]) -> str:
    """Show how much a network's mean RMSSE, and its p-value, depend on the seed of K-Means.

    Parameters
    ----------
    records : sequence of dict
        Results of `rbfdiffnet.experiments.m5.run_series`.

    Returns
    -------
    str
        Mean RMSSE for each seed, and the p-value of Wilcoxon's signed-rank test against
        RBF-DiffNet trained from the same seed; empty without results from several seeds.

    Examples
    --------
    >>> from rbfdiffnet.experiments.evidence import seed_evidence
    >>> run = {"series": "CA_1_FOODS", "model": "u-RBFN", "rmsse_by_seed": [0.5, 0.7]}
    >>> print(seed_evidence([run]))
    One seed at a time: mean RMSSE (p-value against RBF-DiffNet)
       u-RBFN          0.500  0.700
    """
    from scipy.stats import wilcoxon

    by_model: dict[str, dict[str, list[float]]] = {}
    for record in records:
        if len(record.get("rmsse_by_seed", ())) > 1:
            by_model.setdefault(record["model"], {})[record["series"]] = record["rmsse_by_seed"]
    lines = []
    for model, errors in by_model.items():
        ours = by_model.get("RBF-DiffNet", {})
        both = [name for name in errors if name in ours] if model != "RBF-DiffNet" else []
        cells = []
        for seed, mean in enumerate(np.mean(list(errors.values()), axis=0)):
            cells.append(f"  {mean:.3f}")
            if len(both) > 1:
                x, y = (np.array([e[name][seed] for name in both]) for e in (ours, errors))
                cells[-1] += f" ({wilcoxon(x, y).pvalue:.1e})"
        lines.append(f"   {model:<14}{''.join(cells)}")
    title = "One seed at a time: mean RMSSE (p-value against RBF-DiffNet)"
    return "\n".join([title, *lines]) if lines else ""

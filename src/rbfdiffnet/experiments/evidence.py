"""Where the paper's text and its numbers disagree, and what decides: what needs no data.

Each function runs what it takes and returns the evidence as text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rbfdiffnet.experiments.logistic import LOGISTIC_MODELS, make_cell
from rbfdiffnet.experiments.paper_tables import paper_mae
from rbfdiffnet.experiments.runner import Task

__all__ = ["evidence_tasks", "noise_evidence", "ridge_evidence"]

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
    from rbfdiffnet.network.basis import squared_distances

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


def evidence_tasks(n_seeds: int = 3) -> list[Task]:
    """List what is to be run for the evidence that needs no data: the noise, and the closed form.

    Parameters
    ----------
    n_seeds : int, default=3
        Seeds to average over.

    Returns
    -------
    list of Task
        A result is a dict with the evidence as ``text``.

    Examples
    --------
    >>> from rbfdiffnet.experiments.evidence import evidence_tasks
    >>> [task.key for task in evidence_tasks()]
    ['1. noise, 3 seeds', '3. closed form']
    """
    return [
        Task(f"1. noise, {n_seeds} seeds", "noise", _noise_record, (n_seeds,)),
        Task("3. closed form", "closed form", _ridge_record, ()),
    ]


def _noise_record(n_seeds: int) -> dict[str, Any]:
    return {"text": noise_evidence(n_seeds)}


def _ridge_record() -> dict[str, Any]:
    return {"text": ridge_evidence()}

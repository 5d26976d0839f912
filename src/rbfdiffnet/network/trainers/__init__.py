"""Trainers: each minimizes one and the same `Objective` over the weights of a network.

To add one, write `minimize(objective, start, *, max_iter, tol)` and give it a name in `SOLVERS`.
"""

from __future__ import annotations

from collections.abc import Callable

from rbfdiffnet.network.objective import Solution
from rbfdiffnet.network.trainers import als, bfgs, varpro

#: The trainers by name, each with its usual limit of iterations.
SOLVERS: dict[str, tuple[Callable[..., Solution], int]] = {
    "varpro": (varpro.minimize, 300),
    "als": (als.minimize, 2000),
    "bfgs": (bfgs.minimize, 3000),
}

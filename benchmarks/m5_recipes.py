"""Recipes for M5 on days before the test days: ``python benchmarks/m5_recipes.py --data DIR``.

Nine times the series is cut off at an earlier day, and the 28 days that follow are forecast. The
last of these windows ends on d_1913, the day before the test days begin.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from rbfdiffnet.datasets.m5 import load_m5_level8
from rbfdiffnet.evaluation.metrics import rmsse_score
from rbfdiffnet.experiments.m5 import (
    HORIZON,
    M5_MODELS,
    Forecaster,
    fill_closures,
    fit_plus,
    fit_recursive,
)

Array = npt.NDArray[np.float64]

#: Last training days.
ENDS = (1549, 1577, 1605, 1717, 1773, 1801, 1829, 1857, 1885)


def _recursive(train: Array, seed: int, **settings: object) -> Forecaster:
    """Recurse as the paper does, on the filled series, with another network."""
    from rbfdiffnet import RBFDiffNetRegressor

    model = RBFDiffNetRegressor(random_state=seed, **settings)  # type: ignore[arg-type]
    return fit_recursive(fill_closures(train), lambda X, y: [model.fit(X, y)])


#: Name of the recipe -> function of the training series and the seed that trains it.
CANDIDATES: dict[str, Callable[[Array, int], Forecaster]] = {
    "paper": M5_MODELS["RBF-DiffNet"],
    "paper, closures filled": lambda train, seed: M5_MODELS["RBF-DiffNet"](
        fill_closures(train), seed
    ),
    "recursive, width 4, ridge 1e-4": lambda train, seed: _recursive(
        train, seed, metric="standard", width_factor=4.0, alpha=1e-4, loss="squared"
    ),
    "recursive, width 4, ridge 1e-4, Huber": lambda train, seed: _recursive(
        train, seed, metric="standard", width_factor=4.0, alpha=1e-4, loss="huber"
    ),
    "direct, width 4, ridge 1e-3": lambda train, seed: fit_plus(
        train, seed, width_factor=4.0, alpha=1e-3
    ),
    "direct, width 4, ridge 1e-2": lambda train, seed: fit_plus(train, seed, width_factor=4.0),
    "direct, width 2, ridge 1e-2 (chosen)": lambda train, seed: fit_plus(train, seed),
    "  with closures": lambda train, seed: fit_plus(train, seed, fill=False),
    "  with the series' mean as level": lambda train, seed: fit_plus(
        train, seed, local_level=False
    ),
}


def rolling_errors(
    fit: Callable[[Array, int], Forecaster], values: Array, ends: Sequence[int] = ENDS
) -> Array:
    """Return the RMSSE of a recipe by window and series; ``values`` has shape (T, n)."""
    return np.array(
        [
            [
                rmsse_score(s[end : end + HORIZON], fit(s[:end], 0)(HORIZON), s[:end])
                for s in values.T
            ]
            for end in ends
        ]
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print the mean RMSSE of every recipe, over all windows and in each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="as for rbfdiffnet reproduce m5")
    values = load_m5_level8(parser.parse_args(argv).data).to_numpy()[: ENDS[-1] + HORIZON]
    print(f"{'recipe':<38}  mean  " + "".join(f"  d_{end}" for end in ENDS) + "   ms a fit")
    for name, fit in CANDIDATES.items():
        start = time.perf_counter()
        errors = rolling_errors(fit, values)
        milliseconds = 1e3 * (time.perf_counter() - start) / errors.size
        windows = "".join(f"  {error:6.3f}" for error in errors.mean(axis=1))
        print(f"{name:<38}  {errors.mean():.4f}{windows}   {milliseconds:.0f}", flush=True)


if __name__ == "__main__":
    main()

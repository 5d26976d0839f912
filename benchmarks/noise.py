"""Forecasts of noisy chaotic series: ``python benchmarks/noise.py --out DIR``.

The logistic map, the Hénon map, Mackey and Glass's equation and Lorenz's, 1,000 values each, with
noise of 0 to 40 % of their standard deviation on every value; 2, 4 or 8 lags; 900 values to learn
from. Methods are compared in three tasks (``noise_parts/tasks.py``): the learned map on clean
values, on noisy values, and 20 steps ahead of a noisy history.

Rows go to ``noise_cells.csv`` in DIR one by one, and rows that are there are not computed again: a
run can be stopped and resumed, and a method added later. At the end tables about all methods, and
about the one named by ``--about``, are printed. Everything runs on one BLAS thread.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

from shared_parts.threads import one_thread


def main(arguments: Sequence[str] | None = None) -> None:
    one_thread()  # before NumPy is imported
    options = parse(arguments)
    from noise_parts import summary
    from noise_parts.methods import METHODS
    from noise_parts.runner import run

    methods = {name: METHODS[name] for name in options.methods}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those about trainings that stop at their limit
        seeds = range(options.first, options.first + options.seeds)
        run(methods, options.systems, seeds, options.out, lags=options.lags)
    for table in summary.report(summary.read(options.out), options.about):
        print(f"\n{table}", flush=True)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    from noise_parts.data import LAGS, SYSTEMS
    from noise_parts.methods import METHODS, OURS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS), metavar="M")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--lags", nargs="+", type=int, choices=LAGS, default=LAGS)
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--about", choices=METHODS, default=OURS, help="method of the tables")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

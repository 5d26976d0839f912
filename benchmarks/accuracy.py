"""Forecasts of real series, ours and others': ``python benchmarks/accuracy.py --out DIR``.

====================  ==========================================================================
suite                 m1_yearly, m1_quarterly, m1_monthly, hospital, electricity_weekly, us_births
                      of the Monash archive, and fourteen more public sets (parts of M4, NNGC1,
                      prescriptions, half-hourly and hourly demand, exchange rates, COVID-19
                      deaths), with their published test parts: mean MASE
m5_level8             M5's 30 series of stores and categories, 28 days after d_1913: mean RMSSE
m5_level8_r9          the same in nine windows before; ``m5_level8_r9_calendar`` and
                      ``m5_level8_calendar`` with days of the week, of the month, months, events,
                      their eves and SNAP days
m5_level9, m5_bottom  70 series of stores and departments, 1,000 of items and stores: three windows
====================  ==========================================================================

Rows go to ``accuracy.csv`` in DIR one by one, and rows that are there are not computed again: a run
can be stopped and resumed, and methods and data sets added later. A method that fails is reported,
and the others go on. At the end tables of all rows are printed. Everything runs on one thread.

``--suite`` names a folder of ``NAME_train.parquet`` and ``NAME_test.parquet`` (``unique_id, ds,
y``), ``--m5`` one with ``level8.csv.gz``, ``level9.csv.gz``, ``bottom_1000.csv.gz`` and
``calendar.csv``; without them, RBFDIFFNET_SUITE and RBFDIFFNET_M5 of the environment do.
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
    from accuracy_parts import summary
    from accuracy_parts.data import data_sets, folder
    from accuracy_parts.methods import METHODS
    from accuracy_parts.runner import run

    every = data_sets(folder(options.suite, "suite"), folder(options.m5, "m5"))
    chosen = [every[name] for name in options.data]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of rivals about series they find hard
        failures = run({name: METHODS[name] for name in options.methods}, chosen, options.out)
    for table in summary.report(summary.read(options.out), every):
        print(f"\n{table}", flush=True)
    if failures:
        print("\nnot computed:", *failures, sep="\n  ", flush=True)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    from accuracy_parts.data import NAMES
    from accuracy_parts.methods import METHODS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS), metavar="M")
    parser.add_argument("--data", nargs="+", choices=NAMES, default=NAMES, metavar="D")
    parser.add_argument("--suite", type=Path, help="folder with the archive's series")
    parser.add_argument("--m5", type=Path, help="folder with M5's files")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

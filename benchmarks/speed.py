"""How fast, how accurate, how large: ``python benchmarks/speed.py --m5 DIR --out DIR``.

=========  ========================================================================================
peers      ours beside statsforecast and LightGBM: 28 days of M5's level 8 (with errors, MLP and
           LSTM), one series of 144 months, 366 of 300 months, 5,000 of 400 days
trainers   one fit the paper's way, its authors' way and ours
unit       the whole job for one series, in units of a matrix product
scaling    time against series, length, lags and centers; memory; two threads against one
bottom     all 30,490 item-by-store series
=========  ========================================================================================

Everything runs on one core and one BLAS thread, except where two threads are the subject (the last
table of ``scaling``, and ``bottom``). Without M5's files the series are made up. ``--out`` writes
``speed_*.csv`` and draws ``speed.png`` from all of those it finds there, so that parts can be run
one at a time.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from shared_parts.threads import one_thread

PARTS = ("peers", "trainers", "unit", "scaling", "bottom")
JOBS = ("m5", "one", "months", "days")  # of the peers


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--m5", type=Path, help="folder with level8.csv.gz and the bottom level")
    parser.add_argument("--out", type=Path, help="folder for tables and plot")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument(
        "--jobs", nargs="+", choices=JOBS, default=JOBS, metavar="JOB", help="of the peers"
    )
    parser.add_argument("--arima-series", type=int, default=6, help="on how many AutoARIMA runs")
    parser.add_argument("--mlp-series", type=int, default=6, help="on how many the MLPs run")
    parser.add_argument("--lstm-series", type=int, default=1, help="on how many the LSTMs run")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    one_thread()  # before NumPy is imported
    from speed_parts import data, timing

    options.m5 = data.m5_folder(options.m5)
    options.cores = timing.cores()
    print(timing.machine(), flush=True)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    with timing.on_cores({max(options.cores)}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other libraries about themselves
        for part in options.only:
            for table in import_module(f"speed_parts.{part}").run(options):
                print(f"\n{table}", flush=True)
                if options.out:
                    table.write(options.out)
    if options.out:
        from speed_parts.plot import draw

        draw(options.out, timing.machine().splitlines()[0])


if __name__ == "__main__":
    main()

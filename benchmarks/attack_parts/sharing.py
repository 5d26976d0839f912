"""Threads, memory and interruptions."""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
from children import finished, forked

from attack_parts.registry import SETTINGS, Cases, Group, refused
from panels import make_panel
from rbfdiffnet import RBFDiffNet

GROUP = Group("sharing", "Threads, memory and time")
promise = GROUP.promise


@promise(
    "A fitted model is read-only: threads that forecast different horizons have the right numbers",
    "reliability.md",
    "eight threads, 15 horizons in random order each, in four settings; series of 60 and 6 values",
)
def threads(cases: Cases) -> None:
    for name, parameters in SETTINGS.items():
        for n in (60, 6):
            model = RBFDiffNet("D", **parameters).fit(make_panel("ab", n=n))
            alone = RBFDiffNet("D", **parameters).fit(make_panel("ab", n=n))
            expected = {h: alone.predict(h, level=[80]) for h in range(1, 16)}
            orders = [cases.rng.permutation(15) + 1 for _ in range(8)]

            def work(order, model=model):
                return [(int(h), _outcome(model, int(h))) for h in order]

            with ThreadPoolExecutor(8) as pool:
                found = [pair for pairs in pool.map(work, orders) for pair in pairs]
            for h, outcome in found:
                with cases(f"h={h}, {n} values, {name}"):
                    if isinstance(outcome, Exception):
                        raise outcome
                    pd.testing.assert_frame_equal(outcome, expected[h], check_exact=True)


def _outcome(model: RBFDiffNet, h: int) -> pd.DataFrame | Exception:
    try:
        return model.predict(h, level=[80])
    except Exception as error:
        return error


@promise(
    "Models may be fitted in threads beside each other",
    "reliability.md",
    "eight threads that fit and forecast panels of their own, in four settings",
)
def fits_in_threads(cases: Cases) -> None:
    panels = [make_panel("ab", n=60, seed=k) for k in range(8)]
    for name, parameters in SETTINGS.items():

        def work(df, parameters=parameters):
            return RBFDiffNet("D", **parameters).fit(df).predict(4, level=[80])

        expected = [work(df) for df in panels]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(work, panels))
        for k, (one, other) in enumerate(zip(found, expected, strict=True)):
            with cases(f"panel {k}, {name}"):
                pd.testing.assert_frame_equal(one, other, check_exact=True)


@promise(
    "A long horizon takes memory in proportion: below 1 GB for 5,000 steps of 3 series",
    "reliability.md",
    "series of 90 values in a process of its own, without intervals and with two, in four settings",
)
def long_horizons(cases: Cases) -> None:
    df = make_panel("abc", n=90)
    for name, parameters in SETTINGS.items():
        for level in (None, [80, 95]):
            with cases(f"{name}, level={level}"):

                def work(parameters=parameters, level=level):
                    found = RBFDiffNet("D", **parameters).forecast(df, 5000, level=level)
                    return 0 if np.isfinite(found.iloc[:, 2:].to_numpy()).all() else 3

                taken, code = _watch(work, 2**30, 300.0)
                assert code == 0, f"it ended with {code}"
                assert taken < 2**30, f"{taken / 2**30:.2f} GB"


def _watch(work, most: int, seconds: float) -> tuple[int, int]:
    """Run work in a process; return the most memory beside that at its start, and the exit code.

    A process that takes more than `most` bytes, or longer, is ended.
    """
    log = Path(os.devnull)
    number = forked(work, log)
    child, began = psutil.Process(number), time.monotonic()
    start = largest = child.memory_info().rss
    while child.status() != psutil.STATUS_ZOMBIE:
        largest = max(largest, child.memory_info().rss)
        if largest - start > most or time.monotonic() - began > seconds:
            child.kill()
            why = "more memory" if largest - start > most else f"more than {seconds:g} s"
            finished(number)
            raise AssertionError(f"{why}: {(largest - start) / 2**30:.2f} GB taken")
        time.sleep(0.02)
    return largest - start, finished(number)


@promise(
    "Memory stays constant over many fits, files and forecasts, and no thread or file is left open",
    "reliability.md",
    "25 fits with a file and a forecast each, after 8 others, in four settings: less than 25 MB",
)
def memory_over_many_fits(cases: Cases) -> None:
    df, here = make_panel("abc", n=60), psutil.Process()
    for name, parameters in SETTINGS.items():
        with cases(name):
            seen = []
            for nights in (8, 25):
                for _ in range(nights):
                    with tempfile.TemporaryDirectory() as folder:
                        path = Path(folder, "model.npz")
                        RBFDiffNet("D", **parameters).fit(df).save(path)
                        RBFDiffNet.load(path).predict(7, level=[80])
                seen.append((here.memory_info().rss, here.num_threads(), here.num_fds()))
            before, after = seen
            grown = (after[0] - before[0]) / 1e6
            assert grown < 25.0, f"{grown:.0f} MB more"
            assert after[1:] == before[1:], f"threads and files: {before[1:]}, then {after[1:]}"


@promise(
    "Forecasts and backtests do not depend on `memory_limit`",
    "reliability.md",
    "pieces of five series and of fewer, in seven settings: the same bits, those of the default "
    'and of `preset="instant"` to 1e-9',
)
def pieces_of_panels(cases: Cases) -> None:
    cases.tests("forecasting/test_chunks.py::test_chunks_change_nothing")
    name = "test_forecasts_made_chunk_by_chunk_are_those_of_a_fitted_model"
    cases.tests(f"models/stack/test_stack_large_panels.py::{name}")


@promise(
    "`memory_limit` is a size of at least 1 GB, or refused",
    "reliability.md",
    "sizes in words and bytes, right and wrong ones",
)
def memory_limits(cases: Cases) -> None:
    for limit in ("2GB", "1.5 gb", 3 * 10**9, "4000M", "1TB"):
        with cases(limit):
            RBFDiffNet("D", memory_limit=limit)
    for limit in ("much", "", None, True, -1, "2XB", np.nan, "0.5GB", 10**8, "2GiB", "9" * 400):
        with cases(f"{limit!r:.20}"):
            refused(lambda own=limit: RBFDiffNet("D", memory_limit=own), "memory_limit")


@promise(
    "Ctrl-C ends any call from Python within seconds, with all threads; files are whole",
    "forecaster.md",
    "seven long calls, with one thread and two, stopped at a random moment",
)
def interrupts(cases: Cases) -> None:
    from stopping import check_interrupts

    with cases("all"), tempfile.TemporaryDirectory() as folder:
        took = check_interrupts(Path(folder), 1, cases.seed)
        cases.add(sum(map(len, took.values())) - 1)

"""Threads keep the order of what they are given, and end when nobody waits for them any more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import threadpoolctl

from rbfdiffnet.support.parallel import parallel_map
from rbfdiffnet.support.progress import progress_between, report_progress, watch_progress


@pytest.mark.parametrize("n_jobs", [1, 2, 8, -1])
def test_the_order_is_kept_and_there_is_one_blas_thread(n_jobs):
    def work(i):
        blas = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
        return i * i, {pool["num_threads"] for pool in blas}

    results = parallel_map(work, range(20), n_jobs)
    assert [r[0] for r in results] == [i * i for i in range(20)]
    assert all(r[1] <= {1} for r in results)
    assert parallel_map(work, [], n_jobs) == []


def test_errors_are_passed_on_and_threads_restored():
    before = threadpoolctl.threadpool_info()
    with pytest.raises(ZeroDivisionError):
        parallel_map(lambda x: 1 / x, [1, 0, 2], n_jobs=2)
    assert threadpoolctl.threadpool_info() == before


def patiently(finished):
    """Work for ten seconds, reporting progress."""
    for k in range(1000):
        report_progress(k / 1000)
        time.sleep(0.01)
    finished.append(1)


@pytest.mark.parametrize("nested", [False, True])
def test_an_error_ends_what_others_work_at(nested):
    begun, finished, before = [], [], threading.active_count()

    def work(i):
        begun.append(i)
        while len(begun) < 2:
            time.sleep(0.001)
        if i == 0:
            raise ValueError("no good")
        if nested:
            parallel_map(lambda _: patiently(finished), range(3), n_jobs=2)
        patiently(finished)

    with pytest.raises(ValueError, match="no good"):
        parallel_map(work, range(1000), n_jobs=2)
    assert finished == []
    assert len(begun) <= 3
    assert threading.active_count() == before


def test_an_error_inside_that_is_handled_ends_nothing_outside():
    def inner(i):
        if i == 0:
            raise ValueError("no good")
        return i

    def work(i):
        try:
            return parallel_map(inner, [i, 5], n_jobs=2)
        except ValueError:
            return []

    assert parallel_map(work, range(4), n_jobs=2) == [[], [1, 5], [2, 5], [3, 5]]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_shares_of_items_add_up(n_jobs):
    def work(i):
        report_progress(0.5)
        return i

    heard = []
    with watch_progress(heard.append), progress_between(0.5, 1.0):
        assert parallel_map(work, range(50), n_jobs, reports=True) == list(range(50))
    assert heard == pytest.approx([0.5 + 0.005 * k for k in range(1, 101)])
    heard.clear()
    with watch_progress(heard.append):
        parallel_map(work, range(50), n_jobs)
    assert heard == []


SLEEPY = """
import signal, threading, time
from rbfdiffnet.support.parallel import parallel_map
begun = []
def work(i):
    if i == 0:
        print("working", flush=True)
    begun.append(i)
    time.sleep(0.05)
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
try:
    parallel_map(work, range(10_000), {n_jobs})
except KeyboardInterrupt:
    until = time.monotonic() + 1.0  # a thread that was just starting ends by itself
    while threading.active_count() > 1 and time.monotonic() < until:
        time.sleep(0.01)
    print(len(begun) < 5_000, threading.active_count())
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_leaves_the_rest_undone(n_jobs):
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPY.format(n_jobs=n_jobs)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "working\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "True 1\n"

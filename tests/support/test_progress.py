"""Whoever watches hears how much is done."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet, RBFDiffNetRegressor, forecaster
from rbfdiffnet.datasets import logistic_map
from rbfdiffnet.forecasting import backtest
from rbfdiffnet.models import sampled
from rbfdiffnet.support.progress import (
    ProgressLine,
    expect_seconds,
    progress_between,
    report_progress,
    watch_progress,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def wait_for(stream, text):
    until = time.monotonic() + 10.0
    while text not in stream.getvalue() and time.monotonic() < until:
        time.sleep(0.01)


def test_nobody_needs_to_watch():
    heard = []
    with progress_between(0.0, 0.5):
        report_progress(1.0)
        with watch_progress(heard.append):
            report_progress(1.0)  # of the whole, since nobody watched the part
    assert heard == [1.0]


def test_shares_of_shares():
    heard = []
    with watch_progress(heard.append):
        with progress_between(0.5, 1.0), progress_between(0.0, 0.5):
            report_progress(0.5)
        report_progress(1.0)
    report_progress(0.1)
    assert heard == [0.625, 1.0]


@pytest.mark.parametrize("most", [1000, 3])
def test_a_stack_tells_how_far_it_is(rng, monkeypatch, most):
    monkeypatch.setattr(sampled, "MOST_LEARNED_FROM", most)
    monkeypatch.setattr(sampled, "_LARGEST_CHUNK", 60)
    ds = pd.date_range("2020-01-01", periods=30, freq="MS")
    names = [f"s{i}" for i in range(8)]
    frames = [pd.DataFrame({"unique_id": k, "ds": ds, "y": rng.normal(size=30)}) for k in names]
    heard = []
    with watch_progress(heard.append):
        RBFDiffNet("MS").cross_validation(pd.concat(frames), 3, n_windows=2, level=[80])
    assert len(heard) >= 4
    assert (np.diff(heard) >= 0.0).all()
    assert heard[-1] == pytest.approx(1.0)


def test_progress_line_on_a_terminal():
    stream = Terminal()
    with ProgressLine(stream=stream) as progress:
        progress.update("Forecasting", 50, 200)
        wait_for(stream, "series/s")
    assert "Forecasting  50 of 200 series  25 %" in stream.getvalue()
    assert " left" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
    for quiet, shown in ((True, Terminal()), (False, io.StringIO())):
        with ProgressLine(quiet=quiet, stream=shown) as progress:
            progress.update("Forecasting", 50, 200)
            time.sleep(0.3)
        assert shown.getvalue() == ""


def test_a_call_that_will_take_long_says_so_beforehand():
    for stream, text in ((Terminal(), "This will take about 5 min.\n"), (io.StringIO(), "")):
        with ProgressLine(stream=stream, delay=60.0):
            expect_seconds(59.0)
            assert stream.getvalue() == ""
            expect_seconds(290.0)
            assert stream.getvalue().removeprefix("\r\x1b[K") == text
    with ProgressLine(stream=(quiet := Terminal()), quiet=True):
        expect_seconds(290.0)
    assert quiet.getvalue() == ""
    expect_seconds(290.0)  # nobody watches


@pytest.mark.parametrize("settings", [{}, {"preset": "fast"}, {"scope": "local"}], ids=str)
def test_estimates_grow_with_values_steps_and_windows(monkeypatch, settings):
    heard = []
    for module in (forecaster, backtest):
        monkeypatch.setattr(module, "expect_seconds", heard.append)
    days = pd.date_range("2024-01-01", periods=40)
    df = pd.DataFrame({"unique_id": "a", "ds": days, "y": np.arange(40.0) % 7})
    model = RBFDiffNet("D", **settings)
    model.forecast(df[:20], 2)
    model.forecast(df, 2)
    model.forecast(df, 9)
    model.cross_validation(df, 9, n_windows=2)
    assert heard == sorted(set(heard))
    assert heard[3] == pytest.approx(2.0 * heard[2])
    model.fit(df).predict(9)  # together as long as `forecast`
    assert sum(heard[4:]) == pytest.approx(heard[2])


def test_a_cleared_line_stays_away_until_the_next_update():
    stream = Terminal()
    with ProgressLine(stream=stream) as progress:
        progress.update("Forecasting", 50, 200)
        wait_for(stream, "Forecasting")
        progress.clear()
        time.sleep(0.3)
        assert stream.getvalue().endswith("\r\x1b[K")


def test_a_log_has_lines_now_and_then_and_the_last():
    stream = io.StringIO()
    with ProgressLine(stream=stream, log_every=1000.0) as progress:
        for done in range(1, 4):
            progress.update("Running", done, 3, "tasks", seconds_left=60.0 * (3 - done))
    lines = stream.getvalue().splitlines()
    assert lines[-1] == "Running  3 of 3 tasks  100 %  0 s left"
    assert len(lines) <= 2


def test_times_left_in_words():
    progress = ProgressLine(quiet=True)
    progress.update("Reading")
    assert progress.line(progress.began + 3.0) == "Reading  3 s"
    with progress:
        report_progress(0.25)
    assert progress.line(progress.began + 3.0) == "Reading  25 %  9 s left"
    progress.update("Forecasting", 0.5, 1)
    assert progress.line(progress.began + 3.0) == "Forecasting  50 %  3 s left"
    progress.update("Forecasting", 1, 1001)
    assert progress.line(progress.began + 1.0).endswith("1.0 series/s  17 min left")
    assert progress.line(progress.began + 10.0).endswith("0.1 series/s  2.8 h left")
    assert np.isfinite(progress.began)


def test_a_line_that_was_never_shown_leaves_nothing():
    stream = Terminal()
    with ProgressLine(stream=stream, delay=60.0) as progress:
        progress.update("Forecasting")
        progress.wipe()
    assert stream.getvalue() == ""


def test_a_terminal_that_is_gone_does_no_harm():
    class Gone(Terminal):
        def write(self, _):
            tried.append(1)
            raise OSError(5, "Input/output error")

    tried = []
    with ProgressLine(stream=Gone(), delay=0.0) as progress:
        progress.update("Forecasting")
        until = time.monotonic() + 10.0
        while not tried and time.monotonic() < until:
            time.sleep(0.01)
    assert tried


FAST = RBFDiffNetRegressor(n_centers=4, loss="huber")  # which has no sufficient statistics
CHAOS = logistic_map(160) + 0.05 * np.random.default_rng(0).normal(size=160)
CALLS = {
    "local": lambda df: RBFDiffNet(1, scope="local").fit(df),
    "local, two threads": lambda df: RBFDiffNet(1, scope="local", n_jobs=2).forecast(df, 3),
    "local, windows": lambda df: RBFDiffNet(1, scope="local").cross_validation(
        df, 3, 2, level=[80]
    ),
    "global": lambda df: RBFDiffNet(1, scope="global").forecast(df, 3, level=[80]),
    "global, weights": lambda df: RBFDiffNet(1, scope="global", regressor=FAST).fit(df),
    "noise": lambda df: RBFDiffNet(1, noise="auto", lags=2).forecast(df[:160], 3, level=[80]),
    "equation": lambda df: RBFDiffNet(1).fit(df).equation(),
}


@pytest.mark.parametrize("call", CALLS)
def test_networks_tell_how_far_they_are(call):
    parts = [{"unique_id": name, "ds": np.arange(160), "y": CHAOS} for name in "abc"]
    heard = []
    with watch_progress(heard.append):
        CALLS[call](pd.concat(map(pd.DataFrame, parts)))
    assert len(np.unique(heard)) >= 3
    assert (np.diff(heard) >= 0.0).all()
    assert 0.9 < heard[-1] <= 1.0


SLOW = """
import multiprocessing, os, sys, threading, time
import numpy as np, pandas as pd
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.cli import main
from rbfdiffnet.models.networks import local
from rbfdiffnet.support import progress
plain = local.fit_local
def slowly(*arguments):
    time.sleep(0.05)
    return plain(*arguments)
local.fit_local = slowly
progress._SOON = 0.2
dates = pd.date_range("2024-01-01", periods=40)
df = pd.concat([pd.DataFrame({"unique_id": f"s{k}", "ds": dates, "y": np.sin(np.arange(40.0) + k)})
                for k in range(8)])
def fit(n_jobs=2):
    RBFDiffNet("D", scope="local", n_jobs=n_jobs).fit(df)
def run(kind):
    worker = kind(target=fit)
    worker.start()
    worker.join()
if __name__ == "__main__":
    exec(sys.argv[1])
"""
UNSEEN = """
run(threading.Thread)
run(multiprocessing.Process)
main(["explain", "--horizon", "2", "--scope", "local", "--quiet"])
stderr, sys.stderr = sys.stderr, None
fit()
sys.stderr = stderr
progress._SOON = 60.0  # it is done before
fit()
progress._SOON = 0.2
os.environ["RBFDIFFNET_PROGRESS"] = "0"
fit()
main(["explain", "--horizon", "2", "--scope", "local"])
"""
EVALUATE = """
df[df["unique_id"] == "s1"].to_csv("one.csv", index=False)
main("evaluate one.csv --horizon 2 --windows 9 --scope local --rival-seconds 0".split())
"""


def run_slowly(tmp_path, work, *, terminal=True):
    """Return what a program writes to standard output and, a terminal or not, standard error."""
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    reading, writing = os.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        [sys.executable, script, work],
        stdout=subprocess.PIPE,
        stderr=writing,
        text=True,
        cwd=tmp_path,
    )
    os.close(writing)
    said = b""
    with suppress(OSError):  # how a terminal ends
        while more := os.read(reading, 1000):
            said += more
    os.close(reading)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return out, said.decode()


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_calls_from_python_show_progress_on_a_terminal(tmp_path, n_jobs):
    out, said = run_slowly(tmp_path, f"fit({n_jobs})")
    shares = [int(share) for share in re.findall(r"Fitting  (\d+) %", said)]
    assert shares == sorted(shares)
    assert 0 < shares[-1] <= 100
    assert said.endswith("\r\x1b[K")
    assert out == ""


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
@pytest.mark.parametrize(("work", "terminal"), [("fit()", False), (UNSEEN, True)])
def test_nothing_is_shown_elsewhere(tmp_path, work, terminal):
    assert run_slowly(tmp_path, work, terminal=terminal)[1] == ""


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_commands_show_one_line(tmp_path):
    _, said = run_slowly(tmp_path, EVALUATE)
    assert re.search(r"Backtesting  [1-9]\d? %  \d+ s left", said)  # of a single series
    assert "Fitting" not in said
    assert said.endswith("\r\x1b[K")

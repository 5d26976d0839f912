"""Whoever watches hears how much is done."""

from __future__ import annotations

import io
import time

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models import sampled
from rbfdiffnet.support.progress import (
    ProgressLine,
    progress_between,
    report_progress,
    watch_progress,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


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
        until = time.monotonic() + 10.0
        while "series/s" not in stream.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert "Forecasting  50 of 200 series  25 %" in stream.getvalue()
    assert " left" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
    for quiet, shown in ((True, Terminal()), (False, io.StringIO())):
        with ProgressLine(quiet=quiet, stream=shown) as progress:
            progress.update("Forecasting", 50, 200)
            time.sleep(0.3)
        assert shown.getvalue() == ""


def test_a_cleared_line_stays_away_until_the_next_update():
    stream = Terminal()
    with ProgressLine(stream=stream) as progress:
        progress.update("Forecasting", 50, 200)
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
    progress.update("Forecasting", 1, 1001)
    assert progress.line(progress.began + 1.0).endswith("1.0 series/s  17 min left")
    assert progress.line(progress.began + 10.0).endswith("0.1 series/s  2.8 h left")
    assert np.isfinite(progress.began)

"""Frames for reports, and reports read back by other means than the page's script."""

import base64
import gzip
import json
import re

import numpy as np
import pandas as pd

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import daily_demand
from rbfdiffnet.report import write_report


def frames(n_series=3, n_days=60, h=7, n_windows=2, level=(80,), seed=0):
    """History, forecasts and backtest of series with a week, with known random errors."""
    rng = np.random.default_rng(seed)
    ids = [f"item {i}" for i in range(n_series)]
    days = pd.date_range("2024-01-01", periods=n_days + h)
    week = 10 + 3 * np.sin(2 * np.pi * np.arange(n_days + h) / 7)
    y = np.round(
        week * np.arange(1, n_series + 1)[:, None] + rng.normal(size=(n_series, len(days))), 2
    )

    def forecast(start, **more):
        part = slice(start, start + h)
        point = y[:, part] + rng.normal(size=(n_series, h))
        columns = {"RBFDiffNet": point.ravel()}
        for value in level:
            width = value / 60
            columns[f"RBFDiffNet-lo-{value}"] = point.ravel() - width
            columns[f"RBFDiffNet-hi-{value}"] = point.ravel() + width
        keys = {"unique_id": np.repeat(ids, h), "ds": np.tile(days[part], n_series)}
        return pd.DataFrame({**keys, **more, **columns})

    history = pd.DataFrame(
        {
            "unique_id": np.repeat(ids, n_days),
            "ds": np.tile(days[:n_days], n_series),
            "y": y[:, :n_days].ravel(),
        }
    )
    windows = []
    for window in range(n_windows):
        start = n_days - h * (n_windows - window)
        actual = y[:, start : start + h].ravel()
        windows.append(forecast(start, cutoff=days[start - 1], y=actual))
    return history, forecast(n_days), pd.concat(windows, ignore_index=True)


class Report:
    """What is in a file: facts, and numbers by their names."""

    def __init__(self, path):
        self.html = path.read_text(encoding="utf-8")
        self.facts = json.loads(self._script('type="application/json" id="facts"'))
        self._bytes = gzip.decompress(
            base64.b64decode(self._script('type="text/plain" id="numbers"'))
        )

    def _script(self, attributes):
        return re.search(f"<script {attributes}>(.*?)</script>", self.html, re.DOTALL).group(1)

    def numbers(self, name):
        kind, start, count = self.facts["sections"][name]
        if kind == "doubles":
            return np.frombuffer(self._bytes, "<f8", count, start)
        width = {"floats": 3, "singles": 4, "counts": 4}[kind]
        planes = np.frombuffer(self._bytes, np.uint8, width * count, start).reshape(width, count)
        bits = sum(plane.astype(np.uint32) << (24 - 8 * k) for k, plane in enumerate(planes))
        return bits if kind == "counts" else bits.astype(np.uint32).view(np.float32)

    def table(self, name):
        """A frame of rows: id, time (and cutoff) as on the page, and all columns."""
        rows, axis, base = (self.numbers(n) for n in (f"{name}/rows", "axis", "base"))
        series = np.repeat(np.arange(len(rows)), rows)
        columns = {"unique_id": np.array(self.facts["ids"])[series]}
        for key, column in (("step", "ds"), ("cutoff", "cutoff")):
            if f"{name}/{key}" in self.facts["sections"]:
                steps = self.numbers(f"{name}/{key}").astype(np.int64)
                places = [np.cumsum(part) for part in np.split(steps, np.cumsum(rows)[:-1])]
                columns[column] = axis[np.concatenate(places) % 2**32]
        for section in self.facts["sections"]:
            if section.startswith(f"{name}:"):
                columns[section.split(":", 1)[1]] = self.numbers(section) + base[series]
        frame = pd.DataFrame(columns)
        if self.facts["dates"]:
            for column in frame.columns.intersection(["ds", "cutoff"]):
                frame[column] = pd.to_datetime(frame[column], unit="ms")
        return frame


def demand_model(n_series, n_days):
    """Series, one of them too short for a network, and a model of them."""
    df = daily_demand(n_series=n_series, n_days=n_days).drop(columns="promotion")
    short = pd.DataFrame({"unique_id": "new", "ds": df["ds"].max(), "y": [4.0]})
    df = pd.concat([df, short], ignore_index=True)
    return df, RBFDiffNet(freq="D", scope="local", lower=0, lags=7).fit(df)


def written(tmp_path, *args, **kwargs):
    """The report of frames, written and read back."""
    path = tmp_path / "report.html"
    write_report(path, *args, **kwargs)
    return Report(path)


def assert_close(found, expected, columns):
    """Check that a table of a report has the numbers of a frame."""
    keys = [c for c in ("unique_id", "ds", "cutoff") if c in expected]
    expected = expected.sort_values(["unique_id", *keys[:0:-1]]).reset_index(drop=True)
    for key in keys:
        assert (found[key].to_numpy() == expected[key].to_numpy()).all()
    for column in columns:
        # Three bytes of a 32-bit float.
        np.testing.assert_allclose(found[column], expected[column], rtol=2.0**-16)

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rbfdiffnet.datasets import load_air_passengers
from rbfdiffnet.evaluation.metrics import evaluate_quantiles
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.report.plots import (
    plot_anomalies,
    plot_calibration,
    plot_coverage,
    plot_forecast,
    plot_operator,
    plot_panel,
    plot_paths,
)
from report_files import frames


def test_plot_forecast_draws_history_forecast_and_band(tmp_path):
    frame = load_air_passengers()
    past, future = frame[:-12], frame[-12:]
    ax = plot_forecast(
        past["ds"],
        past["y"],
        future["ds"],
        future["y"],
        lower=future["y"] - 10,
        upper=future["y"] + 10,
        title="air",
    )
    history, forecast = ax.lines
    np.testing.assert_array_equal(history.get_ydata(), past["y"])
    joined = [past["y"].iloc[-1], *future["y"]]  # the line goes on where the history ends
    np.testing.assert_array_equal(forecast.get_ydata(), joined)
    assert forecast.get_xdata()[0] == history.get_xdata()[-1]
    assert len(ax.collections) == 1
    assert ax.get_title(loc="left") == "air"
    ax.figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_plot_anomalies_marks_them(library):
    frame = pd.DataFrame(
        {
            "unique_id": "a",
            "ds": pd.date_range("2024-01-01", periods=4),
            "y": [1.0, 9.0, 2.0, 1.0],
            "RBFDiffNet": 1.5,
            "RBFDiffNet-lo-99": 0.0,
            "RBFDiffNet-hi-99": 3.0,
            "anomaly": [False, True, False, False],
            "score": [0.0, 8.0, 0.5, 0.0],
        }
    )
    if library == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    ax = plot_anomalies(frame[[2, 0, 3, 1]] if library == "polars" else frame[::-1], title="a")
    values, marks = ax.lines
    np.testing.assert_array_equal(values.get_ydata(), [1.0, 9.0, 2.0, 1.0])
    np.testing.assert_array_equal(marks.get_ydata(), [9.0])
    assert len(ax.collections) == 1
    with pytest.raises(ValueError, match="no column 'y'"):
        plot_anomalies(frame[["unique_id", "ds"]])


def test_plot_forecast_draws_on_given_axes():
    first = plot_forecast([0, 1], [0, 1], [2], [2])
    assert plot_forecast([0, 1], [0, 1], [2], [2], ax=first) is first
    assert len(first.lines) == 4


def test_plot_forecast_needs_both_bounds():
    with pytest.raises(ValueError, match="both lower and upper"):
        plot_forecast([0], [0], [1], [1], lower=[0])


def test_plot_forecast_without_matplotlib_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'rbfdiffnet\[plot\]'"):
        plot_forecast([0], [0], [1], [1])


@pytest.fixture
def panel():
    dates = pd.date_range("2024-01-01", periods=30)
    frames = [
        pd.DataFrame({"unique_id": name, "ds": dates[:n], "y": np.arange(n) + k})
        for k, (name, n) in enumerate([("a", 30), ("b", 5)])
    ]
    return Panel.from_frame(pd.concat(frames), freq="D")


def test_plot_panel_draws_the_end_of_every_series_and_a_fan(panel, tmp_path):
    point = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    widths = {"lo-80": -1.0, "hi-80": 1.0, "lo-95": -2.0, "hi-95": 2.0}
    columns = {"RBFDiffNet": point, **{name: point + width for name, width in widths.items()}}
    figure = plot_panel(panel, columns, h=3, history=10)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["a", "b"]
    starts = [np.arange(20.0, 30.0), np.arange(1.0, 6.0)]
    for i, ax in enumerate(figure.axes):
        history, forecast = ax.lines
        np.testing.assert_array_equal(history.get_ydata(), starts[i])
        np.testing.assert_array_equal(forecast.get_ydata(), [starts[i][-1], *point[i]])
        assert forecast.get_xdata()[1] - history.get_xdata()[-1] == np.timedelta64(1, "D")
        for band, width in zip(ax.collections, (2.0, 1.0), strict=True):
            edges = band.get_paths()[0].vertices[:, 1]
            ends = [starts[i][-1], *point[i] - width, *point[i] + width]
            assert (edges.min(), edges.max()) == (min(ends), max(ends))
    figure.savefig(tmp_path / "panel.png")


def test_plot_panel_without_intervals_or_series(panel):
    figure = plot_panel(panel, {"RBFDiffNet": np.ones((2, 1))}, h=1, history=3)
    assert [len(ax.collections) for ax in figure.axes] == [0, 0]
    with pytest.raises(ValueError, match="no series to draw"):
        plot_panel(panel.select(np.empty(0, dtype=int)), {"RBFDiffNet": np.ones((0, 1))}, 1, 3)


def test_plot_operator_draws_a_bar_for_each_coefficient():
    table = pd.DataFrame(
        {"order": [0, 1, 2], "input": ["", "lag 1", "lag 1"], "coefficient": [0.5, -1.0, 0.25]}
    )
    ax = plot_operator(table)
    assert [bar.get_height() for bar in ax.patches] == [0.5, -1.0, 0.25]
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == ["1", "∂ / ∂ lag 1", "∂^2 / ∂ lag 1^2"]
    assert plot_operator(table, ax=ax) is ax
    assert len(ax.patches) == 6


@pytest.fixture
def folds():
    """A backtest of two models, of which one has quantiles that the other lacks."""
    _, _, backtest = frames(level=(80, 95))
    second = {f"second{x}": backtest[f"RBFDiffNet{x}"] for x in ("-lo-80", "-hi-80")}
    return backtest.assign(**second, **{"RBFDiffNet-q-25": backtest["y"] - 1.0, "store": "north"})


@pytest.mark.parametrize("library", [lambda frame: frame, pl.from_pandas])
def test_calibration_is_drawn_against_probabilities(folds, library, tmp_path):
    ax = plot_calibration(library(folds))
    ideal, first, second = ax.lines
    assert [line.get_label() for line in ax.lines] == ["ideal", "RBFDiffNet", "second"]
    np.testing.assert_array_equal(ideal.get_xdata(), ideal.get_ydata())
    scores = evaluate_quantiles(folds)
    for i, (line, percents) in enumerate(
        [(first, [2.5, 10, 25, 50, 90, 97.5]), (second, [10, 90])]
    ):
        np.testing.assert_allclose(line.get_xdata(), percents)
        below = [100 * scores[f"below-{p:g}"][i] for p in percents]
        np.testing.assert_allclose(line.get_ydata(), below)
    assert first.get_ydata()[2] == 0.0  # a share of 0 is drawn, too
    assert len(plot_calibration(library(folds), ["second"], ax=ax).lines) == 5
    ax.figure.savefig(tmp_path / "plot.png")


@pytest.mark.parametrize("library", [lambda frame: frame, pl.from_pandas])
def test_coverage_is_drawn_by_step(folds, library):
    ax = plot_coverage(library(folds), freq="D")
    drawn = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert list(drawn) == ["RBFDiffNet, 80 %", "second, 80 %", "RBFDiffNet, 95 %"]
    scores = evaluate_quantiles(folds, ["RBFDiffNet"], by="horizon")
    line = drawn["RBFDiffNet, 95 %"]
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 8))
    np.testing.assert_allclose(line.get_ydata(), 100 * scores["coverage-95"])
    names = {"unique_id": "item", "ds": "day"}
    other = folds.rename(columns=names)
    ax = plot_coverage(other, ["second"], level=[80], id_col="item", time_col="day")
    assert [line.get_label() for line in ax.lines[1:]] == ["second, 80 %"]


def test_what_cannot_be_drawn_is_explained(folds):
    with pytest.raises(ValueError, match="no intervals of level 50, but of: 80, 95"):
        plot_coverage(folds, level=[50])
    with pytest.raises(ValueError, match="no interval with both ends"):
        plot_coverage(folds.drop(columns=[c for c in folds if "-lo-" in c]))
    with pytest.raises(ValueError, match="no column of a quantile or an interval"):
        plot_calibration(folds[["unique_id", "ds", "y", "RBFDiffNet"]])


@pytest.fixture
def paths():
    """Three paths of a series in two scenarios, sorted by date."""
    frame = pd.DataFrame(
        {
            "unique_id": "a",
            "ds": np.tile(pd.date_range("2024-01-01", periods=4), 6),
            "scenario": np.repeat(["low $", "high"], 12),
            "sample_id": np.tile(np.repeat(np.arange(3), 4), 2),
            "RBFDiffNet": np.random.default_rng(0).normal(size=24),
        }
    )
    return frame.sort_values(["ds", "sample_id"], kind="stable")


@pytest.mark.parametrize("library", [lambda frame: frame, pl.from_pandas])
def test_plot_paths_draws_every_path_whatever_the_order_of_rows(paths, library, tmp_path):
    frame = paths[paths["scenario"] == "high"].drop(columns="scenario")
    ax = plot_paths(library(frame), title="three")
    values = frame.pivot(index="sample_id", columns="ds", values="RBFDiffNet").to_numpy()
    for line, path in zip(ax.lines, (*values, np.median(values, axis=0)), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), frame["ds"].unique())
        np.testing.assert_array_equal(line.get_ydata(), path)
    names = frame.rename(columns={"unique_id": "item", "ds": "day"})
    assert len(plot_paths(library(names), id_col="item", time_col="day").lines) == 4
    zoned = plot_paths(library(frame.assign(ds=frame["ds"].dt.tz_localize("Asia/Tokyo"))))
    np.testing.assert_array_equal(zoned.lines[0].get_xdata(), frame["ds"].unique())  # as clocks
    ax.figure.savefig(tmp_path / "paths.png")


@pytest.mark.parametrize("library", [lambda frame: frame, pl.from_pandas])
def test_plot_paths_gives_each_scenario_a_color(paths, library, tmp_path):
    ax = plot_paths(library(paths))
    named = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in named] == [r"low \$", "high"]
    for line, scenario in zip(named, ["low $", "high"], strict=True):
        own = paths[paths["scenario"] == scenario].groupby("ds")["RBFDiffNet"].median()
        np.testing.assert_array_equal(line.get_xdata(), own.index)
        np.testing.assert_array_equal(line.get_ydata(), own)
    colors = [line.get_color() for line in ax.lines]
    assert [len(set(colors[:4])), len(set(colors[4:])), len(set(colors))] == [1, 1, 2]
    ax.figure.savefig(tmp_path / "paths.png")


def test_one_series_is_drawn_and_others_are_refused(paths):
    both = pd.concat([paths, paths.assign(unique_id="b")])
    with pytest.raises(ValueError, match=r"of 2 series; .* paths\[paths\['unique_id'\] == 'a'\]"):
        plot_paths(both)
    with pytest.raises(ValueError, match=r"paths\.filter\(pl\.col\('unique_id'\) == 'a'\)"):
        plot_paths(pl.from_pandas(both))
    with pytest.raises(ValueError, match="no rows"):
        plot_paths(paths[:0])
    with pytest.raises(
        ValueError, match="several values of a path on a date; renumber 'sample_id'"
    ):
        plot_paths(pd.concat([paths, paths]))
    with pytest.raises(ValueError, match="sample_id"):
        plot_paths(paths.drop(columns="sample_id"))
    ends = {"y": 1.0, "anomaly": False, "RBFDiffNet-lo-99": 0.0, "RBFDiffNet-hi-99": 3.0}
    with pytest.raises(ValueError, match=r"of 2 series; .* found\[found\['unique_id'\] == 'a'\]"):
        plot_anomalies(both.assign(**ends))

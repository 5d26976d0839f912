import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    text_plot,
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
    ax = plot_anomalies(frame, title="a")
    values, marks = ax.lines
    np.testing.assert_array_equal(values.get_ydata(), [1.0, 9.0, 2.0, 1.0])
    np.testing.assert_array_equal(marks.get_ydata(), [9.0])
    assert len(ax.collections) == 1
    with pytest.raises(ValueError, match="no column 'anomaly'"):
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


def test_text_plot_draws_a_line_and_dots():
    assert text_plot([1, 1, 4, 2], [3, 4], height=4).splitlines() == [
        "4 ┤  ╭╮ •",
        "3 ┤  ││•",
        "2 ┤  │╰",
        "1 ┤──╯",
    ]


def test_text_plot_keeps_the_tail_of_a_long_history():
    chart = text_plot(np.r_[1000.0, np.arange(50.0)], [0.0, 49.0], width=20, ascii_only=True)
    lines = chart.splitlines()
    assert lines[0].startswith("49 |")
    assert lines[-1].startswith(" 0 |")
    assert sum(line.count(".") for line in lines) == 18
    assert sum(line.count("o") for line in lines) == 2


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200),
    st.integers(4, 60),
    st.integers(2, 15),
)
def test_text_plot_fits_and_marks_every_column(history, forecast, width, height):
    lines = text_plot(history, forecast, width=width, height=height, ascii_only=True).splitlines()
    assert len(lines) == height or (len(lines) == 1 and np.ptp([*history[-width:], *forecast]) == 0)
    charts = [line.partition("|")[2] for line in lines]
    columns = max(map(len, charts))
    assert columns <= width
    marks = ["".join(chart[i : i + 1].strip() for chart in charts) for i in range(columns)]
    # One mark a column, the history's before the forecast's.
    drawn = "".join(marks)
    assert len(drawn) == columns
    assert drawn == "." * drawn.count(".") + "o" * drawn.count("o")
    assert "." in drawn
    assert "o" in drawn


def test_text_plot_is_ascii_when_asked():
    assert text_plot([1, 2, 3], [4], ascii_only=True).isascii()


def test_text_plot_of_constant_values_is_one_row():
    assert text_plot([5, 5], [5]) == "5.00 ┤──•"


@pytest.mark.parametrize(("low", "high", "label"), [(0, 5e9, "5e+09"), (0, 1e-5, "1e-05")])
def test_text_plot_labels_extreme_values_with_powers(low, high, label):
    assert text_plot([low, high], [low]).lstrip().startswith(label)


def test_text_plot_rejects():
    with pytest.raises(ValueError, match="not empty"):
        text_plot([], [1])
    with pytest.raises(ValueError, match="width must be an integer of at least 4 and below"):
        text_plot([1], [1], width=3)


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


def test_plot_paths_draws_every_path_and_refuses_several_series():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "unique_id": "a",
            "ds": np.tile(np.arange(4), 3),
            "sample_id": np.repeat(np.arange(3), 4),
            "RBFDiffNet": rng.normal(size=12),
        }
    )
    ax = plot_paths(frame, title="three")
    values = frame["RBFDiffNet"].to_numpy().reshape(3, 4)
    for line, path in zip(ax.lines, (*values, np.median(values, axis=0)), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), path)
    other = frame.assign(unique_id="b", ds=frame["ds"] + 1)
    with pytest.raises(ValueError, match="several series"):
        plot_paths(pd.concat([frame, other]))
    with pytest.raises(ValueError, match="sample_id"):
        plot_paths(frame.drop(columns="sample_id"))

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.datasets import load_air_passengers
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.report.plots import plot_forecast, plot_operator, plot_panel, text_plot


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
    np.testing.assert_array_equal(forecast.get_ydata(), future["y"])
    assert len(ax.collections) == 1
    assert ax.get_title(loc="left") == "air"
    ax.figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


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


def test_plot_panel_draws_the_end_of_every_series_and_the_widest_band(panel, tmp_path):
    point = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    widths = {"lo-80": -1.0, "hi-80": 1.0, "lo-95": -2.0, "hi-95": 2.0}
    columns = {"RBFDiffNet": point, **{name: point + width for name, width in widths.items()}}
    figure = plot_panel(panel, columns, h=3, history=10)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["a", "b"]
    starts = [np.arange(20.0, 30.0), np.arange(1.0, 6.0)]
    for i, ax in enumerate(figure.axes):
        history, forecast = ax.lines
        np.testing.assert_array_equal(history.get_ydata(), starts[i])
        np.testing.assert_array_equal(forecast.get_ydata(), point[i])
        assert forecast.get_xdata()[0] - history.get_xdata()[-1] == np.timedelta64(1, "D")
        (band,) = ax.collections
        edges = band.get_paths()[0].vertices[:, 1]
        assert (edges.min(), edges.max()) == (point[i].min() - 2.0, point[i].max() + 2.0)
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
    with pytest.raises(ValueError, match="width must be an integer of at least 4; got 3"):
        text_plot([1], [1], width=3)

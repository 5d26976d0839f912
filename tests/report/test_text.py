import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.report.plots import text_plot


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

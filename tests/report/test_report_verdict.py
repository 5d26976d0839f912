"""What a report says of the backtest."""

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet.evaluation import BASELINE
from rbfdiffnet.panel.frames import ColumnNames
from rbfdiffnet.report.data import score_backtest
from rbfdiffnet.report.tables import find_frequency, read_table
from rbfdiffnet.report.verdict import by_chance, verdict
from report_files import frames, written


def test_a_given_baseline_is_kept(tmp_path):
    history, forecasts, backtest = frames(n_series=2)
    given = backtest.assign(**{BASELINE: backtest["y"] + 1.0})
    report = written(tmp_path, history, forecasts, backtest=given)
    assert report.facts["scores"]["models"][1]["MAE"] == pytest.approx(1.0)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_closed_sundays_do_not_shift_the_week(tmp_path, zone):
    """A week of steps is seven days, also where there are six rows: seasonal naive is exact."""
    days = pd.date_range("2024-01-01", periods=140, tz=zone)
    full = pd.DataFrame({"unique_id": "shop", "ds": days, "y": 100.0 * (1 + days.day_of_week)})
    full["y"] += np.arange(140) // 7 % 2  # every second week 1 higher
    history = full[full["ds"].dt.day_of_week != 6]
    backtest = full.tail(14).assign(cutoff=days[125], M=lambda f: f["y"] + 3.0)
    backtest.loc[backtest["ds"].dt.day_of_week == 6, "y"] = np.nan
    forecasts = pd.DataFrame({"unique_id": "shop", "ds": days[-1:] + pd.Timedelta("1D"), "M": 1.0})
    facts = written(tmp_path, history, forecasts, backtest=backtest).facts
    mine, naive, _ = facts["scores"]["models"]
    assert (mine["MAE"], mine["MASE"]) == (3.0, 3.0)
    assert (naive["MAE"], naive["MASE"]) == (0.5, 0.5)
    assert "500\xa0% higher than that of seasonal naive" in facts["verdict"]["lead"]


def answer(shift, width=2.0, windows=5, **kwargs):
    """The verdict on forecasts that are off by so much, where seasonal naive is off by 1."""
    n, tested = 35 + 7 * windows, 7 * windows
    y = 10.0 + (np.arange(n) // 7) % 2  # a season higher, a season lower
    history = pd.DataFrame({"unique_id": "a", "ds": range(n), "y": y})
    backtest = history.tail(tested).assign(cutoff=np.repeat(np.arange(34, n - 1, 7), 7))
    point = backtest["y"] + shift
    backtest = backtest.assign(
        **{"M": point, "M-lo-80": point - width, "M-hi-80": point + width}, **kwargs
    )
    ids = {}
    past = read_table(history, "history", ColumnNames(), ids, ["y"], grow=True)
    tested = read_table(backtest, "backtest", ColumnNames(), ids)
    _, scores = score_backtest(tested, past, "y", find_frequency([past]), 7)
    found = verdict(scores, "M", 7, 1)
    return found.lead.replace("\xa0", " "), " ".join(found.more).replace("\xa0", " "), found.figures


def test_the_verdict_is_honest():
    lead, more, figures = answer(shift=0.5, windows=8)
    assert lead.startswith("In backtests over 8 windows of 7 steps, the forecasts' mean error was")
    assert "50 % lower than that of seasonal naive" in lead
    assert "80 % intervals contained 100 % of the actual values: they are wider" in more
    assert figures[0].tone == "good"

    lead, more, figures = answer(shift=2.0, width=1.0)
    assert "100 % higher than that of seasonal naive: the simple rule was the better" in lead
    assert "contained 0.0 % of the actual values: they are too narrow" in more
    assert "too high on average, by 19 %" in more
    assert [figure.tone for figure in figures] == ["bad", "bad"]

    assert "no better, no worse" in answer(shift=-1.0)[0]
    assert "nothing is known" in verdict(None, "M", 7, 1).lead


def test_few_values_say_little_about_intervals():
    few = "80 % intervals contained 100 % of the actual values: more than promised, which with 35"
    _, more, figures = answer(shift=0.5)
    assert f"{few} values may be chance." in more
    assert figures[-1].tone == "plain"

    width = np.tile([1.0] * 5 + [0.1] * 2, 5)  # 71 % inside
    _, more, figures = answer(shift=0.5, width=width)
    assert "contained 71 % of the actual values: fewer than promised, which with 35" in more
    assert figures[-1].tone == "plain"
    _, more, figures = answer(shift=0.5, width=np.tile(width, 40), windows=200)
    assert "contained 71 % of the actual values: they are too narrow" in more
    assert figures[-1].tone == "bad"

    width = np.tile([1.0] * 4 + [0.1], 7)
    assert "contained 80 % of the actual values, about what they promise" in answer(0.5, width)[1]


def test_a_share_by_chance_is_that_of_independent_windows():
    """Nineteen times of twenty; of h values of a window sqrt(h) count."""
    inside = np.random.default_rng(0).binomial(144, 0.8, size=20_000) / 144
    assert np.mean(np.abs(inside - 0.8) <= by_chance(0.8, 144, 1)) == pytest.approx(0.95, abs=0.02)
    assert by_chance(0.8, 9 * 144, 81) == pytest.approx(by_chance(0.8, 144, 1))


def test_rows_that_are_not_known_do_not_count():
    _, more, _ = answer(shift=0.5, Other=[np.nan, *range(34)])
    assert "1 row of the backtest is not counted: its value or a forecast is missing." in more
    _, more, _ = answer(shift=0.5, Other=[np.nan] * 3 + [1.0] * 32)
    assert "3 rows of the backtest are not counted: their values, or forecasts of one of" in more
    assert "no known values" in answer(shift=np.nan)[0]


def test_few_series_of_a_panel_make_no_verdict(tmp_path):
    history, forecasts, backtest = frames(n_series=12)
    few = backtest[backtest["unique_id"].isin([f"item {i}" for i in range(9)])]
    found = written(tmp_path, history, forecasts, backtest=few).facts["verdict"]
    assert found["lead"].startswith("Only 9 of 12 series could be backtested: too few to say")
    found = written(tmp_path, history, forecasts, backtest=backtest).facts["verdict"]
    assert found["lead"].startswith("In backtests over 2 windows of 7 steps")
    most = backtest[backtest["unique_id"] != "item 0"]
    found = written(tmp_path, history, forecasts, backtest=most).facts["verdict"]
    assert "1 of 12 series was not backtested." in found["more"]

"""What a report says of the backtest."""

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet.evaluation import BASELINE
from rbfdiffnet.evaluation.metrics import evaluate_quantiles
from rbfdiffnet.panel.frames import ColumnNames
from rbfdiffnet.report.data import score_backtest
from rbfdiffnet.report.tables import find_frequency, read_table
from rbfdiffnet.report.verdict import verdict
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
    assert "500\xa0% higher than by repeating the last season" in facts["verdict"]["lead"]


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
    found = verdict(scores, "M", 1)
    return found.lead.replace("\xa0", " "), " ".join(found.more).replace("\xa0", " "), found.figures


def test_the_verdict_is_honest():
    lead, more, figures = answer(shift=0.5, windows=8)
    assert lead.startswith("In backtests over 8 windows of 7 steps, the forecasts' mean error was")
    assert "50 % lower than by repeating the last season" in lead
    assert "80 % intervals contained 100 % of the actual values: they are wider" in more
    assert figures[0].tone == "good"

    lead, more, figures = answer(shift=2.0, width=1.0)
    assert "100 % higher than by repeating the last season (SeasonalNaive): the simple" in lead
    assert "contained 0.0 % of the actual values: they are too narrow" in more
    assert "too high on average, by 19 %" in more
    assert [figure.tone for figure in figures] == ["bad", "plain", "bad"]

    assert "no better, no worse" in answer(shift=-1.0)[0]
    assert "nothing is known" in verdict(None, "M", 1).lead


def test_the_verdict_says_how_large_an_error_to_expect():
    _, more, figures = answer(shift=0.5, windows=8)
    mean = 10.0 + 0.5  # half of the seasons are at 11
    share = f"{100 * 0.5 / mean:.1f} %"
    assert more.startswith(f"Expect a forecast to be off by 0.500, or {share}, on average.")
    assert (figures[1].number, share in figures[1].label.replace("\xa0", " ")) == ("0.500", True)


def test_where_all_values_are_zero_there_is_no_percentage(tmp_path):
    history, forecasts, backtest = frames(n_series=1)
    history["y"] = backtest["y"] = 0.0
    found = written(tmp_path, history, forecasts, backtest=backtest).facts["verdict"]
    mae = backtest["RBFDiffNet"].abs().mean()
    assert found["expected_error"] == {"absolute": pytest.approx(mae), "percent": None}


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


def test_near_and_far_ahead_are_told_apart():
    width = np.tile([1.0] * 5 + [0.1] * 2, 40)  # 5 of 7 steps inside, the last two not
    _, more, _ = answer(shift=0.5, width=width, windows=40)
    said = "The 80 % intervals contained 100 % in steps 1 to 2, but 0.0 % in steps 6 to 7."
    assert said in more
    assert "in steps" not in answer(shift=0.5, windows=40)[1]


def test_quantile_loss_and_shares_by_step_are_in_the_report(tmp_path):
    history, forecasts, backtest = frames(level=(80, 95))
    backtest = backtest.assign(**{"RBFDiffNet-q-30": backtest["RBFDiffNet"]})
    models = written(tmp_path, history, forecasts, backtest=backtest).facts["scores"]["models"]
    total, by_step = (evaluate_quantiles(backtest, by=by) for by in (None, "horizon"))
    assert models[0]["WQL"] == pytest.approx(total["wql"].item(), rel=1e-5)
    assert models[0]["quantiles"] == [2.5, 10, 30, 50, 90, 97.5]
    below = [total[f"below-{q:g}"].item() for q in models[0]["quantiles"]]
    assert models[0]["below"] == pytest.approx(below, rel=1e-5)
    assert len(set(below)) == 5  # that of 30 % is the median
    for level in ("80", "95"):
        shares = models[0]["coverage_by_step"][level]
        assert shares == pytest.approx(by_step[f"coverage-{level}"].tolist(), rel=1e-5)
    assert [models[1][key] for key in ("WQL", "below", "coverage_by_step")] == [None, [], {}]


def test_intervals_of_one_kind_of_series_that_held_little_are_named(tmp_path):
    history, forecasts, backtest = frames(n_series=80, n_windows=2)
    often_zero = [f"item {i}" for i in range(40)]
    rows = history["unique_id"].isin(often_zero) & (history.index % 2 == 0)
    history.loc[rows, "y"] = 0.0
    errors = np.random.default_rng(0).normal(size=len(backtest))
    backtest["RBFDiffNet"] = backtest["y"] + errors
    sparse = backtest["unique_id"].isin(often_zero)
    for end, sign in (("lo", -1), ("hi", 1)):
        width = np.where(sparse, 0.64, 1.5)
        backtest[f"RBFDiffNet-{end}-80"] = backtest["RBFDiffNet"] + sign * width
    found = written(tmp_path, history, forecasts, backtest=backtest).facts["verdict"]
    more = " ".join(found["more"]).replace("\xa0", " ")
    share = 100 * (np.abs(errors[sparse]) <= 0.64).mean()
    assert (
        f"The 80 % intervals of 40 series that are often zero held {share:.0f} % of the values in "
        "backtests: much less, and more than chance explains." in more
    )
    assert "not often zero" not in more

"""Commands on large panels: what is forecast does not depend on how the work is cut."""

import io

import numpy as np
import pandas as pd
import pytest

from cli_files import panel, run
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.cli.run import describe_problems, spread_evenly
from rbfdiffnet.readers import example_data


@pytest.mark.parametrize("level", [[], ["80"]])
def test_forecasts_do_not_depend_on_parts_or_order(tmp_path, capsys, monkeypatch, level):
    monkeypatch.setattr("rbfdiffnet.cli.run._FAST_CHUNK", 5)
    rng = np.random.default_rng(0)
    dates = np.tile(pd.date_range("2024-01-01", periods=24), 13)
    df = pd.DataFrame({"unique_id": np.repeat([f"s{i:02d}" for i in range(13)], 24), "ds": dates})
    df["y"] = rng.poisson(20, len(df)).astype(float)
    levels = ["--level", *level] if level else []
    tables = []
    for number, frame in enumerate((df, df[::-1])):
        frame.to_csv(tmp_path / f"{number}.csv", index=False)
        out = tmp_path / f"out{number}.csv"
        command = ["forecast", tmp_path / f"{number}.csv", "--horizon", 3, "--preset", "fast"]
        assert run(capsys, *command, *levels, "--out", out)[0] == 0
        tables.append(pd.read_csv(out, parse_dates=["ds"]))
    in_order = [t.sort_values(["unique_id", "ds"], ignore_index=True) for t in tables]
    pd.testing.assert_frame_equal(*in_order, check_exact=True)
    expected = RBFDiffNet("D", preset="fast").forecast(df, 3, level=[80] if level else None)
    columns = list(expected.columns[2:])
    np.testing.assert_allclose(in_order[0][columns], expected[columns], rtol=1e-9)


def test_two_seasons_are_given_with_a_comma(tmp_path, capsys):
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024-01-01", periods=200)})
    df["y"] = np.tile(10.0 + rng.normal(size=28), 8)[:200] + 0.1 * rng.normal(size=200)
    df.to_csv(tmp_path / "in.csv", index=False)
    found = {}
    for seasons, given in (("7", 7), ("7,28", [7, 28])):
        command = ["forecast", "--season-length", seasons, tmp_path / "in.csv", "--horizon", 5]
        assert run(capsys, *command, "--preset", "instant", "--out", tmp_path / "out.csv")[0] == 0
        found[seasons] = pd.read_csv(tmp_path / "out.csv")["RBFDiffNet"]
        expected = RBFDiffNet("D", preset="instant", season_length=given).forecast(df, 5)
        np.testing.assert_allclose(found[seasons], expected["RBFDiffNet"], rtol=1e-6)
    explain = ["explain", tmp_path / "in.csv", "--horizon", 2, "--season-length", "7,28"]
    assert run(capsys, *explain)[0] == 0  # the network it shows knows one season
    for wrong in ("7,x", "28,7", "7,"):
        code, _, error = run(capsys, *command[:2], wrong, *command[3:])
        assert code == 2
        assert "season" in error


def test_series_are_spread_and_selected():
    data = example_data()
    assert spread_evenly(10, 4).tolist() == [0, 3, 6, 9]
    assert spread_evenly(2, 4).tolist() == [0, 1]
    assert data.select([0]).ids == ["air_passengers"]
    frame = pd.DataFrame({"unique_id": ["air_passengers", "x"]})
    assert data.find_series(frame).tolist() == [0, -1]


def test_problems_of_a_kind_share_a_line():
    problems = ["2 missing dates, first 2024-01-05", "1 missing date, first 2024-02-01"]
    notes = pd.DataFrame({"unique_id": ["a", "b"], "problem": problems, "action": "none"})
    line = "series 'a': 2 missing dates, first 2024-01-05; none (and 1 more series)"
    assert describe_problems(notes) == [line]


def test_closed_days_that_have_rows_are_named(capsys, tmp_path):
    frame = panel(2, 60)
    frame.loc[frame["ds"].dt.day_of_week == 0, "y"] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    code, _, err = run(capsys, "forecast", tmp_path / "a.csv", "--horizon", 2, "--scope", "local")
    assert code == 0
    assert "no values on Mondays" in err
    assert "(and 1 more series)" in err


@pytest.mark.parametrize("totals", ["W", 7])
def test_totals_leave_closed_days_out(capsys, tmp_path, totals):
    """Also where the first period begins on a closed day, with and without --skip-closed."""
    frame = panel(3, 55)  # ends on a Saturday
    is_open = (frame["ds"].dt.day_of_week != 6) | (frame["unique_id"] == frame["unique_id"].iloc[0])
    frame[is_open].to_csv(tmp_path / "a.csv", index=False)
    command = ("forecast", tmp_path / "a.csv", "--horizon", 15, "--preset", "instant")

    def read(*more):
        code, out, _ = run(capsys, *command, "--quiet", *more)
        assert code == 0
        return pd.read_csv(io.StringIO(out), parse_dates=["ds"])

    days, found = read("--skip-closed"), read("--totals", totals)
    assert days["unique_id"].value_counts().tolist() == [15, 12, 12]
    pd.testing.assert_frame_equal(found, read("--totals", totals, "--skip-closed"))
    sevens = (days["ds"] - days["ds"].min()).dt.days // 7
    keys = days["ds"].dt.to_period("W") if totals == "W" else sevens
    sums = days.groupby(["unique_id", keys])["RBFDiffNet"].agg(["sum", "size"])
    some = found[found["steps"] > 0]
    np.testing.assert_allclose(some[["RBFDiffNet", "steps"]], sums, rtol=1e-12)
    assert found.groupby("unique_id").size().nunique() == 1  # no series vanishes
    _, _, err = run(capsys, *command, "--totals", totals, "--skip-closed")
    assert "no values on Sundays; they repeat the day before; totals leave them out" in err

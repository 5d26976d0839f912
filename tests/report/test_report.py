"""Reports: the file holds the numbers of the frames, whole or not at all."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import daily_demand
from rbfdiffnet.panel.frames import ColumnNames
from rbfdiffnet.report import report_of, write_report
from rbfdiffnet.report.tables import find_frequency, read_table
from report_files import Report, assert_close, frames, written

GUIDE = Path(__file__).parents[2] / "docs" / "report.md"


def test_numbers_come_back(tmp_path):
    history, forecasts, backtest = frames(level=(80, 97.5))
    history.loc[3, "y"] = np.nan
    report = written(tmp_path, history, forecasts, backtest=backtest)
    models = list(forecasts.columns[2:])
    assert_close(report.table("history"), history, ["y"])
    assert_close(report.table("forecasts"), forecasts, models)
    assert_close(report.table("backtest"), backtest, models)
    assert report.facts["models"][0]["levels"] == ["80", "97.5"]
    assert report.facts["cut"] is None


def test_windows_may_overlap(tmp_path):
    history, forecasts, backtest = frames(n_windows=1)
    earlier = backtest.assign(
        **{c: backtest[c] - pd.Timedelta(days=2) for c in ("ds", "cutoff")}, RBFDiffNet=1.0
    )
    both = pd.concat([backtest, earlier])
    report = written(tmp_path, history, forecasts, backtest=both)
    assert_close(report.table("backtest"), both, ["RBFDiffNet"])
    assert report.facts["scores"]["windows"] == 2


def test_small_moves_around_a_far_level_stay_visible(tmp_path):
    history, forecasts, _ = frames(n_series=1)
    history["y"] = 1_000_000 + history["y"] / 100
    found = written(tmp_path, history, forecasts.assign(RBFDiffNet=1_000_000.1)).table("history")
    error = np.abs(found["y"] - history["y"]).max()
    assert error < 1e-4 * np.ptp(history["y"])


def test_whole_numbers_are_exact_and_infinite_ones_missing(tmp_path):
    y = [0.0, 65535.0, -1.0, np.inf, 1e300]
    history = pd.DataFrame({"unique_id": 1, "ds": range(5), "y": y})
    forecasts = pd.DataFrame({"unique_id": 1, "ds": [5], "Model": [-1e300]})
    report = written(tmp_path, history, forecasts)
    found = report.table("history")["y"].to_numpy()
    np.testing.assert_array_equal(found[:4], [0.0, 65535.0, -1.0, np.nan])
    assert np.isfinite(found[4])
    assert report.facts["ids"] == ["1"]
    assert report.facts["dates"] is None
    assert report.table("history")["ds"].tolist() == [0, 1, 2, 3, 4]


def test_the_largest_numbers_of_either_sign_make_a_report(tmp_path):
    history = pd.DataFrame({"unique_id": 1, "ds": range(4), "y": [-1.7e308, 1.7e308] * 2})
    forecasts = pd.DataFrame({"unique_id": 1, "ds": [4], "Model": [0.0]})
    found = written(tmp_path, history, forecasts).table("history")["y"].to_numpy()
    assert np.isfinite(found).all()
    assert (found[::2] < 0.0).all()


def test_times_are_those_of_the_clock_on_the_wall(tmp_path):
    history, forecasts, _ = frames(n_series=1)
    for frame in (history, forecasts):
        frame["ds"] = frame["ds"].dt.tz_localize("Asia/Tokyo")
    report = written(tmp_path, history, forecasts)
    assert report.facts["dates"] == "days"
    assert report.table("history")["ds"][0] == pd.Timestamp("2024-01-01")
    hourly = history.assign(ds=history["ds"][0] + pd.to_timedelta(range(60), "h"))
    assert written(tmp_path, hourly, forecasts).facts["dates"] == "times"


def test_the_step_of_time_is_told_from_all_tables():
    history, forecasts, _ = frames(n_series=1)
    history = history[history["ds"].dt.day_of_week < 5]
    ids = {}
    past = read_table(history, "history", ColumnNames(), ids, ["y"], grow=True)
    ahead = read_table(forecasts, "forecasts", ColumnNames(), ids)
    assert find_frequency([past]).season_length == 5
    assert find_frequency([past, ahead]).season_length == 7
    assert find_frequency([past], "B").season_length == 5


def test_polars_and_pandas_give_the_same_file(tmp_path):
    pl = pytest.importorskip("polars")
    given = frames()
    notes = pd.DataFrame({"unique_id": ["item 1"], "problem": ["short"], "action": ["forecast 0"]})
    texts = []
    for convert in (lambda frame: frame, pl.from_pandas):
        history, forecasts, backtest, remarks = map(convert, (*given, notes))
        texts.append(written(tmp_path, history, forecasts, backtest=backtest, notes=remarks).html)
    assert texts[0] == texts[1]


def test_columns_may_have_other_names(tmp_path):
    names = {"unique_id": "shop", "ds": "day", "y": "sold"}
    plain = written(tmp_path, *frames()[:2])
    history, forecasts = (
        f.rename(columns=names).sample(frac=1, random_state=0) for f in frames()[:2]
    )
    history["shop"] = pd.Categorical(history["shop"])
    report = written(tmp_path, history, forecasts, id_col="shop", time_col="day", target_col="sold")
    assert report.facts["target"] == "sold"
    found = report.table("history").rename(columns={"sold": "y"})
    merged = found.merge(plain.table("history"), on=["unique_id", "ds"])
    assert len(merged) == len(history)
    assert (merged["y_x"] == merged["y_y"]).all()


def test_a_file_is_complete_or_not_there(tmp_path, monkeypatch):
    history, forecasts, _ = frames(n_series=1)
    path = tmp_path / "report.html"
    path.write_text("before")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(path, history, forecasts)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "before"
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError):
        write_report(tmp_path / "nowhere" / "report.html", history, forecasts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"history": lambda f: f.drop(columns="y")}, "no column 'y'"),
        ({"history": lambda f: f.head(0)}, "history has no rows"),
        ({"history": lambda f: f[f["unique_id"] != "item 1"]}, "series 'item 1' that history"),
        ({"history": lambda f: f.assign(ds=None)}, "'ds' has no value in row 0"),
        ({"history": lambda f: f.assign(y="a")}, "Column 'y' of history holds text"),
        (
            {"forecasts": lambda f: f.assign(ds=3)},
            "dates in history but whole numbers in forecasts",
        ),
        ({"forecasts": lambda f: f[["unique_id", "ds"]]}, "no column with forecasts"),
        ({"forecasts": lambda f: f.drop(columns="RBFDiffNet-hi-80")}, "'RBFDiffNet-hi-80'; add"),
        ({"forecasts": lambda f: f.drop(columns="RBFDiffNet")}, "needs a column 'RBFDiffNet'"),
        ({"backtest": lambda f: f.drop(columns="cutoff")}, "no column 'cutoff'"),
        ({"backtest": lambda f: f.drop(columns="y")}, "no column 'y'"),
        ({"notes": lambda _: pd.DataFrame({"unique_id": [1]})}, "no column 'problem'"),
        ({"explanations": lambda _: {"weights": None}}, "an entry 'weights'"),
        ({"history": lambda _: [1]}, "got list"),
    ],
)
def test_errors_say_what_is_wrong(tmp_path, change, message):
    names = ("history", "forecasts", "backtest")
    given = dict(zip(names, frames(), strict=True))
    for name, function in change.items():
        given[name] = function(given.get(name))
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        write_report(
            tmp_path / "report.html", given.pop("history"), given.pop("forecasts"), **given
        )
    assert not list(tmp_path.iterdir())


def test_empty_frames_are_like_none(tmp_path, explained):
    history, forecasts, backtest = frames()
    plain = written(tmp_path, history, forecasts)
    nothing = {"terms": explained[2].head(0)}
    notes = pd.DataFrame({"unique_id": [], "problem": [], "action": []})
    report = written(
        tmp_path, history, forecasts, backtest=backtest.head(0), explanations=nothing, notes=notes
    )
    assert report.html == plain.html


def test_notes_tell_fallbacks_from_other_remarks(tmp_path):
    history, forecasts, _ = frames()
    notes = pd.DataFrame(
        {
            "unique_id": ["item 0", "item 2", "gone"],
            "problem": ["1 outlier", "too short", "no values"],
            "action": [
                "treated as missing",
                "forecast by the last season, or the last value",
                "forecast 0",
            ],
        }
    )
    found = written(tmp_path, history, forecasts, notes=notes).facts["notes"]
    assert [(n["id"], n["series"], n["fallback"]) for n in found] == [
        ("item 2", 2, True),
        ("gone", None, True),
        ("item 0", 0, False),
    ]


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    """A report of a fitted model, and the model's own forecasts and terms."""
    df = daily_demand(n_series=3, n_days=150).drop(columns="promotion")
    short = pd.DataFrame({"unique_id": "new", "ds": df["ds"].max(), "y": [4.0]})
    df = pd.concat([df, short], ignore_index=True)
    model = RBFDiffNet(freq="D", scope="local", lower=0, lags=7).fit(df)
    path = tmp_path_factory.mktemp("report") / "report.html"
    ids = ["item_003", "item_001"]
    report_of(model, path, df, 5, n_windows=2, level=[80], ids=ids, title="Demand")
    return Report(path), model.predict(5, level=[80]), model.explain(5, ids=ids)


@pytest.mark.slow
@pytest.mark.skipif(not GUIDE.exists(), reason="the tests run without the repository")
def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, "report.md", "exec"), {})
    assert Report(tmp_path / "demand.html").facts["title"] == "Demand of six items"


def test_a_report_is_of_one_scenario(tmp_path):
    df = daily_demand(n_series=2, n_days=60)
    model = RBFDiffNet("D", preset="instant").fit(df)
    plan = model.make_future_frame(3).assign(promotion=0)
    both = pd.concat([plan.assign(scenario=name) for name in ("none", "all")])
    with pytest.raises(ValueError, match=r"'scenario', but only predict, .* give one at a time"):
        report_of(model, tmp_path / "r.html", df, 3, X_df=both)
    report_of(model, tmp_path / "r.html", df, 3, X_df=plan)
    assert len(Report(tmp_path / "r.html").table("forecasts")) == 6

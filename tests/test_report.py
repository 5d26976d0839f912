import hashlib
import math
import re
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.columns import Columns
from rbfdiffnet.datasets import daily_demand
from rbfdiffnet.report import choice, data, explanations, report_of, write_report
from rbfdiffnet.report.grids import frequency_of, scored
from rbfdiffnet.report.tables import read_table
from rbfdiffnet.report.verdict import verdict
from rbfdiffnet.scoring import BASELINE
from report_files import Report, frames

GUIDE = Path(__file__).parent.parent / "docs" / "report.md"
NASTY = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!--<script>",
    "line\u2028separator",
    "{{numbers}} & <b>bold</b>",
    "javascript:alert(1)//'\"`",
]


def written(tmp_path, *args, **kwargs):
    path = tmp_path / "report.html"
    write_report(path, *args, **kwargs)
    return Report(path)


def assert_close(found, expected, columns):
    keys = [c for c in ("unique_id", "ds", "cutoff") if c in expected]
    expected = expected.sort_values(["unique_id", *keys[:0:-1]]).reset_index(drop=True)
    for key in keys:
        assert (found[key].to_numpy() == expected[key].to_numpy()).all()
    for column in columns:
        # Three bytes of a 32-bit float.
        np.testing.assert_allclose(found[column], expected[column], rtol=2.0**-16)


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
    past = read_table(history, "history", Columns(), ids, ["y"], grow=True)
    ahead = read_table(forecasts, "forecasts", Columns(), ids)
    assert frequency_of([past]).season_length == 5
    assert frequency_of([past, ahead]).season_length == 7
    assert frequency_of([past], "B").season_length == 5


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
    mine, naive = facts["scores"]["models"]
    assert (mine["MAE"], mine["MASE"]) == (3.0, 3.0)
    assert (naive["MAE"], naive["MASE"]) == (0.5, 0.5)
    assert "500\xa0% higher than seasonal naive" in facts["verdict"]["lead"]


def answer(shift, width=2.0, **kwargs):
    """The verdict on forecasts that are off by so much, where seasonal naive is off by 1."""
    n = 70
    y = 10.0 + (np.arange(n) // 7) % 2  # a season higher, a season lower
    history = pd.DataFrame({"unique_id": "a", "ds": range(n), "y": y})
    backtest = history.tail(35).assign(cutoff=np.repeat(np.arange(34, 69, 7), 7))
    point = backtest["y"] + shift
    backtest = backtest.assign(
        **{"M": point, "M-lo-80": point - width, "M-hi-80": point + width}, **kwargs
    )
    ids = {}
    past = read_table(history, "history", Columns(), ids, ["y"], grow=True)
    tested = read_table(backtest, "backtest", Columns(), ids)
    _, scores = scored(tested, past, "y", frequency_of([past]), 7)
    found = verdict(scores, "M", 7, 1)
    return found.lead.replace("\xa0", " "), " ".join(found.more).replace("\xa0", " "), found.figures


def test_the_verdict_is_honest():
    lead, more, figures = answer(shift=0.5)
    assert lead.startswith("In backtests over 5 windows of 7 steps, the forecasts' mean error was")
    assert "50 % lower than seasonal naive's" in lead
    assert "80 % intervals contained 100 % of the actual values: they are wider" in more
    assert figures[0].tone == "good"

    lead, more, figures = answer(shift=2.0, width=1.0)
    assert "100 % higher than seasonal naive's: the simple rule was the better forecast" in lead
    assert "contained 0.0 % of the actual values: they are too narrow" in more
    assert "too high on average, by 19 %" in more
    assert [figure.tone for figure in figures] == ["bad", "bad"]

    assert "no better, no worse" in answer(shift=-1.0)[0]
    assert "nothing is known" in verdict(None, "M", 7, 1).lead


def test_rows_that_are_not_known_do_not_count():
    _, more, _ = answer(shift=0.5, Other=[np.nan, *range(34)])
    assert "1 rows without a value or a forecast of every model do not count" in more
    assert "no known values" in answer(shift=np.nan)[0]


def test_few_series_of_a_panel_make_no_verdict(tmp_path):
    history, forecasts, backtest = frames(n_series=12)
    few = backtest[backtest["unique_id"].isin([f"item {i}" for i in range(9)])]
    found = written(tmp_path, history, forecasts, backtest=few).facts["verdict"]
    assert found["lead"].startswith("Only 9 of 12 series could be backtested: too few to say")
    found = written(tmp_path, history, forecasts, backtest=backtest).facts["verdict"]
    assert found["lead"].startswith("In backtests over 2 windows of 7 steps")


def test_of_too_many_series_some_are_shown_and_all_are_scored(tmp_path, monkeypatch):
    history, forecasts, backtest = frames(n_series=60)
    backtest.loc[backtest["unique_id"] == "item 41", "RBFDiffNet"] += 100.0
    terms = forecasts[forecasts["unique_id"] == "item 33"][["unique_id", "ds"]].assign(
        **{"part": "level", "term": "a", "nearest": "", "value": 1.0, "weight": 1.0},
        **{"activation": 1.0, "contribution": 1.0},
    )
    whole = data.payload(history, forecasts, columns=Columns(), backtest=backtest)[0]
    monkeypatch.setattr(choice, "MOST_SERIES", 40)
    monkeypatch.setattr(data, "MOST_SERIES", 40)
    report = written(tmp_path, history, forecasts, backtest=backtest, explanations={"terms": terms})
    facts = report.facts
    assert (len(facts["ids"]), facts["n_series"]) == (40, 60)
    assert facts["scores"] == whole["scores"]
    assert facts["scores"]["series"] == 60
    shown = facts["ids"]
    assert {"item 33", "item 41"} <= set(shown)
    assert [shown[i] for i in facts["explained"]["series"]] == ["item 33"]
    for name, frame, column in (("history", history, "y"), ("backtest", backtest, "RBFDiffNet")):
        keys = ["unique_id", "ds"]
        both = report.table(name).merge(frame, on=keys, suffixes=("", "_given"))
        assert len(both) == 40 * len(frame) / 60
        np.testing.assert_allclose(both[column], both[f"{column}_given"], rtol=2.0**-16)
    assert shown[np.argmax(report.numbers("mase/RBFDiffNet"))] == "item 41"


def test_series_are_chosen_by_their_errors(monkeypatch):
    monkeypatch.setattr(choice, "MOST_SERIES", 100)
    errors = np.random.default_rng(0).permutation(500).astype(float)
    errors[::7] = np.nan
    chosen = choice.choose_series(500, errors, wanted=[123])
    assert len(chosen) == len(set(chosen)) == 100
    order = np.argsort(errors)[: np.isfinite(errors).sum()]
    assert {123, *order[:10], *order[-10:]} <= set(chosen)
    np.testing.assert_array_equal(chosen, choice.choose_series(500, errors, wanted=[123]))


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_nothing_in_the_data_becomes_markup(tmp_path):
    history, forecasts, backtest = frames(n_series=len(NASTY))
    plain = written(tmp_path, history, forecasts, backtest=backtest)
    names = {f"item {i}": text for i, text in enumerate(NASTY)}
    frames_ = [
        f.assign(unique_id=pd.Series([names[i] for i in f["unique_id"]], f.index, dtype=object))
        for f in (history, forecasts, backtest)
    ]
    model = {"RBFDiffNet": NASTY[0]}
    frames_[1:] = [
        f.rename(columns=lambda c: c.replace("RBFDiffNet", NASTY[0])) for f in frames_[1:]
    ]
    columns = {"unique_id": NASTY, "problem": NASTY, "action": NASTY[::-1]}
    notes = pd.DataFrame(columns, dtype=object)
    report = written(
        tmp_path, *frames_[:2], backtest=frames_[2], notes=notes, title=NASTY[1], season_length=7
    )
    assert report.facts["ids"] == NASTY
    assert report.facts["models"][0]["name"] == model["RBFDiffNet"]
    assert [note["problem"] for note in report.facts["notes"]] == NASTY
    tags, expected = Tags(report.html).found, Tags(plain.html).found
    assert [tag for tag, _ in tags] == [tag for tag, _ in expected]
    assert all(attrs == plain for (_, attrs), (_, plain) in zip(tags, expected, strict=True))
    assert "\u2028" not in report.html


def test_the_policy_allows_this_script_and_style_and_nothing_else(tmp_path):
    history, forecasts, _ = frames(n_series=1)
    text = written(tmp_path, history, forecasts).html
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL).group(1)
        digest = b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://|@import|url\(", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


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
            "action": ["treated as missing", "forecast by the last value", "forecast 0"],
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


def test_terms_add_up_to_the_forecasts(explained):
    report, forecasts, terms = explained
    facts = report.facts["explained"]
    ids, words = np.array(report.facts["ids"]), np.array(facts["words"])
    assert ids[facts["series"]].tolist() == ["item_001", "item_003"]
    rows = report.numbers("terms/rows")
    found = pd.DataFrame(
        {
            "unique_id": np.repeat(ids, rows),
            "ds": pd.to_datetime(report.numbers("axis")[report.numbers("terms/place")], unit="ms"),
            **{k: words[report.numbers(f"terms/{k}")] for k in ("part", "term", "nearest")},
            **{k: report.numbers(f"terms:{k}") for k in ("contribution", "value", "activation")},
        }
    )
    sums = found.groupby(["unique_id", "ds"])["contribution"].sum()
    expected = forecasts.set_index(["unique_id", "ds"])["RBFDiffNet"].reindex(sums.index)
    np.testing.assert_allclose(sums, expected, rtol=1e-4)
    keys = ["unique_id", "ds", "part", "term", "nearest"]
    both = found.merge(terms, on=keys, suffixes=("", "_given"))
    assert len(both) == len(found)
    for name in ("contribution", "value", "activation"):
        np.testing.assert_allclose(both[name], both[f"{name}_given"], rtol=1e-6)


def test_a_report_of_a_model_has_everything(explained):
    report, forecasts, _ = explained
    facts = report.facts
    assert facts["title"] == "Demand"
    assert_close(report.table("forecasts"), forecasts, forecasts.columns[2:])
    assert [m["name"] for m in facts["scores"]["models"]] == ["RBFDiffNet", BASELINE]
    assert [n["id"] for n in facts["notes"] if n["fallback"]] == ["new"]
    assert set(facts["explained"]["equations"]) == {"0", "2"}
    order, name, value = facts["explained"]["equations"]["0"][0]
    assert order in (0, 1)
    assert name == "" or name.startswith("lag ")
    assert math.isfinite(value)
    assert "1 of 4 series were not backtested" in " ".join(facts["verdict"]["more"])


def test_explanations_that_do_not_fit_are_left_out_and_counted(tmp_path, explained, monkeypatch):
    report, _, terms = explained
    history = daily_demand(n_series=3, n_days=150)
    forecasts = terms[["unique_id", "ds"]].drop_duplicates().assign(RBFDiffNet=1.0)
    monkeypatch.setattr(explanations, "_MOST_ROWS", report.numbers("terms/rows").sum() - 1)
    facts = written(tmp_path, history, forecasts, explanations={"terms": terms}).facts["explained"]
    assert (len(facts["series"]), facts["left_out"]) == (1, 1)


def test_members_of_a_stack_are_terms_too(tmp_path):
    history = pd.DataFrame({"unique_id": "a", "ds": range(3), "y": 1.0})
    forecasts = pd.DataFrame({"unique_id": "a", "ds": [3], "RBFDiffNet": [2.0]})
    terms = pd.DataFrame(
        {
            **{"unique_id": "a", "ds": 3, "part": "member", "term": ["theta", "direct"]},
            **{"value": [1.0, 3.0], "weight": 0.5, "activation": np.nan},
            **{"contribution": [0.5, 1.5], "nearest": ""},
        }
    )
    report = written(tmp_path, history, forecasts, explanations={"terms": terms})
    assert report.numbers("terms:contribution").tolist() == [0.5, 1.5]
    assert np.isnan(report.numbers("terms:activation")).all()


def test_long_histories_lose_their_beginnings(tmp_path, monkeypatch):
    history, forecasts, _ = frames(n_days=200)
    monkeypatch.setattr(data, "_MOST_BYTES", 2000)
    report = written(tmp_path, history, forecasts)
    cut = report.facts["cut"]
    assert 60 < cut < 200
    assert_close(report.table("history"), history.groupby("unique_id").tail(cut), ["y"])
    assert report.facts["span"][0] == history["ds"].min().timestamp() * 1000


def test_terms_of_other_dates_are_left_out(tmp_path, explained):
    _, forecasts, terms = explained
    history = daily_demand(n_series=3, n_days=150)
    first = forecasts[forecasts["ds"] == forecasts["ds"].min()]
    first = first[first["unique_id"] != "new"]
    report = written(tmp_path, history, first, explanations={"terms": terms})
    times = report.numbers("axis")[report.numbers("terms/place")]
    assert set(pd.to_datetime(times, unit="ms")) == set(first["ds"])


@pytest.mark.slow
@pytest.mark.skipif(not GUIDE.exists(), reason="the tests run without the repository")
def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, "report.md", "exec"), {})
    assert Report(tmp_path / "demand.html").facts["title"] == "Demand of six items"


@pytest.mark.slow
def test_thousands_of_series_stay_below_15_megabytes(tmp_path):
    n, length, h = 5000, 1000, 28
    rng = np.random.default_rng(0)
    ids = [f"store_{i:05d}" for i in range(n)]
    days = pd.date_range("2021-01-01", periods=length + h)

    def frame(part, columns):
        size = len(part)
        values = {name: rng.lognormal(3.0, 1.0, size=n * size) for name in columns}
        return pd.DataFrame({"unique_id": np.repeat(ids, size), "ds": np.tile(part, n), **values})

    ends = [f"M-{side}-{level}" for level in (80, 95) for side in ("lo", "hi")]
    history, forecasts = frame(days[:length], ["y"]), frame(days[length:], ["M", *ends])
    backtest = frame(days[length - h : length], ["y", "M", *ends]).assign(
        cutoff=days[length - h - 1]
    )
    report = written(tmp_path, history, forecasts, backtest=backtest)
    assert len(report.html) < 15e6
    assert 400 < report.facts["cut"] < length  # these numbers are noise, and do not compress

"""The comparison on real series runs and means what it says, on made-up ones."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet.evaluation.metrics import rmsse_score

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import accuracy  # noqa: E402
import intervals  # noqa: E402
from accuracy_parts import data, errors, learners, methods, runner, single, summary  # noqa: E402
from accuracy_parts.ours import ours  # noqa: E402


def panel(lengths=(40, 33, 48), h=4, seed=0):
    """Return training and test frames of series with a season of four steps."""
    rng = np.random.default_rng(seed)
    frames = []
    for i, length in enumerate(lengths):
        steps = np.arange(length + h)
        y = 50.0 + 10.0 * np.array([0, 1, 3, -2])[steps % 4] + rng.normal(size=length + h)
        frames.append(pd.DataFrame({"unique_id": f"s{i}", "ds": steps, "y": y}))
    df = pd.concat(frames, ignore_index=True)
    ahead = df.groupby("unique_id").cumcount(ascending=False) < h
    return df[~ahead].reset_index(drop=True), df[ahead].reset_index(drop=True)


def quarterly(name="made_up", **settings):
    window = data.Window(*panel(**settings))
    scale = partial(errors.naive_scale, lag=4)
    return data.DataSet(name, 4, 4, 1, scale, 1, {"published": lambda: window})


@pytest.fixture
def m5(tmp_path):
    """Return a folder with M5's files in small: 1,941 days, four series, made-up events."""
    rng = np.random.default_rng(0)
    days = [f"d_{day}" for day in range(1, 1942)]
    dates = pd.date_range("2011-01-29", periods=1969)
    names = ["CA_1_FOODS", "CA_2_FOODS", "TX_1_FOODS", "WI_1_HOBBIES"]
    values = (
        rng.poisson(20.0, size=(4, 1941)) + np.array([9, 0, 0, 0, 0, 3, 7])[np.arange(1941) % 7]
    )
    wide = pd.DataFrame(values.T, columns=names)
    wide.insert(0, "date", dates[:1941])
    wide.insert(1, "d", days)
    wide.to_csv(tmp_path / "level8.csv.gz", index=False)
    items = pd.DataFrame(values[::-1], columns=days)
    items.insert(0, "id", [f"item_{i}" for i in "dcba"])
    items.to_csv(tmp_path / "bottom_1000.csv.gz", index=False)
    first, second = pd.Series(index=range(1969), dtype=object), pd.Series("Easter", range(1969))
    first[dates.strftime("%m-%d") == "12-25"] = "Christmas"
    second[dates.strftime("%m-%d") != "04-10"] = None
    snap = {f"snap_{s}": (dates.day == d).astype(int) for s, d in (("CA", 1), ("TX", 2), ("WI", 3))}
    table = pd.DataFrame({"date": dates, "event_name_1": first, "event_name_2": second, **snap})
    table.to_csv(tmp_path / "calendar.csv", index=False)
    return tmp_path


def test_errors_are_those_of_the_definitions():
    train, test = panel()
    joined = test.assign(forecast=test["y"] + np.random.default_rng(1).normal(size=len(test)))
    mase = errors.scaled_errors(train, joined, partial(errors.naive_scale, lag=4), 1)
    root = errors.scaled_errors(train, joined, errors.step_scale, 2)
    for name in ("s0", "s1", "s2"):
        past = train.loc[train["unique_id"] == name, "y"].to_list()
        its = joined[joined["unique_id"] == name]
        unit = np.mean([abs(past[t] - past[t - 4]) for t in range(4, len(past))])
        error = np.mean([abs(a - f) for a, f in zip(its["y"], its["forecast"], strict=True)])
        assert mase[name] == pytest.approx(error / unit)
        assert root[name] == pytest.approx(rmsse_score(its["y"], its["forecast"], past))


def test_scales_leave_out_what_they_should():
    assert errors.step_scale(np.array([0.0, 0.0, 1.0, 3.0, 1.0])) == 4.0
    assert errors.step_scale(np.zeros(5)) == 0.0
    assert errors.naive_scale(np.arange(4.0), lag=4) == 0.0
    train, test = panel()
    train.loc[train["unique_id"] == "s1", "y"] = 7.0
    found = errors.scaled_errors(train, test.assign(forecast=0.0), errors.step_scale, 2)
    assert list(found.index) == ["s0", "s2"]


def test_the_season_is_repeated():
    np.testing.assert_array_equal(single.repeat_season(np.arange(6.0), 5, 4), [2, 3, 4, 5, 2])
    np.testing.assert_array_equal(single.repeat_season(np.arange(3.0), 2, 4), [2, 2])


def test_series_without_forecasts_get_the_season_and_are_counted():
    each = quarterly()
    window = each.windows["published"]()

    def partly(train, h, season_length, freq, inputs):
        forecast = single.seasonal_naive(train, h, season_length, freq, inputs)
        forecast["forecast"] += 1.0
        forecast.loc[forecast.index[1], "forecast"] = np.nan  # a step of s0; s2 is not there at all
        return forecast[forecast["unique_id"] != "s2"]

    joined, n_fallbacks = runner.complete(partly(window.train, 4, 4, 1, None), each, window)
    naive = single.seasonal_naive(window.train, 4, 4, 1)["forecast"].to_numpy()
    assert n_fallbacks == 2
    np.testing.assert_allclose(joined["forecast"] - naive, np.repeat([0.0, 1.0, 0.0], 4))
    nothing = partly(window.train, 4, 4, 1, None).assign(ds=99)
    with pytest.raises(ValueError, match="all 4 steps"):
        runner.complete(nothing.drop_duplicates("unique_id"), each, window)


@pytest.mark.parametrize("end", [1605, 1913])
@pytest.mark.parametrize("calendar", [False, True])
def test_windows_of_m5_do_not_leak(m5, end, calendar):
    window = data.rolling(m5, "level8.csv.gz", end, calendar)
    assert (window.train.groupby("unique_id").size() == end).all()
    assert (window.test.groupby("unique_id").size() == 28).all()
    assert window.test["ds"].min() - window.train["ds"].max() == pd.Timedelta(days=1)
    assert (window.inputs is not None) == calendar
    if calendar:
        assert "y" not in window.inputs
        assert {"snap", "event_Christmas", "event_Easter"} < set(window.inputs)
    wide = pd.read_csv(m5 / "level8.csv.gz")
    texan = window.train.loc[window.train["unique_id"] == "TX_1_FOODS", "y"]
    np.testing.assert_array_equal(texan, wide["TX_1_FOODS"].head(end))


def test_windows_before_the_test_days_end_before_them(m5):
    every = data.data_sets(m5, m5)
    assert tuple(every) == data.NAMES
    for name in ("m5_level8_r9", "m5_level8_r9_calendar", "m5_level9", "m5_bottom"):
        assert all(int(label.removeprefix("d_")) + 28 <= 1913 for label in every[name].windows)
    window = every["m5_bottom"].windows["d_1885"]()
    assert list(window.test["unique_id"].unique()) == ["item_a", "item_b", "item_c", "item_d"]


def test_series_get_the_days_of_their_state(m5):
    train = data.rolling(m5, "level8.csv.gz", 1605, calendar=True).train
    paid = train[train["snap"] == 1].groupby("unique_id")["ds"].agg(lambda ds: set(ds.dt.day))
    assert paid.to_dict() == {
        "CA_1_FOODS": {1}, "CA_2_FOODS": {1}, "TX_1_FOODS": {2}, "WI_1_HOBBIES": {3}
    }  # fmt: skip
    assert set(train.loc[train["event_Christmas"] == 1, "ds"].dt.strftime("%m-%d")) == {"12-25"}
    assert set(train.loc[train["event_Easter"] == 1, "ds"].dt.strftime("%m-%d")) == {"04-10"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["ours", "linear regression", "LightGBM"])
def test_methods_learn_from_inputs(m5, name):
    if name != "ours":
        pytest.importorskip("mlforecast")
        pytest.importorskip("lightgbm")
    method = partial(ours, preset="fast") if name == "ours" else methods.METHODS[name]
    window = data.rolling(m5, "level8.csv.gz", 1400, calendar=True)
    train = window.train[window.train["unique_id"].isin(["CA_1_FOODS", "TX_1_FOODS"])].copy()
    inputs = window.inputs[window.inputs["unique_id"].isin(train["unique_id"])]
    paid = (inputs["snap"] == 1).to_numpy()
    train.loc[train["snap"] == 1, "y"] += 40.0
    found = method(train, 28, 7, "D", inputs)["forecast"]
    assert paid.sum() == 2
    assert found[paid].min() > found[~paid].max() + 10.0


def test_ours_knows_events(m5):
    window = data.rolling(m5, "level8.csv.gz", 1400, calendar=True)  # Christmas 2014 is d_1427
    train = window.train.copy()
    train.loc[train["event_Christmas"] == 1, "y"] = 0.0
    found = ours(train, 28, 7, "D", window.inputs, preset="fast")
    christmas = found["ds"].dt.strftime("%m-%d") == "12-25"
    assert christmas.sum() == 4
    assert found.loc[christmas, "forecast"].max() < 8.0 < found.loc[~christmas, "forecast"].min()


def test_the_published_parts_are_read(tmp_path):
    train, test = panel()
    train.iloc[::-1].to_parquet(tmp_path / "m1_quarterly_train.parquet")
    test.to_parquet(tmp_path / "m1_quarterly_test.parquet")
    window = data.data_sets(tmp_path, tmp_path)["m1_quarterly"].windows["published"]()
    pd.testing.assert_frame_equal(window.train, train)
    pd.testing.assert_frame_equal(window.test, test)
    assert window.inputs is None


@pytest.mark.parametrize(
    ("season", "shortest", "lags"), [(7, 900, 28), (12, 30, 16), (52, 148, 52)]
)
def test_lags_leave_targets(season, shortest, lags):
    assert learners.n_lags(season, shortest) == lags
    assert learners.n_lags(1, 900) == 4
    assert learners.n_lags(4, 5) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", methods.METHODS)
def test_methods_find_the_season(name):
    needs = {"linear regression": ["mlforecast"], "LightGBM": ["mlforecast", "lightgbm"]}
    for module in needs.get(name, ["statsforecast"] if name in methods.RIVALS else []):
        pytest.importorskip(module)
    each = quarterly(lengths=(60, 55, 70, 3))
    found = runner.measure(methods.METHODS[name], each, each.windows["published"]())
    seasonal = name not in ("SES", "CrostonOptimized")
    assert found["score"] < (1.5 if seasonal else 15.0)
    assert found["n_series"] == 3  # three values have no seasonal difference


def bad(*_):
    raise RuntimeError("singular")


def test_a_method_that_fails_is_reported_and_loses_no_other(tmp_path):
    def fails_later(train, *arguments):
        return single.seasonal_naive(train, *arguments) if len(train) > 100 else bad()

    field = {"bad": bad, "later": fails_later, "SES": single.seasonal_naive}
    unread = data.DataSet("unread", 4, 4, 1, errors.step_scale, 2, {"all": bad})
    sets = [unread, quarterly("small", lengths=(30, 30)), quarterly("large", lengths=(60, 60))]
    failures = runner.run(field, sets, tmp_path)
    assert failures == [
        "bad: RuntimeError: singular",
        "unread, all: RuntimeError: singular",
        "small, later, published: RuntimeError: singular",
    ]
    rows = summary.read(tmp_path)
    assert list(rows["data"] + ", " + rows["method"]) == [
        "small, SES",
        "large, later",
        "large, SES",
    ]


@pytest.mark.usefixtures("limits_of_threads")
def test_a_run_goes_on_where_it_ended(tmp_path, monkeypatch, capsys):
    calls = []

    def method(train, *arguments):
        calls.append(train["unique_id"].nunique())
        return single.seasonal_naive(train, *arguments)

    for name in ("SES", "AutoETS", "ours"):
        monkeypatch.setitem(methods.METHODS, name, method)
    train, test = panel()
    for name in ("m1_yearly", "m1_quarterly"):
        monkeypatch.setitem(data.SUITE, name, (4, 4))
        train.to_parquet(tmp_path / f"{name}_train.parquet")
        test.to_parquet(tmp_path / f"{name}_test.parquet")
    arguments = ["--suite", str(tmp_path), "--out", str(tmp_path), "--data", "m1_quarterly"]
    accuracy.main([*arguments, "--methods", "SES", "ours"])
    assert calls == [2, 2, 3, 3]  # two to warm up
    accuracy.main([*arguments, "m1_yearly", "--methods", "SES", "AutoETS", "ours", "ours, stack"])
    assert len(calls) == 4 + 3 + 4
    rows = summary.read(tmp_path)
    assert tuple(rows.columns) == runner.COLUMNS
    assert not rows.duplicated(list(runner.KEY)).any()
    assert "published best" in capsys.readouterr().out


@pytest.mark.usefixtures("limits_of_threads")
def test_intervals_are_judged_by_loss_and_coverage(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(data.SUITE, "m1_quarterly", (4, 4))
    for part, frame in zip(("train", "test"), panel(), strict=True):
        frame.to_parquet(tmp_path / f"m1_quarterly_{part}.parquet")
    intervals.main(["--suite", str(tmp_path), "--data", "m1_quarterly"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[:2] for row in rows] == [["m1_quarterly", "default"], ["m1_quarterly", "instant"]]
    for _, _, loss, in_80, in_95 in rows:
        assert float(loss) > 0.0
        assert 0.0 <= float(in_80[:-1]) <= float(in_95[:-1]) <= 100.0


def test_intervals_are_judged_in_earlier_windows_of_some_series():
    ids = np.repeat(["a", "b", "c"], 10)
    train = pd.DataFrame({"unique_id": ids, "ds": np.tile(range(10), 3), "y": 1.0})
    test = pd.DataFrame({"unique_id": ["a", "b", "c"], "ds": 10, "y": 1.0})
    some = intervals.some_series(data.Window(train, test), 2)
    assert sorted(set(some.train["unique_id"])) == ["a", "c"] == some.test["unique_id"].tolist()
    windows = intervals.earlier_windows(some, 2, 5)  # in the later half of the series
    assert [window.test["ds"].unique().tolist() for window in windows] == [[8, 9], [6, 7]]
    assert [window.train["ds"].max() for window in windows] == [7, 5]


def test_the_quantile_loss_is_that_of_utilsforecast(rng):
    from utilsforecast.losses import scaled_crps

    y = rng.gamma(2.0, size=40)
    both = pd.DataFrame({"unique_id": "a", "ds": range(40), "y": y, "us": y + rng.normal(size=40)})
    names = {0.5: "us"}
    for level in intervals.LEVELS:
        for sign, side in ((-1, "lo"), (1, "hi")):
            names[round(0.5 + sign * level / 200, 3)] = f"us-{side}-{level}"
            both[f"us-{side}-{level}"] = both["us"] + sign * level / 40
    loss, inside = intervals.judge(both, "us")
    quantiles = np.arange(1, 10) / 10
    models = {"us": [names[q] for q in quantiles.round(3).tolist()]}
    expected = scaled_crps(both, models=models, quantiles=quantiles)["us"][0]
    assert loss == pytest.approx(float(expected), rel=1e-6)
    assert inside[80] == (np.abs(both["y"] - both["us"]) <= 2.0).mean()


def test_summaries_compare_with_the_best_rival():
    every = {name: quarterly(name) for name in ("first", "second")}
    scores = {"SES": (2.0, 3.0), "AutoETS": (4.0, 2.0), "ours": (1.0, 4.0), "LightGBM": (9.0,)}
    rows = [
        {"data": name, "method": method, "window": "published", "score": score, "seconds": 1.0}
        for method, pair in scores.items()
        for name, score in zip(every, pair, strict=False)
    ]
    frame = pd.DataFrame(rows)
    ratios = summary.to_best_rival(summary.table(frame, every, "score"))
    assert ratios["ours"].tolist() == [0.5, 2.0]
    assert ratios["SES"].tolist() == [1.0, 1.5]
    tables = summary.report(frame, every)
    by_name = {row["method"]: row for row in tables[-1].rows}
    assert by_name["ours"]["to_best_rival"] == pytest.approx(1.0)
    assert by_name["ours"]["lowest"] == by_name["AutoETS"]["lowest"] == 1
    assert by_name["LightGBM"]["data_sets"] == 1
    assert by_name["ours"]["seconds"] == 2.0
    assert all(str(table) for table in tables)


def test_parts_are_compared_with_the_whole_stack():
    names = ["ours, stack", "stack, own effects", "stack, equal weights", "SES"]
    scores = {"a": [2.0, 2.2, 3.0, 4.0], "b": [1.0, 1.1, 1.0, 2.0]}
    rows = [
        {"data": data, "method": name, "window": "w", "score": score, "seconds": 1.0}
        for data, values in scores.items()
        for name, score in zip(names, values, strict=True)
    ]
    *others, parts = summary.report(pd.DataFrame(rows), {name: quarterly(name) for name in scores})
    assert parts.name == "parts"
    assert [row["data"] for row in parts.rows] == ["a", "b", "all"]
    assert parts.rows[-1]["stack, own effects"] == pytest.approx(1.1)
    assert parts.rows[-1]["stack, equal weights"] == pytest.approx(1.5**0.5)
    assert not any("stack, own effects" in row for table in others for row in table.rows)


def test_methods_count_where_they_have_been_through_all_windows():
    each = quarterly("one")
    every = {"one": data.DataSet("one", 4, 4, 1, each.scale, 1, dict.fromkeys("ab", bad))}
    frame = pd.DataFrame(
        {"data": "one", "method": ["SES", "SES", "ours"], "window": ["a", "b", "a"],
         "score": [1.0, 3.0, 1.0], "seconds": 1.0}
    )  # fmt: skip
    assert summary.table(frame, every, "score").to_dict() == {"SES": {"one": 2.0}}
    assert summary.report(frame[frame["method"] == "ours"], every) == []

"""`RBFDiffNet.detect_anomalies`: what it finds, and what it promises."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from panels import make_stores
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import load_air_passengers

MODEL = {"freq": "MS", "season_length": [12]}


def seasonal(rng, n=20, T=96, noise=1.0):
    """Series with a season and a trend."""
    t = np.arange(T)
    dates = pd.date_range("2015-01-01", periods=T, freq="MS")
    frames = []
    for i in range(n):
        y = 50.0 + 0.1 * t + 5.0 * np.sin(2.0 * np.pi * (t / 12.0 + rng.uniform()))
        y = y + noise * rng.normal(size=T)
        frames.append(pd.DataFrame({"unique_id": f"s{i:02d}", "ds": dates, "y": y}))
    return pd.concat(frames, ignore_index=True)


def detect(df, level=99, last=None, **settings):
    return RBFDiffNet(**{**MODEL, **settings}).detect_anomalies(df, level, last)


def test_the_frame_has_a_row_for_every_judged_value(rng):
    df = seasonal(rng, 3)
    found = detect(df.sample(frac=1.0, random_state=0), level=97.5)
    assert found.columns.tolist() == [
        *("unique_id", "ds", "y", "RBFDiffNet", "RBFDiffNet-lo-97.5", "RBFDiffNet-hi-97.5"),
        *("anomaly", "score"),
    ]
    expected = df.groupby("unique_id").tail(96 - 12).reset_index(drop=True)
    pd.testing.assert_frame_equal(found[["unique_id", "ds", "y"]], expected)
    assert found["anomaly"].dtype == bool
    low, high = found["RBFDiffNet-lo-97.5"], found["RBFDiffNet-hi-97.5"]
    assert ((low < found["RBFDiffNet"]) & (found["RBFDiffNet"] < high)).all()
    outside = (found["y"] < low) | (found["y"] > high)
    assert (outside == found["anomaly"]).all()
    assert (found["anomaly"] == (found["score"].abs() > 2.2414027)).all()
    assert (np.sign(found["score"]) == np.sign(found["y"] - found["RBFDiffNet"])).all()


def test_clean_values_are_rarely_anomalies(rng):
    df = seasonal(rng, 40)
    found = detect(df)["score"].abs()
    assert 0.03 < (found > 1.96).mean() < 0.07
    assert 0.005 < (found > 2.576).mean() < 0.015


def test_levels_are_nested_and_scores_are_the_same(rng):
    df = seasonal(rng, 5)
    wide, narrow = detect(df, 99.9), detect(df, 80)
    pd.testing.assert_series_equal(wide["score"], narrow["score"])
    pd.testing.assert_series_equal(wide["RBFDiffNet"], narrow["RBFDiffNet"])
    assert (wide["RBFDiffNet-hi-99.9"] > narrow["RBFDiffNet-hi-80"]).all()
    assert wide["anomaly"].sum() < narrow["anomaly"].sum()


def test_spikes_are_found_and_what_follows_is_not_blamed(rng):
    df = seasonal(rng)
    steps = rng.integers(30, 90, 20)
    rows = 96 * np.arange(20) + steps
    df.loc[rows, "y"] += rng.choice([-1.0, 1.0], 20) * 10.0
    found = df.merge(detect(df), on=["unique_id", "ds"], how="left")
    flags = found["anomaly"].to_numpy() == True  # noqa: E712  not judged is missing
    assert flags[rows].mean() > 0.9
    assert flags[rows + 1].mean() < 0.15
    assert flags.sum() - flags[rows].sum() < 40


def test_a_new_level_is_an_anomaly_once(rng):
    df = seasonal(rng, 10, noise=0.5)
    late = df.groupby("unique_id").cumcount() >= 60
    df.loc[late, "y"] += 15.0
    found = detect(df)
    flags = found["anomaly"].to_numpy().reshape(10, -1)
    assert flags[:, 48].mean() >= 0.9
    assert flags[:, 51:].mean() < 0.05


def test_later_values_change_earlier_ones_by_the_calibration_only(rng):
    """Forecasts are the same; bounds keep their ratios, and scores their order."""
    df = seasonal(rng, 1)
    other = df.copy()
    other.loc[80:, "y"] += rng.normal(size=16) * 20.0
    a, b = detect(df)[: 80 - 12], detect(other)[: 80 - 12]
    np.testing.assert_allclose(a["RBFDiffNet"], b["RBFDiffNet"], rtol=1e-9)
    for side in ("lo", "hi"):
        widths = [found[f"RBFDiffNet-{side}-99"] - found["RBFDiffNet"] for found in (a, b)]
        ratio = widths[1] / widths[0]
        np.testing.assert_allclose(ratio, ratio.iloc[0], rtol=1e-6)
    for sign in (a["score"] > 0.0, a["score"] < 0.0):
        order = np.argsort(a["score"][sign].to_numpy())
        assert (np.diff(b["score"][sign].to_numpy()[order]) >= -1e-9).all()


def test_polars_gives_the_same_as_pandas(rng):
    pl = pytest.importorskip("polars")
    df = seasonal(rng, 3)
    found = detect(pl.from_pandas(df))
    assert isinstance(found, pl.DataFrame)
    assert found["anomaly"].dtype == pl.Boolean
    pd.testing.assert_frame_equal(found.to_pandas(), detect(df), check_dtype=False)


def test_order_and_threads_do_not_matter(rng):
    df = seasonal(rng, 8)
    df.loc[[200, 300], "y"] += 20.0
    df = df.drop(index=[50, 51, 201, 400]).reset_index(drop=True)
    names = {f"s{i:02d}": f"s{(5 * i) % 8:02d}" for i in range(8)}
    back = {new: old for old, new in names.items()}
    found = detect(df)
    other = detect(df.assign(unique_id=df["unique_id"].map(names))[::-1], n_jobs=2)
    other = other.assign(unique_id=other["unique_id"].map(back))
    other = other.sort_values(["unique_id", "ds"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(found, other, check_dtype=False, rtol=1e-7)


def test_missing_values_are_not_judged_and_values_after_them_are(rng):
    df = seasonal(rng, 4)
    holes = df.index % 96 % 7 == 5
    gone = df[~holes].reset_index(drop=True)
    empty = df.assign(y=df["y"].where(~holes))
    found = detect(gone)
    assert found["y"].notna().all()
    assert found["anomaly"].mean() < 0.04
    pd.testing.assert_frame_equal(found, detect(empty))
    first = found.groupby("unique_id")["ds"].min()
    assert set(first) == {pd.Timestamp("2016-03-01")}  # after twelve known values


def test_zeros_of_intermittent_demand_are_no_anomalies(rng):
    T = 150
    y = (rng.uniform(size=(10, T)) < 0.3) * (1.0 + rng.poisson(3.0, (10, T)))
    y[3, 100] = 60.0
    df = pd.DataFrame(
        {"unique_id": np.repeat(np.arange(10), T), "ds": np.tile(np.arange(T), 10), "y": y.ravel()}
    )
    found = RBFDiffNet(freq=1).detect_anomalies(df)
    assert not found.loc[found["y"] == 0.0, "anomaly"].any()
    assert (found["RBFDiffNet-lo-99"] == 0.0).all()
    assert found.loc[(found["unique_id"] == 3) & (found["ds"] == 100), "anomaly"].all()
    assert 0.003 < found["anomaly"].mean() < 0.02


def counts(rng, T=120):
    mean = np.tile(rng.uniform(1.0, 20.0, (8, 1)), (1, T))
    days, ids = pd.date_range("2024-01-01", periods=T), np.repeat([f"s{i}" for i in range(8)], T)
    y = rng.poisson(mean).ravel().astype(float)
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(days, 8), "y": y})


@pytest.mark.parametrize("level", [60, 80, 99])
def test_ends_of_counts_are_whole_and_mark_the_same_values(rng, level):
    found = RBFDiffNet("D").detect_anomalies(counts(rng), level=level)
    low, high = found[f"RBFDiffNet-lo-{level}"], found[f"RBFDiffNet-hi-{level}"]
    middle, limit = found["RBFDiffNet"], ndtri(0.5 + level / 200.0)
    for end in (low, high):  # where no whole number is beside it, the forecast is the end
        assert ((end == end.round()) | (end == middle)).all()
        assert (end == end.round()).mean() > 0.85
    assert ((low <= middle) & (middle <= high)).all()
    assert (found["anomaly"] == (found["score"].abs() > limit)).all()
    assert ((found["y"] < low) | (found["y"] > high)).eq(found["anomaly"]).all()


def test_a_frequent_count_is_no_anomaly(rng):
    """Ones come in 16 % of the steps, and twos in 1.6 %: at the level 95 and 99, hardly any is."""
    y = rng.poisson(0.2, (20, 200)).astype(float)
    days, ids = pd.date_range("2024-01-01", periods=200), np.repeat(np.arange(20), 200)
    df = pd.DataFrame({"unique_id": ids, "ds": np.tile(days, 20), "y": y.ravel()})
    for level, most, share in ((80, 0.0, 0.0), (95, 1.0, 0.1), (99, 2.0, 0.6)):
        found = RBFDiffNet("D").detect_anomalies(df, level=level)
        own = found[(found["y"] > 0.0) & (found["y"] <= most)]
        assert own["anomaly"].sum() <= share * len(own)
        assert found.loc[found["y"] >= 4.0, "anomaly"].all()
        limit = ndtri(0.5 + level / 200.0)
        assert (found["anomaly"] == (found["score"].abs() > limit)).all()


def test_skewed_values_are_marked_about_as_often_as_the_level_says(rng):
    y = rng.exponential(size=(20, 200))
    days, ids = pd.date_range("2024-01-01", periods=200), np.repeat(np.arange(20), 200)
    df = pd.DataFrame({"unique_id": ids, "ds": np.tile(days, 20), "y": y.ravel()})
    found = RBFDiffNet("D").detect_anomalies(df, level=99)
    assert 0.006 < found["anomaly"].mean() < 0.0155


def test_forecasts_and_ends_stay_within_bounds(rng):
    df = counts(rng)
    columns = ["RBFDiffNet", "RBFDiffNet-lo-99", "RBFDiffNet-hi-99"]
    for inputs in ({}, {"price": rng.normal(size=len(df))}):
        found = RBFDiffNet("D", lower=2, upper=8.5).detect_anomalies(df.assign(**inputs))
        inside = found[columns]
        assert (inside.min(axis=None), inside.max(axis=None)) == (2.0, 8.5)
        beyond = (found["y"] < 2) | (found["y"] > 8.5)
        assert found.loc[beyond, "anomaly"].all()
        within = found[~beyond]
        assert (within["anomaly"] == (within["score"].abs() > ndtri(0.995))).all()
    found = RBFDiffNet("D", lower=1, upper=3, hierarchy=["kind"]).detect_anomalies(
        df.assign(kind=np.where(df["unique_id"] < "s2", "A", "B"))
    )
    for name, size in (("s1", 1), ("A", 2), ("Total", 8)):
        inside = found.loc[found["unique_id"] == name, columns]
        assert inside.min(axis=None) >= size
        assert inside.max(axis=None) <= 3 * size


@pytest.mark.parametrize("empty", [False, True])
def test_bounds_of_groups_count_the_series_in_their_sums(rng, empty):
    """A series that begins late, or has no value, is not in the sums of the days before."""
    days = pd.date_range("2024-01-01", periods=200)
    df = pd.concat(
        pd.DataFrame({"unique_id": k, "ds": days, "y": 10.0 + rng.normal(size=200), "kind": "A"})
        for k in "abcdef"
    )
    late = df["unique_id"] > "b"
    df = df.assign(y=df["y"].mask(late)) if empty else df[~late | (df["ds"] > days[149])]
    found = RBFDiffNet("D", hierarchy=["kind"], lower=5).detect_anomalies(df)
    total = found[(found["unique_id"] == "A") & (found["ds"] < days[150])]
    assert total["anomaly"].mean() < 0.05
    assert 10.0 <= total["RBFDiffNet-lo-99"].min() < total["RBFDiffNet"].max() < 25.0
    if not empty:
        after = found[(found["unique_id"] == "A") & (found["ds"] >= days[150])]
        assert after["RBFDiffNet-lo-99"].min() >= 30.0


def test_inputs_explain_values(rng):
    df = seasonal(rng, 10)
    df["promotion"] = (rng.uniform(size=len(df)) < 0.02).astype(float)
    df["y"] *= 1.0 + 0.4 * df["promotion"]
    known, unknown = detect(df), detect(df.drop(columns="promotion"))
    promoted = known.merge(df[["unique_id", "ds", "promotion"]])["promotion"] == 1.0
    assert unknown.loc[promoted.to_numpy(), "anomaly"].mean() > 0.7
    assert known.loc[promoted.to_numpy(), "anomaly"].mean() < 0.2
    away = (known["y"] - known["RBFDiffNet"]).abs()
    assert away[promoted].mean() < 5.0


def test_logarithms_are_taken_where_asked_for(rng):
    df = seasonal(rng, 3)
    logs = df.assign(y=np.log1p(df["y"]))
    found, expected = (
        detect(df, transforms=["log1p"], season_length=12),
        detect(logs, season_length=12),
    )
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-6, atol=1e-9)
    for name in ("RBFDiffNet", "RBFDiffNet-lo-99", "RBFDiffNet-hi-99"):
        np.testing.assert_allclose(np.log1p(found[name]), expected[name], rtol=1e-6)


def test_every_scope_and_preset_gives_the_same(rng):
    df = seasonal(rng, 3, T=40)
    expected = detect(df)
    for settings in ({"preset": "instant"}, {"scope": "global"}, {"strategy": "direct"}):
        pd.testing.assert_frame_equal(
            detect(df, **settings, season_length=12), detect(df, season_length=12)
        )
    model = RBFDiffNet(**MODEL).fit(df)
    pd.testing.assert_frame_equal(model.detect_anomalies(df), expected)


def test_the_last_values_are_judged_as_among_all(rng):
    df = seasonal(rng, 3, T=200)
    found, every = detect(df, last=10), detect(df)
    assert len(found) == 30
    every = every.groupby("unique_id").tail(10).reset_index(drop=True)
    columns = ["unique_id", "ds", "y", "anomaly"]
    pd.testing.assert_frame_equal(found[columns], every[columns])
    np.testing.assert_allclose(found["RBFDiffNet"], every["RBFDiffNet"], rtol=0.02)
    assert len(detect(df, last=1000)) == 3 * 188


def test_series_that_cannot_be_judged_are_reported(rng):
    short = pd.DataFrame({"unique_id": "short", "ds": np.arange(8), "y": rng.normal(size=8)})
    same = pd.DataFrame({"unique_id": "same", "ds": np.arange(50), "y": 3.0})
    empty = pd.DataFrame({"unique_id": "empty", "ds": np.arange(20), "y": np.nan})
    good = pd.DataFrame({"unique_id": "good", "ds": np.arange(50), "y": rng.normal(size=50)})
    df = pd.concat([short, same, empty, good])
    model = RBFDiffNet(freq=1)
    assert set(model.detect_anomalies(df)["unique_id"]) == {"good"}
    said = dict(zip(model.report_["unique_id"], model.report_["problem"], strict=True))
    assert said["short"] == "too short (known values: 8, needed: 9)"
    assert said["same"] == "all values before the last are the same, and fewer than 100"
    assert said["empty"] == "no values"
    assert "good" not in said
    with pytest.raises(ValueError, match=r"Series '\w+' cannot be judged"):
        RBFDiffNet(freq=1, errors="raise").detect_anomalies(df.dropna())
    nothing = model.detect_anomalies(short)
    assert len(nothing) == 0
    assert nothing.columns.tolist() == model.detect_anomalies(good).columns.tolist()


def test_a_change_after_a_hundred_equal_values_is_an_anomaly():
    y = np.r_[np.full(150, 7.0), 7.5, np.full(10, 7.0)]
    df = pd.DataFrame({"unique_id": "a", "ds": np.arange(y.size), "y": y})
    found = RBFDiffNet(freq=1).detect_anomalies(df).set_index("ds")
    assert found.index[0] == 100
    assert not found.loc[:149, "anomaly"].any()
    assert found.loc[150, "anomaly"]
    assert found.loc[150, "score"] == 40.0
    assert np.isfinite(found.drop(columns="unique_id").to_numpy(dtype=float)).all()


def test_values_of_any_scale_are_judged_alike(rng):
    df = seasonal(rng, 3)
    expected = detect(df)
    for scale in (1e-9, 1e9):
        found = detect(df.assign(y=scale * df["y"]))
        np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("level", [0, 49.9, 100, 99.995, "99", None, [99], True, np.nan])
def test_levels_are_checked(level):
    with pytest.raises(ValueError, match=r"level must be a percentage from 50 to 99\.99"):
        RBFDiffNet("MS").detect_anomalies(load_air_passengers(), level=level)


@pytest.mark.parametrize("last", [0, -1, 1.5, "all"])
def test_last_is_checked(last):
    with pytest.raises(ValueError, match="last must be a positive integer"):
        RBFDiffNet("MS").detect_anomalies(load_air_passengers(), last=last)


def test_names_of_the_result_are_not_taken():
    df = load_air_passengers().rename(columns={"y": "score"})
    with pytest.raises(ValueError, match="column 'score' of its own"):
        RBFDiffNet("MS", target_col="score").detect_anomalies(df)


def test_some_series_are_judged_by_themselves():
    df = make_stores(60)[["unique_id", "ds", "y", "state"]]
    alone = df.drop(columns="state")
    ids = ["toys@TX_1", "food@CA_1"]
    found = RBFDiffNet("D").detect_anomalies(alone, ids=ids)
    expected = RBFDiffNet("D").detect_anomalies(alone[alone["unique_id"].isin(ids)])
    pd.testing.assert_frame_equal(found, expected)
    groups = RBFDiffNet("D", hierarchy=["state"]).detect_anomalies(df, ids=["CA"])
    sums = df[df["state"] == "CA"].groupby("ds")["y"].sum()
    np.testing.assert_allclose(groups["y"], sums[groups["ds"]])
    with pytest.raises(ValueError, match="There is no series 'x'"):
        RBFDiffNet("D").detect_anomalies(alone, ids=["x"])

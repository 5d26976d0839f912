import inspect
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import utilsforecast.losses as theirs
from utilsforecast.evaluation import evaluate

from rbfdiffnet.evaluation import metrics
from rbfdiffnet.evaluation.metrics import rmsse, rmsse_score, wrmsse

MODELS = ["good", "bad"]
NEVER, CONSTANT, SINGLE, UNKNOWN = "s04", "s05", "s06", "s07"


def panel(seed=0, n_series=12, n_train=40, h=7, awkward=True):
    """Return training and test frames in shuffled order of rows."""
    rng = np.random.default_rng(seed)
    ids = np.repeat([f"s{i:02d}" for i in range(n_series)], n_train + h)
    days = np.tile(pd.date_range("2024-01-01", periods=n_train + h), n_series)
    y = rng.poisson(3.0, size=len(ids)) + 1.0
    frame = pd.DataFrame({"unique_id": ids, "ds": days, "y": y})
    for model, spread in zip(MODELS, (0.5, 2.0), strict=True):
        frame[model] = y + spread * rng.normal(size=len(ids))
    last = frame["ds"] >= frame["ds"].unique()[n_train]
    train, test = frame.loc[~last, ["unique_id", "ds", "y"]], frame[last].copy()
    if awkward:
        day = train.groupby("unique_id").cumcount()
        lead = train["unique_id"].map({"s00": 5, "s01": n_train - 2, "s02": n_train - 1})
        train.loc[day < lead, "y"] = 0.0
        train.loc[train["unique_id"] == NEVER, "y"] = 0.0
        train.loc[train["unique_id"] == CONSTANT, "y"] = 7.0
        train = train[(train["unique_id"] != SINGLE) | (day == 3)]
        train.loc[rng.random(len(train)) < 0.1, "y"] = np.nan
        test.loc[rng.random(len(test)) < 0.1, "y"] = np.nan
        test.loc[test["unique_id"] == UNKNOWN, "y"] = np.nan
        rows = test["unique_id"].isin([NEVER, CONSTANT])
        test.loc[rows, "y"] = test.loc[rows, "good"] = 7.0
    return train.sample(frac=1, random_state=seed), test.sample(frac=1, random_state=seed)


def brute_force(actual, forecast, train):
    """RMSSE in plain Python."""
    errors = [(a - f) ** 2 for a, f in zip(actual, forecast, strict=True) if not math.isnan(a)]
    steps, before = [], None
    for value in train:
        if before is None and (math.isnan(value) or value == 0):
            continue
        if before is not None and not math.isnan(before) and not math.isnan(value):
            steps.append((value - before) ** 2)
        before = value
    if not errors:
        return math.nan
    if sum(steps) == 0:
        return 0.0 if sum(errors) == 0 else math.nan
    return math.sqrt(sum(errors) / len(errors) * len(steps) / sum(steps))


def expected_scores(train, test):
    rows = {}
    for name, part in test.sort_values("ds").groupby("unique_id"):
        past = train[train["unique_id"] == name].sort_values("ds")["y"]
        rows[name] = [brute_force(part["y"], part[model], past) for model in MODELS]
    return pd.DataFrame.from_dict(rows, orient="index", columns=MODELS)


@pytest.mark.parametrize("seed", range(3))
def test_rmsse_is_that_of_plain_loops(seed):
    train, test = panel(seed)
    scores = rmsse(test, MODELS, train)
    expected = expected_scores(train, test)
    assert scores.columns.tolist() == ["unique_id", *MODELS]
    assert scores.index.tolist() == list(range(12))
    pd.testing.assert_frame_equal(
        scores.set_index("unique_id"), expected.rename_axis("unique_id"), rtol=1e-12
    )
    missing = scores.set_index("unique_id").isna()
    assert (scores.set_index("unique_id").loc[[NEVER, CONSTANT], "good"] == 0.0).all()
    assert missing.loc[[NEVER, CONSTANT, SINGLE], "bad"].all()
    assert missing.loc[UNKNOWN].all()


def test_arrays_give_what_frames_give():
    train, test = panel()
    for name, scores in rmsse(test, MODELS, train).set_index("unique_id").iterrows():
        part, past = (f[f["unique_id"] == name].sort_values("ds") for f in (test, train))
        for model in MODELS:
            score = rmsse_score(part["y"], part[model], past["y"])
            assert score == pytest.approx(scores[model], rel=1e-12, nan_ok=True)


def test_without_leading_zeros_it_is_utilsforecasts():
    train, test = panel(awkward=False)
    expected = theirs.rmsse(test, MODELS, seasonality=1, train_df=train.sort_values("ds"))
    pd.testing.assert_frame_equal(rmsse(test, MODELS, train), expected.reset_index(drop=True))


def test_leading_zeros_do_not_count():
    train, test = panel(awkward=False)
    early = train.assign(ds=train["ds"] - pd.Timedelta(days=100), y=0.0)
    expected = rmsse(test, MODELS, train)
    # Nothing but the step of the first sale would be added, and it is left out too.
    pd.testing.assert_frame_equal(rmsse(test, MODELS, pd.concat([early, train])), expected)


@pytest.mark.parametrize("missing", ["null", "NaN"])
@pytest.mark.parametrize("cutoffs", [False, True])
def test_pandas_and_polars_agree(missing, cutoffs):
    train, test = panel()
    if cutoffs:
        test = windows(train, test)
    weights = {name: 1.0 + i for i, name in enumerate(sorted(test["unique_id"].unique()))}
    as_polars = [pl.from_pandas(f, nan_to_null=missing == "null") for f in (test, train)]
    for function, arguments in ((rmsse, ()), (wrmsse, (weights,))):
        expected = function(test, MODELS, train, *arguments)
        found = function(as_polars[0], MODELS, as_polars[1], *arguments)
        assert isinstance(found, pl.DataFrame)
        assert not any(found[model].is_nan().any() for model in MODELS)  # null, so means skip it
        pd.testing.assert_frame_equal(
            found.to_pandas(), expected, rtol=1e-12, check_dtype=False, check_index_type=False
        )


@pytest.mark.parametrize("dtype", ["Float64", "float32"])
def test_other_kinds_of_numbers(dtype):
    train, test = panel()
    kinds = {"y": dtype}
    found = rmsse(test.astype(kinds), MODELS, train.astype(kinds))
    expected = rmsse(test, MODELS, train)
    found[MODELS] = found[MODELS].astype("float64")
    pd.testing.assert_frame_equal(found, expected)


def windows(train, test):
    """Return test rows as of two cutoffs, the earlier one within the training data."""
    days = np.sort(train["ds"].unique())
    late = test.assign(cutoff=days[-1])
    early = train[train["ds"] > days[29]].assign(cutoff=days[29])
    early = early[early["ds"] <= days[35]].assign(good=2.0, bad=3.0)
    early = early[early["unique_id"] != SINGLE]  # it has no value before the cutoff in some draws
    return pd.concat([late, early])


def test_every_cutoff_has_its_own_scale():
    train, test = panel()
    both = windows(train, test)
    scores = rmsse(both, MODELS, train)
    totals = wrmsse(both, MODELS, train, dict.fromkeys(both["unique_id"], 1.0))
    assert scores.columns.tolist() == ["cutoff", "unique_id", *MODELS]
    assert totals["cutoff"].is_monotonic_increasing
    for cutoff, part in both.groupby("cutoff"):
        past = train[train["ds"] <= cutoff]
        alone = rmsse(part.drop(columns="cutoff"), MODELS, past)
        found = scores.loc[scores["cutoff"] == cutoff, ["unique_id", *MODELS]]
        pd.testing.assert_frame_equal(found.reset_index(drop=True), alone)
        total = totals.loc[totals["cutoff"] == cutoff, MODELS].iloc[0]
        np.testing.assert_allclose(total, alone[MODELS].mean(), rtol=1e-12)


def test_wrmsse_leaves_missing_scores_out_with_their_weights():
    train, test = panel()
    rng = np.random.default_rng(1)
    weights = pd.DataFrame(
        {"unique_id": [f"s{i:02d}" for i in range(15)], "weight": rng.random(15)}
    )
    scores = rmsse(test, MODELS, train).merge(weights)
    found = wrmsse(test, MODELS, train, weights)
    assert found.shape == (1, 2)
    for model in MODELS:
        kept = scores.dropna(subset=model)
        expected = np.average(kept[model], weights=kept["weight"])
        assert found[model].item() == pytest.approx(expected, rel=1e-12)
    table = dict(zip(weights["unique_id"], 5 * weights["weight"], strict=True))
    for other in (table, pl.from_pandas(weights.sample(frac=1, random_state=0))):
        pd.testing.assert_frame_equal(wrmsse(test, MODELS, train, other), found)


def test_wrmsse_of_equal_weights_is_the_mean():
    train, test = panel()
    found = wrmsse(test, MODELS, train, dict.fromkeys(test["unique_id"], 3))
    np.testing.assert_allclose(found.iloc[0], rmsse(test, MODELS, train)[MODELS].mean())


def test_wrmsse_without_any_score_is_missing():
    train, test = panel()
    weights = dict.fromkeys(test["unique_id"], 0.0) | {CONSTANT: 1.0}
    found = wrmsse(test, MODELS, train, weights)
    assert found["good"].item() == 0.0
    assert math.isnan(found["bad"].item())


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_evaluate_takes_it(library):
    train, test = (library(f.to_dict("list")) for f in panel(awkward=False))
    kinds = [metrics.mae, metrics.rmse, rmsse]
    table = evaluate(test, metrics=kinds, models=MODELS, train_df=train)
    table = pd.DataFrame(table.to_dict("list") if library is pd.DataFrame else table.to_dict())
    found = table[table["metric"] == "rmsse"].sort_values("unique_id")
    expected = rmsse(test, MODELS, train)
    np.testing.assert_allclose(found[MODELS], expected[MODELS].to_numpy())


def test_evaluate_leaves_missing_scores_out_of_means():
    train, test = panel()
    scores = rmsse(test, MODELS, train)
    for frames in ((test, train), (pl.from_pandas(test), pl.from_pandas(train))):
        mean = evaluate(frames[0], metrics=[rmsse], train_df=frames[1], agg_fn="mean")
        np.testing.assert_allclose(mean[MODELS].to_numpy()[0], scores[MODELS].mean())


@pytest.mark.skipif(
    "weights" not in inspect.signature(evaluate).parameters, reason="an older utilsforecast"
)
def test_wrmsse_is_evaluates_weighted_mean():
    train, test = panel()
    weights = pd.DataFrame({"unique_id": test["unique_id"].unique(), "weight": range(1, 13)})
    expected = evaluate(
        test, metrics=[rmsse], train_df=train, agg_fn="weighted_mean", weights=weights
    )
    np.testing.assert_allclose(wrmsse(test, MODELS, train, weights)[MODELS], expected[MODELS])


def test_other_column_names_and_ids():
    train, test = panel()
    names = {"unique_id": "item", "ds": "day", "y": "sales"}
    renamed = [f.rename(columns=names).astype({"item": "category"}) for f in (test, train)]
    columns = {"id_col": "item", "target_col": "sales", "time_col": "day"}
    found = rmsse(renamed[0], MODELS, renamed[1], **columns)
    expected = rmsse(test, MODELS, train)
    np.testing.assert_allclose(found[MODELS], expected[MODELS])
    assert found["item"].tolist() == expected["unique_id"].tolist()
    weights = dict.fromkeys(expected["unique_id"], 1.0)
    total = wrmsse(renamed[0], MODELS, renamed[1], weights, **columns)
    pd.testing.assert_frame_equal(total, wrmsse(test, MODELS, train, weights))


def test_the_arguments_are_left_alone():
    train, test = panel()
    copies = train.copy(), test.copy()
    rmsse(test, MODELS, train)
    for frame, copy in zip((train, test), copies, strict=True):
        pd.testing.assert_frame_equal(frame, copy)


def test_scores_do_not_depend_on_the_unit():
    train, test = panel()
    scaled = [f.assign(**{c: 1e3 * f[c] for c in f if c not in ("unique_id", "ds")})
              for f in (test, train)]  # fmt: skip
    pd.testing.assert_frame_equal(rmsse(scaled[0], MODELS, scaled[1]), rmsse(test, MODELS, train))


@pytest.mark.parametrize("library", [lambda f: f, pl.from_pandas])
def test_missing_parts_are_named(library):
    train, test = panel(awkward=False)
    hole = test["unique_id"].eq("s03") & test["ds"].eq(test["ds"].max())
    broken = test.assign(bad=test["bad"].mask(hole))
    message = r"Column 'bad' has no forecast for unique_id=s03, ds=2024-02-16.*1 such row"
    with pytest.raises(ValueError, match=message):
        rmsse(library(broken), MODELS, library(train))
    with pytest.raises(ValueError, match=r"train_df has no rows for unique_id=s05 \(1 such"):
        rmsse(library(test), MODELS, library(train[train["unique_id"] != "s05"]))


def test_bad_weights_are_named():
    train, test = panel(awkward=False)
    weights = dict.fromkeys(test["unique_id"], 1.0)
    for value in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"weight of series 's02' is {value}"):
            wrmsse(test, MODELS, train, weights | {"s02": value})
    del weights["s09"]
    with pytest.raises(ValueError, match="weights has none for series 's09'"):
        wrmsse(test, MODELS, train, weights)
    twice = pd.DataFrame({"unique_id": [*test["unique_id"].unique(), "s04"], "weight": 1.0})
    with pytest.raises(ValueError, match="several rows for series 's04'"):
        wrmsse(test, MODELS, train, twice)


@pytest.mark.parametrize(
    ("actual", "forecast", "train", "expected"),
    [
        ([1, 3], [2, 2], [1, 3, 1, 3], 0.5),
        ([1, 3], [2, 2], [0, 0, 0, 1, 3, 1, 3], 0.5),
        ([1, math.nan], [2, 9], [math.nan, 0, 1, 3], 0.5),
        ([1, 3], [2, 2], [1, 3, math.nan, 30], 0.5),
        ([4, 4], [4, 4], [4, 4, 4], 0.0),
        ([4, 4], [4, 5], [4, 4, 4], math.nan),
        ([0, 0], [0, 0], [0, 0, 0], 0.0),
        ([0, 1], [0, 0], [0, 0, 0], math.nan),
        ([1, 1], [1, 1], [5], 0.0),
        ([1, 1], [1, 1], [], 0.0),
        ([math.nan], [1], [1, 2], math.nan),
        ([1, 2], [1, math.nan], [1, 2], math.nan),
    ],
)
def test_score_by_hand(actual, forecast, train, expected):
    assert rmsse_score(actual, forecast, train) == pytest.approx(expected, nan_ok=True)


def test_score_rejects_shapes():
    with pytest.raises(ValueError, match=r"same length.*\(2,\), \(1,\) and \(3,\)"):
        rmsse_score([1, 2], [1], [1, 2, 3])


def test_the_usual_metrics_are_utilsforecasts():
    own = {name for name in metrics.__all__ if "rbfdiffnet" in getattr(metrics, name).__module__}
    assert own >= {"rmsse", "wrmsse", "winkler_score", "evaluate_quantiles", "revisions"}
    for name in set(metrics.__all__) - own:
        assert getattr(metrics, name).__wrapped__ is getattr(theirs, name)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("nothing", [None, np.nan])
def test_values_that_are_missing_do_not_count(library, nothing):
    """They would be outside of intervals, and None has no order."""
    y = pd.Series([1.0, nothing, 3.0, 9.0], dtype=object)
    df = pd.DataFrame({"unique_id": list("aabb"), "ds": [1, 2, 1, 2], "y": y, "m": 2.0})
    df = df.assign(**{"m-lo-80": 0.0, "m-hi-80": 4.0})
    train = df.assign(ds=df["ds"] - 2)
    known = df[df["y"].notna()].astype({"y": float})
    past = train.astype({"y": float})
    if library == "polars":
        polars = pytest.importorskip("polars")
        df, train, known, past = (
            polars.from_pandas(x.astype({"y": float})) for x in (df, train, known, past)
        )
    settings = {
        "coverage": {"level": 80},
        "mase": {"seasonality": 1, "train_df": train},
        "calibration": {"models": {"m": "m"}},
        "quantile_loss": {"models": {"m": "m"}},
        "mqloss": {"models": {"m": ["m"]}, "quantiles": np.array([0.5])},
        "scaled_crps": {"models": {"m": ["m"]}, "quantiles": np.array([0.5])},
    }
    for name in set(metrics.__all__) & set(dir(theirs)) - {"rmsse", "winkler_score"}:
        own = {"models": ["m"], **settings.get(name, {})}
        found = getattr(metrics, name)(df, **own)
        if name == "mase":
            own["train_df"] = past
        expected = getattr(theirs, name)(known, **own)
        found, expected = (
            dict(zip(x["unique_id"], x["m"], strict=True)) for x in (found, expected)
        )
        assert found == pytest.approx(expected, nan_ok=True), name
    assert list(metrics.coverage(df, ["m"], 80)["m"]) == [1.0, 0.5]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_series_without_a_known_value_stay_and_infinite_values_count(library):
    y = [1.0, np.nan, np.nan, np.nan, np.inf]
    df = pd.DataFrame({"unique_id": list("aabbc"), "ds": [1, 2, 1, 2, 1], "y": y, "m": 1.5})
    if library == "polars":
        df = pytest.importorskip("polars").from_pandas(df)
    found = metrics.mae(df, ["m"])
    assert list(found["unique_id"]) == ["a", "b", "c"]
    assert np.array(found["m"], dtype=float) == pytest.approx([0.5, np.nan, np.inf], nan_ok=True)

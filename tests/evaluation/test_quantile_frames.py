"""All scores of quantiles and intervals in frames."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import utilsforecast.losses as theirs

from panels import make_panel, to_polars
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import daily_demand
from rbfdiffnet.evaluation.metrics import (
    ensemble_crps,
    evaluate_quantiles,
    path_crps,
    quantile_columns,
    winkler_score,
)

LEVELS = (80, 95)


def folds(models=("M", "other-lo-model"), n_series=3, h=6, n_windows=4, step=3, seed=0):
    """A backtest with intervals and a quantile of each model, in shuffled order of rows."""
    rng = np.random.default_rng(seed)
    days = pd.date_range("2024-01-01", periods=60)
    y = 10 + rng.normal(0, 2, size=(n_series, 60)) + 5 * np.arange(n_series)[:, None]
    rows = []
    for window in range(n_windows):
        origin = 30 + step * window
        for i in range(n_series):
            part = slice(origin + 1, origin + 1 + h)
            rows.append(pd.DataFrame(
                {"unique_id": f"s{i}", "ds": days[part], "cutoff": days[origin], "y": y[i, part]}
            ))  # fmt: skip
    frame = pd.concat(rows, ignore_index=True)
    for k, model in enumerate(models):
        frame[model] = point = frame["y"] + rng.normal(0, 2 + k, len(frame))
        for level, width in zip(LEVELS, (2.5, 4.0), strict=True):
            frame[f"{model}-lo-{level}"] = point - width
            frame[f"{model}-hi-{level}"] = point + width
        frame[f"{model}-q-25"] = point - 1.3
    frame["store"] = "north"
    return frame.sample(frac=1, random_state=seed)


def test_columns_are_found_by_their_names():
    found = quantile_columns(folds())
    assert list(found) == ["M", "other-lo-model"]
    assert found["M"] == {
        0.025: "M-lo-95", 0.1: "M-lo-80", 0.25: "M-q-25", 0.5: "M", 0.9: "M-hi-80",
        0.975: "M-hi-95",
    }  # fmt: skip
    assert list(quantile_columns(folds(), ["other-lo-model"])) == ["other-lo-model"]


@pytest.mark.parametrize(
    ("columns", "models", "expected"),
    [
        (["M", "M-q-50"], None, {"M": {0.5: "M-q-50"}}),  # a median, so the forecast is none
        (["M-q-10", "M-q-90"], None, {"M": {0.1: "M-q-10", 0.9: "M-q-90"}}),
        (["M", "M-lo-80", "M-q-10"], None, {"M": {0.1: "M-q-10", 0.5: "M"}}),
        (["M", "M-q-10", "M-lo-80"], None, {"M": {0.1: "M-q-10", 0.5: "M"}}),
        (["M", "M-lo-99.9", "N"], None, {"M": {0.0005: "M-lo-99.9", 0.5: "M"}}),
        (["N"], ["N"], {"N": {0.5: "N"}}),
        # A model whose name ends like that of a quantile:
        (["A-lo-80", "A-lo-80-lo-90"], None, {"A-lo-80": {0.05: "A-lo-80-lo-90", 0.5: "A-lo-80"}}),
        (["A", "A-q-5"], ["A", "A-q-5"], {"A": {0.5: "A"}, "A-q-5": {0.5: "A-q-5"}}),
        (["a-hi-b-q-7.5"], None, {"a-hi-b": {0.075: "a-hi-b-q-7.5"}}),
    ],
)  # fmt: skip
def test_names_of_any_kind(columns, models, expected):
    frame = pd.DataFrame({"unique_id": ["a"], "ds": 1, "y": 1.0, **dict.fromkeys(columns, 1.0)})
    assert quantile_columns(frame, models) == expected
    assert quantile_columns(pl.from_pandas(frame), models) == expected


def by_hand(rows, model="M"):
    """All scores in plain loops."""
    probability = {
        "lo-95": 0.025,
        "lo-80": 0.1,
        "q-25": 0.25,
        "": 0.5,
        "hi-80": 0.9,
        "hi-95": 0.975,
    }
    rows = rows.to_dict("records")
    losses, below = [], dict.fromkeys(probability, 0)
    for row in rows:
        for end, p in probability.items():
            q = row[f"{model}-{end}".rstrip("-")]
            losses.append(p * (row["y"] - q) if row["y"] >= q else (1 - p) * (q - row["y"]))
            below[end] += row["y"] <= q
    n, mean = len(rows), float(np.mean(losses))
    found = {"n": n, "crps": 2 * mean, "wql": 2 * mean / np.mean([abs(row["y"]) for row in rows])}
    for level, alpha in ((80, 0.2), (95, 0.05)):
        ends = [(row["y"], row[f"{model}-lo-{level}"], row[f"{model}-hi-{level}"]) for row in rows]
        found[f"coverage-{level}"] = sum(low <= y <= high for y, low, high in ends) / n
        found[f"width-{level}"] = sum(high - low for _, low, high in ends) / n
        found[f"winkler-{level}"] = sum(
            high - low + 2 / alpha * (max(low - y, 0) + max(y - high, 0)) for y, low, high in ends
        ) / n  # fmt: skip
    return found | {f"below-{100 * probability[end]:g}": k / n for end, k in below.items()}


@pytest.mark.parametrize("by", [None, "unique_id", "cutoff", "horizon", "store"])
def test_scores_are_those_of_plain_loops(by):
    frame = folds()
    frame.loc[frame.index % 7 == 0, "y"] = np.nan
    frame.loc[frame.index % 11 == 3, "M-lo-80"] = np.nan
    known = frame.dropna().assign(horizon=lambda f: (f["ds"] - f["cutoff"]).dt.days)
    found = evaluate_quantiles(frame, by=by)
    groups = [(None, known)] if by is None else list(known.groupby(by))
    assert found["model"].tolist() == ["M"] * len(groups) + ["other-lo-model"] * len(groups)
    assert set(found["quantiles"]) == {"2.5, 10, 25, 50, 90, 97.5"}
    for k, model in enumerate(("M", "other-lo-model")):
        for j, (key, rows) in enumerate(groups):
            row = found.iloc[k * len(groups) + j]
            assert by is None or row[by] == key
            for name, value in by_hand(rows, model).items():
                assert row[name] == pytest.approx(value, rel=1e-12), name
    kinds = [name.split("-")[0] for name in found.columns]
    assert list(dict.fromkeys(kinds)) == [
        "model", *([by] if by else []), "n", "quantiles", "wql", "crps", "coverage", "winkler",
        "width", "below",
    ]  # fmt: skip


def test_scores_are_those_of_utilsforecast():
    frame = folds().drop(columns="cutoff").drop_duplicates(["unique_id", "ds"])
    found = evaluate_quantiles(frame, ["M"], by="unique_id").set_index("unique_id")
    columns = quantile_columns(frame)["M"]
    quantiles, names = np.array([*columns]), {"M": [*columns.values()]}
    pairs = {
        "wql": theirs.scaled_crps(frame, names, quantiles),
        "coverage-80": theirs.coverage(frame, ["M"], 80),
        "below-10": theirs.calibration(frame, {"M": "M-lo-80"}),
    }
    mqloss = theirs.mqloss(frame, names, quantiles).set_index("unique_id").sort_index()
    np.testing.assert_allclose(found["crps"], 2 * mqloss["M"], rtol=1e-12)
    for name, table in pairs.items():
        expected = table.set_index("unique_id")["M"]
        pd.testing.assert_series_equal(found[name], expected, check_names=False, rtol=1e-12)


@pytest.mark.skipif(not hasattr(theirs, "winkler_score"), reason="an older utilsforecast")
@pytest.mark.parametrize("cutoffs", [True, False])
@pytest.mark.parametrize("library", [lambda frame: frame, pl.from_pandas])
def test_the_winkler_score_is_utilsforecasts(cutoffs, library):
    frame = folds() if cutoffs else folds().drop(columns="cutoff")
    frame, models = library(frame), ["M", "other-lo-model"]
    for level in LEVELS:
        found, expected = (f(frame, models, level) for f in (winkler_score, theirs.winkler_score))
        assert list(found.columns) == list(expected.columns)
        np.testing.assert_allclose(found[models], expected[models], rtol=1e-12)


def test_the_winkler_score_skips_missing_values():
    frame = folds().drop(columns="cutoff")
    holes = frame.assign(y=frame["y"].mask(frame.index % 3 == 0))
    expected = winkler_score(holes.dropna(), ["M"], 80)
    pd.testing.assert_frame_equal(winkler_score(holes, ["M"], 80), expected)
    as_polars = winkler_score(pl.from_pandas(holes, nan_to_null=False), ["M"], 80)
    np.testing.assert_allclose(as_polars["M"], expected["M"])
    assert winkler_score(frame.assign(y=np.nan), ["M"], 80)["M"].isna().all()
    with pytest.raises(ValueError, match="level must be a number above 0 and below 100; got 100"):
        winkler_score(frame, ["M"], 100)
    with pytest.raises(ValueError, match="no column 'M-lo-70'"):
        winkler_score(frame, ["M"], 70)


@pytest.mark.parametrize("by", [None, "unique_id", "horizon", "cutoff"])
@pytest.mark.parametrize("missing", ["null", "NaN"])
def test_polars_gives_what_pandas_gives(by, missing):
    frame = folds()
    frame.loc[frame["unique_id"] == "s1", "y"] = np.nan
    frame["N-q-10"] = frame["M-q-25"]  # a model with less than the others
    expected = evaluate_quantiles(frame, by=by)
    found = evaluate_quantiles(pl.from_pandas(frame, nan_to_null=missing == "null"), by=by)
    assert isinstance(found, pl.DataFrame)
    assert not any(found[c].is_nan().any() for c in found.columns if found[c].dtype == pl.Float64)
    pd.testing.assert_frame_equal(found.to_pandas(), expected, check_dtype=False, rtol=1e-12)
    if by == "unique_id":
        assert found["n"].to_list()[:3] == [24, 0, 24]
        assert expected.loc[1, "wql":].isna().all()
    assert expected.loc[expected["model"] == "N", "coverage-80"].isna().all()


@pytest.mark.parametrize("by", [None, "unique_id", "horizon"])
def test_the_order_of_rows_and_their_labels_do_not_matter(by):
    frame = folds()
    expected = evaluate_quantiles(frame, by=by)
    other = frame.sort_values(["ds", "unique_id"]).set_index(np.arange(len(frame)) % 5)
    pd.testing.assert_frame_equal(evaluate_quantiles(other, by=by), expected)


@pytest.mark.parametrize(
    ("freq", "dates"),
    [
        (None, pd.date_range("2024-01-31", periods=9, freq="ME")),
        ("B", pd.date_range("2024-01-01", periods=9, freq="B")),
        (None, pd.date_range("2024-03-30", periods=9, tz="Europe/Berlin")),
        (None, np.arange(3, 30, 3)),
        ("D", pd.date_range("2024-01-01", periods=9)),
        (3, np.arange(3, 30, 3)),
    ],
)
def test_steps_ahead_are_steps_of_time(freq, dates):
    """One window has a row missing, so its rows are not steps 1, 2, 3, ..."""
    frame = pd.DataFrame(
        {"unique_id": "a", "ds": dates[3:], "cutoff": dates[2], "y": 1.0, "M": 1.0}
    )
    both = pd.concat([frame.drop(index=1), frame[2:].assign(cutoff=dates[4], unique_id="b")])
    both["M-q-10"] = 0.0
    found = evaluate_quantiles(both, by="horizon", freq=freq)
    assert found["horizon"].tolist() == [1, 2, 3, 4, 5, 6]
    assert found["n"].tolist() == [2, 1, 2, 2, 1, 1]
    alone = both[both["unique_id"] == "a"].drop(columns="cutoff")  # from the first date on
    assert evaluate_quantiles(alone, by="horizon", freq=freq)["horizon"].tolist() == [1, 3, 4, 5, 6]


def test_ids_of_other_kinds_and_other_names():
    frame = folds()
    expected = evaluate_quantiles(frame, by="unique_id")
    kinds = frame.assign(unique_id=frame["unique_id"].astype("category"))
    assert evaluate_quantiles(kinds, by="unique_id")["unique_id"].tolist() == ["s0", "s1", "s2"] * 2
    names = {"unique_id": "item", "ds": "day", "y": "sales", "cutoff": "origin"}
    given = {"id_col": "item", "time_col": "day", "target_col": "sales", "cutoff_col": "origin"}
    found = evaluate_quantiles(frame.rename(columns=names), by="item", **given)
    pd.testing.assert_frame_equal(found.rename(columns={"item": "unique_id"}), expected)
    assert len(evaluate_quantiles(frame.rename(columns=names), by="horizon", **given)) == 12


def test_repeated_dates_need_cutoffs_to_count_steps():
    df = make_panel("ab", n=60)
    cv = RBFDiffNet("D", preset="instant").cross_validation(df, 3, 2, step_size=1, level=[80])
    alone = cv.drop(columns="cutoff")
    for frame in (alone, to_polars(alone)):
        with pytest.raises(ValueError, match=r"Series 'a' has several rows for 2023-.*'cutoff'"):
            evaluate_quantiles(frame, by="horizon")
    assert len(evaluate_quantiles(alone)) == 1
    assert evaluate_quantiles(cv, by="horizon")["n"].tolist() == [4, 4, 4]


def test_calibration_by_horizon_of_a_backtest():
    df = daily_demand(n_series=3, n_days=150).drop(columns="promotion")
    model = RBFDiffNet(freq="D", preset="instant")
    cv = model.cross_validation(df, h=5, n_windows=3, level=[80])
    found = evaluate_quantiles(cv, by="horizon")
    assert found["horizon"].tolist() == [1, 2, 3, 4, 5]
    assert found["n"].tolist() == [9] * 5
    inside = cv["y"].between(cv["RBFDiffNet-lo-80"], cv["RBFDiffNet-hi-80"])
    ahead = (cv["ds"] - cv["cutoff"]).dt.days
    np.testing.assert_allclose(found["coverage-80"], inside.groupby(ahead).mean())


@pytest.mark.parametrize("library", [lambda frame: frame, pl.from_pandas])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda f: f[:0], ValueError, "The frame has no rows"),
        (lambda f: f.drop(columns="y"), ValueError, "no column 'y'"),
        (lambda f: f.drop(columns="ds"), ValueError, "no column 'ds'"),
        (lambda f: f.assign(y=np.nan), ValueError, "No row has both a value in 'y' and all quant"),
        (lambda f: f[["unique_id", "ds", "y", "M", "store"]], ValueError, "no column of a q"),
        (lambda f: f.assign(**{"M-q-10": "a"}), TypeError, "Column 'M-q-10' must hold numbers"),
        (lambda f: f.assign(**{"M-q-100": 1.0}), ValueError, "'M-q-100': levels and quantiles"),
        (lambda f: f.assign(**{"M-lo-100": 1.0}), ValueError, "'M-lo-100': levels and quantiles"),
        (lambda f: f.assign(cutoff=f["ds"]), ValueError, "is not before its date"),
        (lambda f: f.assign(cutoff=f["cutoff"].where(f["unique_id"] != "s1")), ValueError,
         "Series 's1': column 'cutoff' has no value in row"),
        (lambda f: f.assign(cutoff=3), TypeError, "must both hold dates or both"),
        (lambda f: f.assign(unique_id=f["unique_id"].where(f["unique_id"] != "s1")), ValueError,
         "Column 'unique_id' has no value in row"),
    ],
)  # fmt: skip
def test_bad_frames_are_explained(library, change, error, message):
    with pytest.raises(error, match=message):
        evaluate_quantiles(library(change(folds())), by="horizon")


def test_bad_arguments_are_explained():
    frame = folds()
    with pytest.raises(ValueError, match="no forecasts of the model 'X', only the columns 'M'"):
        evaluate_quantiles(frame, ["X"])
    with pytest.raises(ValueError, match="models must be a list of names; got 'M'"):
        evaluate_quantiles(frame, "M")
    with pytest.raises(
        ValueError, match="by must be 'horizon' or a column of the frame; got 'step"
    ):
        evaluate_quantiles(frame, by="step")
    with pytest.raises(ValueError, match="by must be the name of a column; got 3"):
        evaluate_quantiles(frame, by=3)
    with pytest.raises(ValueError, match=r"Column 'y' holds 1e\+300; values must lie between"):
        evaluate_quantiles(frame.assign(y=1e300))
    with pytest.raises(ValueError, match="models must be a list of at least one name; got "):
        evaluate_quantiles(frame, [3])
    with pytest.raises(ValueError, match="freq='1' does not suit 'ds', which holds dates"):
        evaluate_quantiles(frame, by="horizon", freq=1)
    single = frame.drop(columns="cutoff").drop_duplicates("unique_id")
    with pytest.raises(ValueError, match="cannot be told from 'ds'; pass freq"):
        evaluate_quantiles(single, by="horizon")
    with pytest.raises(TypeError, match="A pandas or polars data frame is needed"):
        evaluate_quantiles([1, 2])
    with pytest.raises(ValueError, match="by='model' is a column of the result, too"):
        evaluate_quantiles(frame.assign(model=1), by="model")
    with pytest.raises(ValueError, match="Column 'store' has no value in row"):
        evaluate_quantiles(frame.assign(store=None), by="store")


def paths_of(frame, n_paths=5, seed=1):
    rng = np.random.default_rng(seed)
    many = pd.concat([frame.assign(path=k) for k in range(n_paths)])
    many["M"] = many["y"] + rng.normal(size=len(many))
    return many.sample(frac=1, random_state=seed)


@pytest.mark.parametrize("fair", [True, False])
@pytest.mark.parametrize("cutoffs", [True, False])
def test_sample_paths_score_as_arrays_of_samples(fair, cutoffs):
    frame = folds()[["unique_id", "ds", "cutoff", "y"]]
    if not cutoffs:
        frame = frame.drop(columns="cutoff").drop_duplicates(["unique_id", "ds"])
    paths = paths_of(frame)
    paths = paths[(paths["path"] < 3) | (paths["unique_id"] != "s1")]  # fewer paths of s1
    keys = ["cutoff", "unique_id"] if cutoffs else ["unique_id"]
    expected = {}
    for key, rows in paths.groupby([*keys, "ds"]):
        score = ensemble_crps(rows["y"].iloc[0], rows["M"].to_numpy(), fair)
        expected.setdefault(key[:-1], []).append(score)
    found = path_crps(paths, ["M"], fair)
    assert found.columns.tolist() == [*keys, "M"]
    assert [*found[keys].itertuples(index=False, name=None)] == [*expected]
    np.testing.assert_allclose(found["M"], [np.mean(own) for own in expected.values()], rtol=1e-12)
    as_polars = path_crps(pl.from_pandas(paths), ["M"], fair)
    np.testing.assert_allclose(as_polars["M"], found["M"], rtol=1e-12)


def test_dates_without_values_or_paths_are_skipped():
    paths = paths_of(folds()[["unique_id", "ds", "cutoff", "y"]].drop(columns="cutoff"))
    paths = paths.assign(N=paths["M"])
    last = paths["ds"] == paths["ds"].max()
    expected = path_crps(paths[~last], ["M"])
    holes = paths.assign(y=paths["y"].mask(last), N=np.nan)
    found = path_crps(holes, ["M", "N"])
    pd.testing.assert_frame_equal(found[["unique_id", "M"]], expected)
    assert found["N"].isna().all()
    single = paths.drop_duplicates(["unique_id", "ds"])
    assert path_crps(single, ["M"])["M"].isna().all()
    absolute = (single["M"] - single["y"]).abs().groupby(single["unique_id"]).mean()
    np.testing.assert_allclose(path_crps(single, ["M"], fair=False)["M"], absolute)

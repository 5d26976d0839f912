"""How much forecasts of the same date moved from one origin to the next."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import daily_demand
from rbfdiffnet.evaluation.metrics import revisions, summarize_revisions

MODELS = ["good", "bad-lo-one"]


def folds(step=2, h=6, n_windows=5, seed=0):
    """Overlapping windows of three series with missing values and forecasts, shuffled."""
    rng = np.random.default_rng(seed)
    days = pd.date_range("2024-01-01", periods=60)
    y = rng.normal(10, 2, size=(3, 60))
    rows = []
    for i in range(3):
        for window in range(n_windows):
            origin = 30 + step * window
            for k in range(1, h + 1):
                forecasts = y[i, origin + k] + rng.normal(size=2)
                rows.append((f"s{i}", days[origin + k], days[origin], y[i, origin + k], *forecasts))
    frame = pd.DataFrame(rows, columns=["unique_id", "ds", "cutoff", "y", *MODELS])
    frame.loc[rng.random(len(frame)) < 0.1, "good"] = np.nan
    frame.loc[frame["ds"] == days[36], "y"] = np.nan
    frame["good-lo-80"], frame["good-q-5"], frame["store"] = 0.0, 0.0, "north"
    return frame.sample(frac=1, random_state=seed)


def by_hand(frame, model):
    """The revision of each row, by going through all other rows."""
    found = []
    for row in frame.to_dict("records"):
        same = frame[(frame["unique_id"] == row["unique_id"]) & (frame["ds"] == row["ds"])]
        earlier = same[same["cutoff"] < row["cutoff"]].sort_values("cutoff")
        found.append(row[model] - earlier[model].iloc[-1] if len(earlier) else np.nan)
    return np.array(found)


@pytest.mark.parametrize("step", [1, 2, 5])
def test_revisions_are_those_of_plain_loops(step):
    frame = folds(step)
    found = revisions(frame)
    assert found.columns.tolist() == [*frame.columns, "good-revision", "bad-lo-one-revision"]
    pd.testing.assert_frame_equal(found[frame.columns], frame)  # the rows as they were
    for model in MODELS:
        np.testing.assert_allclose(found[f"{model}-revision"], by_hand(frame, model), rtol=1e-12)
    assert revisions(frame, ["good-q-5"])["good-q-5-revision"].dropna().eq(0.0).all()


def test_the_summary_is_that_of_plain_loops():
    frame = folds()
    found = summarize_revisions(frame)
    assert list(found) == ["model", "horizon", "n", "revision", "mae", "mae_before", "relative"]
    expected = []
    for model in MODELS:
        moved = by_hand(frame, model)
        table = frame.assign(moved=moved, h=(frame["ds"] - frame["cutoff"]).dt.days)
        for h, own in table[np.isfinite(moved) & frame["y"].notna()].groupby("h"):
            later, earlier = own[model] - own["y"], own[model] - own["moved"] - own["y"]
            sizes = [np.abs(x).mean() for x in (own["moved"], later, earlier)]
            expected.append([model, h, len(own), *sizes, sizes[0] / sizes[1]])
    assert found[["model", "horizon", "n"]].to_numpy().tolist() == [row[:3] for row in expected]
    assert found["horizon"].tolist() == [1, 2, 3, 4] * 2  # from the last two steps none moved
    np.testing.assert_allclose(
        found.iloc[:, 3:].to_numpy(), np.array([row[3:] for row in expected]), rtol=1e-12
    )


@pytest.mark.parametrize("missing", ["null", "NaN"])
def test_polars_gives_what_pandas_gives(missing):
    frame = folds()
    given = pl.from_pandas(frame, nan_to_null=missing == "null")
    for function in (revisions, summarize_revisions):
        found, expected = function(given), function(frame).reset_index(drop=True)
        assert isinstance(found, pl.DataFrame)
        pd.testing.assert_frame_equal(found.to_pandas(), expected, check_dtype=False, rtol=1e-12)
    assert revisions(given)["good-revision"].null_count() > 0
    assert not revisions(given)["good-revision"].is_nan().any()


def test_the_order_of_rows_and_their_labels_do_not_matter():
    frame = folds()
    other = frame.sort_values(["cutoff", "ds"])
    pd.testing.assert_frame_equal(revisions(other).loc[frame.index], revisions(frame))
    pd.testing.assert_frame_equal(summarize_revisions(other), summarize_revisions(frame))
    twice = frame.set_index(np.arange(len(frame)) % 7)
    np.testing.assert_array_equal(
        revisions(twice)["good-revision"], revisions(frame)["good-revision"]
    )


def test_forecasts_that_never_err_have_no_relative_revision():
    frame = folds().dropna()
    found = summarize_revisions(frame.assign(good=frame["y"]), ["good"])
    assert (found["revision"] == 0.0).all()
    assert found["relative"].isna().all()


def test_revisions_of_a_backtest():
    df = daily_demand(n_series=2, n_days=120).drop(columns="promotion")
    model = RBFDiffNet(freq="D", preset="instant")
    cv = model.cross_validation(df, h=4, n_windows=4, step_size=1, level=[80])
    found = revisions(cv)
    assert found.columns[-1] == "RBFDiffNet-revision"
    assert found["RBFDiffNet-revision"].notna().sum() == 2 * 3 * 3
    assert summarize_revisions(cv)["horizon"].tolist() == [1, 2, 3]
    names = {"unique_id": "item", "ds": "day", "y": "sales", "cutoff": "origin"}
    given = {"id_col": "item", "time_col": "day", "target_col": "sales", "cutoff_col": "origin"}
    renamed = revisions(cv.rename(columns=names), **given)
    np.testing.assert_array_equal(renamed["RBFDiffNet-revision"], found["RBFDiffNet-revision"])


@pytest.mark.parametrize("library", [lambda frame: frame, pl.from_pandas])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[:0], "The frame has no rows"),
        (lambda f: f.drop(columns="cutoff"), "no column 'cutoff'; give what"),
        (lambda f: f[["unique_id", "ds", "cutoff", "y", "store"]], "no column of forecasts"),
        (lambda f: f.drop_duplicates(["unique_id", "ds"]), "No date was forecast from two cutoffs"),
        (lambda f: pd.concat([f, f[f["unique_id"] == "s1"]]), "Series 's1': .* was forecast twice"),
        (lambda f: f.assign(**{"good-revision": 1.0}), "has a column 'good-revision' already"),
    ],
)
def test_bad_frames_are_explained(library, change, message):
    with pytest.raises(ValueError, match=message):
        revisions(library(change(folds())))


def test_bad_arguments_are_explained():
    with pytest.raises(ValueError, match="no forecasts 'X', only the columns 'good'"):
        revisions(folds(), ["X"])
    with pytest.raises(ValueError, match="models must be a list of names; got 'good'"):
        summarize_revisions(folds(), "good")
    with pytest.raises(ValueError, match="No revised forecast is of a date whose 'y' is known"):
        summarize_revisions(folds().assign(y=np.nan))
    with pytest.raises(TypeError, match="Column 'store' must hold numbers"):
        revisions(folds(), ["store"])

"""The forecaster with scope="auto": backtests, updates and files."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal

from panels import NAME, every_series, future_of, make_panel, to_polars
from rbfdiffnet import RBFDiffNet
from stacks import auto, frame, walks


@pytest.mark.parametrize("refit", [pytest.param(True, marks=pytest.mark.slow), False, 2])
def test_backtests_are_forecasts_of_cut_series(rng, refit):
    df = frame(walks(rng, (60, 45, 70, 50)) | {"short": np.arange(7.0)})
    found = auto().cross_validation(df, 4, n_windows=3, step_size=3, level=[80], refit=refit)
    ends = df.groupby("unique_id")["ds"].max()
    for back in (10, 7, 4):
        expected = auto().forecast(every_series(df, slice(-back)), 4, level=[80])
        cutoffs = found["unique_id"].map(ends) - found["cutoff"]
        months = (cutoffs.dt.days / 30.44).round()
        both = found[months == back].merge(expected, on=["unique_id", "ds"])
        assert len(both) == (months == back).sum() == 16 + 4 * (back == 4)
        assert_allclose(both[f"{NAME}_x"], both[f"{NAME}_y"], rtol=1e-9)
        own = both[both["unique_id"] != "short"]  # it borrows its errors
        for column in (f"{NAME}-lo-80", f"{NAME}-hi-80"):
            assert_allclose(own[f"{column}_x"], own[f"{column}_y"], rtol=1e-9)


def test_weights_cannot_go_on_learning(rng):
    df = frame(walks(rng, (60, 45)))
    with pytest.raises(ValueError, match=r"needs scope='global'.*learns anew"):
        auto().cross_validation(df, 4, refit="weights")
    with pytest.raises(ValueError, match=r"needs scope='global'.*learns anew"):
        auto().fit(df).update(df, refit="weights")


@pytest.mark.parametrize("refit", [True, False])
def test_update_takes_the_new_data(rng, refit):
    df = frame(walks(rng, (60, 45, 70, 50)))
    new = frame({"new": 5.0 + rng.normal(size=30)})
    model = auto().fit(every_series(df, slice(-5)))
    before = model.predict(4)
    model.update(pd.concat([every_series(df, slice(-5, None)), new]), refit=refit)
    expected = auto().fit(pd.concat([df, new])).predict(4)
    found = model.predict(4)
    assert_frame_equal(found, expected, check_exact=True)
    assert "new" not in before["unique_id"].to_list()
    model.update(frame({"none": np.full(3, 2.0)}), refit=refit)
    assert "all values are the same" in model.report_["problem"].to_list()
    assert len(model.predict(4)) == 24


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "columns", "ids", "n"),
    [
        ({"outliers": False}, (), "b", 1010),
        ({"calendar": "auto", "lower": 0.0}, ("price", "offer"), "bac", 150),
        ({"past_exog": ["visitors"]}, ("visitors",), "ab", 150),
    ],
)
def test_a_saved_model_forecasts_the_same(tmp_path, parameters, columns, ids, n):
    df = make_panel(ids, n=n, columns=columns)
    odd = make_panel(["odd"], n=40, columns=columns).assign(y=1.0)
    model = auto("D", **parameters).fit(pd.concat([df, odd], ignore_index=True), h=5)
    model.save(tmp_path / "model")
    again = RBFDiffNet.load(tmp_path / "model")
    assert again.scope == "auto"
    X_df = future_of(model, 5, columns)
    expected = model.predict(5, X_df)
    assert_frame_equal(again.predict(5, X_df), expected, check_exact=True)
    assert_frame_equal(again.report_, model.report_)
    newer = make_panel(ids, n=3, columns=columns, start=df["ds"].max() + pd.Timedelta("1D"), seed=3)
    X_df = future_of(model.update(newer), 2, columns)
    assert_frame_equal(again.update(newer).predict(2, X_df), model.predict(2, X_df))
    again.save(tmp_path / "model")
    assert_frame_equal(RBFDiffNet.load(tmp_path / "model").predict(2, X_df), model.predict(2, X_df))


def test_a_saved_polars_model_stays_one(tmp_path, rng):
    df = to_polars(frame(walks(rng, (40, 30))))
    model = auto("1mo").fit(df)
    model.save(tmp_path / "model")
    assert RBFDiffNet.load(tmp_path / "model").predict(3).equals(model.predict(3))

"""Distributions of a hierarchy add up in their means, whatever their shapes."""

import numpy as np
import pandas as pd
import pytest

from panels import NAME
from rbfdiffnet import RBFDiffNet

METHODS = ["variance", "mint", "structural", "bottom_up"]


def model_of(method):
    return RBFDiffNet("D", preset="instant", hierarchy=["half"], reconcile=method)


def make_skewed(n=20, n_days=150):
    """Series of values far above their medians at times, whose mean is 10, in two groups."""
    y = np.random.default_rng(0).exponential(10.0, (n, n_days))
    names, days = [f"s{i:02}" for i in range(n)], pd.date_range("2024-01-01", periods=n_days)
    index = pd.MultiIndex.from_product([names, days], names=["unique_id", "ds"])
    df = pd.DataFrame({"y": y.ravel()}, index=index).reset_index()
    return df.assign(half=np.where(df["unique_id"] < f"s{n // 2:02}", "a", "b"))


def means_of(found, probabilities):
    """Means of distributions with quantiles at evenly spread probabilities, by id and date."""
    columns = [f"{NAME}-q-{100 * p:g}" for p in probabilities]
    return found.set_index(["unique_id", "ds"])[columns].mean(axis=1).unstack()


@pytest.mark.parametrize("way", ["structural", "bottom_up"])
def test_quantiles_move_as_far_as_means_that_are_made_to_add_up(way):
    df, probabilities = make_skewed(), np.round(np.arange(0.5, 200.0) / 200.0, 4).tolist()
    found, alone = (
        model_of(m).forecast(df, 3, level=None, quantiles=probabilities) for m in (way, "none")
    )
    before, after = (means_of(own, probabilities) for own in (alone, found))
    own = df["unique_id"].unique()
    halves = df.drop_duplicates("unique_id").set_index("unique_id")["half"]
    sums = np.stack([np.ones(20), halves == "a", halves == "b"])
    gaps = before.loc[["Total", "a", "b"]] - sums @ before.loc[own].to_numpy()
    rule = np.diag([20.0, 10.0, 10.0]) + sums @ sums.T  # variances: numbers of series
    expected = before.loc[own] + (way == "structural") * (sums.T @ np.linalg.solve(rule, gaps))
    scale = float(before.loc["Total"].mean())
    np.testing.assert_allclose(after.loc[own], expected, atol=1e-3 * scale)
    np.testing.assert_allclose(after.loc["Total"], expected.sum(), atol=0.01 * scale)
    moved, start = (own[own["unique_id"] == "s00"] for own in (found, alone))
    away = [moved[f"{NAME}-q-{p}"] - start[f"{NAME}-q-{p}"] for p in (50.25, 80.25, 95.25)]
    np.testing.assert_allclose(away[0], away[1], atol=1e-9)
    np.testing.assert_allclose(away[0], away[2], atol=1e-9)


@pytest.mark.parametrize("way", METHODS)
def test_sums_of_skewed_series_are_not_far_off(way):
    df = make_skewed()
    model = model_of(way).fit(df)
    paths = model.simulate(5, 200)
    by_level = paths.groupby(paths["unique_id"].where(paths["unique_id"].str[0] != "s", "s"))
    found = by_level[NAME].mean()
    np.testing.assert_allclose([found["s"], found["a"], found["Total"]], [10, 100, 200], rtol=0.16)
    week = model.predict(5, level=None, quantiles=[0.1, 0.9], totals=5).set_index("unique_id")
    assert week.loc["Total", f"{NAME}-q-10"] < 1000 < week.loc["Total", f"{NAME}-q-90"]

"""The pretrained network as a forecaster: ``preset="instant"``."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.pretrained import quantile
from rbfdiffnet.pretrained import explain as explanations
from rbfdiffnet.pretrained.explain import explain
from rbfdiffnet.pretrained.network import PROBABILITIES, forecast
from rbfdiffnet.report import report_of


def frame(series, start="2020-01-01", freq="D"):
    parts = [
        pd.DataFrame(
            {"unique_id": name, "ds": pd.date_range(start, periods=len(y), freq=freq), "y": y}
        )
        for name, y in series.items()
    ]
    return pd.concat(parts, ignore_index=True)


def make(n, seed=0):
    rng, t = np.random.default_rng(seed), np.arange(n)
    return 30.0 + 5.0 * np.sin(2 * np.pi * t / 7) + rng.normal(size=n)


def values(table):
    return table["RBFDiffNet"].to_numpy()


INSTANT = RBFDiffNet("D", preset="instant")


def test_forecasts_are_those_of_the_network():
    series = {"a": make(50), "b": make(120, 1), "c": make(9, 2)}
    found = values(INSTANT.forecast(frame(series), h=10)).reshape(3, 10)
    np.testing.assert_allclose(found, forecast(list(series.values()), 10, 7).median, rtol=1e-12)
    assert INSTANT.fit(frame(series)).report_.empty


def test_the_order_and_the_number_of_series_do_not_matter():
    series = {f"s{i}": make(20 + i, i) for i in range(12)}
    whole = INSTANT.forecast(frame(series), h=5).set_index("unique_id")["RBFDiffNet"]
    back = frame(dict(reversed(series.items())))
    other = INSTANT.forecast(back, h=5).set_index("unique_id")["RBFDiffNet"]
    for name, y in series.items():
        alone = values(INSTANT.forecast(frame({name: y}), h=5))
        np.testing.assert_allclose(whole[name], alone, rtol=1e-11)
        np.testing.assert_allclose(other[name], alone, rtol=1e-11)


def test_a_forecast_does_not_depend_on_the_horizon():
    df = frame({"a": make(60)})
    far = values(INSTANT.forecast(df, h=40))
    for h in (1, 2, 3, 12):
        np.testing.assert_allclose(values(INSTANT.forecast(df, h=h)), far[:h], rtol=1e-12)


def two_seasons(n=400, seed=3):
    rng, t = np.random.default_rng(seed), np.arange(n)
    return make(n, seed) + np.tile(20.0 * rng.normal(size=35), n)[:n] + t / n


def test_two_seasons_are_those_of_the_network():
    y = {"long": two_seasons(), "short": two_seasons(30)}
    for given, longer in ((7, None), ([7], 0), ((7, 35), 35), (np.array([7, 50]), 50)):
        model = RBFDiffNet("D", preset="instant", season_length=given)
        expected = forecast(list(y.values()), 20, 7, longer=longer).median
        np.testing.assert_allclose(values(model.forecast(frame(y), h=20)), expected.ravel())
        assert model.season_length == (given if longer is None else tuple(given))
        assert hash(model.options.season_length) is not None


def test_the_longer_season_matters_where_it_is_true():
    y, errors = two_seasons(400), {}
    for longer in ((), (35,), (50,)):
        model = RBFDiffNet("D", preset="instant", season_length=[7, *longer])
        found = values(model.forecast(frame({"a": y[:-35]}), h=35))
        errors[longer] = np.abs(found - y[-35:]).mean()
    assert errors[35,] < 0.3 * min(errors[()], errors[50,])


def test_two_seasons_in_backtests_explanations_and_reports(tmp_path):
    df = frame({"a": two_seasons(200), "b": two_seasons(150, 4)})
    model = RBFDiffNet("D", preset="instant", season_length=[7, 35]).fit(df)
    found = model.predict(9)
    folds = model.cross_validation(df, 9)
    cut = df.groupby("unique_id").head(-9)  # each series without its last values
    np.testing.assert_allclose(values(folds), values(model.forecast(cut, h=9)), rtol=1e-9)
    parts = model.explain(9).groupby(["unique_id", "ds"])["contribution"].sum()
    np.testing.assert_allclose(parts.to_numpy(), values(found), rtol=1e-9)
    report_of(model, tmp_path / "page.html", df, 9)
    assert (tmp_path / "page.html").stat().st_size > 0


@pytest.mark.parametrize(
    "y",
    [
        [3.0],
        [3.0, 4.0],
        [0.0] * 30,
        [7.0] * 30,
        [0.0] * 29 + [5.0],
        [1e149, -1e149] * 10,
        [1e-300, 2e-300, 1e-300, 3e-300] * 5,
        [1.0] + [np.nan] * 40 + [2.0, 3.0],
        list(np.where(np.arange(200) % 10 == 0, make(200), np.nan)),
        list(range(100)),
        list(1.1 ** np.arange(100)),
    ],
    ids=lambda y: f"{len(y)} values",
)
def test_odd_series(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = INSTANT.forecast(frame({"odd": y, "even": make(50)}), h=14, level=[80, 99])
    numbers = found.drop(columns=["unique_id", "ds"]).to_numpy()
    assert np.isfinite(numbers).all()
    low, high = found["RBFDiffNet-lo-80"], found["RBFDiffNet-hi-80"]
    assert ((low <= values(found)) & (values(found) <= high)).all()
    assert (found["RBFDiffNet-lo-99"] <= low).all()
    own = found[found["unique_id"] == "odd"]
    known = np.array(y)[np.isfinite(y)]
    span = max(np.ptp(known), 0.0)
    assert (values(own) >= known.min() - 3.0 * span).all()
    assert (values(own) <= known.max() + 3.0 * span).all()
    if known.min() >= 0.0:
        assert (numbers >= 0.0).all()


def test_effects_of_inputs_are_learned_first():
    rng = np.random.default_rng(0)
    promo = (rng.random(220) < 0.2).astype(float)
    y = make(220) + 20.0 * promo
    df = frame({"a": y, "b": y + rng.normal(size=220)})
    df["promo"] = np.tile(promo, 2)
    train, test = df.groupby("unique_id").head(200), df.groupby("unique_id").tail(20)
    found = INSTANT.forecast(train, h=20, X_df=test.drop(columns="y"))
    assert np.abs(values(found) - test["y"].to_numpy()).mean() < 2.0


def test_series_that_are_often_zero_get_means():
    rng = np.random.default_rng(1)
    y = rng.poisson(0.4, size=300).astype(float)
    found = values(INSTANT.forecast(frame({"a": y}), h=28))
    assert 0.2 < found.mean() < 0.7
    np.testing.assert_allclose(found, forecast([y], 28, 7).mean[0], rtol=1e-12)


def test_intervals_hold_what_they_promise():
    series = {f"s{i}": make(91, i) for i in range(80)}
    df = frame(series)
    train = df.groupby("unique_id").head(77)
    found = INSTANT.forecast(train, h=14, level=[50, 80, 95])
    actual = df.groupby("unique_id").tail(14).sort_values(["unique_id", "ds"])["y"].to_numpy()
    found = found.sort_values(["unique_id", "ds"])
    for level in (50, 80, 95):
        low, high = found[f"RBFDiffNet-lo-{level}"], found[f"RBFDiffNet-hi-{level}"]
        share = ((actual >= low) & (actual <= high)).mean()
        assert abs(share - level / 100) < 0.06


def test_backtests_updates_and_files(tmp_path):
    df = frame({"a": make(100), "b": make(80, 1)})
    windows = INSTANT.cross_validation(df, h=7, n_windows=2)
    last = INSTANT.forecast(df.groupby("unique_id").head(-7), h=7)
    latest = windows.groupby("unique_id").tail(7)
    np.testing.assert_allclose(values(latest), values(last), rtol=1e-11)
    model = RBFDiffNet("D", preset="instant").fit(df.groupby("unique_id").head(-7))
    model.update(df.groupby("unique_id").tail(7))
    np.testing.assert_allclose(
        values(model.predict(7)), values(INSTANT.forecast(df, h=7)), rtol=1e-11
    )
    model.save(tmp_path / "model.zip")
    again = RBFDiffNet.load(tmp_path / "model.zip")
    pd.testing.assert_frame_equal(again.predict(7, level=[80]), model.predict(7, level=[80]))


def test_arguments_for_fitted_networks_are_refused():
    for name, value in {"lags": 12, "strategy": "direct", "transforms": ["mean"]}.items():
        with pytest.raises(ValueError, match=f"{name} is for networks that are fitted to series"):
            RBFDiffNet("D", preset="instant", **{name: value})
    with pytest.raises(ValueError, match="refit='weights'"):
        RBFDiffNet("D", preset="instant").cross_validation(
            frame({"a": make(40)}), h=3, refit="weights"
        )


def test_any_quantile_lies_between_its_neighbors():
    from scipy.special import ndtri

    normal = ndtri(np.array(PROBABILITIES))
    for p in (0.001, 0.01, 0.07, 0.5, 0.66, 0.99, 0.999):
        assert quantile(5.0 + 2.0 * normal, p) == pytest.approx(5.0 + 2.0 * ndtri(p))


def test_explanations_add_up():
    rng = np.random.default_rng(2)
    promo = (rng.random(220) < 0.2).astype(float)
    series = {
        "plain": make(220),
        "promoted": make(220) + 20.0 * promo,
        "large": 1e6 + make(220),
        "sparse": rng.poisson(0.3, 220).astype(float),
        "short": make(220)[:3],
        "constant": np.full(220, 4.0),
        "falling": np.maximum(30.0 - 0.2 * np.arange(220), 0.0) + 0.01 * rng.random(220),
    }
    df = frame(series)
    df["promo"] = np.concatenate([promo[: len(y)] for y in series.values()])
    ahead = df.groupby("unique_id").tail(1)[["unique_id", "ds"]]
    ahead = pd.concat(
        ahead.assign(ds=ahead["ds"] + pd.Timedelta(days=k), promo=k % 2) for k in range(1, 13)
    )
    model = RBFDiffNet("D", preset="instant").fit(df)
    terms = model.explain(12, X_df=ahead)
    total = terms.groupby(["unique_id", "ds"])["contribution"].sum()
    found = model.predict(12, X_df=ahead).set_index(["unique_id", "ds"])["RBFDiffNet"]
    np.testing.assert_allclose(total[found.index], found, rtol=1e-9, atol=1e-12)
    weighted = terms[(terms["part"] == "level") & terms["weight"].notna()]
    product = weighted["weight"] * weighted["value"]
    np.testing.assert_allclose(product, weighted["contribution"], rtol=1e-9, atol=1e-9)
    keys = ["unique_id", "ds"]
    exemplars = terms[terms["part"] == "exemplar"]
    np.testing.assert_allclose(exemplars.groupby(keys)["activation"].sum(), 1.0, rtol=1e-9)
    alone = exemplars.assign(mixed=exemplars["activation"] * exemplars["value"])
    network = terms[terms["part"].isin(["level", "season", "growth", "bias"])]
    np.testing.assert_allclose(
        alone.groupby(keys)["mixed"].sum(),
        network.groupby(keys)["contribution"].sum()[lambda total: total.index],
        rtol=1e-9,
        atol=1e-9,
    )
    others = terms[terms["part"].isin(["exemplar", "response"])]
    assert (others["contribution"] == 0.0).all()
    assert exemplars["term"].str.fullmatch(r"exemplar \d+: .*|\d+ other exemplars").all()


@pytest.mark.parametrize("season", [1, 7])
def test_exemplars_mix_to_the_forecast(season):
    y = make(80)
    found = explain(y, 9, season)
    gates = np.array([one.gate for one in found.active])
    assert gates.sum() == pytest.approx(1.0, abs=1e-9)
    assert (np.diff(gates[:-1]) <= 0.0).all()
    mixed = sum(one.gate * one.alone for one in found.active)
    np.testing.assert_allclose(mixed, forecast([y], 9, season).median[0], rtol=1e-9)
    assert [one.exemplar is None for one in found.active] == [False] * (gates.size - 1) + [True]
    numbers = [one.exemplar.number for one in found.active[:-1]]
    assert len(set(numbers)) == len(numbers)


def test_responses_to_all_values_add_up_to_the_forecast(monkeypatch):
    monkeypatch.setattr(explanations, "_LAGS", 90)
    monkeypatch.setattr(explanations, "_MOST_RESPONSES", 90)
    y = make(90) - 35.0  # negative values do not grow: everything is linear
    found = explain(y, 9, 7)
    assert [each.lag for each in found.response] == list(range(1, 91))
    np.testing.assert_allclose([each.value for each in found.response], y[::-1], rtol=1e-12)
    np.testing.assert_allclose(sum(each.weight for each in found.response), 1.0, rtol=1e-9)
    (offset,) = (part.contribution for part in found.parts if part.kind == "bias")
    total = offset + sum(each.weight * each.value for each in found.response)
    np.testing.assert_allclose(total, forecast([y], 9, 7).median[0], rtol=1e-9)


def test_long_series_are_explained_by_what_is_looked_at():
    y = make(5000)
    total = np.sum([part.contribution for part in explain(y, 9, 7).parts], axis=0)
    np.testing.assert_allclose(total, forecast([y], 9, 7).median[0], rtol=1e-9)


def test_some_series_are_explained_and_drawn():
    pytest.importorskip("matplotlib")
    df = frame({f"s{i}": make(40 + i, i) for i in range(6)})
    model = RBFDiffNet("D", preset="instant").fit(df)
    some = model.explain(3, ids=["s2"])
    assert set(some["unique_id"]) == {"s2"}
    whole = model.predict(3).query("unique_id == 's2'")
    np.testing.assert_allclose(some.groupby("ds")["contribution"].sum(), values(whole), rtol=1e-9)
    model.plot(3)
    assert len(model.equation(["s1"]))


def test_a_large_panel_is_learned_in_the_same_chunks_every_way(monkeypatch):
    from rbfdiffnet.models import sampled

    monkeypatch.setattr(sampled, "MOST_LEARNED_FROM", 5)
    monkeypatch.setattr(sampled, "_LARGEST_CHUNK", 150)
    df = frame({f"s{i}": make(40 + i, i) for i in range(20)})
    once = INSTANT.forecast(df, h=5, level=[80])
    fitted = RBFDiffNet("D", preset="instant", n_jobs=2).fit(df)
    assert len(fitted.fitted_panel.model.chunks) > 3
    pd.testing.assert_frame_equal(once, fitted.predict(5, level=[80]))

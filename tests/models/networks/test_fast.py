"""Fast fits against the same steps one series at a time, and their place in the forecaster."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from preparations import prepare
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.batch import train
from rbfdiffnet.batch.backend import padded_rows
from rbfdiffnet.batch.torch_backend import TorchBackend
from rbfdiffnet.batch.train import fit_batch
from rbfdiffnet.datasets import daily_demand
from rbfdiffnet.models.networks.fast import (
    fit_fast,
    fit_models,
    forecast_arrays,
    is_fast,
)
from rbfdiffnet.models.networks.forecast import forecast_many
from rbfdiffnet.models.networks.series_model import fit_local
from rbfdiffnet.models.networks.window_model import window_rows
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.train import Settings
from rbfdiffnet.series.series import Series
from rbfdiffnet.support.parallel import even_chunks


@pytest.fixture
def panel(rng):
    n = 240
    week = np.tile(rng.normal(size=(12, 7)), n // 7 + 1)[:, :n]
    walk = rng.normal(size=(12, n)).cumsum(axis=1)
    y = 60.0 + 5.0 * week + walk * rng.choice([0.0, 0.3], size=(12, 1)) + rng.normal(size=(12, n))
    y[3, 100], y[4, 150], y[5, 17] = 0.0, 500.0, np.nan
    y[6, -1] = np.nan
    return y


def series(y):
    none = np.zeros((y.size, 0))
    return Series(y, none, none)


def plan(**settings):
    return Plan(
        lambda n: Settings(28),  # noqa: ARG005
        season_length=7,
        lags=tuple(range(1, 15)),
        level="none",
        transforms=("auto", "mean"),
        fast=True,
        **settings,
    )


def test_every_step_is_that_of_single_series(panel):
    fit = fit_fast(panel, season_length=7, n_lags=14)
    for i, (y, model) in enumerate(zip(panel, fit.models(), strict=True)):
        one = series(y)
        expected = prepare(y, one.known_ahead, season_length=7, transforms=("auto", "mean"))
        assert model.preparation.rule == expected.rule
        assert model.preparation.steps.lost == expected.steps.lost
        np.testing.assert_allclose(
            [model.preparation.low, model.preparation.high], [expected.low, expected.high]
        )
        z, known = expected.apply(one.y, one.known_ahead).transform()
        assert model.preparation.apply(one.y, one.known_ahead).transform()[0] == pytest.approx(
            z, abs=1e-9
        )
        X, _ = window_rows(
            z, known, np.zeros((z.size, 0)), lags=model.windows.lags, level="none", block=1
        )
        assert fit.n_rows[i] == len(X)
        np.testing.assert_allclose(fit.unit[i], z.std(), rtol=1e-9)


def test_networks_are_trained_on_the_windows(panel):
    fit = fit_fast(panel[:1], season_length=7, n_lags=14)
    z, _ = fit.models()[0].preparation.apply(panel[0], np.zeros((panel.shape[1], 0))).transform()
    z = np.round(z / fit.unit[0], 9)
    n = padded_rows(panel.shape[1] - 14)
    padded = np.concatenate([np.zeros(n + 14 - z.size), z])
    X = np.stack([padded[i : i + n] for i in range(14)])[None]
    weight = (np.arange(n) >= n + 14 - z.size)[None] * 1.0
    expected = fit_batch(X, padded[None, 14:], weight, n_centers=28)
    np.testing.assert_allclose(fit.networks.centers[0], expected.centers[0], atol=1e-9)
    np.testing.assert_allclose(fit.networks.value[0], expected.value[0], rtol=1e-8)


def test_forecasts_are_those_of_the_models(panel):
    fit = fit_fast(panel, season_length=7, n_lags=14)
    paths = fit.forecast(30)
    for y, model, path in zip(panel, fit.models(), paths, strict=True):
        one = series(y)
        base = model.base_windows(one, np.array([y.size]))
        (expected,), _ = forecast_many([model], [base], [one.extra[:1]], 30)
        np.testing.assert_allclose(path, expected[0], rtol=1e-9)


def test_a_network_of_a_batch_can_be_changed_like_any_other(panel):
    (model,) = fit_fast(panel[:1], season_length=7, n_lags=14).models()
    bolder = replace(model.windows, largest=2.0 * model.windows.largest)
    assert bolder.limit == 2.0 * model.windows.limit
    assert bolder.network is model.windows.network  # made once, when somebody asks for it
    alone = replace(model.windows, source=model.windows.network)
    z, none = panel[:1, -20:-6] - 60.0, np.zeros((1, 0))
    np.testing.assert_array_equal(alone.forecast(z, 5, none)[0], bolder.forecast(z, 5, none)[0])


def test_a_series_does_not_depend_on_the_others(panel):
    together = forecast_arrays(panel, 20, season_length=7)
    for i, y in enumerate(panel):
        alone = forecast_arrays(y[None], 20, season_length=7)
        np.testing.assert_array_equal(alone[0], together[i])


@pytest.mark.parametrize(("length", "season"), [(60, 7), (120, 12), (200, 1)])
def test_batches_and_threads_do_not_matter(length, season, rng):
    noise = rng.normal(size=(120, length))
    kinds = rng.integers(4, size=(120, 1))
    walk = noise.cumsum(axis=1)
    week = np.tile(rng.normal(size=(120, season)), length // season + 1)[:, :length]
    y = np.select([kinds == 0, kinds == 1, kinds == 2], [noise, walk, walk.cumsum(axis=1)], week)
    y = y + 0.01 * rng.normal(size=y.shape)
    together = forecast_arrays(y, 14, season_length=season)
    alone = np.concatenate([forecast_arrays(one[None], 14, season_length=season) for one in y])
    np.testing.assert_array_equal(alone, together)
    threads = forecast_arrays(np.concatenate([y] * 8), 14, season_length=season, n_jobs=3)
    np.testing.assert_array_equal(threads, np.concatenate([together] * 8))


def test_parts_are_even():
    assert even_chunks(10, 16, 2) == [slice(0, 5), slice(5, 10)]
    assert even_chunks(10, 16, 2, smallest=6) == [slice(0, 10)]


def test_without_numba_it_is_the_same(panel, monkeypatch):
    with_numba = forecast_arrays(panel, 28, season_length=7)
    monkeypatch.setattr("rbfdiffnet.batch.backend.find_spec", lambda name: None)  # noqa: ARG005
    np.testing.assert_allclose(forecast_arrays(panel, 28, season_length=7), with_numba, rtol=1e-9)


def test_pytorch_gives_the_same(panel):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    fit = fit_fast(panel, season_length=7, n_lags=14, backend=TorchBackend("cpu"))
    expected = forecast_arrays(panel, 28, season_length=7)
    np.testing.assert_allclose(fit.forecast(28), expected, rtol=1e-6)
    assert all(isinstance(model.windows.network.a, np.ndarray) for model in fit.models())


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_do_not_matter(panel, scale):
    expected = forecast_arrays(panel, 10, season_length=7)
    scaled = forecast_arrays(panel * scale, 10, season_length=7)
    np.testing.assert_allclose(scaled / scale, expected, rtol=1e-4)


def test_a_perfect_season_is_continued():
    week = np.tile([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0], 40)
    path = forecast_arrays(np.stack([week, 1e6 * week, 7.0 + 0.1 * week]), 21, season_length=7)
    np.testing.assert_allclose(path[0], week[:21], rtol=1e-6)
    np.testing.assert_allclose(path[1], 1e6 * week[:21], rtol=1e-6)
    np.testing.assert_allclose(path[2], 7.0 + 0.1 * week[:21], rtol=1e-6)


def test_what_cannot_be_fitted_is_named(panel):
    few = np.full(240, np.nan)
    few[-9:] = np.arange(9.0)
    rows = [panel[0], few, panel[1][:16], np.zeros(240), panel[2][:5]]
    results = fit_models([series(y) for y in rows], [plan()] * len(rows))
    assert not isinstance(results[0], str)
    assert "too short for lag 14" in results[2]
    assert results[3] == "all values are zero"
    assert "too short" in results[4]
    assert "too short for lag 14" in results[1]
    assert np.isnan(forecast_arrays(panel[:, :10], 3, season_length=7)).all()
    empty = panel.copy()
    empty[1], empty[2, 5] = np.nan, np.inf
    path = forecast_arrays(empty, 3, season_length=7)
    assert np.isnan(path).all(axis=1).tolist() == [i == 1 for i in range(12)]


@pytest.mark.parametrize("name", ["h", "season_length", "n_lags", "n_centers"])
def test_wrong_numbers_are_named(panel, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1"):
        forecast_arrays(panel, **{"h": 2, name: 0})


def test_wrong_shapes_and_devices_are_named(panel):
    with pytest.raises(ValueError, match="two dimensions"):
        forecast_arrays(panel[0], 2)
    with pytest.raises(ValueError, match="'cpu', 'cuda' or 'cuda:N'"):
        forecast_arrays(panel, 2, device="gpu")


def test_a_numba_that_does_not_work_is_not_used(panel, monkeypatch):
    expected = forecast_arrays(panel, 5, season_length=7)
    monkeypatch.setattr("rbfdiffnet.batch.numba_backend.AVAILABLE", False)
    monkeypatch.setattr("rbfdiffnet.batch.numba_backend.NUMBA", None)
    np.testing.assert_allclose(forecast_arrays(panel, 5, season_length=7), expected, rtol=1e-9)


def test_a_failure_is_that_of_its_series_alone(panel, monkeypatch):
    from rbfdiffnet.models.networks import fast

    def fails(X, y, weight, **settings):
        if np.any(y[:, -1] == bad):
            raise np.linalg.LinAlgError("singular matrix")
        return train(X, y, weight, **settings)

    train = fast.train
    fit = fit_fast(panel, season_length=7, n_lags=14)
    bad = fit.window[2, -1]
    monkeypatch.setattr(fast, "train", fails)
    results = fit_models([series(y) for y in panel], [plan()] * len(panel))
    assert results[2] == "numerical failure (singular matrix)"
    assert sum(isinstance(result, str) for result in results) == 1


def test_what_is_fast_and_what_is_not(panel):
    one = series(panel[0])
    assert is_fast(plan(), one)
    assert not is_fast(plan(block=7), one)
    assert not is_fast(plan(log=True), one)
    assert not is_fast(plan(), Series(one.y, np.zeros((240, 1)), one.extra))


def frame(panel):
    n, length = panel.shape
    days = pd.date_range("2024-01-01", periods=length)
    names = [f"series {i:02}" for i in range(n)]
    return pd.DataFrame(
        {"unique_id": np.repeat(names, length), "ds": np.tile(days, n), "y": panel.ravel()}
    )


def test_the_forecaster_gives_the_same(panel):
    model = RBFDiffNet(freq="D", preset="fast", season_length=7)
    forecast = model.forecast(frame(panel), 14)["RBFDiffNet"].to_numpy()
    expected = forecast_arrays(panel, 14, season_length=7)
    np.testing.assert_allclose(forecast.reshape(12, 14), expected, rtol=1e-9)


def test_frames_are_forecast_where_the_networks_are(panel, monkeypatch, tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    options = {"freq": "D", "preset": "fast", "season_length": 7}
    expected = RBFDiffNet(**options).forecast(frame(panel), 14, level=[80])
    found_by, forecast_batch = [], train.forecast_batch

    def watched(networks, window, h):
        found_by.append((type(networks.a), type(window)))
        return forecast_batch(networks, window, h)

    monkeypatch.setattr(train, "forecast_batch", watched)
    monkeypatch.setattr(
        "rbfdiffnet.models.networks.fast.backend_for", lambda _: TorchBackend("cpu")
    )
    model = RBFDiffNet(**options).fit(frame(panel))
    found = model.predict(14, level=[80])
    assert set(found_by) == {(torch.Tensor, torch.Tensor)}
    assert list(found) == list(expected)
    columns = expected.columns[2:]
    np.testing.assert_allclose(found[columns], expected[columns], rtol=1e-6)
    # Elsewhere there may be no card.
    model.save(tmp_path / "model")
    for again in (pickle.loads(pickle.dumps(model)), RBFDiffNet.load(tmp_path / "model")):
        found_by.clear()
        np.testing.assert_allclose(again.predict(14)["RBFDiffNet"], found["RBFDiffNet"], rtol=1e-9)
        assert not any(torch.Tensor in kinds for kinds in found_by)


def test_explanations_name_windows_of_the_series(panel, tmp_path):
    model = RBFDiffNet(freq="D", preset="fast", season_length=7).fit(frame(panel))
    terms = model.explain(2, ids=["series 00"])
    forecast = model.predict(2, level=None)["RBFDiffNet"].to_numpy()[:2]
    total = terms.groupby("ds")["contribution"].sum().to_numpy()
    np.testing.assert_allclose(total, forecast, rtol=1e-9)
    nearest = terms.loc[terms["part"] == "exemplar", "nearest"]
    assert nearest.str.startswith("2024").all()
    model.save(tmp_path / "model")
    again = RBFDiffNet.load(tmp_path / "model").explain(2, ids=["series 00"])
    pd.testing.assert_frame_equal(terms, again)


def test_series_with_inputs_are_fitted_one_by_one():
    df = daily_demand(n_series=3)
    model = RBFDiffNet(freq="D", preset="fast").fit(df)
    future = model.make_future_frame(7).assign(promotion=0)
    assert np.isfinite(model.predict(7, X_df=future, level=None)["RBFDiffNet"]).all()


def weeks(rng, length):
    season = 20.0 * np.sin(2.0 * np.pi * (np.arange(length) + rng.uniform(0, 52)) / 52.0)
    return 100.0 + season + rng.normal(size=length)


def long_plan(**settings):
    return replace(plan(**settings), season_length=52, lags=tuple(range(1, 105)), shorten=True)


def test_series_too_short_for_the_lags_get_fewer(rng):
    rows = [series(weeks(rng, length)) for length in (100, 60, 240, 110, 100)]
    rows[3] = series(rng.normal(size=110).cumsum())  # of which differences leave 109
    results = fit_models(rows, [long_plan()] * 5)
    assert "too short for lag 104" in results[1]
    assert [r if isinstance(r, str) else len(r.windows.lags) for r in results][2:] == [104, 13, 12]
    # Alone, with lags of their own and one by one.
    (alone,) = fit_models(rows[:1], [long_plan()])
    (own,) = fit_models(rows[:1], [replace(long_plan(), lags=tuple(range(1, 13)), shorten=False)])
    for model in (alone, own):
        np.testing.assert_array_equal(model.windows.network.a, results[0].windows.network.a)
    assert fit_local(rows[0], long_plan()).windows.lags == results[0].windows.lags
    assert results[0].plan_for_refit(long_plan()).shortened(70) is None
    assert "too short for lag 104" in fit_models(rows[:1], [replace(long_plan(), shorten=False)])[0]


def test_short_series_beside_long_ones_are_forecast_by_networks(rng, tmp_path):
    lengths = {"long": 240, "short": 100, "shorter": 64}
    df = pd.concat([frame(weeks(rng, n)[None]).assign(unique_id=i) for i, n in lengths.items()])
    df["ds"] = df["ds"].iloc[0] + 7 * (df["ds"] - df["ds"].iloc[0])
    model = RBFDiffNet(freq="W-MON", preset="fast").fit(df)
    found = model.predict(8)
    assert "too short" not in " ".join(model.report_["problem"])
    for name in lengths:
        one = RBFDiffNet(freq="W-MON", preset="fast").forecast(df[df["unique_id"] == name], 8)
        together = found[found["unique_id"] == name].reset_index(drop=True)
        np.testing.assert_array_equal(together["RBFDiffNet"], one["RBFDiffNet"])
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(RBFDiffNet.load(tmp_path / "model").predict(8), found)
    given = RBFDiffNet(freq="W-MON", preset="fast", lags=104).fit(df)
    assert given.report_["problem"].str.contains("too short for lag 104").sum() == 2


def test_networks_of_several_batches_forecast_together(panel):
    model = RBFDiffNet(freq="D", preset="fast", season_length=7)
    df = frame(panel)
    late = df["unique_id"].isin(["series 01", "series 04"]) & (df["ds"] < "2024-01-11")
    together = model.forecast(df[~late], 5).set_index("unique_id")["RBFDiffNet"]
    for name, part in df[~late].groupby("unique_id"):
        np.testing.assert_array_equal(model.forecast(part, 5)["RBFDiffNet"], together[name])


def test_shorter_lags_are_the_same_with_pytorch_and_without_numba(rng, monkeypatch):
    one = series(weeks(rng, 100))
    (expected,) = fit_models([one], [long_plan()])
    monkeypatch.setattr("rbfdiffnet.batch.backend.find_spec", lambda name: None)  # noqa: ARG005
    (plain,) = fit_models([one], [long_plan()])
    np.testing.assert_allclose(plain.windows.network.a, expected.windows.network.a, rtol=1e-6)
    pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setattr(
        "rbfdiffnet.models.networks.fast.backend_for", lambda _: TorchBackend("cpu")
    )
    (torched,) = fit_models([one], [long_plan()])
    np.testing.assert_allclose(torched.windows.network.a, expected.windows.network.a, rtol=1e-6)

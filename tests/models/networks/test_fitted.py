from dataclasses import replace

import numpy as np
import pytest

from panels import fit_panel
from rbfdiffnet.models.base import ForecastRequest
from rbfdiffnet.models.intervals import (
    calibration_length,
    conformal_quantiles,
    error_quantiles,
    find_quantiles,
)
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.train import Settings
from rbfdiffnet.series.naive import naive_forecast
from rbfdiffnet.series.series import Series, SeriesPanel
from rbfdiffnet.support.parallel import SINGLE_MACHINE


def quick(_n_inputs):
    return Settings(4, width_factor=2.0, alpha=1e-3, alpha_linear=1e-3)


def intervals_of(model, request, levels, n_jobs=1):
    """Return lower and upper ends (n, h, n_levels), and which series had enough errors."""
    sides = sorted({round(0.5 + side * level / 2.0, 12) for level in levels for side in (-1, 1)})
    held_out = model.held_out_errors(request, n_jobs)
    found, enough = find_quantiles(held_out, sides, SINGLE_MACHINE)
    return found[:, :, len(levels) - 1 :: -1], found[:, :, len(levels) :], enough


PLAN = Plan(quick, season_length=7, lags=(1, 2, 7))
LENGTHS = (200, 150, 90, 120)


@pytest.fixture
def panel(rng):
    def make(n, scale):
        ahead = (rng.uniform(size=(n, 1)) < 0.2).astype(float)
        y = 20.0 + 5.0 * np.sin(np.arange(n) * 2 * np.pi / 7) + rng.normal(size=n)
        return Series(scale * y * (1.0 + 0.3 * ahead[:, 0]), ahead, rng.normal(size=(n, 1)))

    return [make(n, 10.0**i) for i, n in enumerate(LENGTHS)]


@pytest.fixture
def ahead(rng):
    return [(rng.uniform(size=(9, 1)) < 0.2).astype(float) for _ in LENGTHS]


@pytest.mark.parametrize("scope", ["local", "global"])
@pytest.mark.parametrize("block", [1, 4])
def test_a_panel_is_forecast_like_its_series_one_by_one(scope, block, panel, ahead):
    model = fit_panel(panel, replace(PLAN, block=block), scope=scope, calibrate=False)
    origins = np.array([s.y.size for s in panel])
    together = model.forecast(ForecastRequest(panel, origins, 9, ahead))
    assert together.diverged == []
    _, paths, _, _ = model._forecast(ForecastRequest(panel, origins, 9, ahead), 1)
    for i in range(len(panel)):
        one = replace(model, models=(model.models[i],), calibrated=(None,), starts=model.starts[:1])
        alone = one.forecast(ForecastRequest([panel[i]], origins[i : i + 1], 9, [ahead[i]]))
        np.testing.assert_allclose(together.values[i], alone.values[0], rtol=1e-9)
        effects = model.models[i].preparation.effects
        restored = effects.restore(paths[i][0][0], ahead[i])
        np.testing.assert_allclose(restored, together.values[i])


def test_threads_change_nothing(panel, ahead):
    horizon = ForecastRequest(panel, np.array([s.y.size for s in panel]), 9, ahead)
    results = []
    for n_jobs in (1, 3, -1):
        model = fit_panel(panel, PLAN, scope="local", calibrate=True, n_jobs=n_jobs)
        low, high, _ = intervals_of(model, horizon, [0.8], n_jobs)
        results.append((model.forecast(horizon, n_jobs).values, low, high))
    for result in results[1:]:
        for got, expected in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(got, expected)


def test_only_values_before_the_origin_are_seen(panel, ahead):
    model = fit_panel(panel, PLAN, scope="local", calibrate=True)
    origins = np.array([100, 110, 80, 60])
    spoiled = [
        Series(np.append(s.y[:o], np.full(s.y.size - o, 1e6)), s.known_ahead, s.extra)
        for s, o in zip(panel, origins, strict=True)
    ]
    expected = model.forecast(ForecastRequest(panel, origins, 9, ahead))
    np.testing.assert_array_equal(
        model.forecast(ForecastRequest(spoiled, origins, 9, ahead)).values, expected.values
    )
    later = [a[:3] for a in ahead]
    expected = intervals_of(model, ForecastRequest(panel, origins, 3, later), [0.8])
    for k, got in enumerate(
        intervals_of(model, ForecastRequest(spoiled, origins, 3, later), [0.8])
    ):
        np.testing.assert_array_equal(got, expected[k])


def test_one_step_forecasts_equal_forecasts_from_every_origin(panel):
    model = fit_panel(panel[:1], PLAN, scope="local", calibrate=False)
    series = panel[0]
    fitted = model._one_step(model.models[0], series, 150)
    for t in range(150, 200, 7):
        known = [series.known_ahead[t : t + 1]]
        alone = model.forecast(ForecastRequest([series], np.array([t]), 1, known))
        assert fitted[t - 150] == pytest.approx(alone.values[0, 0])


def test_series_without_a_network_get_the_naive_forecast(panel, ahead):
    short = panel[1].until(5)
    mixed = [panel[0], short]
    model = fit_panel(mixed, PLAN, scope="local", calibrate=True)
    assert model.models[1] is None
    assert model.reasons == {1: "too short (known values: 5, needed: 8)"}
    origins = np.array([200, 5])
    result = model.forecast(ForecastRequest(mixed, origins, 9, ahead[:2]))
    np.testing.assert_array_equal(result.values[1], naive_forecast(short.y, origins[1:], 9, 7)[0])
    assert result.diverged == []
    assert list(model.one_step_forecasts(mixed)) == [0]


def test_a_network_without_a_finite_forecast_gets_the_naive_one(panel, ahead):
    model = fit_panel(panel[:2], PLAN, scope="local", calibrate=False)
    broken = model.models[0]
    network = replace(broken.windows.network, w=np.nan * broken.windows.network.w)
    broken = replace(broken, windows=replace(broken.windows, source=network))
    model = replace(model, models=(broken, model.models[1]))
    origins = np.array([200, 150])
    result = model.forecast(ForecastRequest(panel[:2], origins, 9, ahead[:2]))
    assert result.diverged == [0]
    np.testing.assert_array_equal(
        result.values[0], naive_forecast(panel[0].y, origins[:1], 9, 7)[0]
    )
    assert np.all(np.isfinite(result.values))


def test_intervals_are_quantiles_of_errors_from_rolling_origins(panel, ahead):
    model = fit_panel(panel, PLAN, scope="local", calibrate=True)
    origins = np.array([s.y.size for s in panel])
    h = 3
    later = [a[:h] for a in ahead]
    errors, scales, centers = [], [], []
    for i, series in enumerate(panel):
        n = series.y.size
        start = n - calibration_length(n)
        plan = model.models[i].plan_for_refit(PLAN) if model.models[i] is not None else PLAN
        early = fit_panel([series.until(start)], plan, scope="local", calibrate=False)
        own = np.full((n - start, h), np.nan)
        for t in range(start, n):
            known = np.concatenate([series.known_ahead, later[i]])[t : t + h]
            path = early.forecast(ForecastRequest([series], np.array([t]), h, [known])).values[0]
            seen = min(h, n - t)
            own[t - start, :seen] = series.y[t : t + seen] - path[:seen]
        errors.append(own)
        centers.append(
            early.forecast(ForecastRequest([series], np.array([n]), h, [later[i]])).values[0]
        )
        scales.append(np.abs(np.diff(series.y)).mean())
        assert model.starts[i] == start
    expected, sure = error_quantiles(errors, np.array(scales), [0.025, 0.1, 0.9, 0.975])
    low, high, guaranteed = intervals_of(
        model, ForecastRequest(panel, origins, h, later), [0.8, 0.95]
    )
    centers = np.array(centers)[:, :, None]
    np.testing.assert_allclose(low, centers + expected[:, :, [1, 0]], rtol=1e-6)
    np.testing.assert_allclose(high, centers + expected[:, :, 2:], rtol=1e-6)
    np.testing.assert_array_equal(guaranteed, sure)


def test_intervals_cover_new_values_of_a_stationary_series():
    covered = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        y = 20.0 + rng.standard_t(3, size=400)
        none = np.zeros((400, 0))
        series = Series(y, none, none)
        model = fit_panel([series.until(300)], PLAN, scope="local", calibrate=True)
        low, high, _ = intervals_of(
            model, ForecastRequest([series], np.array([300]), 1, [none[:1]]), [0.9]
        )
        # The model behind the intervals was fitted without the values that calibrate it.
        fitted = model._one_step(model.calibrated[0], series, 300)
        away = y[300:] - fitted
        low, high = low[0, 0, 0] - fitted[0], high[0, 0, 0] - fitted[0]
        covered.append(np.mean((low <= away) & (away <= high)))
    assert np.mean(covered) == pytest.approx(0.9, abs=0.035)


def test_a_calibrated_network_without_a_finite_forecast_has_naive_intervals(panel, ahead):
    model = fit_panel(panel[:2], PLAN, scope="local", calibrate=True)
    broken = model.calibrated[0]
    network = replace(broken.windows.network, w=np.nan * broken.windows.network.w)
    broken = replace(broken, windows=replace(broken.windows, source=network))
    origins = np.array([200, 150])
    results = [
        intervals_of(
            replace(model, calibrated=(first, model.calibrated[1])),
            ForecastRequest(panel[:2], origins, 9, ahead[:2]),
            [0.8],
        )
        for first in (broken, None)
    ]
    for got, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(got, expected)
    naive = naive_forecast(panel[0].y, origins[:1], 9, 7)[0]
    low, high, _ = results[0]
    assert ((low[0, :, 0] < naive) & (naive < high[0, :, 0])).all()


def test_outliers_are_those_of_the_series_without_effects(panel):
    for series in panel[:2]:
        series.y[[40, 77]] *= 9.0
    model = fit_panel([*panel, panel[0].until(5)], PLAN, scope="local", calibrate=False)
    found = model.find_outliers([*panel, panel[0].until(5)])
    assert [(i, steps.tolist()) for i, steps in found] == [(0, [40, 77]), (1, [40, 77])]


def test_series_without_two_values_have_the_widths_of_an_ordinary_one(panel):
    none = Series(np.full(30, np.nan), np.zeros((30, 1)), np.zeros((30, 1)))
    mixed = [*panel[:2], none]
    model = fit_panel(mixed, PLAN, scope="local", calibrate=True)
    horizon = ForecastRequest(mixed, np.array([200, 150, 30]), 2, [np.zeros((2, 1))] * 3)
    low, high, _ = intervals_of(model, horizon, [0.8])
    assert (low[2] < 0.0).all()  # around the fallback, which is 0
    steps = [np.abs(np.diff(series.y)).mean() for series in mixed[:2]]
    shares = []
    for series, step in zip(mixed[:2], steps, strict=True):
        n = series.y.size
        origins = np.linspace(n - calibration_length(n), n - 1, 20).astype(int)
        shares += [(series.y[o : o + 2] - series.y[o - 1]) / step for o in origins]
    for k in range(2):
        scores = np.array([share[k] for share in shares if share.size > k])
        expected = conformal_quantiles(scores[:, None], [0.9])[0, 0] * np.median(steps)
        assert high[2, k, 0] == pytest.approx(expected)


def test_adopted_series_get_the_forecasts_of_trained_ones(panel, ahead):
    model = fit_panel(panel, PLAN, scope="global", calibrate=True)
    flat = Series(np.ones(30), np.zeros((30, 1)), np.zeros((30, 1)))
    adopted = model.adopt(SeriesPanel.of([panel[2], flat]))
    assert adopted.reasons == {1: "all values are the same"}
    origins = np.array([s.y.size for s in panel])
    expected = model.forecast(ForecastRequest(panel, origins, 9, ahead)).values[2]
    new = [panel[2], flat]
    got = adopted.forecast(ForecastRequest(new, np.array([90, 30]), 9, [ahead[2], ahead[0]])).values
    np.testing.assert_allclose(got[0], expected)
    np.testing.assert_array_equal(got[1], 1.0)
    later = [ahead[2][:2], ahead[0][:2]]
    low, high, _ = intervals_of(adopted, ForecastRequest(new, np.array([90, 30]), 2, later), [0.8])
    assert np.all(np.isfinite([low, high]))
    assert np.all(low <= high)


def test_a_global_panel_that_cannot_be_fitted_is_forecast_naively():
    flat = [Series(np.full(30, v), np.zeros((30, 0)), np.zeros((30, 0))) for v in (1.0, 2.0)]
    model = fit_panel(flat, PLAN, scope="global", calibrate=True)
    assert not model.fitted
    assert model.reasons == dict.fromkeys((0, 1), "all values are the same")
    values = model.forecast(ForecastRequest.after(flat, 2)).values
    np.testing.assert_array_equal(values, [[1.0, 1.0], [2.0, 2.0]])
    assert model.adopt(SeriesPanel.of(flat[:1])).reasons == {0: "the model has no network"}


def test_no_series_at_all():
    for scope in ("local", "global"):
        model = fit_panel([], PLAN, scope=scope, calibrate=True)
        assert model.forecast(ForecastRequest.after([], 3)).values.shape == (0, 3)


@pytest.mark.parametrize("h", [7, 35])
def test_windows_of_errors_are_whole_and_side_by_side(panel, h):
    """They are the errors from h, 2 h, ... steps before the end, or the longest that are known."""
    model = fit_panel(panel, PLAN, scope="local", calibrate=True)
    origins = np.array([s.y.size for s in panel])
    request = ForecastRequest(panel, origins, h, [np.zeros((h, 1))] * len(panel))
    every = model.held_out_errors(request).errors
    assert (min(map(len, every)) < h) == (h == 35)
    for own, found in zip(every, model.error_paths(request), strict=True):
        n = len(own)  # an origin for each step
        rows = [n - h * k for k in range(n // h, 0, -1)] if n >= h else [0]
        np.testing.assert_array_equal(np.isfinite(found).sum(axis=1), [min(h, n)] * len(rows))
        ratio = found / own[rows]
        np.testing.assert_allclose(ratio[np.isfinite(ratio)], np.nanmedian(ratio))

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from statsmodels.tsa.holtwinters import ExponentialSmoothing

from rbfdiffnet.models.stack import smoothing
from rbfdiffnet.models.stack.smoothing import (
    forecast_damped_holt,
    forecast_on_logarithms,
    smooth,
)


def walks(rng, n, T, drift=0.3):
    return drift * np.arange(T) + rng.normal(size=(n, T)).cumsum(axis=1)


def ragged(rng, lengths, T):
    Y = 10.0 + walks(rng, len(lengths), T)
    for row, length in zip(Y, lengths, strict=True):
        row[: T - length] = np.nan
    return Y


def errors(y, alpha, beta, phi, level, trend):
    """One-step errors and the last states, straight from the equations."""
    e = []
    for value in y:
        e.append(value - level - phi * trend)
        level, trend = level + phi * trend + alpha * e[-1], phi * trend + alpha * beta * e[-1]
    return np.array(e), level, trend


def best_first_states(y, alpha, beta, phi):
    """Those with the least squared errors, which are linear in them."""
    e0, e1, e2 = (
        errors(series, alpha, beta, phi, *states)[0]
        for series, states in ((y, (0.0, 0.0)), (0.0 * y, (1.0, 0.0)), (0.0 * y, (0.0, 1.0)))
    )
    return np.linalg.lstsq(np.c_[e1, e2], -e0, rcond=None)[0]


def squares(y, fit, i=0):
    parameters = (fit.alpha[i], fit.beta[i], fit.phi[i])
    e, level, trend = errors(y, *parameters, *best_first_states(y, *parameters))
    np.testing.assert_allclose([fit.level[i], fit.trend[i]], [level, trend], rtol=1e-9, atol=1e-9)
    return e @ e


def test_errors_with_all_parameters_of_the_grid_are_those_of_the_equations(rng):
    Y = ragged(rng, [6, 25, 40], 40)
    d = np.nan_to_num(np.diff(Y, prepend=Y[:, :1]))
    tables = smoothing._tables(np, None)
    losses = smoothing._grid_losses(d, np.array([6, 25, 40]), tables)
    for y, made in zip(Y, losses, strict=True):
        y = y[~np.isnan(y)]
        for parameters, loss in zip(tables.grid, made, strict=True):
            e, *_ = errors(y, *parameters, *best_first_states(y, *parameters))
            np.testing.assert_allclose(loss, e @ e, rtol=1e-7)


def test_damped_holt_agrees_with_a_search_over_all_five_numbers(rng):
    y = walks(rng, 1, 60)[0] + rng.normal(size=60)
    starts = [
        (a, b, f, y[0], 0.3) for a in (0.1, 0.5, 0.9) for b in (0.05, 0.5) for f in (0.85, 0.95)
    ]
    bounds = [(1e-4, 1.0), (0.0, 1.0), (0.8, 0.98), (None, None), (None, None)]
    found = [
        minimize(lambda x: np.square(errors(y, *x)[0]).sum(), x0, bounds=bounds) for x0 in starts
    ]
    best = min(found, key=lambda f: f.fun)
    fit = smooth(y[None])
    assert squares(y, fit) <= best.fun * 1.0005
    _, level, trend = errors(y, *best.x)
    forecast = level + trend * np.cumsum(best.x[2] ** np.arange(1, 9))
    np.testing.assert_allclose(forecast_damped_holt(y[None], 8)[0], forecast, atol=0.1)


@pytest.mark.parametrize("T", [40, 70])
def test_damped_holt_fits_as_well_as_statsmodels(rng, T):
    Y = walks(rng, 15, T)
    fit = smooth(Y)
    for i, y in enumerate(Y):
        model = ExponentialSmoothing(
            y, trend="add", damped_trend=True, bounds={"damping_trend": (0.8, 0.98)}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its optimizer
            theirs = model.fit()
        assert squares(y, fit, i) <= 1.01 * theirs.sse


def test_damped_holt_fits_as_well_as_statsforecast(rng):
    models = pytest.importorskip("statsforecast.models")
    Y = walks(rng, 15, 60)
    fit = smooth(Y)
    for i, y in enumerate(Y):
        theirs = models.AutoETS(season_length=1, model="AAN", damped=True).fit(y)
        assert squares(y, fit, i) <= 1.01 * np.square(theirs.model_["residuals"]).sum()


def test_a_batch_gives_what_each_series_gives_alone(rng, monkeypatch):
    monkeypatch.setattr(smoothing, "_SERIES", 5)  # several parts
    lengths = [3, 40, 1, 17, 6, 40, 9, 2, 25, 5, 33, 12]
    Y = ragged(rng, lengths, 40)
    together = forecast_damped_holt(Y, 7)
    for y, length, made in zip(Y, lengths, together, strict=True):
        np.testing.assert_allclose(
            forecast_damped_holt(y[None, 40 - length :], 7)[0], made, rtol=1e-9
        )


def test_torch_gives_what_numpy_gives(rng):
    torch = pytest.importorskip("torch")
    lengths = [*range(1, 31), 250, 250]
    Y = np.vstack(
        [ragged(rng, lengths, 250), 5.0 + rng.normal(size=(4, 250)), np.full((1, 250), 3)]
    )
    Y[::2] = np.exp(0.02 * Y[::2])
    made = forecast_damped_holt(torch.tensor(Y), 7)
    np.testing.assert_allclose(made.numpy(), forecast_damped_holt(Y, 7), rtol=1e-9)
    made = forecast_on_logarithms(forecast_damped_holt, torch.tensor(Y), 7)
    expected = forecast_on_logarithms(forecast_damped_holt, Y, 7)
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-9)


@settings(max_examples=20)
@given(scale=st.floats(1e-6, 1e6), shift=st.floats(-100.0, 100.0))
def test_forecasts_follow_scale_and_shift(scale, shift):
    rng = np.random.default_rng(5)
    Y = ragged(rng, [1, 2, 3, 4, 6, 7, 10, 20, 30, 30], 30)
    made = forecast_damped_holt(Y, 5)
    np.testing.assert_allclose(forecast_damped_holt(scale * Y, 5), scale * made, rtol=1e-6)
    np.testing.assert_allclose(forecast_damped_holt(-Y, 5), -made, rtol=1e-6)
    np.testing.assert_allclose(
        forecast_damped_holt(Y + shift, 5), made + shift, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("T", [1, 2, 3, 6, 50])
@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e9])
def test_a_constant_stays_exactly(T, value):
    Y = np.full((2, T), value)
    np.testing.assert_array_equal(forecast_damped_holt(Y, 4), np.full((2, 4), value))
    np.testing.assert_array_equal(
        forecast_on_logarithms(forecast_damped_holt, Y, 4), np.full((2, 4), value)
    )


def test_short_series_repeat_their_last_value(rng):
    Y = ragged(rng, [1, 2, 3, 4, 5, 6], 12)
    made = forecast_damped_holt(Y, 9)
    assert np.isfinite(made).all()
    np.testing.assert_array_equal(made[:2], np.repeat(Y[:2, -1:], 9, axis=1))
    assert forecast_damped_holt(Y[:0], 9).shape == (0, 9)


def test_a_line_is_continued():
    t = np.arange(40.0)
    made = forecast_damped_holt(np.stack([t, -2.0 * t]), 3)
    np.testing.assert_allclose(made, np.array([[40, 41, 42], [-80, -82, -84]]), rtol=0.01)


def test_logarithms_of_positive_series_only(rng):
    Y = np.exp(0.1 * ragged(rng, [30, 20, 8, 2], 30))
    made = forecast_on_logarithms(forecast_damped_holt, Y, 6)
    np.testing.assert_allclose(made, np.exp(forecast_damped_holt(np.log(Y), 6)))
    np.testing.assert_allclose(
        forecast_on_logarithms(forecast_damped_holt, 1e3 * Y, 6), 1e3 * made, rtol=1e-6
    )
    touched = np.vstack([Y, Y[:1] - Y[0].min()])
    both = forecast_on_logarithms(forecast_damped_holt, touched, 6)
    np.testing.assert_allclose(both[:4], made)
    np.testing.assert_allclose(both[4], forecast_damped_holt(touched[4:], 6)[0])


def test_forecasts_on_logarithms_do_not_explode():
    Y = np.array([[2.0, 3.0, 4.0], [10.0, 9.0, 9.5], [-1.0, 0.0, 2.0]])
    up = forecast_on_logarithms(lambda Z, h: np.full((len(Z), h), 1e4), Y, 2)
    np.testing.assert_allclose(up, [[10.0, 10.0], [13.0, 13.0], [1e4, 1e4]])
    down = forecast_on_logarithms(lambda Z, h: np.full((len(Z), h), -1e4), Y, 2)
    np.testing.assert_allclose(down, [[0.0, 0.0], [6.0, 6.0], [-1e4, -1e4]])

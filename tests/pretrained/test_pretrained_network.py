"""The forward pass of the pretrained network: against plain formulas, and what it promises."""

from __future__ import annotations

import io

import numpy as np
import pytest

from rbfdiffnet.pretrained import network
from rbfdiffnet.pretrained.inputs import SeriesInputs
from rbfdiffnet.pretrained.network import KNOTS, MEDIAN, forecast, interpolation, load_weights
from rbfdiffnet.pretrained.seasons import find_longer_seasons


def make(n=40, seed=0, season=12):
    rng, t = np.random.default_rng(seed), np.arange(n)
    return 50.0 + 0.3 * t + 5.0 * np.sin(2 * np.pi * t / season) + rng.normal(size=n)


def test_one_series_step_by_step():
    """All sums written out, center by center."""
    w, y, k = load_weights(), make(), 5
    inputs = SeriesInputs(y[None], np.array([y.size]), np.array([12]), np.array([0]))
    u = inputs.level()
    x, s = inputs.gates(u)[0], inputs.phase(np.array([[k]]))[0, 0]
    h = w["input_weight"] @ x + w["input_bias"]
    from scipy.special import erf

    for b in range(3):
        z = (h - h.mean()) / np.sqrt(h.var() + 1e-5) * w[f"block{b}_scale"] + w[f"block{b}_shift"]
        z = w[f"block{b}_up_weight"] @ z + w[f"block{b}_up_bias"]
        z = z * (1 + erf(z / np.sqrt(2))) / 2
        h = h + w[f"block{b}_down_weight"] @ z + w[f"block{b}_down_bias"]
    e = w["metric_weight"] @ h + w["metric_bias"]
    e = (e - e.mean()) / np.sqrt(e.var() + 1e-5)
    rate = np.exp(w["log_rates"]) * 4.0 / e.size
    phi = np.exp(w["heights"] - rate * ((e - w["centers"]) ** 2).sum(axis=1))
    g = phi / phi.sum()
    share = np.log(5 / 4) / np.log(6 / 4)  # between the knots 4 and 6
    total = 0.0
    for knot, part in ((3, 1 - share), (4, share)):
        own = w["common_level_weights"][knot] @ u[0] + w["common_phase_weights"][knot] @ s
        for j in range(g.size):
            own += g[j] * (
                4.0 * w["offsets"][j, knot]
                + w["level_weights"][j, knot] @ u[0]
                + w["phase_weights"][j, knot] @ s
                + w["place_weights"][j, knot] @ e
            )
        total += part * own
    found = forecast([y], 8, 12, longer=0)
    assert found.median[0, k - 1] == pytest.approx(y[-1] + inputs.unit[0] * total, rel=1e-10)


@pytest.mark.parametrize("season", [1, 4, 5, 7, 12, 24, 48, 52, 96, 168, 365, 17])
def test_any_season_and_length(season):
    series = [make(n, n, season) for n in (1, 2, 3, 5, 13, 60, 400, 2500)]
    found = forecast(series, 30, season)
    assert np.isfinite(found.quantiles).all()
    assert np.isfinite(found.mean).all()
    assert (np.diff(found.quantiles, axis=2) >= 0.0).all()


def test_a_long_horizon_does_not_change_its_beginning():
    series = [make(n) for n in (30, 200)]
    far = forecast(series, 1000, 12).quantiles
    assert np.isfinite(far).all()
    for h in (1, 2, 3, 12, 40):
        np.testing.assert_allclose(forecast(series, h, 12).quantiles, far[:, :h], rtol=1e-12)


def test_units_and_offsets_of_a_series_that_is_not_positive():
    y = make() - 60.0
    near = forecast([y], 12, 12).quantiles
    np.testing.assert_allclose(
        forecast([1000.0 * y - 5e4], 12, 12).quantiles, 1000.0 * near - 5e4, rtol=1e-7
    )


def test_units_of_a_positive_series():
    y = make()
    near = forecast([y], 12, 12).quantiles
    for factor in (1e-200, 1e-6, 3.0, 1e9, 1e299):
        np.testing.assert_allclose(
            forecast([factor * y], 12, 12).quantiles / factor, near, rtol=1e-9
        )


def test_constants_go_on():
    for value in (0.0, 7.0, -3.5, 1e300):
        found = forecast([np.full(20, value), np.array([value])], 5, 4)
        np.testing.assert_array_equal(found.quantiles, value)


def test_a_series_does_not_depend_on_the_others():
    series = [make(n, n) for n in (5, 30, 31, 200, 64)] * 9
    together = forecast(series, 14, 7).quantiles
    for i in (0, 3, 17, 44):
        alone = forecast([series[i]], 14, 7).quantiles[0]
        np.testing.assert_allclose(alone, together[i], rtol=1e-11)


def test_only_the_latest_values_count():
    y = make(9000)
    np.testing.assert_allclose(
        forecast([y], 6, 12).median, forecast([y[-2048:]], 6, 12).median, rtol=1e-12
    )


def test_torch_forecasts_the_same(monkeypatch):
    torch = pytest.importorskip("torch")
    series = [make(n, n) for n in (1, 8, 40, 300)]
    mine = forecast(series, 30, 7)
    monkeypatch.setattr(network, "place_on", lambda _: torch.as_tensor)
    theirs = forecast(series, 30, 7)
    np.testing.assert_allclose(theirs.quantiles, mine.quantiles, rtol=1e-10)
    np.testing.assert_allclose(theirs.mean, mine.mean, rtol=1e-10)


def test_damaged_weights_are_refused(monkeypatch):
    monkeypatch.setattr(network, "_DIGEST", "0")
    network.load_weights.cache_clear()
    with pytest.raises(RuntimeError, match="install rbfdiffnet again"):
        network.load_weights()


def test_steps_lie_between_knots():
    between = interpolation(1024)
    assert between.shape == (1024, len(KNOTS))
    np.testing.assert_allclose(between.sum(axis=1), 1.0)
    for number, knot in enumerate(KNOTS):
        assert between[knot - 1, number] == pytest.approx(1.0)
    np.testing.assert_allclose(between @ np.log(KNOTS), np.log(np.arange(1, 1025)), atol=1e-12)
    np.testing.assert_allclose(interpolation(2000)[-1], between[-1])
    assert interpolation(12).shape == (12, 7)


def test_forecasts_beat_the_last_season():
    series = [make(60, seed) for seed in range(50)]
    found = forecast([y[:-12] for y in series], 12, 12)
    actual = np.stack([y[-12:] for y in series])
    naive = np.stack([y[-24:-12] for y in series])
    assert np.abs(found.median - actual).mean() < 0.7 * np.abs(naive - actual).mean()
    inside = (actual >= found.quantiles[:, :, 2]) & (actual <= found.quantiles[:, :, MEDIAN + 4])
    assert 0.65 < inside.mean() < 0.95


def test_weights_are_small_and_hold_no_objects():
    content = network.files("rbfdiffnet.pretrained").joinpath("weights.npz").read_bytes()
    assert len(content) < 5_000_000
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        assert {archive[name].dtype for name in archive.files} == {np.dtype(np.float16)}


def test_a_longer_season_that_is_given_needs_more_values_than_it_has():
    y, given = make(90), {}
    for longer in (0, 36, 90, 500):
        given[longer] = forecast([y], 9, 12, longer=longer).quantiles
    assert not np.allclose(given[36], given[0])
    np.testing.assert_array_equal(given[90], given[0])
    np.testing.assert_array_equal(given[500], given[0])


def test_a_longer_season_is_usual_or_found():
    rng = np.random.default_rng(0)
    t = np.arange(1000)
    noise = rng.normal(size=1000)
    profile = 10.0 * rng.normal(size=140)
    rows = np.stack(
        [noise, profile[t % 140] + 0.1 * noise, 5.0 * np.sin(2 * np.pi * t / 24) + noise]
    )
    lengths = np.array([1000, 900, 1000])
    assert find_longer_seasons(rows, lengths, 24).tolist() == [168, 140, 168]
    assert find_longer_seasons(rows[:, -100:], np.array([100, 100, 100]), 24).tolist() == [0, 0, 0]
    assert find_longer_seasons(rows, lengths, 1).tolist() == [0, 0, 0]


def test_a_longer_season_does_not_depend_on_the_other_rows():
    rng = np.random.default_rng(4)
    profile = 10.0 * rng.normal(size=10)
    series = [profile[np.arange(30) % 10], make(400)]
    alone = forecast(series[:1], 6, 4).median[0]
    np.testing.assert_allclose(forecast(series, 6, 4).median[0], alone, rtol=1e-11)
    rows = np.zeros((2, 400))
    rows[0, -30:], rows[1] = series
    found = find_longer_seasons(rows, np.array([30, 400]), 4)
    assert found[0] == find_longer_seasons(rows[:1, -30:], np.array([30]), 4)[0]


def test_quantiles_go_on_to_spread_far_ahead():
    rng = np.random.default_rng(0)
    walks = [100.0 + rng.normal(size=300).cumsum() for _ in range(6)]
    noise = [100.0 + rng.normal(size=300) for _ in range(6)]
    for series, least, most in ((walks, 1.4, 2.2), (noise, 0.95, 2.2)):
        near, far = network.forecast(series, 128, 7), network.forecast(series, 400, 7)
        np.testing.assert_allclose(far.quantiles[:, :128], near.quantiles, rtol=1e-9)
        spread = (far.quantiles[:, :, -1] - far.quantiles[:, :, 0]).mean(axis=0)
        assert least < spread[393:].mean() / spread[121:128].mean() < most
        assert np.all(np.diff(far.quantiles, axis=2) >= 0.0)

"""Series without settings: cleaned, learned and forecast, from several sensors and trajectories."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.datasets import henon_map, lorenz, mackey_glass
from rbfdiffnet.noise import series_model
from rbfdiffnet.noise.cleaning import find_shapes, quarter_period
from rbfdiffnet.noise.learn import Trajectory, learn_trajectory
from rbfdiffnet.noise.series_model import MeanCleaner, learn_series


def ones(n: int) -> np.ndarray:
    """All values belong to one trajectory."""
    return np.ones(n, dtype=np.int64)


def wave(n: int, period: float = 40.0) -> np.ndarray:
    t = np.arange(n) / period
    return np.sin(2.0 * np.pi * t) + 0.5 * np.cos(6.0 * np.pi * t)


def test_noise_does_not_change_the_quarter_of_a_period() -> None:
    s = wave(1000)
    noisy = s + 0.3 * np.random.default_rng(0).normal(size=1000)
    assert quarter_period(s) == pytest.approx(10, abs=1)
    assert quarter_period(noisy) == pytest.approx(quarter_period(s), abs=1)


def test_shapes_find_the_noise_of_a_fine_series_and_take_most_of_it_out() -> None:
    s = lorenz(2000, step=0.02)
    clean = np.asarray(s[:, 0])
    sigma = 0.2 * clean.std()
    noisy = clean + sigma * np.random.default_rng(0).normal(size=clean.size)
    shapes = find_shapes(noisy, np.ones(noisy.size, dtype=bool), quarter_period(noisy))
    assert shapes is not None
    assert shapes.noise == pytest.approx(sigma, rel=0.1)
    left = np.sqrt(np.mean((shapes.clean(noisy) - clean) ** 2))
    assert left < 0.45 * sigma
    gaps = noisy.copy()
    gaps[500:504] = np.nan
    filled = shapes.clean(gaps)
    assert np.abs(filled[500:504] - clean[500:504]).max() < 3.0 * sigma


def test_shapes_are_means_of_projected_windows() -> None:
    s = wave(120, 80.0) + 0.1 * np.random.default_rng(3).normal(size=120)
    shapes = find_shapes(s, np.ones(120, dtype=bool), 20)
    assert shapes is not None
    project = shapes.shapes @ shapes.shapes.T
    sums, counts = np.zeros(120), np.zeros(120)
    for start in range(101):
        window = slice(start, start + 20)
        sums[window] += project @ (s[window] - shapes.level)
        counts[window] += 1
    np.testing.assert_allclose(shapes.clean(s), sums / counts + shapes.level, atol=1e-10)


def test_a_trajectory_cleans_other_histories() -> None:
    clean = henon_map(700).ravel()[:700]
    sigma = 0.1 * clean.std()
    noisy = clean + sigma * np.random.default_rng(0).normal(size=700)
    found = learn_trajectory(noisy[:500], 3)
    assert found.on
    smooth = found.clean(noisy[500:])
    assert np.sqrt(np.mean((smooth - clean[500:]) ** 2)) < 0.6 * sigma
    long = found.clean(noisy)
    np.testing.assert_array_equal(long[:400], noisy[:400])
    assert np.sqrt(np.mean((long[400:] - clean[400:]) ** 2)) < 0.6 * sigma
    with pytest.raises(ValueError, match="too few to clean"):
        found.clean(noisy[:3])


def test_histories_that_are_cleaned_together_do_not_touch() -> None:
    clean = henon_map(700).ravel()[:700]
    sigma = 0.1 * clean.std()
    noisy = clean + sigma * np.random.default_rng(0).normal(size=700)
    noisy[520:523] = np.nan
    found = learn_trajectory(noisy[:500], 3)
    parts = [noisy[500:560], noisy[30:90], noisy[:350], noisy[600:605]]
    for part, together in zip(parts, found.clean_each(parts), strict=True):
        assert together.shape == part.shape
        assert np.abs(together - found.clean(part)).max() < 0.1 * sigma


@pytest.mark.parametrize("make", [lambda n: henon_map(n), lambda n: mackey_glass(n, step=6.0)])
def test_a_clean_series_is_forecast_far_without_settings(make) -> None:  # type: ignore[no-untyped-def]
    s = np.asarray(make(620)).ravel()[:620]
    model = RBFDiffNetRegressor(noise="auto").fit_series(s[:600])
    assert model.noise_std_ == 0.0
    assert np.abs(model.forecast(8) - s[600:608]).max() < 0.02 * s.std()
    windows = s[599 - model.delay_ * np.arange(model.n_lags_ - 1, -1, -1)]
    ahead = float(model.predict(windows[None])[0])
    assert abs(ahead - s[599 + model.delay_]) < 0.02 * s.std()
    np.testing.assert_array_equal(model.forecast(8), model.forecast(8, s[:600]))


def duffing_map(n: int, y: float = 0.1) -> np.ndarray:
    """Duffing's map, which stays in one of two lobes for a while."""
    z = [0.11, y]
    for _ in range(n + 198):
        z.append(-0.2 * z[-2] + 2.75 * z[-1] - z[-1] ** 3)
    return np.array(z[200:])


def cubic_map(n: int) -> np.ndarray:
    z = [0.1]
    for _ in range(n + 199):
        z.append(2.61 * z[-1] - z[-1] ** 3)
    return np.array(z[200:])


@pytest.mark.parametrize("s", [duffing_map(608), cubic_map(608)])
def test_a_map_that_hops_between_lobes_is_learned_step_by_step(s: np.ndarray) -> None:
    """The autocorrelation tells how long it stays in a lobe, not how quickly it turns."""
    assert quarter_period(s[:600]) > 8
    model = RBFDiffNetRegressor(noise="auto").fit_series(s[:600])
    assert (model.delay_, model.noise_std_) == (1, 0.0)
    assert np.abs(model.forecast(8) - s[600:]).max() < 0.01 * s.std()


@pytest.mark.parametrize(
    "s",
    [
        henon_map(600) + 4.0 * henon_map(600).std() * np.linspace(0.0, 1.0, 600),
        duffing_map(600),
    ],
)
def test_noise_is_not_more_than_a_map_of_observed_windows_leaves(s: np.ndarray) -> None:
    """Values of a map are no smooth shapes; what those leave of a clean series is no noise."""
    shapes = find_shapes(s, np.ones(s.size, dtype=bool), quarter_period(s))
    assert shapes is not None
    assert shapes.noise > 0.1 * s.std()
    model = RBFDiffNetRegressor(noise="auto").fit_series(s)
    assert model.noise_std_ < 0.02 * s.std()
    np.testing.assert_allclose(model.latent_, s, atol=0.05 * s.std())


def test_a_noisy_map_is_forecast_by_its_filter() -> None:
    clean = henon_map(820).ravel()[:820]
    noisy = clean + 0.1 * clean.std() * np.random.default_rng(3).normal(size=820)
    model = RBFDiffNetRegressor(noise="auto").fit_series(noisy[:800])
    assert model.noise_std_ == pytest.approx(0.1 * clean.std(), rel=0.1)
    assert model.noise_reason_ == ""
    assert model.predict_noisy(noisy[None, 796:800]).shape == (1,)


def test_cleaners_that_explain_a_series_about_as_well_are_averaged() -> None:
    clean = np.asarray(lorenz(600, step=0.1)[:, 0])
    sigma = 0.1 * clean.std()
    noisy = clean + sigma * np.random.default_rng(1).normal(size=600)
    model = learn_series(noisy[:, None])
    (cleaner,) = model.cleaners
    assert isinstance(cleaner, MeanCleaner)
    latents = [part.latent for part in cleaner.parts if isinstance(part, Trajectory)]
    assert len(latents) == len(cleaner.parts) == 2
    np.testing.assert_array_equal(model.latent[:, 0], np.mean(latents, axis=0))
    left = [np.sqrt(np.mean((z - clean) ** 2)) for z in (model.latent[:, 0], *latents)]
    assert left[0] < max(left[1:]) < 0.6 * sigma
    each = [part.clean(noisy) for part in cleaner.parts]
    np.testing.assert_array_equal(cleaner.clean(noisy), np.mean(each, axis=0))


def test_shapes_that_are_too_coarse_are_left_to_trajectories() -> None:
    """Windows of a quarter of a period are long here, but values in them turn quickly."""
    clean = np.asarray(lorenz(1000, step=0.05, discard=1000)[:, 0])
    noisy = clean + 0.05 * clean.std() * np.random.default_rng(0).normal(size=1000)
    quarter = quarter_period(noisy)
    shapes = find_shapes(noisy, np.ones(1000, dtype=bool), quarter)
    found = learn_trajectory(noisy, 4)
    assert shapes is not None
    assert shapes.left_out > 1.15 * found.left_out
    errors = [np.std(z - clean) for z in (shapes.clean(noisy), found.latent)]
    assert errors[0] > 1.5 * errors[1]


def test_a_fine_noisy_series_is_forecast_from_any_history() -> None:
    s = lorenz(1300, step=0.02)
    clean = np.asarray(s[:, 0])
    noisy = clean + 0.2 * clean.std() * np.random.default_rng(0).normal(size=clean.size)
    model = RBFDiffNetRegressor(noise="auto").fit_series(noisy[:1000])
    assert model.delay_ > 1
    assert model.noise_std_ == pytest.approx(0.2 * clean.std(), rel=0.1)
    errors = [
        np.abs(model.forecast(10, noisy[:end]) - clean[end : end + 10]).mean() / clean.std()
        for end in range(1000, 1250, 50)
    ]
    assert np.median(errors) < 0.25
    low, high = model.forecast(10, quantiles=[0.1, 0.9]).T
    assert np.all(low < high)
    with pytest.raises(ValueError, match="use forecast with a history"):
        model.predict_noisy(np.zeros((1, model.n_lags_)))


def coarse_flow(level: float) -> tuple[np.ndarray, np.ndarray]:
    """A flow that turns back within some steps, clean and noisy."""
    clean = np.asarray(lorenz(900, step=0.1, discard=500)[:, 0])
    return clean, clean + level * clean.std() * np.random.default_rng(5).normal(size=900)


def test_predict_is_the_map_that_a_coarse_series_was_cleaned_with() -> None:
    clean, noisy = coarse_flow(0.4)
    found = learn_series(noisy[:800, None])
    best, other = found.best_map, found.committee.best_map
    model = RBFDiffNetRegressor(noise="auto").fit_series(noisy[:800])
    assert (model.n_lags_, model.delay_) == (best.n_lags, best.delay) == (best.n_lags, 1)
    errors = []
    for own in (best, other):
        at = np.arange(800, 900)[:, None] - own.delay * np.arange(own.n_lags, 0, -1)
        errors.append(np.abs(own.network.predict(clean[at])[:, 0] - clean[800:]).mean())
    assert errors[0] < 0.85 * errors[1]
    assert model.predict_noisy(noisy[None, 800 - best.n_lags : 800]).shape == (1,)


def test_a_series_is_cleaned_although_its_forecasts_do_not_gain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clean, noisy = coarse_flow(0.1)
    learn = series_model._learn

    def worse(trajectories, cleaners, *settings, **others):  # type: ignore[no-untyped-def]
        committee, latent = learn(trajectories, cleaners, *settings, **others)
        if any(cleaners):
            committee = replace(committee, error=1e9)
        return committee, latent

    monkeypatch.setattr(series_model, "_learn", worse)
    model = RBFDiffNetRegressor(noise="auto").fit_series(noisy)
    plain = RBFDiffNetRegressor(noise=None).fit_series(noisy)
    assert "latent_ is cleaned" in model.noise_reason_
    assert model.noise_std_ == pytest.approx(0.1 * clean.std(), rel=0.15)
    assert np.std(model.latent_ - clean) < 0.06 * clean.std()
    np.testing.assert_array_equal(model.forecast(10), plain.forecast(10))
    windows = noisy[None, -model.n_lags_ :]
    np.testing.assert_array_equal(model.predict_noisy(windows), plain.predict(windows))
    monkeypatch.setattr(series_model, "_SURE", np.inf)
    left = RBFDiffNetRegressor(noise="auto").fit_series(noisy)
    assert (left.noise_std_, left.noise_reason_) == (0.0, series_model._NO_GAIN)
    np.testing.assert_array_equal(left.latent_, noisy)


def test_times_that_are_not_even_are_brought_to_equal_steps() -> None:
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.6, 1.4, size=600))
    values = np.sin(times / 6.0) + 0.5 * np.cos(times / 2.5)
    model = RBFDiffNetRegressor(noise=None).fit_series(values, times=times)
    after = times[-1] + model.step_ * np.arange(1, 21)
    expected = np.sin(after / 6.0) + 0.5 * np.cos(after / 2.5)
    assert model.step_ == pytest.approx(1.0, abs=0.05)
    assert np.abs(model.forecast(20) - expected).max() < 0.1


def test_times_after_the_last_known_value_are_forecast_and_left_out() -> None:
    x = np.asarray(lorenz(420, step=0.1)[:, 0])
    s = np.append(x[:390], np.full(10, np.nan))
    plain = RBFDiffNetRegressor().fit_series(s)
    timed = RBFDiffNetRegressor().fit_series(s, times=np.arange(400.0))
    np.testing.assert_allclose(timed.forecast(10), plain.forecast(10), atol=1e-9)
    assert np.abs(timed.forecast(10) - x[400:410]).max() < 0.1 * x.std()
    later = RBFDiffNetRegressor().fit_series(s, times=np.append(np.arange(399.0), 401.7))
    plain = RBFDiffNetRegressor().fit_series(np.append(s, [np.nan, np.nan]))
    np.testing.assert_allclose(later.forecast(10), plain.forecast(10), atol=1e-9)


def test_given_lags_and_delay_are_kept() -> None:
    s = mackey_glass(400, step=2.0)
    model = RBFDiffNetRegressor(noise=None).fit_series(s, n_lags=5, delay=3)
    assert (model.n_lags_, model.delay_, model.n_features_in_) == (5, 3, 5)
    long = RBFDiffNetRegressor(noise=None).fit_series(s, delay=25)  # beyond the usual history
    assert long.delay_ == 25
    assert RBFDiffNetRegressor(noise=None).fit_series(s, delay="auto").delay_ < 25


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_lags": "many"}, 'integer or "auto"'),
        ({"n_lags": None}, 'integer or "auto"'),
        ({"delay": 0}, "delay"),
        ({"delay": 60}, "a delay shorter than 60"),
        ({"times": np.arange(99.0)}, "times must have shape"),
        ({"times": np.zeros(100)}, "times must rise"),
        ({"times": np.append(np.arange(99.0), np.inf)}, "times holds inf"),
        ({"times": np.append(np.arange(99.0), 1e12)}, "times reach over 1e"),
        ({"times": np.arange(100.0) * 5e-324}, "almost the same"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        RBFDiffNetRegressor().fit_series(wave(100), **settings)


@pytest.mark.parametrize("s", [np.ones(200), wave(30)])
def test_a_series_that_says_too_little_is_refused(s: np.ndarray) -> None:
    with pytest.raises(ValueError, match="give n_lags"):
        RBFDiffNetRegressor(noise="auto").fit_series(s)


def test_gaps_are_left_out_of_what_is_learned() -> None:
    s = mackey_glass(500, step=6.0)
    holes = s[:480].copy()
    holes[100:103] = holes[300] = np.nan
    found = learn_series(holes[:, None], None)
    assert np.isfinite(found.latent).all()
    ahead = found.forecast(None, 10, np.array([0.5]))[:, 0, 0]
    assert np.abs(ahead - s[480:490]).max() < 0.1 * s.std()


def test_sensors_of_one_system_are_forecast_together() -> None:
    s = lorenz(560)
    model = RBFDiffNetRegressor().fit_series(s[:500])
    assert model.latent_.shape == (500, 3)
    assert model.noise_std_.shape == model.signal_to_noise_.shape == (3,)
    assert np.abs(model.forecast(40) - s[500:540]).max() < 0.05 * s.std()
    assert model.forecast(5, quantiles=[0.1, 0.9]).shape == (5, 3, 2)
    assert np.abs(model.forecast(20, s[:520]) - s[520:540]).max() < 0.05 * s.std()
    windows = s[499 - model.delay_ * np.arange(model.n_lags_ - 1, -1, -1)].reshape(1, -1)
    assert model.predict(windows).shape == (1, 3)
    with pytest.raises(ValueError, match="as many sensors"):
        model.forecast(5, s[:, 0])


def test_noisy_sensors_are_cleaned_one_by_one() -> None:
    s = lorenz(1000, step=0.02)
    sigma = np.array([0.2, 0.0, 0.1]) * s.std(axis=0)
    noisy = s + sigma * np.random.default_rng(0).normal(size=s.shape)
    model = RBFDiffNetRegressor(noise="auto").fit_series(noisy)
    np.testing.assert_allclose(model.noise_std_, sigma, rtol=0.15, atol=1e-12)
    left = np.sqrt(np.mean((model.latent_ - s) ** 2, axis=0))
    assert np.all(left <= 0.6 * sigma)


def test_several_trajectories_teach_one_map() -> None:
    """A short trajectory goes on better with others of the same system."""
    s = [lorenz(160, start=(float(k), 1.0, 20.0), discard=50)[:, 0] for k in range(1, 6)]
    ahead = s[-1][60:80]
    alone = RBFDiffNetRegressor().fit_series(s[-1][:60]).forecast(20)
    together = RBFDiffNetRegressor().fit_series([*s[:-1], s[-1][:60]]).forecast(20)
    assert np.abs(together - ahead).mean() < 0.5 * np.abs(alone - ahead).mean()


def test_noise_of_short_trajectories_is_found_in_all_of_them() -> None:
    """None of them has enough values for itself; treated together, they forecast better."""
    clean = mackey_glass(3_000, step=6.0)
    noise, ratios = 0.2 * clean.std(), []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        starts = rng.integers(0, 2_900, size=10)
        parts = [clean[k : k + 60] + noise * rng.normal(size=60) for k in starts]
        model, plain = (learn_series([s[:, None] for s in parts], own) for own in ("auto", None))
        assert abs(model.noise[0] / noise - 1.0) < 0.15
        assert model.latent.shape == (60, 1)
        true = clean[starts[-1] + 60 : starts[-1] + 70]
        errors = [
            np.abs(one.forecast(None, 10, np.array([0.5]))[:, 0, 0] - true).mean()
            for one in (model, plain)
        ]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 0.8


@pytest.mark.parametrize(
    ("s", "settings", "message"),
    [
        (np.ones((9, 2, 2)), {}, "must have shape"),
        (np.ones((90, 2)), {"n_lags": 4}, "n_lags='auto'"),
        ([wave(90), wave(90)], {"n_lags": 4}, "n_lags='auto'"),
        ([wave(90), wave(90)[:, None]], {}, "same sensors"),
        ([wave(90), wave(15)], {}, "last trajectory has 15"),
        ([wave(90), wave(90)], {"times": np.arange(90.0)}, "one sensor"),
    ],
)
def test_sensors_and_trajectories_that_cannot_be(s, settings, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        RBFDiffNetRegressor().fit_series(s, **settings)


def test_trajectories_may_be_any_lists_and_those_that_say_nothing_are_left_out() -> None:
    s = mackey_glass(400, step=6.0)
    parts = [s[:150], s[150:]]
    expected = RBFDiffNetRegressor(noise="auto").fit_series(parts).forecast(5)
    nothing = [np.zeros(0), s[:5], np.full(30, np.nan)]
    for same in ([pd.Series(v) for v in parts], [v.tolist() for v in parts], [*nothing, *parts]):
        found = RBFDiffNetRegressor(noise="auto").fit_series(same)
        np.testing.assert_array_equal(found.forecast(5), expected)
    rows = lorenz(200)[:, :2]
    assert RBFDiffNetRegressor().fit_series(rows.tolist()).latent_.shape == (200, 2)
    with pytest.raises(ValueError, match="None of the trajectories"):
        RBFDiffNetRegressor().fit_series(nothing[2:])


def test_a_gap_does_not_change_the_period() -> None:
    s = np.asarray(lorenz(400, step=0.1)[:, :1])
    holes = s.copy()
    holes[100:140] = np.nan
    assert quarter_period(s) < 15
    assert abs(learn_series(holes, None).quarter - quarter_period(s)) <= 2


def test_a_given_noise_is_kept_on_fine_series_too() -> None:
    x = np.asarray(lorenz(1000, step=0.02)[:, 0])
    noisy = x + 0.2 * x.std() * np.random.default_rng(0).normal(size=1000)
    for level in (0.1, 0.2, 0.4):
        model = RBFDiffNetRegressor(noise=level * x.std()).fit_series(noisy)
        assert model.noise_std_ == pytest.approx(level * x.std())
    left = find_shapes(noisy, np.ones(1000, dtype=bool), quarter_period(noisy), 0.2 * x.std())
    assert left is not None
    assert np.std(left.clean(noisy) - x) < 0.1 * x.std()


def test_several_sensors_are_compared_with_a_whole_committee(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> float:
        raise AssertionError

    s = lorenz(400, step=0.05)[:, :2]
    noisy = s + 0.2 * s.std(axis=0) * np.random.default_rng(0).normal(size=s.shape)
    monkeypatch.setattr(series_model, "_glance", never)
    found, plain = learn_series(noisy), learn_series(noisy, None)
    assert found.error <= plain.error


@pytest.mark.parametrize(("at", "settings"), [(797, {}), (799, {}), (797, {"n_lags": 8})])
def test_a_spike_counts_as_missing(at: int, settings: dict[str, int]) -> None:
    """In the series, in what its forecasts start from, and in other histories."""
    x = np.asarray(lorenz(830, step=0.02)[:, 0])
    s = x[:800] + 0.2 * x.std() * np.random.default_rng(0).normal(size=800)
    spiked, missing = s.copy(), s.copy()
    spiked[at] += 30.0 * x.std()
    missing[at] = np.nan
    one, other = (
        RBFDiffNetRegressor(noise="auto").fit_series(v, **settings) for v in (spiked, missing)
    )
    np.testing.assert_array_equal(one.forecast(30), other.forecast(30))
    ahead = [other.forecast(30, history=v) for v in (spiked, missing)]
    np.testing.assert_array_equal(*ahead)
    assert abs(one.latent_[at] - x[at]) < 0.6 * x.std()


def test_what_is_missing_at_the_end_is_forecast_and_left_out() -> None:
    s = mackey_glass(430, step=6.0)
    gap = s[:400].copy()
    gap[-5:] = np.nan
    model = RBFDiffNetRegressor().fit_series(gap)
    assert np.abs(model.forecast(10) - s[400:410]).max() < 0.1 * s.std()
    later = np.append(s[:410], [np.nan, np.nan])
    assert np.abs(model.forecast(5, later) - s[412:417]).max() < 0.1 * s.std()


def test_a_flow_is_not_filtered_and_its_filter_is_made_when_asked_for() -> None:
    clean = mackey_glass(500, step=6.0)
    noisy = clean + 0.1 * clean.std() * np.random.default_rng(0).normal(size=500)
    model = learn_series(noisy[:, None])
    assert model.trajectory is not None
    assert not model.filters
    assert "tracker" not in vars(model)
    assert model.tracker is not None
    assert model.tracker is model.tracker


def test_clean_values_before_a_gap_as_long_as_a_history_are_used() -> None:
    """Histories are cleaned with some values before them, or with all if none of those is known."""
    clean = henon_map(800)
    noisy = clean + 0.1 * clean.std() * np.random.default_rng(3).normal(size=800)
    noisy[400:560] = np.nan
    model = learn_series(noisy[:, None])
    assert np.isfinite(model.forecast(None, 5, np.array([0.5]))).all()


@pytest.mark.parametrize(
    "clean", [lorenz(600, step=0.1, discard=500)[:, 0], mackey_glass(600, step=6.0)]
)
def test_a_long_gap_ends_one_piece_of_a_series_and_begins_the_next(clean: np.ndarray) -> None:
    """Nothing is known of what lies in it, so noise is found and taken out as without it."""
    sigma = 0.1 * clean.std()
    s = clean + sigma * np.random.default_rng(3).normal(size=600)
    s[250:350] = np.nan
    model = RBFDiffNetRegressor(noise="auto").fit_series(s)
    assert model.noise_std_ == pytest.approx(sigma, rel=0.1)
    assert (model.latent_.shape, model.noise_reason_) == ((600,), "")
    assert np.isfinite(model.latent_).all()
    assert np.std((model.latent_ - clean)[np.isfinite(s)]) < 0.5 * sigma
    at = np.flatnonzero(np.isfinite(s))
    times = at - 0.4 * (at < 250)  # each piece has its own clock
    timed = RBFDiffNetRegressor(noise="auto").fit_series(s[at], times=times)
    np.testing.assert_allclose(timed.forecast(5), model.forecast(5), atol=1e-6)
    found = learn_trajectory(s, 4)
    assert found.noise == pytest.approx(sigma, rel=0.1)
    assert found.latent.shape == (600,)


@pytest.mark.parametrize(("first", "last"), [(420, 600), (420, 590)])
@pytest.mark.parametrize("noise", ["auto", None])
def test_quantiles_have_a_width_after_a_long_gap_near_the_end(first, last, noise) -> None:  # type: ignore[no-untyped-def]
    """Ways are compared, and errors measured, where there are values."""
    clean = lorenz(630, step=0.1, discard=500)[:, 0]
    s = clean[:600] + 0.1 * clean.std() * np.random.default_rng(0).normal(size=600)
    s[first:last] = np.nan
    found = RBFDiffNetRegressor(noise=noise).fit_series(s).forecast(30, quantiles=[0.1, 0.9])
    assert (found[:, 1] - found[:, 0] > 0.05 * clean.std()).all()
    assert np.mean((clean[600:] >= found[:, 0]) & (clean[600:] <= found[:, 1])) > 0.5


def test_a_gap_does_not_use_up_the_values_that_are_learned_from() -> None:
    clean = henon_map(600)
    s = clean + 0.1 * clean.std() * np.random.default_rng(0).normal(size=600)
    far = np.concatenate([s[:500], np.full(5_000, np.nan), s[500:]])
    model = learn_series(far[:, None])
    assert model.noise[0] == pytest.approx(0.1 * clean.std(), rel=0.1)
    assert len(model.latent) == far.size


def test_a_good_map_leads_a_clean_series_through_a_long_gap() -> None:
    s = mackey_glass(600, step=6.0)
    gone = np.where((np.arange(600) < 570) | (np.arange(600) >= 597), s, np.nan)
    found = learn_trajectory(gone, 8)
    assert not found.on
    assert np.abs(found.latent - s).max() < 0.1 * s.std()


def test_how_long_a_gap_is_does_not_matter_beyond_a_period() -> None:
    clean = henon_map(600)
    noisy = clean + 0.1 * clean.std() * np.random.default_rng(3).normal(size=600)
    gaps = [np.concatenate([noisy[:300], np.full(n, np.nan), noisy[300:]]) for n in (30, 80)]
    one, other = (learn_trajectory(s, 4, quick=True) for s in gaps)
    assert one.noise == other.noise
    np.testing.assert_array_equal(one.latent[:300], other.latent[:300])
    np.testing.assert_array_equal(one.latent[330:], other.latent[380:])


def test_histories_are_cleaned_on_each_side_of_a_long_gap() -> None:
    clean = henon_map(700)
    noisy = clean + 0.1 * clean.std() * np.random.default_rng(0).normal(size=700)
    found = learn_trajectory(noisy[:500], 3)
    history = noisy[500:].copy()
    history[80:120] = np.nan
    before, after = found.clean_each([history[:80], history[120:]])
    made = found.clean(history)
    np.testing.assert_allclose(made[:80], before, atol=1e-3)
    np.testing.assert_allclose(made[120:], after, atol=1e-3)

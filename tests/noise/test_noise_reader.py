"""The reader: a network trained on simulated systems, which reads noisy series."""

from dataclasses import replace

import numpy as np
import pytest

from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.datasets import henon_map, lorenz, mackey_glass
from rbfdiffnet.noise.cleaning import quarter_period
from rbfdiffnet.noise.reader import network, series
from rbfdiffnet.noise.reader.network import AHEAD, BEFORE, load_weights, read
from rbfdiffnet.noise.series_model import learn_series


def noisy_lorenz(size, step=0.05, noise=0.2, seed=0):
    clean = lorenz(size + 40, step=step)[:, 0]
    return clean, clean + noise * clean.std() * np.random.default_rng(seed).normal(size=size + 40)


def test_heads_are_normalized_networks_of_gaussians():
    """One layer, written down with distances, loops and no shortcuts, gives the same numbers."""
    rng = np.random.default_rng(0)
    n, width, heads, size = 7, 64, 2, network.HEAD
    shapes = {"query": (width, width), "key": (width, width), "value": (width, width)}
    shapes |= {"mix": (width, width), "rise": (96, width), "fall": (width, 96)}
    w = {f"layers.0.{name}.weight": 0.2 * rng.normal(size=shape) for name, shape in shapes.items()}
    w |= {"embed.weight": rng.normal(size=(width, 32)), "embed.bias": rng.normal(size=width)}
    w |= {"out.weight": rng.normal(size=(144, width)), "out.bias": rng.normal(size=144)}
    w |= {"beta": np.array([[0.3, -0.2]])}
    x, known = rng.normal(size=n), np.ones(n)
    found = read(x[None], known[None], np.arange(n), w)[0]

    cos, sin = network.rotations()

    def turned(v, t):
        v = v / np.linalg.norm(v)
        a, b = v[: size // 2], v[size // 2 :]
        return np.concatenate([a * cos[t] - b * sin[t], a * sin[t] + b * cos[t]])

    def unit(v):
        return v / np.sqrt(np.mean(v**2))

    y = []
    for t in range(n):
        windows = [np.concatenate([np.zeros(15), v])[t : t + 16] for v in (x, known)]
        y.append(w["embed.weight"] @ np.concatenate(windows) + w["embed.bias"])
    own = {name: w[f"layers.0.{name}.weight"] for name in shapes}
    after = []
    for t in range(n):
        parts = []
        for head in range(heads):
            rows = slice(head * size, (head + 1) * size)
            query = turned((own["query"] @ unit(y[t]))[rows], t)
            gates = []
            for s in range(t + 1):
                key = turned((own["key"] @ unit(y[s]))[rows], s)
                gates.append(np.exp(-np.exp(w["beta"][0, head]) * np.sum((query - key) ** 2)))
            values = [(own["value"] @ unit(y[s]))[rows] for s in range(t + 1)]
            parts.append(np.average(values, axis=0, weights=gates))
        v = y[t] + own["mix"] @ np.concatenate(parts)
        after.append(v + own["fall"] @ np.maximum(own["rise"] @ unit(v), 0.0) ** 2)
    out = np.array([w["out.weight"] @ unit(v) + w["out.bias"] for v in after])
    low, middle, high = np.moveaxis(out.reshape(n, 48, 3), -1, 0)
    wanted = [middle - np.log1p(np.exp(low)), middle, middle + np.log1p(np.exp(high))]
    np.testing.assert_allclose(found, np.stack(wanted, axis=-1), atol=2e-4)


def test_numpy_and_pytorch_agree():
    torch = pytest.importorskip("torch")
    from rbfdiffnet.noise.reader import train

    net = train.Reader(128, 6)
    net.load_state_dict({name: torch.tensor(v) for name, v in load_weights().items()})
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 150)).cumsum(axis=1) / 8.0
    known = (rng.uniform(size=x.shape) > 0.1).astype(float)
    x = x * known
    with torch.no_grad():
        wanted = net(train.make_features(torch.tensor(x).float(), torch.tensor(known).float()))
    at = np.array([60, 149])
    np.testing.assert_allclose(read(x, known, at), wanted[:, at].numpy(), atol=1e-4)


def test_quantiles_do_not_cross_and_the_past_alone_counts():
    _, s = noisy_lorenz(150)
    x = (s[:150] - s[:150].mean()) / s[:150].std()
    known = np.ones_like(x)
    found = read(x[None], known[None], np.array([99]))
    assert found.shape == (1, 1, BEFORE + AHEAD, 3)
    assert (np.diff(found, axis=-1) > 0.0).all()
    changed = np.where(np.arange(150) > 99, 5.0, x)
    np.testing.assert_allclose(read(changed[None], known[None], np.array([99])), found, atol=1e-5)


def test_damaged_weights_are_refused(monkeypatch):
    monkeypatch.setattr(network, "_DIGEST", "0")
    load_weights.cache_clear()
    with pytest.raises(RuntimeError, match="install rbfdiffnet again"):
        load_weights()
    monkeypatch.undo()
    load_weights.cache_clear()
    assert load_weights()["beta"].shape == (6, 4)


@pytest.mark.parametrize(("step", "size", "h"), [(3.0, 150, 12), (0.5, 900, 72)])
def test_it_forecasts_without_learning(step, size, h):
    """Coarse and fine series, the latter in blocks; noise of a fifth of a standard deviation."""
    errors = []
    for seed in range(6):
        clean = mackey_glass(size + 400, step=step)[50 * seed :][: size + h]
        s = clean + 0.2 * clean.std() * np.random.default_rng(seed).normal(size=clean.size)
        told = series.forecast(s[:size], h, quarter_period(s[:size]))
        ahead = clean[size:]
        errors.append((np.abs(told - ahead).mean(), np.abs(s[:size].mean() - ahead).mean()))
    own, mean = np.mean(errors, axis=0)
    assert own < 0.4 * mean


def test_forecasts_from_origins_know_the_past_only_and_follow_units():
    _, s = noisy_lorenz(400, step=0.02)
    origins = np.array([100, 300, 311, 325])
    found = series.forecast_from(s, origins, 40, 10)
    assert found.shape == (4, 40)
    for k, origin in enumerate(origins):
        later = np.where(np.arange(s.size) >= origin, 50.0, s)
        changed = series.forecast_from(later, origins, 40, 10)
        np.testing.assert_allclose(changed[k], found[k], atol=1e-4)
    scaled = series.forecast_from(7.0 * s - 3.0, origins, 40, 10)
    np.testing.assert_allclose(scaled, 7.0 * found - 3.0, atol=1e-2)


@pytest.mark.parametrize("quarter", [3, 10, 30])
def test_a_step_is_the_same_however_far_one_asks(quarter):
    _, s = noisy_lorenz(400, step=0.02)
    far = series.forecast(s, 3 * AHEAD * quarter, quarter)
    assert np.isfinite(far).all()
    for h in (1, 7, 40):
        np.testing.assert_allclose(series.forecast(s, h, quarter), far[:h], rtol=1e-9)


def test_gaps_are_read_over():
    clean, s = noisy_lorenz(300, step=0.05)
    with_gaps = s.copy()
    with_gaps[60:70] = np.nan
    with_gaps[200] = np.nan
    told = [series.forecast(v[:300], 10, 5) for v in (s, with_gaps)]
    assert np.isfinite(told[1]).all()
    assert np.abs(told[0] - told[1]).mean() < 0.3 * clean.std()


def test_a_clean_series_is_left_to_its_maps():
    assert learn_series(mackey_glass(500, step=6.0)[:, None]).share is None


def test_noisy_series_share_forecasts_with_the_reader():
    clean = mackey_glass(150, step=3.0)
    s = clean + 0.2 * clean.std() * np.random.default_rng(0).normal(size=150)
    model = learn_series(s[:, None])
    assert model.share is not None
    assert 0.05 < model.share[-1] < 0.95
    middle = model.committee.forecast(model.latent, 20)[:, 0]
    told = series.forecast(s[:150], 20, model.quarter)
    share = model.share[:20]
    wanted = (1.0 - share) * middle + share * told
    found = model.forecast(None, 20, np.array([0.5]))[:, 0, 0]
    np.testing.assert_allclose(found, np.clip(wanted, model.committee.low, model.committee.high))


def test_several_sensors_and_given_lags_are_not_read():
    assert learn_series(lorenz(200)[:, :2]).share is None
    s = mackey_glass(200, step=6.0)[:, None]
    assert learn_series(s, n_lags=4).share is None
    assert learn_series(s, delay=2).share is None


def test_the_latest_values_of_a_long_series_are_read():
    s = lorenz(3_000, step=0.05)[:, 0]
    changed = np.where(np.arange(s.size) < s.size - 5, s, -s)
    told = [series.forecast(v, 20, 5) for v in (s, changed)]
    assert np.abs(told[0] - told[1]).max() > 0.5 * s.std()


def test_a_regressor_without_settings_uses_it():
    clean = mackey_glass(170, step=3.0)
    s = clean + 0.3 * clean.std() * np.random.default_rng(3).normal(size=170)
    model = RBFDiffNetRegressor(noise="auto").fit_series(s[:150])
    again = RBFDiffNetRegressor(noise="auto").fit_series(s[:150])
    np.testing.assert_array_equal(model.forecast(20), again.forecast(20))
    assert model.reader_share_.max() > 0.2
    alone = replace(model._series, share=None).forecast(None, 20, np.array([0.5]))[:, 0, 0]
    assert np.abs(model.forecast(20) - alone).max() > 0.01 * s.std()


def test_a_short_history_is_read_after_the_series():
    """Forecasts after 32 values are no worse for it than those of the committee alone."""
    clean = mackey_glass(800, step=3.0)
    s = clean + 0.3 * clean.std() * np.random.default_rng(5).normal(size=800)
    model = learn_series(s[:300, None])
    errors = []
    for origin in range(400, 760, 24):
        history = s[origin - 40 : origin, None]
        ahead = clean[origin : origin + 20]
        for own in (model, replace(model, share=None)):
            errors.append(
                np.abs(own.forecast(history, 20, np.array([0.5]))[:, 0, 0] - ahead).mean()
            )
    mixed, committee = np.reshape(errors, (-1, 2)).mean(axis=0)
    assert mixed < 1.02 * committee


def test_forecasts_stay_within_bounds_and_are_the_middle_quantile():
    _, s = noisy_lorenz(400, step=0.02)
    model = RBFDiffNetRegressor(noise="auto").fit_series(s[:300])
    far = s[300:400] + 1e3
    alone = model.forecast(20, far)
    low, high = model._series.committee.low[0], model._series.committee.high[0]
    assert (alone >= low).all()
    assert (alone <= high).all()
    np.testing.assert_array_equal(model.forecast(20, far, quantiles=[0.5, 0.9])[:, 0], alone)


def test_far_steps_are_left_to_the_committee():
    clean = mackey_glass(150, step=3.0)
    s = clean + 0.2 * clean.std() * np.random.default_rng(0).normal(size=150)
    model = learn_series(s[:, None])
    h = 5 * model.share.size
    found = model.forecast(None, h, np.array([0.5]))
    alone = replace(model, share=None).forecast(None, h, np.array([0.5]))
    np.testing.assert_array_equal(found[4 * model.share.size :], alone[4 * model.share.size :])
    near = model.forecast(None, 12, np.array([0.5]))
    np.testing.assert_allclose(near, found[:12], rtol=1e-9)


_LORENZ = noisy_lorenz(400, step=0.02)[1]


@pytest.mark.parametrize(
    "s",
    [
        np.tile([0.0, 1.0, 2.0, 5.0], 100),
        np.tile([0.0, 1.0], 100),
        np.where(np.arange(400) == 100, 1e30, _LORENZ[:400]),
        np.r_[1e-25 * _LORENZ[:285], _LORENZ[285:400]],
        np.r_[np.zeros(285), 1e20 * _LORENZ[285:400]],
        np.r_[np.full(285, 0.1), 1e100 * _LORENZ[285:400]],
        np.where((np.arange(400) >= 275) & (np.arange(400) < 399), np.nan, _LORENZ[:400]),
    ],
    ids=["steps", "two values", "spike", "grown", "begun", "exploded", "gap where compared"],
)
def test_odd_series_are_learned_without_warnings(s):
    model = RBFDiffNetRegressor(noise="auto").fit_series(s)
    assert np.isfinite(model.forecast(20)).all()
    if model.reader_share_ is not None:
        assert ((model.reader_share_ >= 0.0) & (model.reader_share_ < 1.0)).all()


def test_a_last_trajectory_that_rests_is_not_read():
    model = learn_series([_LORENZ[:400, None], np.full((100, 1), 3.0)])
    assert model.share is None


def test_long_coarse_series_are_learned():
    model = RBFDiffNetRegressor(noise="auto").fit_series(henon_map(1_500))
    assert np.isfinite(model.forecast(5)).all()


def test_origins_far_apart_are_read_one_after_the_other():
    """Each knows at least half of what the network can see."""
    s = mackey_glass(1_200, step=6.0)
    origins = np.array([500, 650, 900, 1_150])
    found = series.forecast_from(s, origins, 6, 2)
    for origin, path in zip(origins, found, strict=True):
        ahead = s[origin : origin + 6]
        assert np.abs(path - ahead).mean() < 0.6 * np.abs(s.mean() - ahead).mean()

"""The simulator and the training of the pretrained network, in small."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from rbfdiffnet.pretrained import simulate as simulator  # noqa: E402
from rbfdiffnet.pretrained.network import forecast, read_weights  # noqa: E402
from rbfdiffnet.pretrained.train import Settings, evaluate, main, train  # noqa: E402


@pytest.mark.parametrize(("n_past", "n_ahead"), [(96, 24), (400, 48)])
def test_simulated_series_are_finite_and_of_many_kinds(n_past, n_ahead):
    torch.manual_seed(0)
    found = simulator.simulate(2000, n_past, n_ahead)
    y = found.y.numpy()
    assert y.shape == (2000, n_past + n_ahead)
    assert np.isfinite(y).all()
    assert found.lengths.min() >= 1
    assert found.lengths.max() <= n_past
    assert ((y < 0).any(axis=1).mean() > 0.1) & ((y >= 0).all(axis=1).mean() > 0.5)
    assert 0.05 < (y == np.round(y)).all(axis=1).mean() < 0.4  # counts and rounded values
    longer = found.longer[found.longer > 0]
    assert (found.lengths[found.longer > 0] > longer).all()
    assert len(set(found.season.tolist())) > 8


def test_the_same_seed_gives_the_same_series():
    runs = []
    for _ in range(2):
        torch.manual_seed(5)
        runs.append(simulator.simulate(50, 60, 12).y)
    assert torch.equal(*runs)


@pytest.mark.parametrize("rate", [0.0, 0.5, -0.7, 1.0, 0.3 + 0.6j])
def test_recursions_by_doubling(rate):
    shocks = torch.randn(3, 37, dtype=torch.complex128 if isinstance(rate, complex) else None)
    rates = torch.full((3, 1), rate, dtype=shocks.dtype)
    (found,) = simulator.recur([shocks.clone()], [rates])
    expected, last = [], torch.zeros(3, dtype=shocks.dtype)
    for step in range(37):
        last = rate * last + shocks[:, step]
        expected.append(last)
    torch.testing.assert_close(found, torch.stack(expected, 1), rtol=1e-4, atol=1e-4)


def test_profiles_have_mean_zero_and_one_season():
    torch.manual_seed(1)
    draw = simulator.Draw(200, 64, "cpu")
    m = torch.full((200, 1), 12)
    found = simulator.make_profile(draw, m, 64)
    assert torch.equal(found[:, :12], found[:, 12:24])
    torch.testing.assert_close(found[:, :12].mean(1), torch.zeros(200), atol=1e-4, rtol=0)
    spread = found[:, :12].square().mean(1)
    assert (spread < 1.01).all()
    assert (spread > 0.99).float().mean() > 0.9


SETTINGS = Settings(
    steps=12, centers=4, width=8, blocks=1, batches=((48, 60, 12),), checkpoint_every=4
)


@pytest.mark.parametrize("network", ["differential", "n-rbfn", "u-rbfn", "linear", "mlp"])
def test_every_network_trains(network, tmp_path):
    from dataclasses import replace

    weights = read_weights(train(replace(SETTINGS, network=network), tmp_path, "cpu"))
    assert np.isfinite(np.concatenate([w.ravel() for w in weights.values()])).all()
    linear = np.abs(weights["level_weights"]).max() > 0.0
    assert linear == (network not in ("n-rbfn", "u-rbfn"))


def test_an_interrupted_training_goes_on_with_the_same_result(tmp_path, monkeypatch):
    whole = read_weights(train(SETTINGS, tmp_path / "whole", "cpu"))
    from rbfdiffnet.pretrained import train as module

    steps = iter(range(7))

    def stop(self):
        if next(steps, None) is None:
            raise KeyboardInterrupt
        return original(self)

    original = module.Training.step
    with monkeypatch.context() as patch:
        patch.setattr(module.Training, "step", stop)
        with pytest.raises(KeyboardInterrupt):
            train(SETTINGS, tmp_path / "parts", "cpu")
    parts = read_weights(train(SETTINGS, tmp_path / "parts", "cpu"))
    for name, own in whole.items():
        np.testing.assert_array_equal(parts[name], own)


@pytest.mark.slow
def test_a_minute_of_training_beats_the_last_season(tmp_path, capsys):
    main(["--small", "--out", str(tmp_path), "--device", "cpu"])
    rng, t = np.random.default_rng(0), np.arange(84)
    series = [
        100.0 + 10.0 * np.sin(2 * np.pi * (t + p) / 12) + 8.0 * rng.normal(size=84)
        for p in range(60)
    ]
    found = evaluate(read_weights(tmp_path / "weights.npz"), series, 12, 12)
    assert found["MASE"] < 0.9 * found["MASE of the last season"]
    assert 0.6 < found["within 80 %"] < 0.95
    lines = [f"{i},{k},{v}" for i, y in enumerate(series) for k, v in enumerate(y)]
    file = tmp_path / "series.csv"
    file.write_text("\n".join(["unique_id,ds,y", *lines]))
    capsys.readouterr()
    main(["--out", str(tmp_path), "--evaluate", str(file), "--season", "12"])
    assert f"MASE: {found['MASE']:.3f}" in capsys.readouterr().out


def test_weights_of_another_training_can_be_used(tmp_path):
    weights = read_weights(train(SETTINGS, tmp_path, "cpu"))
    assert np.isfinite(forecast([np.arange(20.0)], 5, 1, weights=weights).quantiles).all()

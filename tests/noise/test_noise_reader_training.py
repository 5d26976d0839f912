"""How the reader is trained: random systems, windows with noise, losses, and its file."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

torch = pytest.importorskip("torch")

from rbfdiffnet.noise.cleaning import quarter_period  # noqa: E402
from rbfdiffnet.noise.reader import simulate, train  # noqa: E402
from rbfdiffnet.noise.reader.network import AHEAD, BEFORE, SEEN, read, read_weights  # noqa: E402


@pytest.mark.parametrize("kind", ["sparse", "turbulent", "nets", "driven"])
def test_systems_are_solved_as_by_scipy(kind):
    dice = simulate.Dice.of(3, "cpu")
    systems = {
        "sparse": lambda: simulate.draw_sparse(20, 3, dice),
        "turbulent": lambda: simulate.draw_turbulent(20, 4, dice),
        "nets": lambda: simulate.draw_nets(20, 5, dice),
        "driven": lambda: simulate.draw_driven(20, dice),
    }[kind]()
    dt = torch.full((20,), 0.01)
    path = simulate.run(systems.stepper(dt), systems.start, 40, 10).double().numpy()
    compared = 0
    for i in range(20):
        one = systems.take(slice(i, i + 1))

        def change(t, x, one=one):
            state, time = torch.tensor(x[None]).float(), torch.tensor([t]).float()
            return one.change(state, time, *one.parameters)[0].double().numpy()

        times = 0.1 * np.arange(1, 5)
        wanted = solve_ivp(change, (0.0, 0.4), one.start[0].numpy(), t_eval=times, rtol=1e-6)
        if wanted.success and np.abs(wanted.y).max() < 20.0:
            np.testing.assert_allclose(path[:, i], wanted.y.T, atol=2e-2)
            compared += 1
    assert compared >= 10


def test_energy_of_turbulent_systems_changes_by_friction_and_force_alone():
    dice = simulate.Dice.of(0, "cpu")
    systems = simulate.draw_turbulent(50, 5, dice)
    x = dice.normal(50, 5)
    _, _, friction, force = systems.parameters
    gain = (x * systems.change(x, torch.zeros(50), *systems.parameters)).sum(dim=1)
    wanted = (x * (force - friction * x)).sum(dim=1)
    np.testing.assert_allclose(gain, wanted, atol=1e-2)


def test_chaos_is_told_from_order():
    """Lorenz's equations are chaotic with r = 28, and come to rest with r = 10."""
    weights = torch.zeros((2, 22, 3))
    names = {"x": 1, "y": 2, "z": 3, "xy": 5, "xz": 6}
    for k, r in enumerate((28.0, 10.0)):
        weights[k, names["x"], 0], weights[k, names["y"], 0] = -10.0, 10.0
        weights[k, names["x"], 1], weights[k, names["y"], 1] = r, -1.0
        weights[k, names["xz"], 1] = -1.0
        weights[k, names["z"], 2], weights[k, names["xy"], 2] = -8.0 / 3.0, 1.0
    change = simulate.draw_sparse(1, 3, simulate.Dice.of(0, "cpu")).change
    systems = simulate.Systems(change, (weights,), torch.ones((2, 3)), 0.01)
    found = systems.record(torch.full((2,), 0.012), simulate.Dice.of(0, "cpu"))
    assert found.chaotic.tolist() == [True, False]
    assert found.good.tolist() == [True, False]
    assert found.seen.shape == (2, 2, 4096)


def test_maps_are_chaotic_or_not():
    found = simulate.record_maps(400, 1, simulate.Dice.of(0, "cpu"))
    assert 0 < int((found.good & found.chaotic).sum()) < len(found.good)


def test_delayed_equations_keep_moving():
    found = simulate.record_delayed(4, simulate.Dice.of(0, "cpu"))
    assert found.seen.shape == (4, 1, 4096)
    assert int(found.good.sum()) > 0


def records(n=40):
    dice = simulate.Dice.of(0, "cpu")
    return simulate.choose(simulate.record_tori(n, dice), dice)


def test_quarters_are_those_of_the_package():
    own = records()
    wanted = [quarter_period(v) for v in own.values.double().numpy()]
    np.testing.assert_array_equal(own.quarter, wanted)


def test_windows_are_samples_of_a_series():
    """Of a sine, a window is a sine: interpolation, units and noise are as they say."""
    t = torch.arange(4096)
    sine = torch.sin(2.0 * np.pi * t / 56.0)[None] * 2.0**0.5
    own = simulate.Records(sine, torch.tensor([14]), torch.tensor([False]))
    x, known, clean, noise = train.draw(own, 64, simulate.Dice.of(1, "cpu"))
    assert x.shape == known.shape == (64, SEEN)
    assert clean.shape == (64, SEEN + AHEAD)
    for row in range(64):
        z = clean[row].double().numpy()
        # z[t + 1] + z[t - 1] = 2 cos(w) z[t] + constant
        A = np.stack([z[1:-1], np.ones(z.size - 2)], axis=1)
        rest = np.linalg.lstsq(A, z[2:] + z[:-2], rcond=None)[1]
        assert float(rest[0]) < 1e-3
        seen = known[row].numpy() > 0
        away = x[row].numpy()[seen] - z[:SEEN][seen]
        # Noise has its size for a signal of one; both were divided by what was observed.
        signal = z[:SEEN].std()
        assert away.std() == pytest.approx(float(noise[row, 0]) * signal, rel=0.3, abs=1e-3)
    assert float(x[known == 0].abs().sum()) == 0.0


def test_losses_are_pinball_losses_of_shifted_values():
    rng = np.random.default_rng(0)
    found = rng.normal(size=(2, SEEN, BEFORE + AHEAD, 3))
    clean, noise = rng.normal(size=(2, SEEN + AHEAD)), np.array([[0.1], [0.3]])
    ahead, seen = [], []
    for b in range(2):
        for t in range(24, SEEN):
            for k in range(BEFORE + AHEAD):
                away = clean[b, t + k - BEFORE + 1] - found[b, t, k]
                level = np.array([0.1, 0.5, 0.9])
                loss = np.maximum(level * away, (level - 1.0) * away).mean()
                (seen if k < BEFORE else ahead).append(loss)
                if k < BEFORE:
                    seen[-1] /= noise[b, 0] + 0.05
    args = (torch.tensor(v).float() for v in (found, clean, noise))
    told = [float(v) for v in train.losses(*args)]
    np.testing.assert_allclose(told, [np.mean(ahead), np.mean(seen)], rtol=1e-4)


def test_steps_along_orthogonal_matrices():
    weights = [torch.nn.Parameter(torch.zeros((6, 4))) for _ in range(2)]
    gradient = torch.randn((6, 4), generator=torch.Generator().manual_seed(0))
    for p in weights:
        p.grad = gradient.clone()
    train.Muon([weights], 1.0).step(1.0)
    values = np.linalg.svd(weights[0].detach().numpy(), compute_uv=False)
    assert values == pytest.approx(np.full(4, 1.5**0.5), rel=0.4)
    towards = float((weights[0].detach() * gradient).sum())
    assert towards < 0.0


def test_training_writes_weights_that_can_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(train, "simulate", lambda *_: records(80))
    options = ["--out", str(tmp_path), "--steps", "4", "--batch", "4", "--width", "64"]
    train.main([*options, "--layers", "2"])
    weights = read_weights(tmp_path / "weights.npz")
    net = train.Reader(64, 2)
    net.load_state_dict(torch.load(tmp_path / "weights.pt"))
    for name, value in net.state_dict().items():
        step = np.abs(value.numpy()).max() / 127.0
        np.testing.assert_allclose(weights[name], value.numpy(), atol=0.51 * step + 1e-7)
    told = read(np.zeros((1, 30)), np.ones((1, 30)), np.array([29]), weights)
    assert np.isfinite(told).all()
    start = ["--start", str(tmp_path / "weights.pt"), "--seed", "1"]
    train.main([*options, "--layers", "2", *start])

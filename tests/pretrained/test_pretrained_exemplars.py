"""Exemplars: what is said about series, and which series stands for which center."""

from __future__ import annotations

import numpy as np
import pytest

from rbfdiffnet.pretrained import exemplars
from rbfdiffnet.pretrained.exemplars import (
    AHEAD,
    PAST,
    _assign,
    add_exemplars,
    find_facts,
    load_exemplars,
    read_exemplars,
)
from rbfdiffnet.pretrained.inputs import SeriesInputs
from rbfdiffnet.pretrained.network import (
    find_gates,
    forecast,
    load_weights,
    open_weights,
    read_weights,
)

RNG = np.random.default_rng(0)
T = np.arange(120)
NOISE = RNG.normal(size=120)
MONTHS = np.sin(2 * np.pi * T / 12)


@pytest.mark.parametrize(
    ("y", "m", "words"),
    [
        (T + 0.1 * NOISE, 1, "rising, no season, smooth"),
        (-T + 20.0 * MONTHS, 12, "falling, strong season of 12, smooth"),
        (5.0 + NOISE, 1, "level, no season, noisy"),
        (5.0 + NOISE, 12, "level, no clear season of 12, noisy"),
        (MONTHS + 0.8 * NOISE, 12, "level, season of 12, noisy"),
        (20.0 * np.sin(T / 7.0) + NOISE, 1, "wandering, no season, smooth"),
        (RNG.poisson(0.5, 120), 1, "level, no season, noisy, often zero"),
        (RNG.poisson(50.0, 120), 7, "level, no clear season of 7, noisy, whole numbers"),
        (T[:3], 12, "3 values"),
        (T[:1], 1, "1 value"),
    ],
    ids=lambda part: part if isinstance(part, str) else None,
)
def test_words_say_what_is_there(y, m, words):
    assert find_facts(np.asarray(y, dtype=float), m).words() == words


def test_shares_of_variance():
    rng = np.random.default_rng(1)
    y = rng.normal(size=5000).cumsum() + 3.0 * np.tile(rng.normal(size=1000), 5)
    found = find_facts(y, 1000)
    assert found.length == 3000
    t, level = np.arange(3000), np.convolve(y[-3000:], np.ones(1000) / 1000, mode="valid")
    assert found.trend == pytest.approx(np.corrcoef(t, y[-3000:])[0, 1])
    assert found.level_share == pytest.approx(level.var() / y[-2500:][: level.size].var())


def test_no_series_serves_two_centers():
    gates = np.array([[0.9, 0.8, 0.1], [0.05, 0.7, 0.2], [0.05, 0.1, 0.3]])
    assert _assign(gates) == [0, 1, 2]


def test_every_center_has_an_exemplar():
    found = load_exemplars()
    assert [one.number for one in found] == list(range(1, len(load_weights()["centers"]) + 1))
    for one in found:
        known = one.values[np.isfinite(one.values)]
        assert one.values.shape == (PAST + AHEAD,)
        assert np.isfinite(one.values[-AHEAD:]).all()
        assert known.min() >= 0.0
        assert known.max() <= 1.0
        assert one.name.startswith(f"exemplar {one.number}: ")
    assert len({tuple(one.values) for one in found}) == len(found)


def test_exemplars_have_the_largest_gates(monkeypatch):
    torch = pytest.importorskip("torch")
    from rbfdiffnet.pretrained.simulate import simulate

    monkeypatch.setattr(exemplars, "_SERIES_A_CENTER", 1)
    monkeypatch.setattr(exemplars, "_BLOCKS", ((1.0, 400, 100, 30),))
    weights = load_weights()
    found = exemplars.find_exemplars(weights, seed=3)["exemplars"]
    torch.manual_seed(3)
    drawn = simulate(len(weights["centers"]), 100, 30)
    gates, pictures = [], []
    for y, n, *seasons in zip(
        drawn.y.double().numpy(), drawn.lengths, drawn.season, drawn.longer, strict=True
    ):
        facts = [np.array([int(part)]) for part in (n, *seasons)]
        inputs = SeriesInputs(y[None, :100], *facts)
        picture = np.full(PAST + AHEAD, np.nan)
        shown = min(int(n), PAST)
        picture[PAST - shown :] = y[100 - shown : 100 + AHEAD]
        clear = inputs.varies & exemplars._is_clear(picture[None])
        gates.append(clear * find_gates(inputs.gates(inputs.level()), weights)[0][0])
        pictures.append(picture - np.nanmin(picture))
    series, center = np.unravel_index(np.argmax(gates), np.shape(gates))
    expected = pictures[series] / np.nanmax(pictures[series])
    np.testing.assert_allclose(found[center], expected, atol=1e-3)


def test_exemplars_are_added_to_a_file(tmp_path):
    torch = pytest.importorskip("torch")
    from rbfdiffnet.pretrained.train import Settings, main, train

    settings = Settings(30, centers=4, width=8, blocks=1, batches=((48, 60, 12),))
    file = train(settings, tmp_path, "cpu")
    first = file.read_bytes()
    before = read_weights(file)
    assert not any(name.startswith("exemplar") for name in before)
    torch.manual_seed(7)
    main(["--out", str(tmp_path), "--exemplars", "--seed", "0"])
    assert file.read_bytes() == first  # the same seed, the same exemplars
    add_exemplars(file, seed=1)
    again = read_weights(file)
    for name, own in before.items():
        np.testing.assert_array_equal(again[name], own)
    assert len(read_exemplars(file)) == 4
    assert file.read_bytes() != first
    assert np.isfinite(forecast([T], 5, 1, weights=again).median).all()


def test_the_file_stays_small():
    assert len(open_weights().getvalue()) < 4_000_000

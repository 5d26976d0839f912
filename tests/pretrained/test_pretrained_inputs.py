"""Inputs of the pretrained network against definitions written out for one series at a time."""

from __future__ import annotations

import numpy as np
import pytest

from rbfdiffnet.pretrained.inputs import SeriesInputs


def one(y, season=1, longer=0, pad=0):
    values = np.concatenate([np.full(pad, 123.0), y])[None]
    return SeriesInputs(values, np.array([y.size]), np.array([season]), np.array([longer]))


@pytest.fixture
def y():
    rng = np.random.default_rng(3)
    t = np.arange(90)
    return 20.0 + 0.1 * t + 3.0 * np.sin(2 * np.pi * t / 7) + rng.normal(size=90)


def scaled(y, season):
    unit = 0.7 * np.abs(y[season:] - y[:-season]).mean() + 0.3 * np.abs(np.diff(y)).mean()
    return (y - y[-1]) / unit, unit


def deviation(v, at, m):
    """v less the mean of the m values around, moved inward at both ends."""
    high = min(at + 1 + m // 2, v.size)
    low = max(high - m, 0)
    high = min(max(high, low + m), v.size)
    return v[at] - v[low:high].mean()


def test_units_and_level_inputs(y):
    v, unit = scaled(y, 7)
    inputs = one(y, 7)
    assert inputs.unit[0] == pytest.approx(unit)
    level = inputs.level()[0]
    np.testing.assert_allclose(level[:31], v[-2:-33:-1])
    usual = [
        np.mean([deviation(v, v.size - 1 - i - 7 * j, 7) for j in range(8)]) for i in range(32)
    ]
    np.testing.assert_allclose(level[31:63], usual)
    np.testing.assert_array_equal(level[63:95], 0.0)  # there is no longer season
    seasons = [v[v.size - 7 * (j + 1) : v.size - 7 * j].mean() for j in range(8)]
    np.testing.assert_allclose(level[95:103], seasons)
    spans = [v[-(2**j) :].mean() for j in range(1, 12)]
    np.testing.assert_allclose(level[103:114], spans)
    np.testing.assert_array_equal(level[114:117], 0.0)
    np.testing.assert_allclose(level[117:], [v[-22:].mean(), v[-45:].mean()])


def test_phase_inputs(y):
    v, unit = scaled(y, 7)
    steps = np.array([[1, 5, 7, 8, 20]])
    phase = one(y, 7).phase(steps)[0]
    for row, k in zip(phase, steps[0], strict=True):
        at = v.size - 1 + k - 7 * -(-k // 7)
        own = [deviation(v, at - 7 * j, 7) for j in range(16) if at - 7 * j >= 0]
        np.testing.assert_allclose(row[:4], own[:4])
        np.testing.assert_allclose(row[4:6], [np.mean(own[4:8]), np.mean(own[8:16])])
        np.testing.assert_allclose(row[7:9], [own[0], np.mean(own[:6])])
        now, before = v[-7:].mean(), v[-14:-7].mean()
        level, then = now + y[-1] / unit, before + y[-1] / unit
        np.testing.assert_allclose(row[16], level * ((level / then) ** (k / 7) - 1.0))
        np.testing.assert_array_equal(row[11:16], 0.0)


def test_phase_inputs_of_a_longer_season(y):
    v, _ = scaled(y, 7)
    phase = one(y, 7, 28).phase(np.array([[3]]))[0, 0]
    own = [deviation(v, v.size - 1 + 3 - 28 * j, 28) for j in (1, 2, 3)]
    np.testing.assert_allclose(phase[11:14], own)
    around = [
        np.mean([deviation(v, v.size + 2 - 28 * j + i, 28) for i in range(-3, 4)])
        for j in (1, 2, 3)
    ]
    np.testing.assert_allclose(phase[14:16], [around[0], np.mean(around[1:])])


@pytest.mark.parametrize("n", [1, 2, 3, 8, 30, 90])
@pytest.mark.parametrize(("season", "longer"), [(1, 0), (7, 28), (12, 0), (365, 0)])
def test_what_stands_before_a_series_does_not_matter(y, n, season, longer):
    steps = np.array([[1, 2, 13, 400]])
    plain, padded = one(y[:n], season, longer), one(y[:n], season, longer, pad=11)
    for a, b in ((plain, padded),):
        np.testing.assert_allclose(a.level(), b.level(), atol=1e-12)
        np.testing.assert_allclose(a.phase(steps), b.phase(steps), atol=1e-12)
        np.testing.assert_allclose(a.gates(a.level()), b.gates(b.level()), atol=1e-12)
        assert np.isfinite(a.gates(a.level())).all()


def test_torch_computes_the_same(y):
    torch = pytest.importorskip("torch")
    values = np.stack([y, y[::-1], np.round(y), y - 20.0])
    rest = np.array([90, 50, 3, 90]), np.array([7, 12, 4, 1]), np.array([28, 0, 0, 0])
    steps = np.tile(np.arange(1, 15), (4, 1))
    mine = SeriesInputs(values, *rest)
    theirs = SeriesInputs(torch.tensor(values.copy()), *map(torch.tensor, rest))
    np.testing.assert_allclose(mine.level(), theirs.level(), atol=1e-12)
    np.testing.assert_allclose(mine.phase(steps), theirs.phase(torch.tensor(steps)), atol=1e-12)
    np.testing.assert_allclose(mine.gates(mine.level()), theirs.gates(theirs.level()), atol=1e-12)

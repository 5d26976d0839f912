"""The choice of differences against a plain reimplementation, and what it must find."""

import numpy as np
import pytest

from rbfdiffnet.batch.backend import Backend
from rbfdiffnet.series.differences import choose_differences
from rbfdiffnet.series.transforms import Difference, fit_transforms


def rolled_out_error(u, season, seasonal, count):
    """Mean squared error of recursive forecasts, one origin and one step after the other."""
    lags, horizon = 2 * max(season, 2), 2 * season
    steps = [Difference(season)] if seasonal else [Difference()] * count
    z = u
    for step in steps:
        z = step.apply(z)
    lost = u.size - z.size
    used = z[max(season, 10) - lost :]  # the same steps whatever was lost
    mean = used.mean()
    z, used = z - mean, used - mean
    n = used.size - lags
    X, y = np.stack([used[i : i + n] for i in range(lags)], axis=1), used[lags:]
    size = np.append((X**2).sum(axis=0), y @ y).mean()
    weights = np.linalg.solve(X.T @ X + 1e-4 * size * np.eye(lags), X.T @ y)
    begin = max(max(season, 10) + lags, u.size // 2)
    errors = []
    for origin in np.unique(np.linspace(begin, u.size - horizon, 26).astype(int)):
        window = list(z[origin - lost - lags : origin - lost])
        for _ in range(horizon):
            window.append(weights @ window[-lags:])
        path = np.array(window[lags:]) + mean
        for k in reversed(range(len(steps))):
            before = u[:origin]
            for step in steps[:k]:
                before = step.apply(before)
            path = steps[k].invert(path, before)
        errors.append(np.mean((u[origin : origin + horizon] - path) ** 2))
    return np.mean(errors)


def kinds(rng, n=300):
    week = np.tile(rng.normal(size=7), n // 7 + 1)[:n]
    walk = rng.normal(size=n).cumsum()
    return {
        "noise": rng.normal(size=n),
        "walk": walk,
        "week": 3.0 * week + 0.2 * rng.normal(size=n),
        "changing week": week * np.exp(walk / 10.0),
        "walk and week": walk + 2.0 * week,
        "counts": rng.poisson(0.5, size=n).astype(float),
        "twice integrated": walk.cumsum(),
    }


def test_the_lower_error_decides(rng):
    for _ in range(3):
        panel = np.stack(list(kinds(rng).values()))
        chosen = choose_differences(panel, 7)
        for i, u in enumerate(panel):
            count = choose_differences(u[None], 1).counts[0]
            errors = [rolled_out_error(u, 7, True, 0), rolled_out_error(u, 7, False, count)]
            assert chosen.seasonal[i] == (errors[0] < errors[1])
            assert chosen.counts[i] == (0 if chosen.seasonal[i] else count)


def test_the_series_is_differenced_as_said(rng):
    panel = np.stack(list(kinds(rng).values()))
    chosen = choose_differences(panel, 7)
    for i, u in enumerate(panel):
        z = u
        for step in fit_transforms(("auto",), u, 7).steps:
            z = step.apply(z)
        assert chosen.lost[i] == u.size - z.size
        np.testing.assert_allclose(chosen.z[i, chosen.lost[i] :], z, atol=1e-12)
        assert np.all(chosen.z[i, : chosen.lost[i]] == 0.0)


def test_a_pattern_that_changes_is_differenced_away_and_a_walk_is_not(rng):
    series = kinds(rng, 700)
    chosen = choose_differences(np.stack([series["changing week"], series["walk"]]), 7)
    assert chosen.seasonal.tolist() == [True, False]
    assert chosen.counts.tolist() == [0, 1]


@pytest.mark.parametrize("length", [8, 20, 34, 60])
def test_short_series_have_no_seasonal_difference(length, rng):
    chosen = choose_differences(rng.normal(size=(3, length)), 7)
    assert chosen.z.shape == (3, length)
    if length < 53:
        assert not chosen.seasonal.any()


def test_a_series_without_season_gets_first_differences(rng):
    chosen = choose_differences(rng.normal(size=(2, 200)).cumsum(axis=1), 1)
    assert chosen.counts.tolist() == [1, 1]


def test_pytorch_chooses_the_same(rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    panel = np.stack(list(kinds(rng).values()))
    ours = choose_differences(panel, 7)
    theirs = choose_differences(torch.from_numpy(panel), 7, Backend(torch))
    np.testing.assert_array_equal(ours.seasonal, theirs.seasonal)
    np.testing.assert_array_equal(ours.counts, theirs.counts)
    np.testing.assert_allclose(ours.z, theirs.z.numpy(), atol=1e-12)

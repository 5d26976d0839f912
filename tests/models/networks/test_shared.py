"""Shared networks: from sufficient statistics as from rows."""

from dataclasses import replace

import numpy as np
import pytest

from hard_series import frame_of
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.networks import shared_training as shared
from rbfdiffnet.models.networks.window_model import TrainingRows
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.train import Settings

SETTINGS = Settings(10, width_factor=4.0, n_lags=4)


def some_rows(block, n_extra=1, seed=0):
    """Return the rows of three series: further inputs, four lags, targets."""
    rng = np.random.default_rng(seed)
    result = []
    for n in (200, 150, 90):
        X = rng.normal(size=(n, n_extra + 4))
        X[:, :n_extra] = rng.random((n, n_extra)) < 0.1
        Y = np.stack([np.sin(2.0 * X[:, -1 - k]) + X[:, 0] for k in range(block)], axis=1)
        Y += 0.1 * rng.normal(size=Y.shape)
        result.append(TrainingRows(X, 3.0 * Y, np.arange(n), (1, 2, 3, 4), "none"))
    return result


def plan_for(settings, block=1):
    return Plan(lambda n_inputs: settings, block=block)  # noqa: ARG005


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("block", [1, 3])
def test_statistics_train_the_same_network_as_rows(block, order, monkeypatch):
    rows = some_rows(block)
    settings = replace(SETTINGS, order=order)
    monkeypatch.setattr(shared, "_PENALTIES", [(1e-3, 1e-2)])
    quick, *_ = shared._train_on_statistics(plan_for(settings, block), rows)
    fixed = replace(settings, alpha=1e-3, alpha_linear=1e-2)
    pooled = TrainingRows.concatenate(rows)
    slow = pooled.fit(plan_for(fixed, block))
    assert quick.unit == slow.unit
    assert quick.largest == slow.largest
    inputs = pooled.X / np.append([1.0], np.full(4, slow.unit))
    difference = quick.network.predict(inputs) - slow.network.predict(inputs)
    assert np.abs(difference).max() < 1e-4


def test_statistics_choose_penalties_about_as_good_as_rows_do():
    rows = some_rows(1, seed=1)
    test = TrainingRows.concatenate(some_rows(1, seed=2))
    quick, *_ = shared._train_on_statistics(plan_for(SETTINGS), rows)
    slow = TrainingRows.concatenate(rows).fit(shared._choose_penalties(plan_for(SETTINGS), rows))

    def error(windows):
        inputs = test.X / np.append([1.0], np.full(4, windows.unit))
        return np.mean((windows.network.predict(inputs) * windows.unit - test.Y) ** 2)

    assert error(quick) < 1.02 * error(slow)


@pytest.mark.parametrize(
    "change",
    [
        {"loss": "huber"},
        {"penalty": "lasso"},
        {"metric": "learned"},
        {"solver": "als"},
        {"alpha": 1e-3},
        {"order": 0},
        {"n_starts": 3},
        {"intercept": False},
        {"n_centers": 300},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_statistics_do_not_cover_is_left_to_rows(change):
    assert shared._train_on_statistics(plan_for(replace(SETTINGS, **change)), some_rows(1)) is None


def test_too_few_late_rows_are_left_to_rows():
    short = [r.part(slice(0, 9), 1) for r in some_rows(1)]
    assert shared._train_on_statistics(plan_for(SETTINGS), short) is None


@pytest.mark.parametrize("odd", ["subnormal", "all sizes"])
def test_numbers_without_digits_teach_others_nothing(odd):
    rng, t = np.random.default_rng(0), np.arange(60)
    good = {f"g{i}": 50.0 + 9.0 * np.sin(t * 0.9) + rng.normal(size=60) for i in range(3)}
    y = 1e-310 * rng.normal(size=60) if odd == "subnormal" else 10.0 ** rng.uniform(-300, 300, 60)
    alone, beside = (
        RBFDiffNet("D", scope="global").forecast(frame_of(series), 3).set_index("unique_id")
        for series in (good, {**good, "odd": y})
    )
    np.testing.assert_array_equal(beside.loc[list(good), "RBFDiffNet"], alone["RBFDiffNet"])
    assert np.isfinite(beside.loc["odd", "RBFDiffNet"]).all()
    single = RBFDiffNet("D", scope="global").forecast(
        frame_of({"odd": y}), 3
    )  # nobody else is there
    assert np.isfinite(single["RBFDiffNet"]).all()

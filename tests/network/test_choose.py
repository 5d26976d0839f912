from dataclasses import replace

import numpy as np
import pytest

from problems import make_objective
from rbfdiffnet.network.choose import (
    Candidate,
    default_start,
    fit_candidate,
    grow_metric,
    leave_one_out_errors,
    prune_metric,
)
from rbfdiffnet.network.projection import project
from rbfdiffnet.network.trainers import minimize_varpro


def without_row(objective, n):
    keep = np.arange(len(objective.weight)) != n
    basis = objective.basis
    basis = replace(basis, phi=basis.phi[:, keep], x=basis.x[:, keep])
    if basis.powers is not None:
        basis = replace(basis, powers=basis.powers[:, keep])
    total = objective.weight[keep].sum()
    return replace(
        objective,
        basis=basis,
        linear=objective.linear[:, keep],
        target=objective.target[:, keep],
        weight=objective.weight[keep],
        # the penalty is per row: keep its total
        alpha=objective.alpha * objective.total / total,
        alpha_linear=objective.alpha_linear * objective.total / total,
    )


def test_errors_of_a_plain_network_equal_refitting_without_each_row():
    objective = make_objective(1, n=40, order=0, alpha=1e-2)
    point = project(objective, objective.quadratic(None), np.ones(1))
    errors = leave_one_out_errors(objective, point)
    for n in range(40):
        rest = without_row(objective, n)
        weights = project(rest, rest.quadratic(None), np.ones(1)).weights
        expected = (objective.target - objective.predict(weights))[0, n] ** 2
        assert errors[n] == pytest.approx(expected, rel=1e-5)


def test_errors_of_a_differential_network_are_close_to_retraining():
    objective = make_objective(2, n=80, c=5, order=1, alpha=1e-2)
    solution = minimize_varpro(objective, default_start(objective.basis))
    point = project(objective, objective.quadratic(None), solution.weights.a)
    errors = leave_one_out_errors(objective, point)
    retrained = []
    for n in range(80):
        rest = without_row(objective, n)
        weights = minimize_varpro(rest, solution.weights.a).weights
        retrained.append((objective.target - objective.predict(weights))[0, n] ** 2)
    assert errors.mean() == pytest.approx(np.mean(retrained), rel=0.1)
    assert errors.mean() > 1.05 * np.mean(point.residual**2)


def test_a_fit_that_uses_up_its_data_is_never_chosen():
    objective = make_objective(3, n=20, c=18, order=1, alpha=1e-12)
    candidate = fit_candidate(objective, default_start(objective.basis), 1.0, np.ones(3))
    assert candidate.score == np.inf


def candidate_with(errors, objective):
    weights = project(objective, objective.quadratic(None), default_start(objective.basis)).weights
    return Candidate(errors, 1.0, np.ones(3), objective, weights)


def test_a_gain_must_exceed_its_standard_error(rng):
    objective = make_objective(4)
    base = rng.uniform(1.0, 2.0, 120)
    steady = candidate_with(base - 0.1, objective)
    lucky = candidate_with(base - np.where(np.arange(120) == 0, 12.0, 0.0), objective)
    incumbent = candidate_with(base, objective)
    hopeless = candidate_with(np.full(120, np.inf), objective)
    assert steady.beats(incumbent, 2.0)
    assert not lucky.beats(incumbent, 2.0)
    assert not hopeless.beats(incumbent, 0.0)
    assert incumbent.beats(hopeless, 2.0)


@pytest.fixture
def one_nonlinear_input():
    """A candidate for sin(2 x0) + 0.8 x1 in four dimensions."""
    objective = make_objective(5, n=400, c=20, order=1, d=4)
    x = objective.basis.x
    objective = replace(objective, target=(np.sin(2.0 * x[0]) + 0.8 * x[1])[None])
    start = default_start(objective.basis)
    return fit_candidate(objective, start, 1.0, np.ones(4), steps=40)


def test_metric_favors_the_nonlinear_input(one_nonlinear_input):
    by_threshold, by_half = prune_metric(one_nonlinear_input)
    assert by_threshold[0] == by_half[0] == 1.0
    assert np.all(by_threshold[1:] < 1.0)
    assert np.count_nonzero(by_half) == 2


def test_metric_takes_back_the_input_that_explains_the_residual(one_nonlinear_input):
    weights = one_nonlinear_input.weights
    silent = weights.unflatten(np.zeros_like(weights.flatten()))
    blind = replace(one_nonlinear_input, metric=np.array([0.0, 1.0, 1.0, 0.0]), weights=silent)
    grown = grow_metric(blind, blind.objective.basis.x)
    assert grown[0] > 0.0
    assert grown[3] == 0.0

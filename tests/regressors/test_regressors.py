"""The regressors: every setting learns, parameters are checked, results reported."""

import pickle

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.regressors import NetworkRegressor
from regressions import QUICK, VARIANTS, r2

DEFAULTS = [RBFDiffNetRegressor().get_params(), RBFNetworkRegressor().get_params()]


@parametrize_with_checks([RBFDiffNetRegressor(), RBFNetworkRegressor()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([variant for variant in VARIANTS if variant.get_params() not in DEFAULTS])
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["varpro", "als", "bfgs"])
@pytest.mark.parametrize("centers", ["kmeans", "som", "forward"])
def test_every_solver_and_choice_of_centers_learns(solver, centers, friedman):
    linear = r2(LinearRegression(), *friedman)
    model = RBFDiffNetRegressor(20, solver=solver, centers=centers, loss="squared")
    assert r2(model, *friedman) > linear + 0.05


@pytest.mark.parametrize("width", ["max_distance", "cluster", "nearest", "nearest_shared"])
@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
def test_every_width_rule_and_penalty_learns(width, penalty, friedman):
    X, y = friedman
    linear = r2(LinearRegression(), X, y)
    assert r2(RBFDiffNetRegressor(20, width=width, penalty=penalty), X, y) > linear
    plain = RBFNetworkRegressor(20, width=width, width_factor=2.0, penalty=penalty)
    assert r2(plain, X, y) > 0.3


def test_without_intercept_uncentered_data_do_not_lead_astray():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, 2)) + 1e6
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] - 1e6
    model = RBFDiffNetRegressor.paper().fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 1.1 * y.std()


def test_chosen_width_factor_is_reported():
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    off = RBFDiffNetRegressor(width_factor=2.0).fit(X, y)
    assert off.width_factor_ == 2.0
    assert off.network_.n_effective == 0


def test_threads_leave_the_linear_algebra_library_alone(friedman):
    X, y = friedman

    def blas_threads():
        info = threadpoolctl.threadpool_info()
        return [pool["num_threads"] for pool in info if pool["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2):
        before = blas_threads()
        serial = [RBFDiffNetRegressor(random_state=s, **QUICK).fit(X, y).predict(X) for s in (0, 1)]
        threaded = Parallel(4, backend="threading")(
            delayed(lambda s: RBFDiffNetRegressor(random_state=s, **QUICK).fit(X, y).predict(X))(
                s % 2
            )
            for s in range(8)
        )
        assert blas_threads() == before
    for s, prediction in enumerate(threaded):
        np.testing.assert_array_equal(prediction, serial[s % 2])


def test_stopping_early_warns(friedman):
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        RBFDiffNetRegressor(max_iter=1, **QUICK).fit(*friedman)


def test_several_outputs_share_centers_and_operator(friedman):
    X, y = friedman
    Y = np.column_stack([y, -3.0 * y + 1.0, X[:, 0]])
    model = RBFDiffNetRegressor().fit(X, Y)
    assert model.predict(X).shape == (300, 3)
    assert model.network_.w.shape[1] == 3
    assert model.network_.a.ndim == 1
    single = RBFDiffNetRegressor().fit(X, np.column_stack([y, -3.0 * y + 1.0])).predict(X)
    np.testing.assert_allclose(single[:, 1], -3.0 * single[:, 0] + 1.0, atol=1e-6)


def test_n_lags_restricts_the_linear_part(friedman):
    X, y = friedman
    assert RBFDiffNetRegressor(n_lags=2, **QUICK).fit(X, y).network_.linear.shape == (3, 1)
    assert RBFDiffNetRegressor(n_lags=0, fit_intercept=False, **QUICK).fit(
        X - X.mean(axis=0), y - y.mean()
    ).network_.linear.shape == (0, 1)


def test_given_centers_are_used(friedman):
    X, y = friedman
    model = RBFDiffNetRegressor(centers=X[:5], **QUICK).fit(X, y)
    np.testing.assert_allclose(model.centers_, X[:5])
    with pytest.raises(ValueError, match="array with 6 columns"):
        RBFDiffNetRegressor(centers=X[:5, :2]).fit(X, y)


def test_centers_are_reported_in_data_units(friedman):
    X, y = friedman
    model = RBFDiffNetRegressor(10).fit(X * 1e3, y)
    inside = model.centers_[:, model.network_.metric > 0]
    assert np.all((inside >= 0.0) & (inside <= 1e3))
    assert np.all(np.isnan(model.centers_[:, model.network_.metric == 0]))


def test_linear_target_switches_the_basis_functions_off():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=40)
    model = RBFDiffNetRegressor(loss="squared").fit(X, y)
    assert np.abs(model.network_.w).max() < 1e-6


def test_periodic_series_continues_off_its_cycle():
    series = np.sin(np.arange(60) * np.pi / 6)
    windows = np.lib.stride_tricks.sliding_window_view(series, 5)
    model = RBFDiffNetRegressor().fit(windows[:, :4], windows[:, 4])
    between = np.sin((np.arange(5) + 0.5) * np.pi / 6)
    assert model.predict(between[None, :4])[0] == pytest.approx(between[4], abs=0.1)


def test_more_starts_never_end_higher(friedman):
    X, y = friedman
    settings = {**QUICK, "loss": "squared", "random_state": 0}
    one, five = (RBFDiffNetRegressor(n_starts=n, **settings).fit(X, y) for n in (1, 5))
    assert five.objective_ <= one.objective_


def test_names_pickles_and_clones(friedman):
    X, y = friedman
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = RBFDiffNetRegressor(**QUICK).fit(frame, y)
    assert list(model.feature_names_in_) == list("abcdef")
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame)
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("bacdef")])


def test_paper_preset_and_its_changes():
    paper = RBFDiffNetRegressor.paper(order=1, n_centers=8, random_state=3)
    assert (paper.order, paper.n_centers, paper.random_state) == (1, 8, 3)
    assert (paper.solver, paper.penalty, paper.width_factor) == ("bfgs", "lasso", 1.0)
    assert not paper.include_order_zero
    assert RBFDiffNetRegressor.paper(fit_intercept=True).fit_intercept


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_centers": 0}, "n_centers must be an integer of at least 1"),
        ({"n_centers": 2.5}, "n_centers must be an integer"),
        ({"order": 0}, "order must be an integer of at least 1"),
        ({"n_lags": 7}, "n_lags=7, but X has only 6 columns"),
        ({"n_lags": -1}, "n_lags must be an integer of at least 0"),
        ({"centers": "random"}, "centers must be one of kmeans, som, forward"),
        ({"width": "wide"}, "width must be one of"),
        ({"width_factor": 0.0}, "width_factor must be a number above 1e-50"),
        ({"width_factor": "big"}, "width_factor must be a number"),
        ({"n_nearest": 0}, "n_nearest must be an integer of at least 1"),
        ({"metric": "cosine"}, "metric must be one of learned, standard, common"),
        ({"solver": "sgd"}, "solver must be one of varpro, als, bfgs"),
        ({"loss": "hinge"}, "loss must be one of auto, squared"),
        ({"quantile": 1.0}, "quantile must be a number above 0 and below 1"),
        ({"penalty": "l0"}, "penalty must be one of ridge, lasso"),
        ({"alpha": -1.0}, "alpha must be a number of at least 0"),
        ({"alpha": (1.0, 2.0, 3.0)}, "alpha must be a number, a pair"),
        ({"alpha": np.nan}, "alpha must be a number"),
        ({"n_starts": 0}, "n_starts must be an integer of at least 1"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"tol": -1.0}, "tol must be a number of at least 0"),
    ],
)
def test_wrong_parameters_are_named(parameters, message, friedman):
    with pytest.raises(ValueError, match=message):
        RBFDiffNetRegressor(**parameters).fit(*friedman)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(300), "non-zero|zero for every row"),
        (-np.ones(300), "Negative values"),
        (np.ones(5), "inconsistent|shape"),
        (np.full(300, np.nan), "NaN"),
    ],
)
def test_wrong_weights_are_refused(weight, message, friedman):
    with pytest.raises(ValueError, match=message):
        RBFDiffNetRegressor().fit(*friedman, sample_weight=weight)


def test_base_class_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        NetworkRegressor()

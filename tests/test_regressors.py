import pickle

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.regressor_base import NetworkRegressor

VARIANTS = [
    RBFDiffNetRegressor(),
    RBFDiffNetRegressor.paper(order=2),
    RBFDiffNetRegressor(order=2, solver="als", centers="som", loss="absolute"),
    RBFDiffNetRegressor(solver="bfgs", centers="forward", width="nearest"),
    RBFNetworkRegressor(),
    RBFNetworkRegressor(normalize=True),
    RBFNetworkRegressor(penalty="lasso"),
]
QUICK = {"width_factor": 2.0, "metric": "standard", "alpha": 1e-3}


@parametrize_with_checks(VARIANTS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def friedman():
    X, y = make_friedman1(300, n_features=6, noise=0.5, random_state=0)
    return X, y


def r2(model, X, y, n=200):
    return model.fit(X[:n], y[:n]).score(X[n:], y[n:])


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


@pytest.mark.parametrize("solver", ["varpro", "als", "bfgs"])
def test_robust_losses_resist_outliers(solver, friedman):
    X, y = friedman
    rng = np.random.default_rng(0)
    spoiled = y.copy()
    spoiled[rng.choice(200, 20, replace=False)] += 100.0
    clean = RBFDiffNetRegressor(10, solver=solver, loss="squared", **QUICK).fit(X[:200], y[:200])

    def distance(loss):
        model = RBFDiffNetRegressor(10, solver=solver, loss=loss, **QUICK)
        model.fit(X[:200], spoiled[:200])
        return np.abs(model.predict(X[200:]) - clean.predict(X[200:])).mean()

    assert distance("huber") < 0.5 * distance("squared")
    assert distance("absolute") < 0.5 * distance("squared")


def test_automatic_loss_is_robust_but_keeps_the_mean():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    heavy = X[:, 0] + 0.3 * rng.standard_t(2, size=400)
    skewed = X[:, 0] + rng.exponential(size=400) ** 2
    assert RBFDiffNetRegressor().fit(X, heavy).loss_ == "huber"
    model = RBFDiffNetRegressor().fit(X, skewed)
    assert model.loss_ == "squared"
    assert model.predict(X).mean() == pytest.approx(skewed.mean(), rel=0.02)


@pytest.mark.parametrize("solver", ["varpro", "bfgs"])
@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantile_loss_covers_its_level(solver, level):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.0, 1.0, size=(1000, 1))
    y = np.sin(3.0 * X.ravel()) + rng.gumbel(size=1000) * (1.2 + X.ravel())
    model = RBFDiffNetRegressor(6, solver=solver, loss="quantile", quantile=level, **QUICK)
    covered = np.mean(y <= model.fit(X, y).predict(X))
    assert covered == pytest.approx(level, abs=0.02)


def test_own_loss_equals_the_built_in_one(friedman):
    X, y = friedman

    def squared(y_true, y_pred):
        return 0.5 * (y_true - y_pred) ** 2, y_pred - y_true

    own = RBFDiffNetRegressor(8, loss=squared, **QUICK).fit(X, y)
    built_in = RBFDiffNetRegressor(8, loss="squared", **QUICK).fit(X, y)
    np.testing.assert_allclose(own.predict(X), built_in.predict(X), atol=1e-3)
    assert own.loss_ == "user"


def test_own_loss_moves_the_prediction_and_follows_units(friedman):
    X, y = friedman

    def asymmetric(y_true, y_pred):
        r = y_true - y_pred
        weight = np.where(r > 0, 10.0, 1.0)
        return weight * r**2, -2.0 * weight * r

    model = RBFDiffNetRegressor(8, loss=asymmetric, **QUICK)
    high = clone(model).fit(X, y).predict(X)
    assert np.mean(high > y) > 0.7
    np.testing.assert_allclose(clone(model).fit(X, 1e4 * y).predict(X), 1e4 * high, rtol=1e-2)


@pytest.mark.parametrize("estimator", VARIANTS, ids=str)
@pytest.mark.parametrize(
    "name", ["constant", "duplicated", "rank deficient", "badly scaled", "two rows", "one column"]
)
def test_hard_inputs_give_finite_predictions(estimator, name):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] ** 2 + X[:, 1]
    if name == "constant":
        X, y = np.ones((60, 3)), np.full(60, 7.0)
    elif name == "duplicated":
        X, y = np.repeat(X[:4], 15, axis=0), np.repeat(y[:4], 15)
    elif name == "rank deficient":
        X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 0], np.zeros(60)])
    elif name == "badly scaled":
        X = X * [1e8, 1e-8, 1.0]
        y = 1e-8 * y
    elif name == "two rows":
        X, y = X[:2], y[:2]
    else:
        X = X[:, :1]
    model = clone(estimator).fit(X, y)
    for points in (X, 1e3 * X, X[:1] - 5.0):
        assert np.all(np.isfinite(model.predict(points)))
    if name == "constant" and estimator.penalty == "ridge":
        np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) <= 1.1 * np.sqrt(np.mean(y**2))


@pytest.mark.parametrize("estimator", VARIANTS, ids=str)
@pytest.mark.parametrize(("x_scale", "y_scale"), [(1e-8, 1e8), (1e8, 1e-8), (7.0, 0.3)])
def test_predictions_follow_a_rescaling(estimator, x_scale, y_scale, friedman):
    X, y = friedman[0][:120] - 0.5, friedman[1][:120] - friedman[1][:120].mean()
    before = clone(estimator).fit(X, y).predict(X)
    after = clone(estimator).fit(x_scale * X, y_scale * y).predict(x_scale * X)
    np.testing.assert_allclose(after / y_scale, before, atol=1e-3 * np.ptp(y))


@pytest.mark.parametrize("order", [1, 2])
def test_predictions_follow_a_shift(order, friedman):
    X, y = friedman
    model = RBFDiffNetRegressor(10, order=order)
    before = clone(model).fit(X, y).predict(X)
    after = clone(model).fit(X + 1e4, y - 1e4).predict(X + 1e4)
    np.testing.assert_allclose(after + 1e4, before, atol=1e-4)


def test_row_order_does_not_change_a_bit(friedman):
    X, y = friedman
    order = np.random.default_rng(4).permutation(len(X))
    before, after = (RBFDiffNetRegressor().fit(X[i], y[i]).network_ for i in (slice(None), order))
    np.testing.assert_array_equal(before.w, after.w)
    np.testing.assert_array_equal(before.a, after.a)


@pytest.mark.parametrize("weight", [np.ones(300), np.arange(1.0, 301.0)], ids=["equal", "rising"])
def test_only_ratios_of_weights_count(weight, friedman):
    X, y = friedman
    once, tenfold, hundredth = (
        RBFDiffNetRegressor().fit(X, y, sample_weight=factor * weight).predict(X)
        for factor in (1.0, 10.0, 0.01)
    )
    np.testing.assert_allclose(tenfold, once, rtol=1e-6)
    np.testing.assert_allclose(hundredth, once, rtol=1e-6)


def test_copies_of_all_rows_change_nothing(friedman):
    X, y = friedman
    once = RBFDiffNetRegressor().fit(X, y).predict(X)
    copied = RBFDiffNetRegressor().fit(np.repeat(X, 5, axis=0), np.repeat(y, 5)).predict(X)
    np.testing.assert_array_equal(copied, once)


@pytest.mark.parametrize("size", [1e2, 1e6])
@pytest.mark.parametrize("loss", ["auto", "huber", "absolute"])
def test_one_gross_outlier_does_no_harm(loss, size, friedman):
    X, y = friedman
    spoiled = y.copy()
    spoiled[7] += size
    model = RBFDiffNetRegressor(loss=loss)
    clean = r2(clone(model), X, y)
    assert clean > 0.9
    model.fit(X[:200], spoiled[:200])
    assert model.score(X[200:], y[200:]) > clean - 0.03


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


def test_own_loss_must_be_finite(friedman):
    def broken(y_true, y_pred):
        return np.full_like(y_true, np.nan), np.zeros_like(y_pred)

    with pytest.raises(ValueError, match="not finite"):
        RBFDiffNetRegressor(loss=broken, **QUICK).fit(*friedman)


def test_several_outputs_share_centers_and_operator(friedman):
    X, y = friedman
    Y = np.column_stack([y, -3.0 * y + 1.0, X[:, 0]])
    model = RBFDiffNetRegressor().fit(X, Y)
    assert model.predict(X).shape == (300, 3)
    assert model.network_.w.shape[1] == 3
    assert model.network_.a.ndim == 1
    single = RBFDiffNetRegressor().fit(X, np.column_stack([y, -3.0 * y + 1.0])).predict(X)
    np.testing.assert_allclose(single[:, 1], -3.0 * single[:, 0] + 1.0, atol=1e-6)


@pytest.mark.parametrize("loss", ["absolute", "quantile"])
@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
def test_several_outputs_with_robust_loss(loss, penalty, friedman):
    X, y = friedman
    Y = np.column_stack([y, X[:, 0] * X[:, 1]])
    model = RBFDiffNetRegressor(10, loss=loss, penalty=penalty, **{**QUICK, "alpha": 1e-4})
    assert model.fit(X, Y).score(X, Y) > 0.7


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


def test_learned_metric_finds_the_nonlinear_inputs():
    X, y = make_friedman1(500, n_features=10, noise=0.3, random_state=1)
    learned = RBFDiffNetRegressor().fit(X[:300], y[:300])
    standard = RBFDiffNetRegressor(metric="standard").fit(X[:300], y[:300])
    assert np.all(learned.network_.metric[5:] == 0.0)  # they do not enter the target
    assert learned.score(X[300:], y[300:]) > standard.score(X[300:], y[300:]) + 0.02


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


def test_random_state_none_is_repeatable_and_seeds_differ(friedman):
    X, y = friedman
    first, second = (RBFDiffNetRegressor(**QUICK).fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    other = RBFDiffNetRegressor(random_state=1, **QUICK).fit(X, y).predict(X)
    assert not np.array_equal(first, other)


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


def test_a_given_metric_of_ones_is_the_standard_one(friedman):
    X, y = friedman
    standard = RBFDiffNetRegressor(8, **QUICK).fit(X, y)
    given = RBFDiffNetRegressor(8, **{**QUICK, "metric": np.ones(6)}).fit(X, y)
    np.testing.assert_array_equal(given.predict(X), standard.predict(X))


def test_a_given_metric_is_used_and_zeros_leave_inputs_out(friedman):
    X, y = friedman
    metric = [1.0, 1.0, 2.0, 0.0, 0.5, 0.0]
    model = clone(RBFDiffNetRegressor(8, n_lags=0, **{**QUICK, "metric": metric})).fit(X, y)
    np.testing.assert_array_equal(model.network_.metric, metric)
    other = X.copy()
    other[:, [3, 5]] = 0.0
    np.testing.assert_array_equal(model.predict(other), model.predict(X))


def test_a_given_metric_scales_inputs_of_the_basis_functions(friedman):
    X, y = friedman
    spread = np.array([1.0, 3.0, 0.5, 1.0, 1.0, 2.0])
    # Without linear part, a metric on inputs is the same as "common" units stretched by it.
    rng = np.random.default_rng(3)
    X = rng.normal(size=X.shape)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    centers = X[:7]
    options = {"n_lags": 0, "centers": centers, "width_factor": 2.0, "alpha": 1e-3}
    given = RBFDiffNetRegressor(metric=spread, **options).fit(X, y)
    options["centers"] = centers * spread
    common = RBFDiffNetRegressor(metric="common", **options).fit(X * spread, y)
    np.testing.assert_allclose(common.predict(X * spread), given.predict(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "metric", [np.ones(5), np.zeros(6), -np.ones(6), np.full(6, np.nan), np.ones((6, 1))]
)
def test_a_metric_that_does_not_fit_is_refused(metric, friedman):
    with pytest.raises(ValueError, match="or 6 numbers that are not negative, huge, nor all zero"):
        RBFDiffNetRegressor(metric=metric).fit(*friedman)

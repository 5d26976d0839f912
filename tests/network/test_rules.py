"""Basis functions, width rules, centers and trainers by name: those there are, and new ones."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import rbfdiffnet.network.basis
import rbfdiffnet.network.centers
import rbfdiffnet.network.widths
from rbfdiffnet import RBFDiffNet, RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.datasets import henon_map
from rbfdiffnet.models.networks.forecast import forecast_many
from rbfdiffnet.network.basis import BASES, GaussianBasis, RadialBasis, derivatives, evaluate
from rbfdiffnet.network.centers import CENTERS, place_centers
from rbfdiffnet.network.trainers import SOLVERS, minimize_bfgs
from rbfdiffnet.network.widths import WIDTH_RULES, widths


def wendland(s, order):
    """Wendland's function of compact support, (1 - r)^6 (35 r^2 + 18 r + 3) / 3, twice by s."""
    if order > 2:
        raise ValueError("wendland has two derivatives; lower order")
    left = np.maximum(1.0 - np.sqrt(s), 0.0)
    r = np.sqrt(s)
    value = left**6 * (35.0 * s + 18.0 * r + 3.0) / 3.0
    slope = -28.0 / 3.0 * left**5 * (5.0 * r + 1.0)
    return np.stack([value, slope, 140.0 * left**4][: order + 1])


def median_distance(X, centers, **_):
    distance = np.linalg.norm(X[:, None] - centers, axis=2)
    label = distance.argmin(axis=1)
    return np.array([np.median(distance[label == j, j]) for j in range(len(centers))])


def random_rows(X, n_centers, *, rng, **_):
    rows = np.unique(X, axis=0)
    return rows[rng.permutation(len(rows))[:n_centers]]


def scene(n=40, c=6, d=3):
    rng = np.random.default_rng(4)
    return rng.normal(size=(n, d)), rng.normal(size=(c, d)), rng.uniform(0.1, 0.5, c)


def curve(n=120):
    X = np.random.default_rng(1).normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]


@pytest.fixture
def new_rules(monkeypatch):
    monkeypatch.setitem(BASES, "wendland", wendland)
    monkeypatch.setitem(WIDTH_RULES, "median", median_distance)
    monkeypatch.setitem(CENTERS, "random", random_rows)
    return {"basis": "wendland", "width": "median", "centers": "random"}


# Basis functions


@pytest.mark.parametrize("name", BASES)
def test_derivatives_by_s_equal_finite_differences(name):
    s, step = np.linspace(0.1, 3.0, 30), 1e-5
    up, down = (BASES[name](s + shift, 4) for shift in (step, -step))
    found = BASES[name](s, 5)
    np.testing.assert_allclose(found[1:], (up - down) / (2.0 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_along_axes_equal_finite_differences(name, order):
    X, centers, beta = scene()
    found = derivatives(X, centers, beta, order, basis=name)
    step = 1e-5
    for i in range(X.shape[1]):
        shift = step * np.eye(X.shape[1])[i]
        up, down = (
            derivatives(X + move, centers, beta, order - 1, basis=name)[-1, :, :, i]
            for move in (shift, -shift)
        )
        slope = (up - down) / (2.0 * step)
        np.testing.assert_allclose(found[-1, :, :, i], slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("order_zero", [True, False])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_products_equal_the_dense_tensor(name, order, order_zero, rng):
    X, centers, beta = scene()
    unit = 0.7
    basis = evaluate(name, X, centers, beta, order=order, order_zero=order_zero, unit=unit)
    dense = derivatives(X, centers, beta, order, basis=name)
    terms = [dense[0, :, :, 0].T] if order_zero else []
    terms += [unit**k * dense[k, :, :, i].T for k in range(1, order + 1) for i in range(3)]
    tensor = np.stack(terms)
    a, w, r = (rng.normal(size=size) for size in (len(terms), len(centers), len(X)))
    close = {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(basis.contract(a), np.einsum("p,pjn->jn", a, tensor), **close)
    np.testing.assert_allclose(basis.jacobian(w), np.einsum("j,pjn->pn", w, tensor), **close)
    np.testing.assert_allclose(basis.adjoint(r), np.einsum("n,pjn->jp", r, tensor), **close)
    np.testing.assert_allclose(basis.without_derivatives().contract(np.ones(1)), basis.phi, **close)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_gradients_by_the_inputs_equal_finite_differences(name, order, rng):
    X, centers, beta = scene()

    def build(points):
        return evaluate(name, points, centers, beta, order=order, order_zero=True)

    a, w = rng.normal(size=build(X).n_terms), rng.normal(size=len(centers))
    step = 1e-5
    for i in range(3):
        shift = step * np.eye(3)[i]
        up, down = (w @ build(X + s).contract(a) for s in (shift, -shift))
        found = build(X).input_gradient(a, w)[i]
        np.testing.assert_allclose(found, (up - down) / (2.0 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("order", [0, 1, 3])
def test_both_ways_to_the_products_agree_for_gaussians(order, rng):
    X, centers, beta = scene()
    how = {"order": order, "order_zero": True}
    fast = GaussianBasis.evaluate(X, centers, beta, **how)
    slow = RadialBasis.evaluate(BASES["gaussian"], X, centers, beta, **how)
    a, w, r = (rng.normal(size=size) for size in (fast.n_terms, len(centers), len(X)))
    close = {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(fast.contract(a), slow.contract(a), **close)
    np.testing.assert_allclose(fast.jacobian(w), slow.jacobian(w), **close)
    np.testing.assert_allclose(fast.adjoint(r), slow.adjoint(r), **close)
    np.testing.assert_allclose(fast.input_gradient(a, w), slow.input_gradient(a, w), **close)
    np.testing.assert_allclose(fast.normalize().phi, slow.normalize().phi, **close)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("order", [1, 2])
def test_every_trainer_takes_every_basis_function(name, solver, order):
    X, y = curve()
    settings = {"metric": "standard", "alpha": 1e-3, "width_factor": 1.0, "loss": "squared"}
    model = RBFDiffNetRegressor(12, basis=name, solver=solver, order=order, tol=1e-3, **settings)
    assert model.fit(X, y).score(X, y) > 0.8
    step = 1e-5 * np.eye(2)
    slope = [(model.predict(X + s) - model.predict(X - s)) / 2e-5 for s in step]
    gradient = model.network_.gradient(X)[:, :, 0]
    np.testing.assert_allclose(gradient.T, slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", BASES)
def test_normalized_networks_of_every_basis_function(name):
    X, y = curve()
    model = RBFNetworkRegressor(8, basis=name, normalize=True).fit(X, y)
    np.testing.assert_allclose(model.network_.activations(1e3 * X).sum(axis=1), 1.0)


@pytest.mark.usefixtures("new_rules")
def test_far_from_compact_functions_the_nearest_center_takes_it_all():
    X, y = curve()
    network = RBFNetworkRegressor(8, basis="wendland", normalize=True).fit(X, y).network_
    far = network.activations(1e4 * X)
    assert set(np.unique(far)) == {0.0, 1.0}
    np.testing.assert_array_equal(far.sum(axis=1), 1.0)


def test_a_basis_function_of_the_wrong_shape_is_refused(monkeypatch):
    monkeypatch.setitem(BASES, "flat", lambda s, _: np.exp(-s))
    with pytest.raises(ValueError, match=r"returned an array of shape .* expected \(2, "):
        RBFDiffNetRegressor(5, basis="flat").fit(*curve())


@pytest.mark.usefixtures("new_rules")
def test_too_high_an_order_is_refused_in_the_words_of_the_function():
    settings = {"basis": "wendland", "order": 3, "metric": "standard"}
    with pytest.raises(ValueError, match="wendland has two derivatives"):
        RBFDiffNetRegressor(5, **settings).fit(*curve())


# Widths and centers


@pytest.mark.parametrize("how", CENTERS)
def test_every_way_to_place_centers(how, rng):
    X = rng.normal(size=(60, 2)).round(1)
    y = np.sin(X[:, :1])
    found = place_centers(how, X, 7, y=y, rng=np.random.default_rng(0))
    assert found.shape[1] == 2
    assert 1 <= len(found) <= 7
    assert np.all((found >= X.min(axis=0) - 1e-9) & (found <= X.max(axis=0) + 1e-9))
    same = place_centers(how, X[::-1], 7, y=y[::-1], rng=np.random.default_rng(0))
    np.testing.assert_allclose(found, same)
    assert len(place_centers(how, np.ones((9, 2)), 7, y=y[:9])) == 1


def test_what_a_function_returns_is_checked():
    X, y = curve()
    for bad in (np.zeros((3, 5)), np.zeros(3), np.zeros((0, 2)), [[np.nan, 0.0]]):
        with pytest.raises(ValueError, match=r"^centers: the function"):
            place_centers(lambda *_, bad=bad, **__: bad, X, 3, y=y[:, None])
    for bad in (1.0, np.ones(3), [np.nan, 1.0], [-1.0, 1.0]):
        with pytest.raises(ValueError, match=r"^width: the rule must return 2 finite"):
            widths(lambda *_, bad=bad, **__: bad, X, X[:2])


# New ones


@pytest.mark.parametrize("cls", [RBFDiffNetRegressor, RBFNetworkRegressor])
def test_new_rules_work_by_name_at_once(cls, new_rules):
    X, y = curve()
    model = clone(cls(12, width_factor=4.0, **new_rules)).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.network_.basis == "wendland"
    assert {tuple(row) for row in model.centers_.round(9)} <= {tuple(row) for row in X.round(9)}


@pytest.mark.parametrize("parameter", ["basis", "width", "centers"])
def test_messages_list_the_names_there_are(parameter, new_rules):
    with pytest.raises(ValueError, match=rf"^{parameter} must be .*\b{new_rules[parameter]}\b"):
        RBFDiffNetRegressor(**{parameter: "unheard of"}).fit(*curve())


@pytest.mark.usefixtures("new_rules")
def test_functions_may_be_passed_as_they_are():
    X, y = curve()
    named = RBFDiffNetRegressor(8, width="median", centers="random").fit(X, y)
    passed = RBFDiffNetRegressor(8, width=median_distance, centers=random_rows).fit(X, y)
    np.testing.assert_array_equal(named.predict(X), passed.predict(X))


@pytest.mark.parametrize("scope", ["local", "global"])
def test_models_with_new_rules_are_saved_and_loaded(scope, new_rules, tmp_path, monkeypatch):
    y = np.sin(np.arange(80) / 3.0) + 0.1 * np.random.default_rng(0).normal(size=80)
    df = pd.DataFrame({"unique_id": "a", "ds": np.arange(80), "y": y})
    regressor = RBFDiffNetRegressor(5, metric="standard", loss="squared", **new_rules)
    model = RBFDiffNet(1, scope=scope, regressor=regressor, lags=4).fit(df)
    model.save(tmp_path / "model")
    loaded = RBFDiffNet.load(tmp_path / "model")
    assert loaded.regressor.basis == "wendland"
    pd.testing.assert_frame_equal(model.predict(5), loaded.predict(5))
    monkeypatch.delitem(BASES, "wendland")
    with pytest.raises(
        ValueError, match=r"model: .*wendland.*rbfdiffnet\.network\.basis\.BASES.*loaded\.$"
    ):
        RBFDiffNet.load(tmp_path / "model")


def test_a_new_trainer_works_by_name_at_once(monkeypatch):
    monkeypatch.setitem(SOLVERS, "own", (minimize_bfgs, 50))
    X, y = curve()
    settings = {"metric": "standard", "alpha": 1e-3, "loss": "squared", "tol": 1e-3}
    assert RBFDiffNetRegressor(5, solver="own", **settings).fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize(
    ("names", "module"),
    [
        (BASES, rbfdiffnet.network.basis),
        (WIDTH_RULES, rbfdiffnet.network.widths),
        (CENTERS, rbfdiffnet.network.centers),
    ],
)
def test_every_name_is_told_at_the_top_of_its_file(names, module):
    assert [name for name in names if f"``{name}``" not in module.__doc__] == []


@pytest.mark.parametrize("scope", ["local", "global"])
@pytest.mark.parametrize("settings", [{"basis": name} for name in BASES] + [{"n_lags": 1}])
def test_forecasts_are_those_of_the_network(scope, settings):
    """Whatever shortcuts are taken: its own steps, one after the other."""
    y = henon_map(200)
    df = pd.DataFrame({"unique_id": "a", "ds": np.arange(200), "y": y})
    regressor = RBFDiffNetRegressor(12, metric="standard", loss="squared", **settings)
    model = RBFDiffNet(1, scope=scope, lags=3, transforms=["difference"], regressor=regressor)
    found = model.fit(df).predict(4, level=None)["RBFDiffNet"].to_numpy()
    own = model._fitted.model.models[0]
    assert own.windows.level == "none"
    window = own.base_windows(model._fitted.series[0], np.array([200]))
    (path,), _ = forecast_many([own], [window], [np.zeros((1, 0))], 4)
    np.testing.assert_allclose(found, path[0], rtol=1e-9)
    terms = model.explain(2)
    assert "logarithm" not in set(terms["part"])
    totals = terms.groupby("ds")["contribution"].sum()
    np.testing.assert_allclose(totals, found[:2], rtol=1e-9)


def test_basis_functions_that_are_not_finite_are_refused(monkeypatch):
    monkeypatch.setitem(BASES, "bad", lambda s, order: np.full((order + 1, *s.shape), np.nan))
    with pytest.raises(ValueError, match="values that are not finite"):
        RBFDiffNetRegressor(5, basis="bad").fit(*curve())

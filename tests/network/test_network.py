import dataclasses

import numpy as np
import pytest

from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.network.basis import derivatives, gaussian


def data(rng, n=150):
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -2.0]
    y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 5.0 * X[:, 2]
    return X, y


@pytest.mark.parametrize("n_lags", [None, 2, 0])
@pytest.mark.parametrize("order_zero", [True, False])
def test_predict_is_the_equation(n_lags, order_zero, rng):
    X, y = data(rng)
    model = RBFDiffNetRegressor(
        8, order=2, n_lags=n_lags, include_order_zero=order_zero, random_state=0
    ).fit(X, y)
    net = model.network_
    Z = (X - net.x_shift) / net.x_scale
    active = net.metric > 0
    tensor = derivatives(Z[:, active] * net.metric[active], net.centers, net.beta, order=2)
    a, scale = net.a, net.unit
    expected = np.zeros(len(X))
    if order_zero:
        expected += a[0] * tensor[0, :, :, 0] @ net.w[:, 0]
    by_order = a[int(order_zero) :].reshape(2, -1)
    for k in (1, 2):
        expected += scale**k * np.einsum("i,nji,j->n", by_order[k - 1], tensor[k], net.w[:, 0])
    lags = 3 if n_lags is None else n_lags
    expected += Z[:, 3 - lags :] @ net.linear[:lags, 0] + net.linear[-1, 0]
    np.testing.assert_allclose(model.predict(X), expected * net.y_scale + net.y_shift, rtol=1e-9)


@pytest.mark.parametrize("normalize", [False, True])
def test_plain_networks_are_their_equations(normalize, rng):
    X, y = data(rng)
    net = RBFNetworkRegressor(6, normalize=normalize).fit(X, y).network_
    phi = gaussian((X - net.x_shift) / net.x_scale, net.centers, net.beta)
    if normalize:
        phi /= phi.sum(axis=1, keepdims=True)
    expected = (phi @ net.w + net.linear) * net.y_scale + net.y_shift
    np.testing.assert_allclose(net.predict(X), expected, rtol=1e-9)


def test_normalized_network_far_away_takes_the_nearest_center(rng):
    X, y = data(rng)
    net = RBFNetworkRegressor(6, normalize=True).fit(X, y).network_
    far = np.full((1, 3), 1e9)
    values = (net.w + net.linear) * net.y_scale + net.y_shift
    assert np.min(np.abs(values - net.predict(far))) < 1e-9


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_equals_finite_differences(order, rng):
    X, y = data(rng)
    targets = np.column_stack([y, y**2])
    net = RBFDiffNetRegressor(8, order=order, n_lags=2).fit(X, targets).network_
    gradient = net.gradient(X)
    assert gradient.shape == (150, 3, 2)
    for i in range(3):
        step = 1e-5 * net.x_scale[i] * np.eye(3)[i]
        numeric = (net.predict(X + step) - net.predict(X - step)) / (2 * step[i])
        np.testing.assert_allclose(gradient[:, i], numeric, atol=1e-4 * np.abs(numeric).max())


def test_network_is_frozen_and_counts_itself(rng):
    X, y = data(rng)
    net = RBFDiffNetRegressor(8, order=2, metric="standard").fit(X, y).network_
    with pytest.raises(dataclasses.FrozenInstanceError):
        net.unit = 2.0
    assert net.n_parameters == 8 + (1 + 2 * 3) + 3 + 1  # w, a, lambda, bias
    assert 1 <= net.n_effective <= 8


def test_gradient_of_a_normalized_network_is_refused(rng):
    X, y = data(rng)
    net = RBFNetworkRegressor(6, normalize=True).fit(X, y).network_
    with pytest.raises(ValueError, match="not normalized"):
        net.gradient(X)


def test_far_away_inputs_give_finite_predictions(rng):
    X, y = data(rng)
    net = RBFDiffNetRegressor(8, order=2).fit(X, y).network_
    assert np.all(np.isfinite(net.predict(np.array([[1e100, -1e100, 1e100]]))))


VARIANTS = [
    RBFDiffNetRegressor(8, order=2, n_lags=2),
    RBFDiffNetRegressor(8, metric=[1.0, 0.0, 2.0], n_lags=0, width_factor=1.0),
    RBFDiffNetRegressor(8, fit_intercept=False, include_order_zero=False, metric="standard"),
    RBFNetworkRegressor(6),
    RBFNetworkRegressor(6, normalize=True),
]


@pytest.mark.parametrize("model", VARIANTS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_contributions_add_up_to_predictions(model, outputs, rng):
    X, y = data(rng)
    net = model.fit(X, np.column_stack([y, y**2])[:, :outputs]).network_
    bias, linear, exemplars = net.contributions(X)
    assert linear.shape == (150, net.n_lags, outputs)
    assert exemplars.shape == (150, len(net.centers), outputs)
    total = bias + linear.sum(axis=1) + exemplars.sum(axis=1)
    np.testing.assert_allclose(total, net.predict(X), rtol=1e-9, atol=1e-9)


def test_linear_contributions_are_slopes_times_inputs(rng):
    X, y = data(rng)
    net = RBFDiffNetRegressor(8, n_lags=2, metric="standard").fit(X, y).network_
    without = dataclasses.replace(net, w=np.zeros_like(net.w))
    slope = without.gradient(X)[:, 1:, 0]
    centered = X[:, 1:] - net.x_shift[1:]
    np.testing.assert_allclose(net.contributions(X)[1][..., 0], slope * centered, atol=1e-12)


def test_gradient_is_the_gradient_of_the_contributions(rng):
    X, y = data(rng)
    net = RBFDiffNetRegressor(8, order=2, n_lags=2, metric="standard").fit(X, y).network_
    for i in range(3):
        step = 1e-5 * net.x_scale[i] * np.eye(3)[i]
        parts = [
            (up - down).sum(axis=1) / (2 * step[i])
            for up, down in zip(
                net.contributions(X + step)[1:], net.contributions(X - step)[1:], strict=True
            )
        ]
        numeric = sum(parts)
        np.testing.assert_allclose(
            net.gradient(X)[:, i], numeric, atol=1e-4 * np.abs(numeric).max()
        )


@pytest.mark.parametrize("metric", ["standard", [1.0, 0.0, 2.0]])
def test_activations_and_distances_are_those_of_the_basis_functions(metric, rng):
    X, y = data(rng)
    net = RBFDiffNetRegressor(8, metric=metric, width_factor=1.0).fit(X, y).network_
    active = net.metric > 0
    near = ((X - net.x_shift) / net.x_scale * net.metric)[:, active]
    squared = ((near[:, None] - net.centers) ** 2).sum(axis=2)
    np.testing.assert_allclose(net.distances(X), squared, atol=1e-9)
    np.testing.assert_allclose(net.activations(X), np.exp(-net.beta * squared), atol=1e-12)


def test_activations_of_a_normalized_network_add_up_to_one(rng):
    X, y = data(rng)
    net = RBFNetworkRegressor(6, normalize=True).fit(X, y).network_
    np.testing.assert_allclose(net.activations(X).sum(axis=1), 1.0)

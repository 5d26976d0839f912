import dataclasses

import numpy as np
import pytest

from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.basis import derivatives, gaussian


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

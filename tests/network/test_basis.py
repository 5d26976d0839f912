import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.network.basis import (
    GaussianBasis,
    contract,
    derivatives,
    gaussian,
    mean_width,
    squared_distances,
)


def scene(seed, *, n=40, c=6, d=3, offset=0.0, narrow=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + offset
    centers = rng.normal(size=(c, d)) + offset
    beta = narrow * rng.uniform(0.2, 2.0, c)
    return X, centers, beta


def test_gaussian_is_its_formula():
    X, centers, beta = scene(0)
    distance = np.linalg.norm(X[:, None] - centers, axis=2)
    np.testing.assert_allclose(gaussian(X, centers, beta), np.exp(-beta * distance**2), rtol=1e-12)


@pytest.mark.parametrize("order", range(1, 7))
def test_derivatives_equal_mpmath(order):
    X, centers, beta = scene(order, n=3, c=2, d=2)
    with mpmath.workdps(40):
        for n in range(3):
            for j in range(2):
                for i in range(2):

                    def phi(t, n=n, j=j, i=i):
                        point = [mpmath.mpf(v) for v in X[n]]
                        point[i] = t
                        square = sum(
                            (p - mpmath.mpf(m)) ** 2 for p, m in zip(point, centers[j], strict=True)
                        )
                        return mpmath.exp(-mpmath.mpf(beta[j]) * square)

                    expected = mpmath.diff(phi, mpmath.mpf(X[n, i]), order)
                    actual = derivatives(X, centers, beta, order)[order, n, j, i]
                    scale = float(np.abs(derivatives(X, centers, beta, order)[order]).max())
                    assert abs(float(expected) - actual) < 1e-12 * scale


@pytest.mark.parametrize("order", range(7))
def test_derivatives_equal_hermite_closed_form(order):
    X, centers, beta = scene(order)
    root = np.sqrt(beta)[:, None]
    hermite = np.polynomial.hermite.hermval(root * (X[:, None] - centers), np.eye(order + 1)[order])
    expected = (-root) ** order * hermite * gaussian(X, centers, beta)[:, :, None]
    np.testing.assert_allclose(
        derivatives(X, centers, beta, order)[order], expected, rtol=1e-10, atol=1e-12
    )


def test_derivatives_refuse_negative_order():
    with pytest.raises(ValueError, match="order must be at least 0"):
        derivatives(*scene(0), order=-1)


@pytest.mark.parametrize("order", range(1, 7))
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("narrow", [1.0, 1e4])
def test_contract_equals_dense_tensor(order, offset, narrow):
    X, centers, beta = scene(order, offset=offset, narrow=narrow)
    X[: len(centers)] = centers + np.sqrt(1.0 / narrow) * (X[: len(centers)] - offset)
    a = np.random.default_rng(7).normal(size=(order, 3))
    tensor = derivatives(X, centers, beta, order)
    expected = 0.5 * tensor[0, :, :, 0] + np.einsum("ki,knji->nj", a, tensor[1:])
    scale = np.abs(tensor[0, :, :, 0]) + np.einsum("ki,knji->nj", np.abs(a), np.abs(tensor[1:]))
    error = np.abs(contract(X, centers, beta, a, order_zero=0.5) - expected)
    assert np.all(error <= 1e-10 * scale)


@pytest.mark.parametrize("expand", [True, False])
@pytest.mark.parametrize("order_zero", [True, False])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_products_equal_dense_tensor(order, order_zero, expand, rng):
    X, centers, beta = scene(3)
    unit = 0.7
    basis = GaussianBasis.evaluate(
        X,
        centers,
        beta,
        order=order,
        order_zero=order_zero,
        unit=unit,
        expand=expand,
    )
    dense = derivatives(X, centers, beta, order)
    terms = [dense[0, :, :, 0].T] if order_zero else []
    terms += [unit**k * dense[k, :, :, i].T for k in range(1, order + 1) for i in range(3)]
    tensor = np.stack(terms)
    a, w, r = (rng.normal(size=size) for size in (len(terms), len(centers), len(X)))
    close = {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(basis.contract(a), np.einsum("p,pjn->jn", a, tensor), **close)
    np.testing.assert_allclose(basis.jacobian(w), np.einsum("j,pjn->pn", w, tensor), **close)
    np.testing.assert_allclose(basis.adjoint(r), np.einsum("n,pjn->jp", r, tensor), **close)
    np.testing.assert_allclose(basis.tensor(), tensor, **close)


@pytest.mark.parametrize("expand", [True, False])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_input_gradient_equals_finite_differences(order, expand, rng):
    X, centers, beta = scene(5)

    def build(points):
        return GaussianBasis.evaluate(
            points, centers, beta, order=order, order_zero=True, expand=expand
        )

    a, w = rng.normal(size=build(X).n_terms), rng.normal(size=len(centers))
    step = 1e-5
    for i in range(3):
        shift = step * np.eye(3)[i]
        up, down = (w @ build(X + s).contract(a) for s in (shift, -shift))
        actual = build(X).input_gradient(a, w)[i]
        np.testing.assert_allclose(actual, (up - down) / (2 * step), rtol=1e-6, atol=1e-6)


def test_order_zero_alone_is_the_gaussian():
    X, centers, beta = scene(1)
    basis = GaussianBasis.evaluate(X, centers, beta, order=0, order_zero=True)
    np.testing.assert_allclose(basis.contract(np.ones(1)).T, gaussian(X, centers, beta))


def test_far_points_have_no_activation_and_no_nan():
    X, centers, beta = scene(2)
    X[0] = 1e6
    basis = GaussianBasis.evaluate(X, centers, beta, order=2, order_zero=True)
    features = basis.contract(np.ones(basis.n_terms))
    assert np.all(np.isfinite(features))
    assert np.all(features[:, 0] == 0.0)


@given(
    st.integers(1, 5), st.integers(1, 8), st.floats(-1e8, 1e8), st.floats(1e-3, 1e3), st.integers()
)
def test_distances_agree_and_are_never_negative(d, n, offset, scale, seed):
    rng = np.random.default_rng(abs(seed))
    X = scale * rng.normal(size=(n, d)) + offset
    direct = squared_distances(X, X, expand=False)
    assert np.all(np.diag(direct) == 0.0)
    expanded = squared_distances(X - X.mean(axis=0), X - X.mean(axis=0))
    assert np.all(expanded >= 0.0)
    np.testing.assert_allclose(expanded, direct, rtol=1e-6, atol=1e-9 * direct.max() + 1e-300)


def test_mean_width_inverts_beta():
    sigma = np.array([0.5, 2.0])
    assert mean_width(0.5 / sigma**2) == pytest.approx(1.25)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.network.losses import CORNER, CustomLoss, Loss, huber_delta

CASES = [
    Loss("squared"),
    Loss("huber", delta=0.7),
    Loss("absolute"),
    Loss("quantile", quantile=0.9),
    Loss("quantile", quantile=0.2),
]
RESIDUALS = np.concatenate([np.linspace(-3.0, 3.0, 61), [-1e-5, 1e-5, 2e-4]])


@pytest.mark.parametrize("loss", CASES, ids=str)
def test_slope_is_the_derivative(loss):
    step = 1e-7
    numeric = (loss.value(RESIDUALS + step) - loss.value(RESIDUALS - step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(RESIDUALS), numeric, atol=1e-4)


@pytest.mark.parametrize("loss", CASES, ids=str)
@given(st.floats(-10, 10), st.floats(-10, 10))
def test_majorizer_touches_and_lies_above(loss, r, r0):
    weight, shift = (float(part[0]) for part in loss.majorizer(np.array([r0])))

    def gap(x):
        return 0.5 * weight * (x - shift) ** 2 - float(loss.value(np.array([x]))[0])

    assert gap(r) >= gap(r0) - 1e-8 * (1.0 + weight)


def test_values_of_the_formulas():
    r = np.array([-2.0, 0.5])
    np.testing.assert_allclose(Loss("squared").value(r), [2.0, 0.125])
    np.testing.assert_allclose(Loss("huber", delta=1.0).value(r), [1.5, 0.125])
    np.testing.assert_allclose(Loss("absolute").value(r), [2.0, 0.5], atol=2 * CORNER)
    np.testing.assert_allclose(
        Loss("quantile", quantile=0.9).value(r), [0.2, 0.45], atol=2 * CORNER
    )


def test_huber_threshold_ignores_outliers_and_survives_zeros():
    r = np.random.default_rng(0).normal(size=(1, 1001))
    clean = huber_delta(r, np.ones(1001))
    assert clean == pytest.approx(1.0, rel=0.1)
    r[0, :30] = 10.0
    assert huber_delta(r, np.ones(1001)) < 1.3 * clean
    mostly_zero = np.zeros((1, 100))
    mostly_zero[0, :10] = 1.0
    assert huber_delta(mostly_zero, np.ones(100)) > 0.1


def test_own_loss_sees_data_units_and_is_differentiated_by_residual():
    target = np.array([[0.5, -1.0, 2.0]])
    seen = []

    def own(y_true, y_pred):
        seen.append((y_true, y_pred))
        return (y_true - y_pred) ** 4, -4.0 * (y_true - y_pred) ** 3

    loss = CustomLoss(own, target, y_shift=np.array([10.0]), y_scale=np.array([3.0]))
    r = np.array([[0.1, -0.2, 0.3]])
    np.testing.assert_allclose(loss.value(r), (3.0 * r) ** 4)
    np.testing.assert_allclose(seen[0][0], 3.0 * target[0] + 10.0)
    step = 1e-6
    numeric = (loss.value(r + step) - loss.value(r - step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(r), numeric, rtol=1e-5)


@pytest.mark.parametrize("answer", [1.0, (np.zeros(2), np.zeros(2)), np.zeros(3)])
def test_own_loss_says_what_it_must_return(answer):
    loss = CustomLoss(lambda *_: answer, np.zeros((1, 3)), np.zeros(1), np.ones(1))
    with pytest.raises(ValueError, match="loss must return two arrays"):
        loss.value(np.zeros((1, 3)))

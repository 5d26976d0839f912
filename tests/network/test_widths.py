import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.network.widths import WIDTH_RULES, widths


@pytest.fixture
def scene(rng):
    X = rng.normal(size=(80, 3))
    return X, kmeans(X, 5)


def distances(X, centers):
    return np.linalg.norm(X[:, None] - centers, axis=2)


def test_max_distance(scene):
    X, centers = scene
    largest = max(np.linalg.norm(p - q) for p in centers for q in centers)
    np.testing.assert_allclose(widths("max_distance", X, centers), largest / np.sqrt(10.0))


def test_cluster(scene):
    X, centers = scene
    D = distances(X, centers)
    label = D.argmin(axis=1)
    expected = [D[label == j, j].mean() for j in range(5)]
    np.testing.assert_allclose(widths("cluster", X, centers), expected)


@pytest.mark.parametrize("r", [1, 4, 200])
def test_nearest_and_shared(scene, r):
    X, centers = scene
    expected = np.sort(distances(X, centers), axis=0)[:r].mean(axis=0)
    np.testing.assert_allclose(widths("nearest", X, centers, n_nearest=r), expected)
    np.testing.assert_allclose(widths("nearest_shared", X, centers, n_nearest=r), expected.mean())


@pytest.mark.parametrize("rule", WIDTH_RULES)
def test_copies_equal_weights(rule, scene, rng):
    X, centers = scene
    counts = rng.integers(1, 4, size=len(X))
    np.testing.assert_allclose(
        widths(rule, X, centers, weight=counts.astype(float)),
        widths(rule, np.repeat(X, counts, axis=0), centers),
    )


def test_unknown_rule(scene):
    with pytest.raises(ValueError, match="width must be one of max_distance"):
        widths("huge", *scene)


@pytest.mark.parametrize("rule", WIDTH_RULES)
@pytest.mark.parametrize(
    ("X", "centers"),
    [
        (np.ones((5, 2)), np.ones((1, 2))),
        (np.zeros((1, 1)), np.zeros((1, 1))),
        (np.eye(3), np.eye(3)),
        (np.repeat(np.eye(2), 4, axis=0), np.eye(2)),
        (np.eye(3), np.ones((3, 3))),
        (np.array([[0.0], [1e-17], [5.0]]), np.array([[0.0], [5.0], [100.0]])),
    ],
    ids=["constant", "one row", "single points", "coinciding rows", "same centers", "empty"],
)
def test_degenerate_clusters_have_sane_widths(rule, X, centers):
    sigma = widths(rule, X, centers)
    spread = np.sqrt(np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1)))
    assert np.all(np.isfinite(0.5 / sigma**2))
    assert np.all(sigma >= 0.01 * spread)
    assert np.all(sigma > 0.0)


@given(
    st.sampled_from(list(WIDTH_RULES)), st.integers(1, 12), st.floats(1e-8, 1e8), st.integers(0, 99)
)
def test_widths_scale_with_the_data(rule, n, scale, seed):
    X = np.random.default_rng(seed).integers(0, 4, size=(n, 2)).astype(float)
    centers = kmeans(X, 3)
    if np.ptp(X, axis=0).max() == 0.0:  # without spread there is no scale to follow
        return
    np.testing.assert_allclose(
        widths(rule, scale * X, scale * centers), scale * widths(rule, X, centers), rtol=1e-6
    )

import numpy as np
import pytest
from sklearn.cluster import KMeans

from rbfdiffnet.network.basis import gaussian, squared_distances
from rbfdiffnet.network.centers import forward_selection, kmeans, self_organizing_map

METHODS = {
    "kmeans": kmeans,
    "som": self_organizing_map,
    "forward": lambda X, c, **kw: forward_selection(X, np.sin(X.sum(axis=1)), c, **kw),
}


def inertia(X, centers):
    return squared_distances(X, centers).min(axis=1).sum()


@pytest.mark.parametrize("n_centers", [2, 5, 28])
def test_kmeans_is_as_good_as_scikit_learn(n_centers, rng):
    X = rng.normal(size=(600, 4))
    ours = inertia(X, kmeans(X, n_centers, n_init=4))
    theirs = KMeans(n_centers, n_init=4, random_state=0).fit(X).inertia_
    assert ours < 1.03 * theirs


def test_kmeans_goes_on_from_given_centers(rng):
    X = np.concatenate([rng.normal(size=(40, 2)), 9.0 + rng.normal(size=(40, 2))])
    expected = [X[:40].mean(axis=0), X[40:].mean(axis=0)]
    found = kmeans(X, 2, start=np.array([[1.0, 1.0], [8.0, 8.0]]))
    np.testing.assert_allclose(found, expected)
    stuck = kmeans(X, 3, start=np.array([[0.0, 0.0], [9.0, 9.0], [9.1, 9.1]]))
    np.testing.assert_allclose(stuck[0], expected[0])


@pytest.mark.parametrize("n_centers", [4, 9, 12])
def test_map_quantizes_nearly_as_well_as_kmeans(n_centers, rng):
    X = rng.normal(size=(500, 3))
    centers = self_organizing_map(X, n_centers)
    assert centers.shape == (n_centers, 3)
    assert inertia(X, centers) < 1.35 * inertia(X, kmeans(X, n_centers))


def test_map_keeps_neighbors_together(rng):
    X = rng.uniform(size=(800, 1)) * [[1.0, 0.02]]
    centers = self_organizing_map(X, 5)
    steps = np.diff(centers[:, 0])
    assert np.all(steps > 0) or np.all(steps < 0)


def brute_force_pick(X, y, width):
    """The first center by refitting without each row in turn."""
    errors = []
    for center in X:
        phi = gaussian(X, center[None], np.array([0.5 / width**2]))
        error = 0.0
        for n in range(len(X)):
            keep = np.arange(len(X)) != n
            A = np.column_stack([phi[keep], np.ones(len(X) - 1)])
            coefficients = np.linalg.lstsq(A, y[keep], rcond=None)[0]
            error += (y[n] - np.append(phi[n], 1.0) @ coefficients) ** 2
        errors.append(error)
    return X[int(np.argmin(errors))]


def test_forward_selection_picks_by_leave_one_out_error(rng):
    X = rng.uniform(-2.0, 2.0, size=(25, 2))
    y = np.exp(-np.sum((X - 0.5) ** 2, axis=1)) + 0.05 * rng.normal(size=25)
    picked = forward_selection(X, y, 1, width=0.8, ridge=1e-12)
    np.testing.assert_allclose(picked[0], brute_force_pick(X, y, 0.8))


def test_forward_selection_stops_when_more_centers_do_not_help(rng):
    X = np.linspace(-3.0, 3.0, 60)[:, None]
    y = np.exp(-0.5 * X.ravel() ** 2) + 0.3 * rng.normal(size=60)
    assert len(forward_selection(X, y, 40, width=1.0)) < 20


def test_forward_selection_with_many_rows_uses_candidates(rng):
    X = rng.normal(size=(300, 2))
    assert len(forward_selection(X, X[:, 0] ** 2, 5, max_candidates=50)) <= 5


@pytest.mark.parametrize("name", METHODS)
def test_copies_weights_and_order_do_not_matter(name, rng):
    X = rng.normal(size=(40, 2))
    counts = rng.integers(1, 4, size=40)
    shuffled = rng.permutation(40)
    repeated = METHODS[name](np.repeat(X, counts, axis=0), 6)
    weighted = METHODS[name](X[shuffled], 6, weight=counts[shuffled].astype(float))
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    "X",
    [
        np.ones((10, 3)),
        np.repeat([[0.0, 0.0], [1.0, 1.0]], 5, axis=0),
        np.zeros((1, 2)),
        np.array([[1e8, 1e-8], [1e8 + 1.0, 2e-8], [1e8 + 2.0, 3e-8]]),
    ],
    ids=["constant", "two rows", "one row", "badly scaled"],
)
def test_no_more_centers_than_distinct_rows(name, X):
    centers = METHODS[name](X, 5)
    assert np.all(np.isfinite(centers))
    assert 1 <= len(centers) <= len(np.unique(X, axis=0))


def test_kmeans_moves_with_the_data(rng):
    X = rng.normal(size=(50, 2))
    moved = kmeans(1e-7 * X + 3.0, 4)
    np.testing.assert_allclose(moved, 1e-7 * kmeans(X, 4) + 3.0, rtol=1e-12)

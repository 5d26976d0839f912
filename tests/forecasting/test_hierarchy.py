"""Levels of groups, and reconciliation as a linear map, against dense formulas and a library."""

import tracemalloc

import numpy as np
import pytest

from rbfdiffnet.forecasting.hierarchy import (
    Hierarchy,
    find_levels,
    make_reconciler,
    shrink_covariance,
)

CROSSED = [["state"], ["kind"], ["state", "kind"]]


def text(*values):
    return np.array(values, dtype=object)


LABELS = {
    "state": text("TX", "CA", "CA", "TX", "CA", "TX", "CA"),
    "kind": text("b", "a", "b", "a", "a", "b", "c"),
}


def make(labels, spec):
    """The hierarchy with groups first, and how many series and groups there are."""
    levels = find_levels(labels, spec)
    g, m = sum(len(level.groups) for level in levels), len(labels["state"])
    return Hierarchy.of(levels, np.arange(g, g + m), np.arange(g)), g + m


def summing(hierarchy):
    """S (n, m), dense, for groups first."""
    return np.concatenate([hierarchy.members.toarray(), np.eye(hierarchy.bottom.size)])


def project(S, W, values):
    """S (S' W^-1 S)^-1 S' W^-1 values, the usual formula."""
    weighted = np.linalg.solve(W, S)
    return S @ np.linalg.solve(weighted.T @ S, weighted.T @ values)


def correlated_errors(n, n_errors, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 2)) @ rng.normal(size=(2, n_errors))
    return 100.0 * (common + rng.normal(size=(n, n_errors))) + 30.0


def brute_force_covariance(errors):
    """Schäfer and Strimmer, pair by pair."""
    n, T = errors.shape
    centered = errors - errors.mean(axis=1, keepdims=True)
    units = centered / errors.std(axis=1, keepdims=True)
    noise, squares = 0.0, 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                products = units[i] * units[j]
                noise += T / (T - 1) ** 3 * ((products - products.mean()) ** 2).sum()
                squares += (T / (T - 1) * products.mean()) ** 2
    share = min(1.0, noise / squares)
    C = centered @ centered.T / (T - 1)
    return share * np.diag(np.diag(C)) + (1 - share) * C, share


# Levels -----------------------------------------------------------------------------------------


def test_levels_have_the_total_and_groups_by_name():
    levels = find_levels(LABELS, CROSSED)
    assert [level.name for level in levels] == ["Total", "state", "kind", "state/kind"]
    assert levels[1].groups == ["CA", "TX"]
    assert levels[3].groups == ["CA/a", "CA/b", "CA/c", "TX/a", "TX/b"]
    for level, columns in zip(levels[1:], CROSSED, strict=True):
        names = ["/".join(LABELS[c][i] for c in columns) for i in range(7)]
        assert [level.groups[code] for code in level.codes] == names


def test_a_level_of_single_series_is_left_out():
    labels = {"state": text("CA", "CA", "TX"), "store": text("1", "2", "1")}
    assert [level.name for level in find_levels(labels, [["state"], ["state", "store"]])] == [
        "Total",
        "state",
    ]


def test_values_that_contain_a_slash_are_groups_of_their_own():
    labels = {"state": text("a/b", "a", "a"), "store": text("c", "b/c", "b/c")}
    levels = find_levels(labels, [["state", "store"]])
    assert levels[1].groups == ["a/b/c", "a/b/c"]  # which a panel refuses
    assert len(set(levels[1].codes[:2])) == 2


def test_members_and_sums():
    hierarchy, n = make(LABELS, CROSSED)
    values = np.random.default_rng(0).normal(size=(n, 3, 2))
    summed = hierarchy.sum_up(values)
    np.testing.assert_array_equal(summed[hierarchy.bottom], values[hierarchy.bottom])
    S = summing(hierarchy)
    np.testing.assert_allclose(summed, np.einsum("nm,mhk->nhk", S, values[hierarchy.bottom]))
    np.testing.assert_array_equal(hierarchy.sizes, S[: hierarchy.groups.size].sum(axis=1))


def test_among_leaves_out_series_and_groups_without_any():
    hierarchy, n = make(LABELS, CROSSED)
    known = np.ones(n, dtype=bool)
    known[hierarchy.bottom[[6, 0]]] = False  # the only one of kind c, and one of two TX/b
    some = hierarchy.among(known)
    S = summing(hierarchy)[: hierarchy.groups.size][:, [1, 2, 3, 4, 5]]
    np.testing.assert_array_equal(some.members.toarray(), S[S.any(axis=1)])
    np.testing.assert_array_equal(some.groups, np.flatnonzero(S.any(axis=1)))


# Reconciliation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [[["state"]], [["state"], ["state", "kind"]], CROSSED])
@pytest.mark.parametrize("method", ["variance", "structural", "mint"])
def test_reconciled_forecasts_are_those_of_the_dense_formula(spec, method):
    hierarchy, n = make(LABELS, spec)
    S, errors = summing(hierarchy), correlated_errors(n, 20)
    W = {
        "variance": np.diag((errors**2).mean(axis=1)),
        "structural": np.diag(S.sum(axis=1)),
        "mint": brute_force_covariance(errors)[0],
    }[method]
    values = np.random.default_rng(1).normal(100.0, 10.0, size=(n, 4, 3))
    found = make_reconciler(hierarchy, n, method, errors).apply(values)
    expected = project(S, W, values.reshape(n, -1)).reshape(values.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(found, S_times(S, found, hierarchy), rtol=1e-12)


def S_times(S, values, hierarchy):
    return np.einsum("nm,mhk->nhk", S, values[hierarchy.bottom])


def test_the_shrunken_covariance_is_that_of_all_pairs():
    errors = correlated_errors(9, 15, seed=3)
    W, share = brute_force_covariance(errors)
    variances, factor, found = shrink_covariance(errors)
    assert 0.01 < share < 0.99
    assert found == pytest.approx(share, rel=1e-12)
    np.testing.assert_allclose(found * np.diag(variances) + factor @ factor.T, W, rtol=1e-10)


def test_errors_that_come_in_runs_say_less():
    errors = correlated_errors(9, 40, seed=3)
    _, _, share = shrink_covariance(errors)
    variances, factor, found = shrink_covariance(errors, n_independent=20.0)
    assert found == pytest.approx(2.0 * share)
    C = np.cov(errors)
    W = found * np.diag(variances) + factor @ factor.T
    np.testing.assert_allclose(W, found * np.diag(np.diag(C)) + (1 - found) * C, rtol=1e-10)
    assert shrink_covariance(errors, n_independent=1.0)[2] == 1.0


@pytest.mark.parametrize("method", ["variance", "structural", "mint"])
def test_forecasts_that_add_up_stay_as_they_are(method):
    hierarchy, n = make(LABELS, CROSSED)
    values = hierarchy.sum_up(np.random.default_rng(0).normal(size=(n, 5)))
    found = make_reconciler(hierarchy, n, method, correlated_errors(n, 30)).apply(values)
    np.testing.assert_allclose(found, values, rtol=1e-12)


@pytest.mark.parametrize("method", ["variance", "mint"])
def test_the_order_of_series_does_not_matter(method):
    hierarchy, n = make(LABELS, CROSSED)
    errors, values = correlated_errors(n, 12), np.random.default_rng(2).normal(size=(n, 3))
    scales = np.random.default_rng(4).uniform(1.0, 9.0, size=n)
    found = make_reconciler(hierarchy, n, method, errors, 4.0, scales).apply(values)
    order = np.random.default_rng(3).permutation(n)
    place = np.argsort(order)
    moved = Hierarchy(place[hierarchy.bottom], place[hierarchy.groups], hierarchy.members)
    again = make_reconciler(moved, n, method, errors[order], 4.0, scales[order])
    np.testing.assert_array_equal(again.apply(values[order]), found[order])


def test_errors_that_add_up_say_no_more_than_their_variances():
    """U' W U has nothing of the covariance of errors that add up, only the diagonal."""
    hierarchy, n = make(LABELS, CROSSED)
    errors = hierarchy.sum_up(correlated_errors(n, 40))
    values = np.random.default_rng(2).normal(size=(n, 3))
    found = make_reconciler(hierarchy, n, "mint", errors).apply(values)
    expected = project(summing(hierarchy), np.diag(errors.var(axis=1)), values)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_series_without_errors_get_the_usual_variance():
    hierarchy, n = make(LABELS, [["state"]])
    errors = correlated_errors(n, 30)
    errors[-1] = np.nan
    errors[3, :12] = np.nan  # begins late
    values = np.random.default_rng(0).normal(size=(n, 2))
    reconciler = make_reconciler(hierarchy, n, "mint", errors)
    variances, factor, share = shrink_covariance(errors)
    sizes = summing(hierarchy).sum(axis=1)
    assert reconciler.variances[-1] == share * np.median((variances / sizes)[:-1])
    np.testing.assert_allclose(variances[3], errors[3, 12:].var(ddof=1))
    W = np.diag(reconciler.variances) + factor @ factor.T
    np.testing.assert_allclose(
        reconciler.apply(values), project(summing(hierarchy), W, values), rtol=1e-9
    )


@pytest.mark.parametrize("method", ["variance", "mint"])
@pytest.mark.parametrize("scales", [None, np.zeros(10)])
@pytest.mark.parametrize("errors", [np.zeros((10, 8)), np.full((10, 8), np.nan)])
def test_errors_that_say_nothing_leave_the_number_of_series(method, scales, errors):
    hierarchy, n = make(LABELS, [["state"]])
    values = np.random.default_rng(0).normal(size=(n, 2))
    found = make_reconciler(hierarchy, n, method, errors, None, scales).apply(values)
    expected = make_reconciler(hierarchy, n, "structural").apply(values)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["variance", "mint"])
@pytest.mark.parametrize("nothing", [0.0, np.nan])
def test_a_series_that_never_changes_stays_as_it_is(method, nothing):
    """Whether its forecasts never erred, or there are none to tell."""
    hierarchy, n = make(LABELS, [["state"]])
    errors, scales = correlated_errors(n, 30), np.full(n, 1e4)
    errors[-2], scales[-2] = nothing, 0.0
    values = np.random.default_rng(0).normal(size=(n, 2))
    found = make_reconciler(hierarchy, n, method, errors, None, scales).apply(values)
    np.testing.assert_allclose(found[-2], values[-2], rtol=1e-6)
    assert np.abs(found - values).max() > 0.1


def test_variances_are_drawn_to_scales_as_by_one_more_error():
    hierarchy, n = make(LABELS, [["state"]])
    errors, scales = correlated_errors(n, 12), np.arange(1.0, n + 1.0)
    errors[-1] = np.nan
    errors[-2, 1:] = np.nan
    errors[-3] = 0.0  # not one sale in a while
    errors[-4, :6] = np.nan  # begins late
    found = make_reconciler(hierarchy, n, "variance", errors, 4.0, scales).variances
    own = np.array([np.mean(e[np.isfinite(e)] ** 2) for e in errors[:-1]])
    usual = scales * np.median((own / scales[:-1])[own > 0.0])
    counts = np.isfinite(errors[:-1]).sum(axis=1) / 3.0  # twelve errors are worth four
    np.testing.assert_allclose(found[:-1], (counts * own + usual[:-1]) / (counts + 1.0))
    assert found[-1] == pytest.approx(usual[-1])
    assert found[-3] == pytest.approx(usual[-3] / 5.0)


def test_series_share_the_gap_of_their_group_by_their_variances():
    labels = {"state": text("CA", "CA", "TX", "TX")}
    hierarchy, n = make(labels, [])
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(n, 50)) * np.array([[100.0], [100.0], [0.1], [10.0], [1.0]])
    values = np.array([[1_300.0], [1_000.0], [0.3], [100.0], [10.0]])
    moved = make_reconciler(hierarchy, n, "variance", errors).apply(values) - values
    own = (errors[1:] ** 2).mean(axis=1)
    np.testing.assert_allclose(moved[1:, 0] / moved[1, 0], own / own[0])
    even = make_reconciler(hierarchy, n, "structural").apply(values) - values
    assert abs(moved[2, 0]) < 1e-3 < 20.0 < abs(even[2, 0])


def test_series_outside_of_the_hierarchy_stay():
    hierarchy, n = make(LABELS, CROSSED)
    values = np.random.default_rng(0).normal(size=(n, 2))
    known = np.arange(n) != hierarchy.bottom[2]
    found = make_reconciler(hierarchy.among(known), n, "structural").apply(values)
    np.testing.assert_array_equal(found[~known], values[~known])


@pytest.mark.parametrize("spec", [[["state"], ["state", "kind"]], CROSSED])
def test_reconciled_forecasts_are_those_of_hierarchicalforecast(spec):
    methods = pytest.importorskip("hierarchicalforecast.methods", reason="extra [ecosystem]")
    hierarchy, n = make(LABELS, spec)
    S, errors = summing(hierarchy), correlated_errors(n, 25, seed=5)
    rng = np.random.default_rng(6)
    values, actual = rng.normal(1e3, 50.0, size=(n, 6)), rng.normal(1e3, 50.0, size=(n, 25))

    def theirs(reconciler, **more):
        return reconciler.fit_predict(S=S, y_hat=values, **more)["mean"]

    past = {"y_insample": actual, "y_hat_insample": actual - errors}
    for found, expected in (
        (hierarchy.sum_up(values), theirs(methods.BottomUp())),
        (
            make_reconciler(hierarchy, n, "structural").apply(values),
            theirs(methods.MinTrace(method="wls_struct")),
        ),
        (
            make_reconciler(hierarchy, n, "variance", errors).apply(values),
            theirs(methods.MinTrace(method="wls_var"), **past),
        ),
        (
            make_reconciler(hierarchy, n, "mint", errors).apply(values),
            theirs(methods.MinTrace(method="mint_shrink"), **past),
        ),
    ):
        # They add 2e-8 to squares and deviations.
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(values).mean())


@pytest.mark.slow
@pytest.mark.parametrize("method", ["variance", "mint"])
def test_as_many_series_as_in_m5_take_little_memory(method):
    n_items = 3_049
    stores = [f"{state}_{k}" for state, n in (("CA", 4), ("TX", 3), ("WI", 3)) for k in range(n)]
    departments = [f"{k % 7}" for k in range(n_items)]
    columns = {
        "item": [f"item {k}" for k in range(n_items)] * 10,
        "department": departments * 10,
        "category": [str(int(d) // 3) for d in departments] * 10,
        "store": np.repeat(stores, n_items),
        "state": np.repeat([store[:2] for store in stores], n_items),
    }
    labels = {name: np.array(values, dtype=object) for name, values in columns.items()}
    spec = [["state"], ["store"], ["category"], ["department"], ["state", "category"]]
    spec += [["state", "department"], ["store", "category"], ["store", "department"]]
    spec += [["item"], ["state", "item"]]
    hierarchy, n = make(labels, spec)
    assert n == 42_840
    rng = np.random.default_rng(0)
    sizes = np.append(hierarchy.sizes, np.ones(hierarchy.bottom.size))[:, None]
    values, errors = sizes + rng.normal(size=(n, 28)), np.sqrt(sizes) * rng.normal(size=(n, 56))
    tracemalloc.start()
    found = make_reconciler(hierarchy, n, method, errors, None, sizes[:, 0]).apply(values)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**30
    np.testing.assert_allclose(found[0], found[hierarchy.bottom].sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("method", ["variance", "structural", "mint"])
def test_groups_that_are_not_asked_move_no_one(method):
    hierarchy, n = make({"state": text("a", "a", "b", "b", "b")}, [["state"]])
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n, 2))
    reconciler = make_reconciler(hierarchy, n, method, correlated_errors(n, 30))
    out = np.zeros(n, dtype=bool)
    out[hierarchy.bottom[0]] = True  # of "a" and of the total
    moved = reconciler.without(out).apply(values)
    if method != "mint":  # whose errors go together, with those of other groups, too
        np.testing.assert_array_equal(moved[hierarchy.bottom[:2]], values[hierarchy.bottom[:2]])
    rest = moved[hierarchy.bottom[2:]]
    np.testing.assert_allclose(rest.sum(axis=0), moved[hierarchy.groups[2]])
    assert reconciler.without(np.zeros(n, dtype=bool)) is reconciler

"""Series without values, and which series are like them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from panels import make_panel
from rbfdiffnet.panel.newcomers import find_newcomers
from rbfdiffnet.panel.panel import Panel

COLUMNS = ["kind", "shop"]


def read(df):
    inputs = [name for name in COLUMNS if name in df]
    return Panel.from_frame(df, freq="D", inputs=inputs), inputs


def names(panel, positions):
    return sorted(panel.names[i] for i in positions.tolist())


def with_new(df, **columns):
    row = {"unique_id": "new", "ds": df["ds"].max(), "y": np.nan, **columns}
    return pd.concat([df, pd.DataFrame([row])])


@pytest.fixture
def shelf():
    df = make_panel("abcd", n=20)
    kinds = dict(zip("abcd", ["tea", "tea", "milk", None], strict=True))
    shops = dict(zip("abcd", [1, 2, 2, 1], strict=True))
    return df.assign(kind=df["unique_id"].map(kinds), shop=df["unique_id"].map(shops))


@pytest.mark.parametrize(
    ("kind", "shop", "peers", "alike"),
    [
        ("tea", 1, "a", ("kind", "shop")),
        ("tea", 3, "ab", ("kind",)),
        ("salt", 2, "bc", ("shop",)),
        ("salt", 3, "abcd", ()),
        (None, np.nan, "abcd", ()),
        ("milk", 1, "acd", ()),  # one value shared, but not always the same one
    ],
)
def test_peers_share_the_most_values(shelf, kind, shop, peers, alike):
    panel, inputs = read(with_new(shelf, kind=kind, shop=shop))
    (group,) = find_newcomers(panel, inputs)
    assert names(panel, group.series) == ["new"]
    assert names(panel, group.peers) == list(peers)
    assert group.alike == alike
    assert str(len(peers)) in group.describe()


def test_values_that_no_peer_has_do_not_set_newcomers_apart(shelf):
    new = pd.concat(shelf.tail(1).assign(unique_id=f"new{k}", y=np.nan) for k in range(5))
    new["kind"] = ["tea", "tea", "milk", "salt", "rice"]
    new["shop"] = [7, 8, 9, 10, 11]
    panel, inputs = read(pd.concat([shelf, new]))
    groups = find_newcomers(panel, inputs)
    found = {tuple(names(panel, own.series)): names(panel, own.peers) for own in groups}
    assert found == {
        ("new0", "new1"): ["a", "b"],
        ("new2",): ["c"],
        ("new3", "new4"): list("abcd"),
    }


def test_there_may_be_nobody_to_be_like(shelf):
    assert find_newcomers(read(shelf)[0], COLUMNS) == ()
    assert find_newcomers(read(shelf.assign(y=np.nan))[0], COLUMNS) == ()


def align(group, values, pasts, season=1):
    return group.align(values, values, pasts, season)


def test_steps_are_compared_by_date():
    df = make_panel("ab", n=20)
    late = df[(df["unique_id"] == "a") | (df["ds"] < "2023-01-19")]
    panel, _ = read(with_new(late))  # b ends two days before the others
    (group,) = find_newcomers(panel, ())
    values = np.arange(3.0) + 10.0 * np.arange(panel.n_series)[:, None]
    theirs, counts = align(group, values, [np.zeros(20)] * 2)
    at = {panel.names[i]: k for k, i in enumerate(group.peers.tolist())}
    assert_array_equal(theirs[at["a"]], [0.0, 1.0, 2.0])
    assert_array_equal(theirs[at["b"]][:1], [12.0])
    assert_array_equal(counts[at["a"]], [True, True, True])
    assert_array_equal(counts[at["b"]], [True, False, False])


def newcomer_of(date):
    """A newcomer whose only row has a date, and its peers, which have 20 days from 2023 on."""
    later = pd.Timestamp(date) - pd.Timestamp("2023-01-20")
    df = with_new(make_panel("ab", n=20))
    panel, _ = read(df.assign(ds=df["ds"] + later * (df["unique_id"] == "new").astype(int)))
    (group,) = find_newcomers(panel, ())
    return group


def test_beyond_forecasts_the_last_season_goes_on():
    group = newcomer_of("2023-01-26")  # six days after the others
    past = np.arange(-20.0, 0.0)
    values = np.tile(np.arange(4.0), (3, 1))
    theirs, counts = align(group, values, [past, past], season=5)
    assert counts.all()  # steps 6, 7, ... of a season that begins one day before the forecasts
    assert_array_equal(theirs, [[1.0, 2.0, 3.0, -1.0]] * 2)
    assert "ended 6 steps before; their last season goes on" in group.describe()
    theirs, _ = align(group, values, [past[-1:]] * 2, season=9)
    assert_array_equal(theirs, [[3.0] * 4] * 2)  # no whole season is known


def test_before_forecasts_past_values_count_with_the_spread_of_the_nearest():
    group = newcomer_of("2023-01-18")  # two days before the others
    past = np.arange(20.0) + 100.0
    past[18] = np.nan  # as between the days beside it
    centers = np.tile([50.0, 60.0, 70.0, 80.0], (3, 1))
    quantiles = centers[:, :, None] + np.array([-1.0, 0.0, 5.0])
    theirs, counts = group.align(quantiles, centers, [past, past], 1)
    assert counts.all()
    assert_array_equal(theirs[0, :, 1], [118.0, 119.0, 50.0, 60.0])
    assert_array_equal(theirs[0, :, 2] - theirs[0, :, 0], [6.0] * 4)
    assert "end 2 steps later; until then their past values count" in group.describe()
    low, _ = group.align(quantiles - 49.0, centers - 49.0, [0.0 * past] * 2, 1)
    assert low.min() == 0.0  # as the peers never were negative


def test_groups_of_levels_tell_who_is_alike(shelf):
    df = with_new(shelf.assign(kind=shelf["kind"].fillna("salt")), kind="tea", shop=1.0)
    panel = Panel.from_frame(df, freq="D", labels=COLUMNS)
    (group,) = find_newcomers(panel, (), [["kind"]])
    assert (names(panel, group.peers), group.alike) == (["a", "b"], ("kind",))
    (group,) = find_newcomers(panel, (), [["kind"], ["kind", "shop"]])
    assert (names(panel, group.peers), group.alike) == (["a"], ("kind", "shop"))
    sums = panel.labels["kind"].copy()
    sums[panel.names.index("a")] = None  # a sum of others is nobody's peer
    (group,) = find_newcomers(replace(panel, labels={"kind": sums}), (), [["kind"]])
    assert names(panel, group.peers) == ["b"]


def test_at_most_a_hundred_peers_from_the_whole_range_of_names():
    many = [f"s{k:03d}" for k in range(250)]
    df = pd.concat([make_panel(many, n=3), make_panel(["zz"], n=2)])
    panel, _ = read(with_new(df))
    (group,) = find_newcomers(panel, ())
    chosen = names(panel, group.peers)
    assert len(chosen) == 100
    assert (chosen[0], chosen[-1]) == ("s000", "s249")
    shuffled, _ = read(with_new(df).sample(frac=1.0, random_state=0))
    (again,) = find_newcomers(shuffled, ())
    assert names(shuffled, again.peers) == chosen

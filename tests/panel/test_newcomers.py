"""Series without values, and which series are like them."""

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


def test_there_may_be_nobody_to_be_like(shelf):
    assert find_newcomers(read(shelf)[0], COLUMNS) == ()
    assert find_newcomers(read(shelf.assign(y=np.nan))[0], COLUMNS) == ()


def test_steps_are_compared_by_date():
    df = make_panel("ab", n=20)
    late = df[(df["unique_id"] == "a") | (df["ds"] < "2023-01-19")]
    panel, _ = read(with_new(late))  # b ends two days before the others
    (group,) = find_newcomers(panel, ())
    values = np.arange(3.0) + 10.0 * np.arange(panel.n_series)[:, None]
    theirs, counts = group.align(values)
    at = {panel.names[i]: k for k, i in enumerate(group.peers.tolist())}
    assert_array_equal(theirs[at["a"]], [0.0, 1.0, 2.0])
    assert_array_equal(theirs[at["b"]], [12.0, 12.0, 12.0])
    assert_array_equal(counts[at["a"]], [True, True, True])
    assert_array_equal(counts[at["b"]], [True, False, False])


def test_all_count_where_none_has_the_date():
    df = make_panel("ab", n=20)
    panel, _ = read(
        with_new(df.assign(ds=df["ds"])).assign(
            ds=lambda d: d["ds"].where(d["unique_id"] != "new", pd.Timestamp("2024-01-01"))
        )
    )
    (group,) = find_newcomers(panel, ())
    theirs, counts = group.align(np.arange(9.0).reshape(3, 3))
    assert counts.all()
    assert_array_equal(np.sort(theirs[:, 0]), [2.0, 5.0])


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

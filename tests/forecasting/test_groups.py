"""Sums over groups in a panel: late series, missing values, closed days, inputs, names."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from panels import make_panel, make_stores, to_polars
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.forecasting.groups import find_hierarchy, is_series, name_levels
from rbfdiffnet.forecasting.options import Options, levels_of

NESTED = {"hierarchy": ["state", "store"]}


def read(df, freq="D", **options):
    """The panel with groups, and the values of a series by its name."""
    panel = Options(freq, **(options or NESTED)).read_panel(df)

    def values(name):
        i = panel.names.index(name)
        return panel.y[panel.offsets[i] : panel.offsets[i + 1]]

    return panel, values


def plain(df):
    return df.drop(columns=["kind"], errors="ignore")


def test_nested_columns_are_levels_inside_of_one_another():
    assert levels_of(["state", "store"]) == (("state",), ("state", "store"))
    assert levels_of([["state"], ["kind"]]) == (("state",), ("kind",))


@pytest.mark.parametrize(
    ("hierarchy", "message"),
    [
        ("state", "a list of columns"),
        ([], "at least one"),
        ([[]], "each column once"),
        ([["state", "state"]], "each column once"),
        ([["state"], ["state"]], "different levels"),
        (["state", ["store"]], "a list of columns"),
        ([1], "a list of columns"),
        (["y"], "another role"),
    ],
)
def test_odd_hierarchies_are_refused(hierarchy, message):
    with pytest.raises(ValueError, match=message):
        Options("D", hierarchy=hierarchy)


def test_unknown_ways_to_reconcile_are_refused():
    with pytest.raises(ValueError, match="reconcile must be one of variance, structural"):
        Options("D", reconcile="magic")


def test_groups_are_sums_of_their_series():
    df = plain(make_stores())
    panel, values = read(df)
    assert panel.names[:8] == ("Total", "CA", "TX", *(f"{s[:2]}/{s}" for s in df["store"].unique()))
    assert name_levels(panel, levels_of(["state", "store"])) == (
        ["Total"] + ["state"] * 2 + ["state/store"] * 5 + ["series"] * 10
    )
    wide = df.pivot(index="ds", columns="unique_id", values="y")
    np.testing.assert_allclose(values("Total"), wide.sum(axis=1))
    np.testing.assert_allclose(values("CA"), wide.filter(like="CA").sum(axis=1))
    np.testing.assert_allclose(values("TX/TX_2"), wide.filter(like="TX_2").sum(axis=1))
    assert {str(panel.dates(0, 0)), str(panel.dates(12, 0))} == {"2023-01-01T00:00:00.000000000"}


def test_the_order_of_rows_and_polars_do_not_matter():
    df = plain(make_stores())
    panel, values = read(df)
    for other in (df.sample(frac=1.0, random_state=0), to_polars(df)):
        again, others = read(other)
        assert set(again.names) == set(panel.names)
        for name in panel.names:
            np.testing.assert_array_equal(others(name), values(name))


def test_numbers_name_groups_as_they_are_written():
    df = plain(make_stores()).assign(state=lambda d: np.where(d["state"] == "CA", 1, 2.5))
    assert read(df)[0].names[1:4] == ("1", "2.5", "1/CA_1")


def test_a_series_that_begins_later_counts_from_then_on():
    df = plain(make_stores())
    late = (df["store"] == "CA_2") & (df["ds"] < "2023-02-10")
    panel, values = read(df[~late])
    wide = df[~late].pivot(index="ds", columns="unique_id", values="y")
    np.testing.assert_allclose(values("CA"), wide.filter(like="CA").sum(axis=1))
    assert len(values("CA/CA_2")) == len(values("food@CA_2")) == 50
    assert str(panel.dates(panel.names.index("CA/CA_2"), 0))[:10] == "2023-02-10"


def test_a_missing_value_makes_no_dip():
    df = plain(make_stores())
    hole = (df["unique_id"] == "food@TX_1") & (df["ds"] == "2023-02-15")
    week_before = (df["unique_id"] == "food@TX_1") & (df["ds"] == "2023-02-08")
    wide = df.pivot(index="ds", columns="unique_id", values="y")
    there = wide.index.get_loc("2023-02-15")
    for frame in (df[~hole], df.assign(y=df["y"].where(~hole))):
        _, values = read(frame)
        expected = wide.sum(axis=1).to_numpy()
        expected[there] += df.loc[week_before, "y"].item() - df.loc[hole, "y"].item()
        np.testing.assert_allclose(values("Total"), expected)
        assert np.isnan(values("food@TX_1")[there])  # which is up to its model


def test_sums_do_not_depend_on_later_values():
    df = plain(make_stores())
    df = df[np.random.default_rng(0).random(len(df)) > 0.1]
    _, values = read(df)
    end = pd.Timestamp("2023-03-01")
    panel, earlier = read(df[df["ds"] <= end])
    for name in panel.names:
        known = earlier(name)
        if is_series(panel)[panel.names.index(name)]:
            known = known[: np.flatnonzero(np.isfinite(known))[-1] + 1]
        np.testing.assert_array_equal(values(name)[: len(known)], known)


def test_where_no_series_has_a_value_a_group_has_none():
    df = plain(make_stores())
    hole = (df["state"] == "CA") & (df["ds"] == "2023-02-15")
    _, values = read(df[~hole])
    assert np.isnan(values("CA")[45])
    assert np.isfinite(values("Total")).all()


def test_one_closed_shop_counts_as_zero_when_others_are_open():
    df = plain(make_stores())
    sundays = (df["store"] == "CA_1") & (df["ds"].dt.dayofweek == 6)
    _, values = read(df[~sundays])
    wide = df[~sundays].pivot(index="ds", columns="unique_id", values="y")
    np.testing.assert_allclose(values("Total"), wide.sum(axis=1))
    np.testing.assert_array_equal(values("food@CA_1")[6::7], 0.0)  # from a Monday on
    everywhere = df["ds"].dt.dayofweek == 6
    _, values = read(df[~everywhere])
    assert np.isnan(values("Total")[6::7]).all()


def test_a_series_that_ends_early_goes_on():
    df = plain(make_stores())
    gone = (df["unique_id"] == "toys@TX_3") & (df["ds"] > "2023-03-20")
    panel, values = read(df[~gone])
    wide = df.pivot(index="ds", columns="unique_id", values="y")
    last = wide["toys@TX_3"][:79].to_numpy()
    wide.loc[wide.index[79:], "toys@TX_3"] = last[np.arange(79, 90) - 7 * (1 + np.arange(11) // 7)]
    np.testing.assert_allclose(values("Total"), wide.sum(axis=1))
    assert set(panel.lengths) == {90}
    (note,) = panel.problems
    assert panel.names[note.series] == "toys@TX_3"
    assert note.problem == "ends 2023-03-20, before other series do"


def test_series_on_different_dates_are_refused():
    one, other = (plain(make_stores(40, freq=freq)) for freq in ("W-SUN", "W-MON"))
    mixed = pd.concat([one[one["state"] == "CA"], other[other["state"] == "TX"]])
    with pytest.raises(ValueError, match=r"'food@TX_1' begins 2023-01-02.*need the same dates"):
        read(mixed, freq="7D", **NESTED)


def test_months_that_end_on_different_days_are_the_same_dates():
    df = plain(make_stores(30, freq="ME"))
    short = df[(df["store"] != "CA_1") | (df["ds"] == "2023-02-28")]
    _, values = read(short, freq="ME", **NESTED)
    assert len(values("CA/CA_1")) == 29
    assert len(values("Total")) == 30


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"store": "CA_2"}, r"'food@CA_1': column 'store' changes from 'CA_1' to 'CA_2' in row 3"),
        ({"store": None}, r"'food@CA_1': column 'store' has no value in row 3"),
        ({"store": ""}, r"'food@CA_1': column 'store' has no value in row 3"),
    ],
)
@pytest.mark.parametrize("convert", [lambda df: df, to_polars])
def test_a_group_that_changes_or_is_missing_is_refused(change, message, convert):
    df = plain(make_stores())
    df = df.astype({"store": object})
    for column, value in change.items():
        df.loc[3, column] = value
    with pytest.raises(ValueError, match=message):
        read(convert(df))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"unique_id": {"food@CA_1": "CA"}},
            r"'CA' would be a group of level 'state', but is also",
        ),
        ({"unique_id": {"food@CA_1": "Total"}}, r"'Total' would be a group of level 'Total'"),
        ({"state": {"CA": "Total"}}, r"'Total' would be a group of level 'state'.*level 'Total'"),
    ],
)
def test_names_that_are_taken_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        read(plain(make_stores()).replace(change))


def test_numbers_as_ids_are_refused():
    df = plain(make_stores())
    df["unique_id"] = pd.factorize(df["unique_id"])[0]
    with pytest.raises(ValueError, match=r"cannot hold names of groups.*convert it to text"):
        read(df)


def test_categories_as_ids_get_more_of_them_unless_they_are_fixed():
    df = plain(make_stores()).astype({"unique_id": "category", "state": "category"})
    assert read(df)[0].ids.to_native().dtype == "category"
    frame = to_polars(plain(make_stores()))
    kind = pl.Enum(frame["unique_id"].unique().to_list())
    assert read(frame.cast({"unique_id": pl.Categorical}))[0].names[0] == "Total"
    with pytest.raises(ValueError, match=r"cannot hold names of groups.*convert it to text"):
        read(frame.cast({"unique_id": kind}))


def test_an_empty_frame_has_no_groups():
    with pytest.raises(ValueError, match="The frame has no rows"):
        RBFDiffNet("D", preset="instant", **NESTED).fit(plain(make_stores())[:0])


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="no column 'region'"):
        read(make_stores(), hierarchy=["region"])


def test_inputs_of_groups_are_means():
    df = make_stores().drop(columns="store")
    rng = np.random.default_rng(0)
    df["price"] = rng.normal(size=len(df))
    df = df[(df["unique_id"] != "food@CA_1") | (df["ds"] >= "2023-02-01")]
    df["kind"] = np.where(df["ds"].dt.day % 3 == 0, df["kind"], "none")  # a text that varies
    options = Options("D", hierarchy=["state"], calendar=["dayofweek"])
    panel = options.read_panel(df)
    inputs = options.read_inputs(panel)
    series = inputs.series(panel)
    columns = list(inputs.ahead_names)
    for name, group in (("Total", df), ("TX", df[df["state"] == "TX"])):
        own = series[panel.names.index(name)].known_ahead
        by_date = group.groupby("ds")
        price = by_date["price"].mean()
        toys = by_date["kind"].agg(lambda kinds: (kinds == "toys").mean())
        np.testing.assert_allclose(own[:, columns.index("price")], price)
        np.testing.assert_allclose(own[:, columns.index("kind=toys")], toys)
        sunday = price.index.dayofweek == 6
        np.testing.assert_array_equal(own[:, columns.index("dayofweek=6")], sunday)
    one = panel.names.index("food@TX_1")
    known = df.loc[df["unique_id"] == "food@TX_1", "price"]
    np.testing.assert_array_equal(series[one].known_ahead[:, columns.index("price")], known)


def test_future_inputs_of_groups_are_means():
    df = make_stores().drop(columns=["store", "kind"]).assign(price=lambda d: d["y"] % 3)
    options = Options("D", hierarchy=["state"])
    panel = options.read_panel(df)
    inputs = options.read_inputs(panel)
    future = panel.select(is_series(panel)).make_frame(90, 4, {})
    future["price"] = np.random.default_rng(1).normal(size=len(future))
    ahead = np.stack(inputs.ahead(panel, 4, future).values)[:, :, 0]
    wide = future.pivot(index="ds", columns="unique_id", values="price")
    np.testing.assert_allclose(ahead[panel.names.index("Total")], wide.mean(axis=1))
    np.testing.assert_allclose(ahead[panel.names.index("CA")], wide.filter(like="@CA").mean(axis=1))
    hierarchy = find_hierarchy(panel, levels_of(["state"]))
    names = [panel.names[i] for i in hierarchy.bottom]
    np.testing.assert_array_equal(ahead[hierarchy.bottom], wide[names].T)


def test_future_inputs_far_out_are_so_in_groups_by_their_share():
    df = make_stores().drop(columns=["store", "kind"]).assign(price=lambda d: d["y"] % 3)
    options = Options("D", hierarchy=["state"])
    panel = options.read_panel(df)
    future = panel.select(is_series(panel)).make_frame(90, 4, {}).assign(price=1.0)
    future.loc[2, "price"] = 100.0
    found = options.read_inputs(panel).ahead(panel, 4, future)
    excess = np.stack(found.excess)[:, 2, 0]
    own = panel.names.index(future.loc[2, "unique_id"])
    assert excess[own] > 90.0
    np.testing.assert_allclose(excess[panel.names.index("Total")], excess[own] / 10)
    assert np.count_nonzero(np.stack(found.excess)) == 3


@pytest.mark.parametrize("dtype", [bool, object, "boolean"])
def test_truth_values_name_groups_as_they_are_written(dtype):
    df = make_panel("abc", n=5)
    df["open"] = (df["unique_id"] == "a").astype(dtype)
    for frame in (df, *([] if dtype is object else [to_polars(df)])):
        panel, _ = read(frame, hierarchy=["open"])
        assert panel.names[:3] == ("Total", "False", "True")


@pytest.mark.parametrize("groups", [(1, True), (0, False)])
def test_groups_that_are_equal_but_not_the_same_are_refused(groups):
    df = make_panel("ab", n=5)
    labels = dict(zip("ab", groups, strict=True))
    df["g"] = pd.Series([labels[name] for name in df["unique_id"]], dtype=object, index=df.index)
    with pytest.raises(ValueError, match=r"'g' holds .* equal and cannot be told apart"):
        Options("D", hierarchy=["g"]).read_panel(df)

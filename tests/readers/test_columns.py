"""Which column is what, told by words and by cells."""

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet.readers import ColumnChoices, read_data
from rbfdiffnet.readers.columns import (
    find_id_columns,
    find_target_column,
    find_time_column,
    has_units,
    is_id_name,
    is_time_name,
    is_value_name,
)
from rbfdiffnet.readers.dates import (
    find_month,
    find_time_unit,
    mentions_time,
    mentions_weeks,
)
from rbfdiffnet.readers.keys import count_repeats
from rbfdiffnet.readers.numbers import MarkEvidence
from rbfdiffnet.readers.regularity import fill_share, is_more_regular
from rbfdiffnet.readers.table import Table
from rbfdiffnet.support.checks import CommandError

DAYS = [f"2024-01-{day:02d}" for day in range(1, 29)]


def table(**columns):
    return Table("a.csv", pd.DataFrame(columns), ".", "row {}".format)


def test_words_of_several_languages():
    names = ("Jahr", "ISO week", "Année", "month sales")
    assert [find_time_unit(name) for name in names] == ["year", "week", "year", ""]
    assert [mentions_weeks(name) for name in ("KW", "year_week", "month")] == [True, True, False]
    assert [mentions_time(name) for name in ("Fiscal Year", "yearling")] == [True, False]
    months = ("Mär", "févr.", "dic", "Market", "ma")
    assert [find_month(word) for word in months] == [3, 2, 12, 0, 0]
    assert [is_time_name(name) for name in ("Year", "hour", "shop")] == [True, True, False]
    assert (is_value_name("Sales"), is_value_name("CA_1")) == (True, False)
    assert (is_id_name("SKU"), is_id_name("sold")) == (True, False)


def test_how_regular_dates_are():
    days = pd.Series(pd.date_range("2024-01-01", periods=5))
    assert fill_share(days.drop(2)) == 0.8
    months = pd.Series(pd.to_datetime(["2024-05-01", "2024-04-02", "2024-06-01"]))
    assert is_more_regular(days, months)
    assert not is_more_regular(months, days)


def test_columns_by_name_and_by_cells():
    found = find_time_column(table(sold=[3], when=["2024-01-31"]), ColumnChoices())
    assert found == "when"
    numbers = table(ds=[1, 2], price=[2, 5], Sales=[3, 3])
    by_name = ("Sales", "by its name; another: --target-col")
    assert find_target_column(numbers, ColumnChoices(), ["ds"]) == by_name
    assert find_target_column(table(ds=[1], n=["x"]), ColumnChoices(), ["ds"]) == ("n", "")
    assert has_units(table(y=["12 EUR", "7 EUR"]), "y")
    assert not has_units(table(y=[12, 7]), "y")
    two = table(shop=list("aabb"), kind=list("xyxy"), ds=[1] * 4)
    assert find_id_columns(two, np.ones(4), ColumnChoices(), ["ds"]) == ["shop", "kind"]


def test_marks_by_whole_numbers_beside_them():
    assert MarkEvidence.from_cells(["1.002", "0,5"]).clear == ","
    small, large = (MarkEvidence.from_cells([n, "1.002"]) for n in ("998", "5998"))
    assert (small.unclear, small.small, small.large) == ({".": "1.002"}, True, False)
    assert small.choose_mark(";", False, set()) == ","
    assert large.choose_mark("\t", False, set()) == "."
    assert large.choose_mark(";", False, set()) == ""
    assert MarkEvidence.from_cells(["1.002"]).choose_mark("\t", False, set()) == ""


def test_names_that_are_missing_or_the_same(write):
    lines = [f"{'' if i == 3 else 'a'},{day},3" for i, day in enumerate(DAYS)]
    with pytest.raises(CommandError, match="line 5, column 'id': the name of the series is miss"):
        read_data(write("id,ds,y", *lines))
    lines = [f"{pair},{day},3" for pair in ("x/y,z", "x,y/z") for day in DAYS]
    with pytest.raises(CommandError, match="two series are called 'x/y/z'; rename one"):
        read_data(write("a,b,ds,y", *lines), ColumnChoices(ids=["a", "b"]))


def test_rows_that_no_column_names(write):
    data = read_data(write("d_1,d_2,d_3", "1,2,3", "4,5,6"))
    assert data.ids == ["row 1", "row 2"]
    path = write("id,shop,d_1,d_2,d_3", "1,a,1,2,3", "2,a,4,5,6")
    with pytest.raises(CommandError, match="line 3: there is a series 'a' already"):
        read_data(path, ColumnChoices(ids=["shop"]))
    with pytest.raises(CommandError, match="no columns named by dates or numbers"):
        read_data(write("ds,y", "2024-01-01,3"), ColumnChoices("rows"))


def test_inputs_by_series_and_date(write):
    lines = [f"{name},{day},{i}" for name in "ab" for i, day in enumerate(DAYS)]
    path = write("id,ds,y", *lines)
    later = [f"{name},2024-01-{day},{day}" for name in "abc" for day in (29, 30)]
    header = "id,ds,price"
    prices = write(header, *lines, *later, name="prices.csv")
    data = read_data(path, exog=[prices])
    assert data.frame()["price"].tolist() == [*range(28)] * 2
    assert data.future["unique_id"].tolist() == ["a", "a", "b", "b"]
    twice = write(header, *lines, lines[0], name="twice.csv")
    with pytest.raises(CommandError, match=r"line 58: there is another line for a and 2024-01-01"):
        read_data(path, exog=[twice])


def test_delimiters_too_many_at_the_end_of_some_lines(write):
    lines = [f"{day},3" + ",," * (i % 2) for i, day in enumerate(DAYS)]
    assert read_data(write("ds,y", *lines)).series.n_values == 28


@pytest.mark.parametrize("largest", [3, 40, 10**6])
def test_repeats_are_counted_by_pairs(rng, largest):
    keys = [rng.integers(-1, largest, size=200) for _ in range(3)]
    for some in (keys[:1], keys[:2], keys):
        distinct = len(set(zip(*(key.tolist() for key in some), strict=True)))
        assert count_repeats(some) == 200 - distinct


@pytest.mark.parametrize("names", ["day,night", "first,second,third", "week,weekend", "temp,hour"])
def test_decimals_under_names_of_time_are_series(write, names):
    count = len(names.split(","))
    lines = [",".join([day, *[f"{7.37 * i % 24:.2f}"] * count]) for i, day in enumerate(DAYS)]
    data = read_data(write(f"date,{names}", *lines))
    assert data.ids == names.split(",")


@pytest.mark.parametrize("minutes", ["30", "25"])
def test_clocks_written_as_numbers_are_no_series(write, minutes):
    clocks = [f"{i // 2}.{'00' if i % 2 == 0 else '30'}" for i in range(48)]
    if minutes == "25":
        clocks = [f"{i / 4}" for i in range(96)]
    times = pd.date_range("2024-01-01", periods=3 * len(clocks), freq=f"{1440 // len(clocks)}min")
    rows = zip(times, 3 * clocks, strict=True)
    data = read_data(write("ds,hour,a,b", *(f"{time},{clock},1.5,2" for time, clock in rows)))
    assert data.ids == ["a", "b"]


@pytest.mark.parametrize("header", ["date,hour,load", "date,load,hour,b"])
def test_clocks_written_as_numbers_beside_dates_are_named(write, header):
    def line(day, i):
        cells = {"date": day, "hour": f"{i / 2}", "load": f"{100 + i % 7}", "b": "2.5"}
        return ",".join(cells[name] for name in header.split(","))

    path = write(header, *(line(day, i) for day in DAYS for i in range(48)))
    for target in ([], ["load"]):
        with pytest.raises(CommandError, match=r"line 3, column 'hour': '0\.5' looks like a clock"):
            read_data(path, ColumnChoices(target=target))
    choices = ColumnChoices(repeats="sum", target=["load"])
    assert read_data(path, choices).frame()["y"].iloc[0] == sum(100 + i % 7 for i in range(48))


def test_clocks_are_no_values_beside_whole_numbers(write):
    lines = [f"{day},{100 * i},{100 + i}" for day in DAYS for i in range(24)]
    with pytest.raises(CommandError, match="name all columns that tell the series apart"):
        read_data(write("date,hour,load", *lines))

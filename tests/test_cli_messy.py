"""Files as people have them: what could be misread is read rightly, or refused."""

import pandas as pd
import pytest

from cli_files import fails
from rbfdiffnet.cli.errors import CommandError
from rbfdiffnet.cli.reading import Wanted, read_data

DAYS = pd.date_range("2023-01-01", periods=120)
ISO = DAYS.strftime("%Y-%m-%d").tolist()
GERMAN = DAYS.strftime("%d.%m.%Y").tolist()


@pytest.fixture
def write(tmp_path):
    def write_text(*lines, name="sales.csv"):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    return write_text


def values(data):
    return data.frame()["y"].tolist()


# Decimal marks ------------------------------------------------------------------------------------


def test_points_between_thousands_that_come_late(write):
    dates = pd.date_range("2020-01-01", periods=1200).strftime("%Y-%m-%d")
    cells = ["900"] * 1010 + ["1.123"] * 190
    data = read_data(write("Tag;Umsatz", *map(";".join, zip(dates, cells, strict=True))))
    assert values(data) == [900] * 1010 + [1123] * 190
    assert "'1.123' in column 'Umsatz' are read as 1123 (otherwise: --decimal .)" in data.notes[0]


def test_each_column_has_its_own_mark(write):
    rows = [f"{day};{y};0.5" for day, y in zip(ISO, ["998", "1.002"] * 60, strict=True)]
    path = write("Tag;Umsatz;Rabatt", *rows)
    assert values(read_data(path)) == [998, 1002] * 60
    assert values(read_data(path, Wanted(target="Rabatt"))) == [0.5] * 120
    mixed = [f"{day};1.234,5;0.5" for day in ISO]
    assert values(read_data(write("Tag;a;b", *mixed))) == [1234.5] * 120 + [0.5] * 120


def test_german_files_have_decimal_commas(write):
    path = write("Datum;Umsatz", *(f"{day};1.234" for day in GERMAN))
    assert values(read_data(path)) == [1234] * 120
    assert values(read_data(path, decimal=".")) == [1.234] * 120


@pytest.mark.parametrize(
    ("sep", "dates", "cells"),
    [
        ("\t", ISO, ["1.234"]),  # nothing tells
        (",", GERMAN, ["1.234"]),  # the dates say one thing, the delimiter another
        (";", ISO, ["1,234", "3"]),  # the delimiter says one thing, the whole numbers another
        (",", ISO, ["1.234", "998"]),
        (";", ISO, ["1.234", "1,234"]),
    ],
)
def test_marks_that_nothing_tells_are_asked_for(capsys, write, sep, dates, cells):
    rows = [f"{day}{sep}{cells[i % len(cells)]}" for i, day in enumerate(dates)]
    path = write(f"day{sep}y", *rows)
    message = fails(capsys, "forecast", path, "--horizon", 1)
    assert "line 2, column 'y': '1" in message
    assert "say which with --decimal . or --decimal ," in message


def test_points_in_files_with_commas_are_decimal(write):
    data = read_data(write("day,y", *(f"{day},1.234" for day in ISO)))
    assert values(data) == [1.234] * 120
    assert data.notes == ()


def test_underscores_are_no_part_of_numbers(write):
    with pytest.raises(CommandError, match="'1_0' is not a number"):
        read_data(write("day,y", *(f"{day},3" for day in ISO[:-1]), f"{ISO[-1]},1_0"))


# Names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        (["1.1", "1.10", "1.2"], ["1.1", "1.10", "1.2"]),
        (["1E2", "100", "12"], ["1E2", "100", "12"]),
        ([*map(str, range(1000, 1012)), "007", "7"], [*map(str, range(1000, 1012)), "007", "7"]),
        (["a", "b ", " c"], ["a", "b", "c"]),
    ],
)
def test_names_are_as_they_were_written(write, written, ids):
    data = read_data(write("id,ds,y", *(f"{i},{day},3" for i in written for day in ISO)))
    assert data.ids == ids
    assert data.series.n_values == 120 * len(ids)


def test_spaces_around_names_do_not_count(write):
    rows = [f"a{' ' * (i % 2)},{day},3" for i, day in enumerate(ISO)]
    assert read_data(write("id,ds,y", *rows)).ids == ["a"]


# Repeated dates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "ids"),
    [
        ("Filiale;Artikelnr;Datum;Menge", ["'Filiale'", "'Artikelnr'"]),
        ("store;artikel_nr;date;sold", ["'store'", "'artikel_nr'"]),
        ("laden;abteilung;datum;anzahl", ["'laden'", "'abteilung'"]),
    ],
)
def test_numbers_name_series_where_these_would_repeat_dates(write, header, ids):
    rows = [f"{s};{i};{day};{s + i}" for s in (1, 2) for i in (10, 20) for day in ISO]
    data = read_data(write(header, *rows))
    assert f"ids from {', '.join(ids)}" in data.source
    assert data.ids == ["1/10", "1/20", "2/10", "2/20"]
    assert data.frame().groupby("unique_id", observed=True)["y"].first().tolist() == [11, 21, 12, 22]


@pytest.mark.parametrize("first", ["", "receipt,"])
def test_several_rows_a_day_are_refused_until_told(capsys, write, first):
    rows = [
        f"{f'r{4 * k + j},' if first else ''}{shop},{day},{j + k % 7}"
        for shop in "AB"
        for k, day in enumerate(ISO)
        for j in range(4)
    ]
    path = write(f"{first}shop,date,amount", *rows)
    message = fails(capsys, "forecast", path, "--horizon", 1)
    assert "'2023-01-01' of series 'A' is on line 2 and on line 3, and 719 other rows" in message
    assert "(--id-col shop ...)" in message
    assert "--repeats sum or --repeats mean" in message
    summed = read_data(path, Wanted(repeats="sum"))
    assert summed.ids == ["A", "B"]
    assert values(summed) == [6 + 4 * (k % 7) for k in range(120)] * 2
    assert values(read_data(path, Wanted(repeats="mean"))) == [y / 4 for y in values(summed)]
    fails(capsys, "forecast", path, "--horizon", 1, "--id-col", "shop")


def test_inputs_of_joined_rows(write):
    rows = [f"{day},{y},{p},{e}" for day in ISO for y, p, e in ((1, 2, "x"), (3, 4, "x"))]
    data = read_data(write("date,sold,p,e", *rows), Wanted(repeats="sum"), exog=["p", "e"])
    assert data.frame()[["y", "p", "e"]].drop_duplicates().to_numpy().tolist() == [[4, 3, "x"]]
    assert "120 rows are added to others of the same series and date" in data.notes


def test_a_wide_file_stays_wide_with_a_repeated_date(write):
    rows = [f"{day};{i};{2 * i};{3 * i}" for i, day in enumerate(GERMAN)]
    data = read_data(write("Datum;A;B;C", *rows, f"{GERMAN[-1]};1;;5"))
    assert data.ids == ["A", "B", "C"]
    frame = data.frame().set_index(["unique_id", "ds"])["y"]
    assert [frame[c, DAYS[-1]] for c in "ABC"] == [60, 238, 181]
    assert any("1 rows are averaged" in note for note in data.notes)
    told = read_data(write("Datum;A;B;C", *rows, f"{GERMAN[-1]};1;;5"), Wanted(repeats="sum"))
    assert told.frame()["y"].iloc[-1] == 362


def test_dates_beside_columns_named_by_dates_are_attributes(write):
    rows = [f"i{k},2022-0{k + 1}-01,{','.join(str(k + i) for i in range(120))}" for k in range(3)]
    data = read_data(write(f"id,listed,{','.join(ISO)}", *rows))
    assert "ids from 'id', steps from columns '2023-01-01' to '2023-04-30'" in data.source
    assert data.series.n_values == 360

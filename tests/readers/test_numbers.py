"""Numbers as people write them: what could be misread is read rightly, or refused."""

import pandas as pd
import pytest

from cli_files import fails
from rbfdiffnet.readers import ColumnChoices, read_data
from rbfdiffnet.support.checks import CommandError

DAYS = pd.date_range("2023-01-01", periods=120)
ISO = DAYS.strftime("%Y-%m-%d").tolist()
GERMAN = DAYS.strftime("%d.%m.%Y").tolist()


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
    assert values(read_data(path, ColumnChoices(target=["Rabatt"]))) == [0.5] * 120
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


@pytest.mark.parametrize(
    ("cells", "wrong", "mark"),
    [
        (["23,48", "7,5", "0.994", "47.617"], "0.994", ","),
        (["1.234,5", "0.994"], "1.234,5", "."),
        (["-9,6", "5.7", "3.2"], "-9,6", "."),
    ],
)
def test_two_decimal_marks_in_a_column_are_refused(write, cells, wrong, mark):
    rows = [f"{day};{cells[i % len(cells)]}" for i, day in enumerate(ISO)]
    line = 2 + cells.index(wrong)
    message = f"line {line}, column 'y': '{wrong}' is not a number .*'{mark}' is the decimal mark"
    with pytest.raises(CommandError, match=message):
        read_data(write("day;y", *rows))


def test_thousands_that_only_other_cells_tell_are_said(write):
    rows = [f"{day};{['12,5', '1.234'][i % 2]}" for i, day in enumerate(ISO)]
    data = read_data(write("day;y", *rows))
    assert values(data) == [12.5, 1234] * 60
    assert data.notes[0].startswith("Numbers such as '1.234' in column 'y' are read as 1234")
    proven = [f"{day};{['12,5', '1.234', '1.234,5'][i % 3]}" for i, day in enumerate(ISO)]
    assert read_data(write("day;y", *proven)).notes == ()


def test_underscores_are_no_part_of_numbers(write):
    with pytest.raises(CommandError, match="'1_0' is not a number"):
        read_data(write("day,y", *(f"{day},3" for day in ISO[:-1]), f"{ISO[-1]},1_0"))


# Signs and spaces ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1\u2019430.75", "12.5"], [1430.75, 12.5]),
        (["1\u2009430,75", "12,5"], [1430.75, 12.5]),
        (["\u221212.5", "\u22121,430.25"], [-12.5, -1430.25]),
        (["(12,50)", "1.430,25"], [-12.5, 1430.25]),
        (["(1.430,25)", "( 3 )"], [-1430.25, -3]),
    ],
)
def test_other_spaces_and_minus_signs(write, cells, expected):
    data = read_data(write("day;y", *(f"{day};{cells[i % 2]}" for i, day in enumerate(ISO))))
    assert values(data) == expected * 60


def test_parentheses_are_said(write):
    data = read_data(write("day,y", *(f"{day},{['(7.5)', 3][i % 2]}" for i, day in enumerate(ISO))))
    assert data.notes == (
        "Numbers in parentheses are read as negative: 60 cells, the first is '(7.5)'",
    )
    with pytest.raises(CommandError, match=r"'\(x\)' is not a number"):
        read_data(write("day,y", *(f"{day},{['(x)', 3, 4][i % 3]}" for i, day in enumerate(ISO))))

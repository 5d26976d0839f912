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

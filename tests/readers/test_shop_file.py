"""A table from a shop: words among its numbers, a total, weekdays without sales."""

import pandas as pd
import pytest

from cli_files import fails, run
from rbfdiffnet.readers import read_data

DAYS = pd.date_range("2023-01-01", periods=120)
ISO = DAYS.strftime("%Y-%m-%d").tolist()
GERMAN = DAYS.strftime("%d.%m.%Y").tolist()


def values(data):
    return data.frame()["y"].tolist()


def shop(text=""):
    """Wide, with semicolons, decimal commas, umlauts, a column without a name, and a total."""
    rows = [
        f"{day};{'' if DAYS[i].day_of_week == 6 else f'1.{100 + i % 7},5'};{i % 7},5;"
        for i, day in enumerate(GERMAN)
        if i not in (17, 40)
    ]
    if text:
        rows[20] = f"{GERMAN[21]};{text};3,5;"
    return ["Datum;Käse Köln;Käse Bonn;", *rows, "Summe;132.540,5;358,0;"]


@pytest.fixture
def write_bytes(tmp_path):
    def write(lines, encoding="cp1252", start=b"\xef\xbb\xbf"):
        path = tmp_path / "umsätze.csv"
        path.write_bytes(start + "\r\n".join(lines).encode(encoding) + b"\r\n")
        return str(path)

    return write


def test_a_file_from_a_shop(write_bytes):
    data = read_data(write_bytes(shop("Inventur")), missing=["inventur"])
    assert data.source.startswith("ds from 'Datum', series from columns 'Käse Köln' to 'Käse Bonn'")
    assert data.notes == (
        "Not UTF-8: read as Windows-1252 (Latin-1)",
        "Left out: line 120, a total ('Summe')",
        "1 cell is read as missing: 'Inventur' (1)",
    )
    frame = data.frame().set_index(["unique_id", "ds"])["y"]
    assert frame["Käse Köln", DAYS[1]] == 1101.5
    assert pd.isna(frame["Käse Köln", DAYS[21]])
    assert frame.index.get_level_values("ds").max() == DAYS[-1]


def test_words_among_numbers_can_be_told_to_be_missing(capsys, write_bytes):
    lines = shop("Inventur")
    lines[30] = lines[30].rsplit(";", 2)[0] + ";nicht da;"
    message = fails(capsys, "forecast", write_bytes(lines), "--horizon", 1)
    assert "line 22, column 'Käse Köln': 'Inventur' is not a number; correct it" in message
    assert "or say --missing Inventur 'nicht da' if that means" in message
    assert "--layout" not in message


def test_mistyped_numbers_are_not_suggested_to_be_missing(capsys, write_bytes):
    message = fails(capsys, "forecast", write_bytes(shop("12a")), "--horizon", 1)
    assert "'12a' is not a number; correct it, or leave the cell empty" in message
    assert "--missing" not in message


def test_words_among_inputs_are_not_suggested_to_be_missing(capsys, write):
    rows = [f"{day},{i % 7},{'x' if i == 5 else i % 5}" for i, day in enumerate(ISO)]
    message = fails(
        capsys, "forecast", write("ds,y,price", *rows), "--horizon", 1, "--exog", "price"
    )
    assert message.endswith("'x' is not a number; correct it, or leave it out of --exog")


@pytest.mark.parametrize("command", ["forecast", "evaluate", "explain"])
@pytest.mark.parametrize("option", ["--missing", "--id-col", "--exog"])
def test_a_file_after_words_of_an_option_is_asked_for_before_them(capsys, write, command, option):
    path = write("ds,y", "2024-01-01,3")
    told = (command, "--horizon", 1, option, "Inventur")
    assert fails(capsys, *told, path).split("FILE; ")[1].startswith(f"if that is '{path}', put it")
    assert "put it first" not in fails(capsys, *told)


def test_numbers_can_stand_for_missing_values(write):
    rows = [f"{day},{-999 if i == 5 else i}" for i, day in enumerate(ISO)]
    data = read_data(write("day,y", *rows), missing=["-999"])
    assert pd.isna(values(data)[5])
    assert data.series.n_values == 119
    assert data.notes == ("1 cell is read as missing: '-999' (1)",)
    named = [f"{-999 if i % 2 else 7},{day},{i}" for i, day in enumerate(ISO)]
    assert read_data(write("id,day,y", *named), missing=["-999"]).ids == ["7", "-999"]


@pytest.mark.parametrize("cell", ["#NV", "#DIV/0!", "#WERT!", "#VALUE!", "k.A.", "n/a"])
def test_errors_of_spreadsheets_are_missing_and_counted(write, cell):
    rows = [f"{day};{cell if i in (5, 6) else i}" for i, day in enumerate(GERMAN)]
    data = read_data(write("Datum;Menge", *rows))
    assert data.series.n_values == 118
    assert data.notes == (f"2 cells are read as missing: '{cell}' (2)",)


def test_a_minus_may_come_last(write):
    rows = [f"{day};{'1.234,5-' if i == 5 else '2,5'}" for i, day in enumerate(GERMAN)]
    assert values(read_data(write("Datum;Menge", *rows)))[4:7] == [2.5, -1234.5, 2.5]


@pytest.mark.parametrize(
    "last", ["Summe;;999", ";Gesamt;999", ";Total 2023:;999", "Grand total;;9"]
)
def test_totals_at_the_end_are_left_out(write, last):
    rows = [f"{shop};{day};{i % 7}" for shop in "ab" for i, day in enumerate(GERMAN)]
    data = read_data(write("Filiale;Datum;Menge", *rows, last))
    assert data.ids == ["a", "b"]
    assert data.series.n_values == 240
    assert data.notes[0].startswith("Left out: line 242, a total ('")


def test_totals_that_have_dates_are_series(write):
    rows = [f"{shop};{day};{i % 7}" for shop in ("a", "Summe") for i, day in enumerate(GERMAN)]
    assert read_data(write("Filiale;Datum;Menge", *rows)).ids == ["a", "Summe"]


@pytest.mark.parametrize("name", ["Total", "Gesamt", "Summe", "Somme", "Grand Total"])
def test_series_that_are_totals_are_said(write, name):
    lines = [f"{day},{i % 7},{i % 5},{i % 7 + i % 5}" for i, day in enumerate(ISO)]
    said = f"'{name}' is the sum of the others, and forecast like any other series; take it out"
    (note,) = read_data(write(f"ds,a,b,{name}", *lines)).notes
    assert note.startswith(said)
    (note,) = read_data(
        write(f"ds,a,{name}", *(f"{day},{i % 7},99" for i, day in enumerate(ISO)))
    ).notes
    assert note.startswith(f"'{name}' is forecast like any other series; take it out")
    long = [f"{day},{shop},{y}" for day in ISO for shop, y in (("a", 1), ("b", 2), (name, 3))]
    (note,) = read_data(write("ds,shop,y", *long)).notes
    assert note.startswith(said)
    assert read_data(write(f"ds,{name}", *(f"{day},3" for day in ISO))).notes == ()


def test_totals_among_other_lines_are_named(capsys, write):
    rows = [f"{day};{i % 7}" for i, day in enumerate(GERMAN)]
    path = write("Datum;Menge", *rows[:31], "Summe Januar;90", *rows[31:])
    message = fails(capsys, "forecast", path, "--horizon", 1)
    assert "line 33, column 'Datum': 'Summe Januar' is not a date like the others" in message
    assert "remove the line if it is a total or a remark" in message


def test_columns_of_the_same_name_are_counted(capsys, write_bytes):
    path = write_bytes([line.replace("Käse Bonn", "Käse Köln") for line in shop()])
    message = fails(capsys, "forecast", path, "--horizon", 1)
    assert "line 1: two columns are called 'Käse Köln' (columns 2 and 3); rename one" in message


# Closed days --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["no rows", "empty"])
def test_closed_days_are_left_out_if_told(capsys, write, tmp_path, kind):
    rows = [
        f"{name},{day:%Y-%m-%d},{'' if shut else day.day_of_week + 10}"
        for name in ("open", "shut")
        for day in DAYS[:90]
        if not (shut := name == "shut" and day.day_of_week == 6) or kind == "empty"
    ]
    path = write("id,ds,y", *rows)
    out = tmp_path / "out.csv"
    told = ("forecast", path, "--horizon", 14, "--preset", "fast", "--out", out)
    code, _, err = run(capsys, *told)
    assert code == 0
    assert "series 'shut': no values on Sundays; they repeat the day before; --skip-closed" in err
    everything = pd.read_csv(out, parse_dates=["ds"])
    report = tmp_path / "r.html"
    code, _, err = run(capsys, *told, "--skip-closed", "--report", report)
    assert code == 0
    assert "no values on Sundays; their forecasts are left out" in err
    found = pd.read_csv(out, parse_dates=["ds"])
    sundays = everything["ds"].dt.day_of_week == 6
    kept = everything[~(sundays & (everything["unique_id"] == "shut"))].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, kept)
    assert len(found) == 26
    text = report.read_text(encoding="utf-8")
    assert "1 of 2 series never has a value on Sundays: these days are not forecast." in text
    assert " in sales.csv</title>" in text
    assert "Read ds from" in text


def test_closed_days_are_left_out_of_backtests_if_told(capsys, write, tmp_path):
    rows = [f"{day:%Y-%m-%d},3.{i % 9}" for i, day in enumerate(DAYS[:90]) if day.day_of_week != 6]
    out = tmp_path / "out.csv"
    path = write("ds,y", *rows)
    told = ("evaluate", path, "--horizon", 14, "--windows", 1, "--preset", "fast", "--out", out)
    code, scores, err = run(capsys, *told, "--rival-seconds", 0)
    assert code == 0
    assert "no values on Sundays; they repeat the day before; --skip-closed" in err
    everything = pd.read_csv(out, parse_dates=["ds"])
    assert (everything["ds"].dt.day_of_week == 6).sum() == 2
    code, same, err = run(capsys, *told, "--rival-seconds", 0, "--skip-closed")
    assert (code, same) == (0, scores)
    assert "no values on Sundays; their forecasts are left out" in err
    assert "--skip-closed" not in err
    kept = everything[everything["ds"].dt.day_of_week != 6].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.read_csv(out, parse_dates=["ds"]), kept)


def test_nothing_but_closed_days_is_said(capsys, write):
    rows = [f"{day:%Y-%m-%d},3.{i % 9}" for i, day in enumerate(DAYS[:91]) if day.day_of_week != 6]
    path = write("ds,y", *rows)  # ends on a Saturday
    message = fails(capsys, "forecast", path, "--horizon", 1, "--preset", "fast", "--skip-closed")
    assert "--skip-closed leaves nothing" in message
    assert "choose a larger --horizon" in message

"""Files as people have them: what could be misread is read rightly, or refused."""

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
    assert data.frame().groupby("unique_id", observed=True)["y"].first().tolist() == [
        11,
        21,
        12,
        22,
    ]


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
    summed = read_data(path, ColumnChoices(repeats="sum"))
    assert summed.ids == ["A", "B"]
    assert values(summed) == [6 + 4 * (k % 7) for k in range(120)] * 2
    assert values(read_data(path, ColumnChoices(repeats="mean"))) == [y / 4 for y in values(summed)]
    fails(capsys, "forecast", path, "--horizon", 1, "--id-col", "shop")


def test_parts_of_dates_name_no_series(capsys, write):
    quarters = write("date,dow,temp", *(f"{day},{h},{h}.5" for day in ISO[:9] for h in range(4)))
    assert "'2023-01-01' is on line 2" in fails(capsys, "forecast", quarters, "--horizon", 1)
    parts = write("year,hour,y", *(f"{2010 + i // 12},{i % 12 + 1},{i}" for i in range(120)))
    assert "--repeats" in fails(capsys, "forecast", parts, "--horizon", 1)


def test_a_few_repeated_dates_say_how_they_are_added(write):
    note = (
        "2 rows are averaged with others of the same series and date, the first on line 122 "
        "(to add them: --repeats sum)"
    )
    twice = [(day, 3) for day in ISO] + [(day, 4) for day in ISO[:2]]
    path = write("ds,shop,y", *(f"{day},a,{y}" for day, y in twice))
    assert read_data(path).notes[-1] == note
    assert values(read_data(path, ColumnChoices(repeats="sum")))[:3] == [7, 7, 3]
    assert read_data(write("ds,a,b", *(f"{day},{y},4" for day, y in twice))).notes == (note,)


def test_copies_of_rows_count_once(write):
    note = "2 rows are copies of other rows and count once (otherwise: --repeats sum)"
    path = write("ds,shop,y", *(f"{day},a,3" for day in [*ISO, *ISO[:2]]))
    assert read_data(path).notes[-1] == note
    assert values(read_data(path, ColumnChoices(repeats="sum")))[:3] == [6, 6, 3]
    rows = [f"{day},3,4" for day in [*ISO, *ISO[:2]]]
    assert read_data(write("ds,a,b", *rows)).notes == (note,)
    data = read_data(write("ds,a,b", *rows, f"{ISO[0]},6,9"))
    assert data.notes[0] == note
    assert data.notes[1].startswith("1 row is averaged with others")
    assert values(data)[:2] == [4.5, 3]


def test_rows_with_the_same_value_are_no_copies(write):
    sold = [(day, 59) for day in [*ISO, ISO[0]]] + [(ISO[0], 0), (ISO[1], 0)]
    rows = [f"{day},{i},{y}" for i, (day, y) in enumerate(sold)]
    data = read_data(write("date,order,y", *rows, rows[1]), ColumnChoices(ids=["none"]))
    assert data.notes[-2].startswith("1 row is a copy of another row and counts once")
    assert data.notes[-1].startswith("3 rows are averaged with others of the same series and date")
    assert values(data)[:3] == pytest.approx([118 / 3, 59 / 2, 59])
    assert not data.frame().duplicated(["unique_id", "ds"]).any()


def test_inputs_of_joined_rows(write):
    rows = [f"{day},{y},{p},{e}" for day in ISO for y, p, e in ((1, 2, "x"), (3, 4, "x"))]
    data = read_data(write("date,sold,p,e", *rows), ColumnChoices(repeats="sum"), exog=["p", "e"])
    assert data.frame()[["y", "p", "e"]].drop_duplicates().to_numpy().tolist() == [[4, 3, "x"]]
    assert "120 rows are added to others of the same series and date" in data.notes


def test_a_wide_file_stays_wide_with_a_repeated_date(write):
    rows = [f"{day};{i};{2 * i};{3 * i}" for i, day in enumerate(GERMAN)]
    data = read_data(write("Datum;A;B;C", *rows, f"{GERMAN[-1]};1;;5"))
    assert data.ids == ["A", "B", "C"]
    frame = data.frame().set_index(["unique_id", "ds"])["y"]
    assert [frame[c, DAYS[-1]] for c in "ABC"] == [60, 238, 181]
    assert any("1 row is averaged" in note for note in data.notes)
    told = read_data(
        write("Datum;A;B;C", *rows, f"{GERMAN[-1]};1;;5"), ColumnChoices(repeats="sum")
    )
    assert told.frame()["y"].iloc[-1] == 362


def test_dates_beside_columns_named_by_dates_are_attributes(write):
    rows = [f"i{k},2022-0{k + 1}-01,{','.join(str(k + i) for i in range(120))}" for k in range(3)]
    data = read_data(write(f"id,listed,{','.join(ISO)}", *rows))
    assert "ids from 'id', steps from columns '2023-01-01' to '2023-04-30'" in data.source
    assert data.series.n_values == 360


# Dates --------------------------------------------------------------------------------------------


def test_a_few_dates_of_another_form_keep_day_and_month(write):
    for form in ("%d.%m.%Y", "%d/%m/%Y"):
        mixed = [*ISO[:100], *DAYS[100:].strftime(form)]
        data = read_data(write("date,y", *(f"{day},{i % 7}" for i, day in enumerate(mixed))))
        assert data.frame()["ds"].tolist() == DAYS.tolist()
    few = [*ISO[:95], *DAYS[95:98].strftime("%d/%m/%Y"), *ISO[98:]]
    data = read_data(write("date,y", *(f"{day},{i % 7}" for i, day in enumerate(few))))
    assert data.frame()["ds"].tolist() == DAYS.tolist()


def test_a_day_that_no_order_allows_is_named(write):
    wrong = [*ISO[:50], "31.31.2023", *ISO[51:]]
    with pytest.raises(CommandError, match=r"line 52, column 'date': '31\.31\.2023' is not a date"):
        read_data(write("date,y", *(f"{day},{i % 7}" for i, day in enumerate(wrong))))
    with pytest.raises(CommandError, match="line 102, column 'date': '11 04 2023'"):
        read_data(write("date,y", *(f"{day},3" for day in [*ISO[:100], "11 04 2023"])))


def test_short_years(capsys, write):
    def read(form, dates=DAYS, **more):
        rows = [f"{day},{i % 7}" for i, day in enumerate(dates.strftime(form))]
        return read_data(write("date,y", *rows), ColumnChoices(**more))

    data = read("%y-%m-%d")
    assert data.frame()["ds"].tolist() == DAYS.tolist()
    assert data.notes[0].startswith("Dates such as '23-01-01' are read as year, month, day")
    assert read("%d-%m-%y").frame()["ds"].tolist() == DAYS.tolist()
    assert read("%d.%m.%y").frame()["ds"].tolist() == DAYS.tolist()
    assert read("%y%m%d").frame()["ds"].tolist() == DAYS.tolist()
    assert read("%y/%m/%d").frame()["ds"].tolist() == DAYS.tolist()
    unclear = write("date,y", "01-02-01,1", "02-02-02,2", "03-02-03,3")
    message = fails(capsys, "forecast", unclear, "--horizon", 1)
    assert "'01-02-01' may have its year first or last (say which with --dates)" in message
    told = read_data(unclear, ColumnChoices(order="ymd"), freq="D")
    assert told.frame()["ds"].iloc[0] == pd.Timestamp("2001-02-01")


MONTHS = pd.date_range("2018-11-01", periods=40, freq="MS")
SHORT = ["Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"]


@pytest.mark.parametrize(
    "cells",
    [
        MONTHS.strftime("%b-%y"),
        MONTHS.strftime("%b %y"),
        MONTHS.strftime("%B %Y"),
        MONTHS.strftime("%m.%Y"),
        MONTHS.strftime("%m/%Y"),
        [f"{day.month}.{day.year}" for day in MONTHS],
        [f"{SHORT[day.month - 1]} {day.year}" for day in MONTHS],
        [f"{SHORT[day.month - 1]}. {day:%y}" for day in MONTHS],
        [f"1. {SHORT[day.month - 1]} {day.year}" for day in MONTHS],
    ],
)
def test_months_as_people_write_them(write, cells):
    data = read_data(write("Monat;y", *(f"{cell};{i % 12}" for i, cell in enumerate(cells))))
    assert data.frame()["ds"].tolist() == MONTHS.tolist()
    assert data.freq == "MS"


def test_days_without_a_year_are_no_months(capsys, write):
    rows = [f"{day},{i % 7}" for i, day in enumerate(DAYS.strftime("%b-%d"))]
    message = fails(capsys, "forecast", write("day,y", *rows), "--horizon", 1)
    assert "line 2, column 'day': 'Jan-01' may be a day or a month of a year" in message
    assert "YYYY-MM-DD" in message


def test_weeks(write):
    mondays = pd.date_range("2019-12-30", periods=120, freq="7D")
    for form in ("%G-W%V", "%G%V"):
        rows = [f"{week},{i % 7}" for i, week in enumerate(mondays.strftime(form))]
        data = read_data(write("week,y", *rows))
        assert data.frame()["ds"].tolist() == mondays.tolist()


def test_different_offsets_are_said(write):
    local = pd.date_range("2024-03-30", periods=72, freq="h", tz="Europe/Berlin")
    data = read_data(write("time,load", *(f"{t.isoformat()},{t.hour}" for t in local)))
    assert data.notes[0] == "Times have different offsets from UTC: they are given in UTC"


def test_rows_named_by_dates_of_another_order(capsys, write):
    path = write(f"id,{','.join(GERMAN)}", f"a,{','.join('5' * 120)}", f"b,{','.join('6' * 120)}")
    message = fails(capsys, "forecast", path, "--horizon", 1, "--dates", "mdy")
    assert "column '13.01.2023' is not named by a date like the others (--dates mdy)" in message


# Inputs, indexes, units, ends ---------------------------------------------------------------------


@pytest.fixture
def calendar(write):
    later = pd.date_range("2023-01-01", periods=134)
    rows = [f"{day:%Y-%m-%d},{'fair' if day.day == 1 else ''},{day.day % 5}" for day in later]
    return write("date,event,temp", *rows, name="calendar.csv")


def test_inputs_that_no_file_has_are_an_error(capsys, write, calendar):
    path = write("ds,y", *(f"{day},{i % 7}" for i, day in enumerate(ISO)))
    message = fails(*(capsys, "forecast", path, "--horizon", 1, "--exog", calendar, "evnt", "temp"))
    assert f"--exog: 'evnt' is no input in {calendar}" in message
    assert read_data(path, exog=[calendar, "event", "temp"]).inputs == ("event", "temp")


def test_files_of_inputs_follow_the_order_of_dates(write):
    path = write("ds,y,promo", *(f"{day},{i % 7},{i % 2}" for i, day in enumerate(ISO)))
    later = pd.date_range("2023-05-01", periods=12)
    plan = write("day,promo", *(f"{day:%d/%m/%Y},1" for day in later), name="plan.csv")
    for order in (None, "dmy"):
        data = read_data(path, ColumnChoices(order=order), exog=["promo", plan])
        assert data.future["ds"].tolist() == later.tolist()
        said = [note for note in data.notes if "are read as day, month, year to suit" in note]
        assert len(said) == (order is None)
    with pytest.raises(CommandError, match="no column with the dates"):
        read_data(path, ColumnChoices(order="ymd"), exog=["promo", plan])


def test_missing_inputs_name_their_file(capsys, write):
    path = write("ds,y", *(f"{day},{i % 7}" for i, day in enumerate(ISO)))
    gaps = write("date,temp", *(f"{day},3" for i, day in enumerate(ISO) if i % 10), name="t.csv")
    message = fails(*(capsys, "forecast", path, "--horizon", 1, "--exog", gaps, "--scope", "local"))
    assert f"Column 'temp' of {gaps} has no value for" in message


def test_numbers_of_rows_are_no_names(tmp_path, write):
    frame = pd.DataFrame({"item": [1] * 120 + [2] * 120, "day": [*DAYS, *DAYS], "qty": 3.5})
    frame.sample(frac=1.0, random_state=0).to_parquet(tmp_path / "a.parquet")
    assert read_data(str(tmp_path / "a.parquet")).source.endswith("ids from 'item'")
    assert read_data(str(tmp_path / "a.parquet")).ids in (["1", "2"], ["2", "1"])
    data = read_data(write(",ds,A,B", *(f"{i},{day},1,2" for i, day in enumerate(ISO))))
    assert data.ids == ["A", "B"]


@pytest.mark.parametrize("cell", ["1.5 kg", "12 Stück", "8 h"])
def test_units_are_an_error(capsys, write, cell):
    path = write("Datum;A;B;C", *(f"{day};1;2;{cell}" for day in ISO))
    message = fails(capsys, "forecast", path, "--horizon", 1)
    assert f"line 2, column 'C': '{cell}' is not a number (119 more like it)" in message


def test_columns_with_more_text_than_numbers_are_named(write):
    rows = [f"{day};1;2;{'zu' if i % 5 else 7}" for i, day in enumerate(ISO)]
    data = read_data(write("Datum;A;B;C", *rows))
    assert data.ids == ["A", "B"]
    assert data.notes[0] == (
        "Column 'C' is no series: 96 of its cells are no numbers, the first is 'zu' on line 3"
    )


def test_series_that_ended_are_counted(write):
    rows = [f"{name},{day},3" for name, n in (("a", 120), ("b", 80), ("c", 90)) for day in ISO[:n]]
    (note,) = read_data(write("id,ds,y", *rows)).notes
    known = "2 of 3 series end before 2023-04-30 ('b', 'c'): their forecasts start after their ends"
    assert note == known
    (note,) = read_data(write("id,ds,y", *rows[:200])).notes
    known = "1 of 2 series ends before 2023-04-30 ('b'): its forecast starts after its own end"
    assert note == known


def test_a_stray_last_date_does_not_end_the_others(write):
    rows = [f"{name},{day},3" for name in "abc" for day in ISO]
    data = read_data(write("id,ds,y", *rows, "b,2023-05-07,3"))
    assert not [note for note in data.notes if "before" in note]


# Lines above the table ----------------------------------------------------------------------------


def test_lines_of_delimiters(write):
    rows = [f"{day};1;{i % 7}" for i, day in enumerate(ISO)]
    data = read_data(write(";;", "", "Datum;A;B", *rows))
    assert data.ids == ["A", "B"]
    nameless = [f"{day},{i % 7}" for i, day in enumerate(ISO)]
    assert read_data(write(",sold", *nameless)).ids == ["sold"]
    assert read_data(write("day,", *nameless)).series.n_values == 120


def test_a_column_has_one_role(capsys, write):
    path = write("ds,y", *(f"{day},3" for day in ISO))
    message = fails(
        *(capsys, "forecast", path, "--horizon", 1, "--time-col", "y", "--target-col", "y")
    )
    assert "column 'y' cannot be two of" in message


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_delimiter_may_be_told_by_the_file(tmp_path, end):
    path = tmp_path / "excel.csv"
    lines = ["sep=;", "day;y", *(f"{day};1,5" for day in ISO), "soon;3"]
    path.write_bytes(end.join(lines[:-1]).encode())
    assert values(read_data(str(path))) == [1.5] * 120
    path.write_bytes(end.join(lines).encode())
    with pytest.raises(CommandError, match="line 123, column 'day': 'soon'"):
        read_data(str(path))


def test_lines_that_repeat_the_header_are_named(write):
    rows = [f"{day},3" for day in ISO]
    with pytest.raises(CommandError, match="line 42 repeats the names of the columns; remove it"):
        read_data(write("date,y", *rows[:40], "date,y", *rows[40:]))
    with pytest.raises(CommandError, match=r"line 2 looks like the names .*'date'.* lines above"):
        read_data(write("report,2024", "date,y", *rows))

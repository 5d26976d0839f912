"""Tables as spreadsheets and R write them: months as columns, totals, titles, units, row names."""

import numpy as np
import pandas as pd
import pytest

from cli_files import fails
from rbfdiffnet.readers import ColumnChoices, read_data
from rbfdiffnet.support.checks import CommandError

MONTHS = pd.date_range("2021-01-01", periods=24, freq="MS")
GERMAN = ["Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"]


def values(data):
    return data.frame()["y"].tolist()


def sales(steps, names=("Region", "Product"), *, more="", last=()):
    """Lines of a table with a row for each region and product, and a column for each month."""
    lines = [",".join([*names, *steps]) + (f",{more}" if more else "")]
    for k, (region, product) in enumerate((r, p) for r in ("North", "South") for p in "ABC"):
        cells = {
            "Region": region,
            "Product": product,
            "SKU": f"{1000 + k}",
            "Name": region + product,
        }
        numbers = [100 * k + i for i in range(len(steps))]
        total = f',"{30 * sum(numbers) + 1000:,}"' if more else ""
        lines.append(",".join([*(cells[n] for n in names), *map(str, numbers)]) + total)
    return [*lines, *last]


PAIRS = ["North/A", "North/B", "North/C", "South/A", "South/B", "South/C"]


# Months as columns ----------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("Region", "Product", "SKU"), ("Region", "Product"), ("Name",)])
@pytest.mark.parametrize(
    "steps",
    [
        MONTHS.strftime("%b-%y"),
        MONTHS.strftime("%b %Y"),
        MONTHS.strftime("%b-%Y"),
        MONTHS.strftime("%d-%b-%y"),
        [f"{GERMAN[day.month - 1]}-{day:%y}" for day in MONTHS],
        [f"{GERMAN[day.month - 1]} {day:%Y}" for day in MONTHS],
    ],
)
def test_columns_are_months_as_people_write_them(write, steps, names):
    for layout in (None, "rows"):
        data = read_data(write(*sales(steps, names)), ColumnChoices(layout))
        assert (data.freq, data.series.n_series) == ("MS", 6)
        assert data.frame()["ds"].tolist() == [*MONTHS] * 6
        assert values(data)[-24:] == [500 + i for i in range(24)]
    told = read_data(
        write(*sales(steps, ("Region", "Product"))), ColumnChoices(ids=["Product", "Region"])
    )
    assert told.ids[:2] == ["A/North", "B/North"]


def test_days_of_one_month_are_counted(write):
    days = [f"Jan-{i:02d}" for i in range(1, 25)]
    assert read_data(write(*sales(days, ("Name",)))).frame()["ds"].tolist() == [*range(1, 25)] * 6


def test_a_step_that_was_given_is_not_asked_for(capsys, write):
    lines = [f"{shop},{kind},{i}" for i, (shop, kind) in enumerate(("ax", "ay", "bx"))]
    told = ("--horizon", 1, "--id-col", "shop", "kind", "--freq", "MS")
    message = fails(capsys, "forecast", write("shop,kind,y", *lines), *told)
    assert "--freq MS: " in message
    assert "has no dates, and no series has two rows to count; name the column of dates" in message


# Totals ---------------------------------------------------------------------------------------

ISO = MONTHS.strftime("%Y-%m")


def last(names, *cells):
    return ",".join([*cells, *[""] * (names - len(cells)), *["900"] * 24, '"1,000,000"'])


@pytest.mark.parametrize("total", ["Total", "Grand Total", "Summe", "Average"])
@pytest.mark.parametrize("told", [(), ("Region", "Product")])
def test_columns_and_lines_of_totals_name_no_series(write, total, told):
    lines = sales(ISO, more=total, last=[last(2, "Subtotal"), last(2, "Grand Total")])
    data = read_data(write(*lines), ColumnChoices(ids=told))
    assert data.ids == PAIRS
    assert data.notes == (
        "Left out: line 8, a total ('Subtotal')",
        "Left out: line 9, a total ('Grand Total')",
        f"Not used: '{total}'",
    )


def test_numbers_name_the_series_beside_a_line_of_totals(write):
    lines = sales(ISO, ("Region", "Product", "SKU"), more="Total", last=[last(3, "Grand Total")])
    data = read_data(write(*lines))
    assert (data.ids[0], data.series.n_series) == ("1000", 6)
    assert "Left out: line 8, a total ('Grand Total')" in data.notes


def test_a_total_with_all_names_is_a_series(write):
    named = sales(ISO, ("Name",), more="Total", last=[last(1, "Grand Total")])
    data = read_data(write(*named))
    assert data.ids[-1] == "Grand Total"
    assert any("'Grand Total' is forecast like any other" in note for note in data.notes)
    remarks = ["name,remark,2021,2022,2023", "a,new,1,2,3", "b,,2,3,4", "Total,,3,5,7"]
    assert read_data(write(*remarks)).ids == ["a", "b", "Total"]
    full = [line.replace("b,,", "b,old,") for line in remarks]
    assert read_data(write(*full)).ids == ["a", "b"]
    assert read_data(write(*full), ColumnChoices(ids=["name"])).ids == ["a", "b", "Total"]


def test_numbers_that_are_not_whole_name_rows_only_where_nothing_else_does(write):
    lines = ["price,2021,2022,2023", "1.5,1,2,3", "2.5,2,3,4"]
    assert read_data(write(*lines)).ids == ["1.5", "2.5"]
    kinds = [f"{line},{kind}" for line, kind in zip(lines, ("kind", "x", "y"), strict=True)]
    assert read_data(write(*kinds)).ids == ["x", "y"]
    told = read_data(write(*kinds), ColumnChoices(ids=["price"]))
    assert told.ids == ["1.5", "2.5"]


# Lines above the table ------------------------------------------------------------------------

DAYS = pd.date_range("2023-01-01", periods=120).strftime("%Y-%m-%d").tolist()
ROWS = [f"{day};1;{i % 7}" for i, day in enumerate(DAYS)]


@pytest.mark.parametrize(
    ("above", "note"),
    [
        (["Umsatzbericht 2023;;"], "1 line above the names of the columns ('Umsatzbericht 2023')"),
        (
            ["Umsatzbericht 2023", ""],
            "1 line above the names of the columns ('Umsatzbericht 2023')",
        ),
        (["", "Umsatz, je Tag", "Stand;2024-01-05", ";;"], "2 lines above the names"),
        (["sep=;", "Umsatz"], "1 line above"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_titles_above_the_table_are_left_out(tmp_path, above, note, end):
    path = tmp_path / "a.csv"
    path.write_text(end.join([*above, "Datum;Köln;Bonn", *ROWS, ""]), newline="")
    data = read_data(str(path))
    assert (data.ids, values(data)[:120]) == (["Köln", "Bonn"], [1] * 120)
    assert data.notes[0].startswith(f"Left out: {note}")
    path.write_text(end.join([*above, "Datum;Köln;Bonn", *ROWS, "soon;1;2"]), newline="")
    with pytest.raises(CommandError, match=f"line {len(above) + 122}, column 'Datum': 'soon'"):
        read_data(str(path))


def test_titles_above_columns_of_dates(write):
    data = read_data(write("Sales,by month", "", *sales(ISO)))
    assert data.ids == PAIRS
    years = ["Sales", "shop,2021,2022,2023", "a,1,2,3", "b,4,5,6"]
    assert read_data(write(*years)).ids == ["a", "b"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["Umsatz", *(row.replace(";", ",") for row in ROWS)],
            "has 3 cells but the header 1",
        ),
        (["Umsatz", "a,1,2", "b,3,4"], "has 3 cells but the header 1"),
        (["Umsatz", "a,1950,2010", "b,1960,2011"], "has 3 cells but the header 1"),
        (["Umsatz;2023;netto", "Datum;A;B", *ROWS], "line 2 looks like the names of the columns"),
        (["Umsatz", "Datum;A;A", *ROWS], r"line 1 has one cell \('Umsatz'\)"),
        (["Umsatz", "Datum;A;B", *(f"{row};9" for row in ROWS)], "line 1 has one cell"),
    ],
)
def test_lines_above_what_may_be_no_table_are_refused(write, lines, message):
    with pytest.raises(CommandError, match=message):
        read_data(write(*lines))


# Units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "unit"),
    [
        ("{:,.2f} €", "€"),
        ("€ {:,.2f}", "€"),
        ("${:,.2f}", "$"),
        ("{:,.2f}%", "%"),
        ("{:,.2f}\u00a0%", "%"),
        ("CHF {:,.2f}", "CHF"),
        ("R$ {:,.2f}", "R$"),
    ],
)
@pytest.mark.parametrize("marks", [",.", ".,"])
def test_a_unit_that_all_numbers_share_is_left_out(write, form, unit, marks):
    def read(*numbers, header="Datum;Umsatz", **more):
        swap = str.maketrans(",.", marks)
        cells = (form.format(y).translate(swap) for y in numbers)
        rows = [f"{day};{cell}" for day, cell in zip(DAYS, cells, strict=True)]
        return read_data(write(header, *rows, *more.pop("last", ())), **more)

    numbers = [2076.68 + i for i in range(120)]
    data = read(*numbers)
    assert values(data) == pytest.approx(numbers)
    assert f"Numbers in column 'Umsatz' are read without their unit, '{unit}'" in data.notes
    closed = read(*numbers, last=["2023-05-01;geschlossen"], missing=["geschlossen"])
    assert values(closed) == pytest.approx(numbers)
    with pytest.raises(CommandError, match=r"line 122.*'geschlossen' is not a number; .*missing"):
        read(*numbers, last=["2023-05-01;geschlossen", "2023-05-02;-;"])


def test_units_of_several_columns_and_signs(write):
    cells = ["(€ 5);7%", "-€ 3;8%", "€ -2;9%", "4 €-;-1%"] * 30
    rows = [f"{day};{cell};1" for day, cell in zip(DAYS, cells, strict=True)]
    data = read_data(write("Datum;A;B;C", *rows))
    assert data.frame().groupby("unique_id", observed=True)["y"].unique().map(list).to_dict() == {
        "A": [-5, -3, -2, -4],
        "B": [7, 8, 9, -1],
        "C": [1],
    }
    assert data.notes == (
        "Numbers in column 'A' are read without their unit, '€'",
        "Numbers in column 'B' are read without their unit, '%'",
        "Numbers in parentheses are read as negative: 30 cells, the first is '(€ 5)'",
    )
    rows = [f"{day};{';'.join(['5%'] * 4)}" for day in DAYS]
    note = "Numbers in 4 columns ('A', 'B', 'C', ...) are read without their unit, '%'"
    assert read_data(write("Datum;A;B;C;D", *rows)).notes == (note,)


@pytest.mark.parametrize("other", ["0", "5 $", "5 kg", "€ 5 €"])
def test_units_that_differ_are_an_error(write, other):
    rows = [f"{day};{other if i == 70 else '5 €'}" for i, day in enumerate(DAYS)]
    with pytest.raises(CommandError, match="line 2, column 'y': '5 €' is not a number"):
        read_data(write("Datum;y", *rows))
    assert values(read_data(write("Datum;y", *rows), missing=[other]))[69:72] == pytest.approx(
        [5, float("nan"), 5], nan_ok=True
    )


@pytest.mark.parametrize("zero", ["$ -", "$-", "- $", "$ \u2013"])
def test_a_unit_with_a_dash_may_be_zero(write, zero):
    path = write("date,y", *(f"{day},{zero if i == 70 else '$5'}" for i, day in enumerate(DAYS)))
    with pytest.raises(CommandError, match=r"is not a number; write 0 as '\$0' .* say --missing"):
        read_data(path)
    assert np.isnan(values(read_data(path, missing=[zero]))[70])


@pytest.mark.parametrize("names", [("5%", "10%"), ("$5", "$10")])
@pytest.mark.parametrize("target", ["sold", "revenue"])
def test_numbers_with_a_unit_may_name_series(write, names, target):
    sold = "${}" if target == "revenue" else "{}"
    rows = [f"{n},{day},{sold.format(i % 50)}" for n in names for i, day in enumerate(DAYS)]
    data = read_data(write(f"plan,date,{target}", *rows))
    assert data.ids == [*names]
    assert data.source.startswith(f"ds from 'date', y from '{target}'")


def test_units_of_names_inputs_and_parquet_files(write, tmp_path):
    rows = [f"{day},{rate},{k}" for k, rate in enumerate(("10%", "20%")) for day in DAYS]
    path = write("date,rate,sold", *rows)
    assert read_data(path, ColumnChoices(ids=["rate"])).ids == ["10%", "20%"]
    path = write("date,sold,rate", *(f"{day},3,{i % 9}%" for i, day in enumerate(DAYS)))
    data = read_data(path, exog=["rate"])
    assert data.frame()["rate"].tolist() == [i % 9 for i in range(120)]
    assert "Numbers in column 'rate' are read without their unit, '%'" in data.notes
    frame = pd.DataFrame({"date": pd.to_datetime(DAYS), "sold": "$1,250.50"})
    frame.to_parquet(tmp_path / "a.parquet")
    assert values(read_data(str(tmp_path / "a.parquet"))) == [1250.5] * 120


# Names of rows --------------------------------------------------------------------------------


def number_rows(rows, form='"{}",{}'):
    return [form.format(i + 1, row) for i, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ('"date","y"', number_rows(f'"{day}",{i % 7}' for i, day in enumerate(DAYS))),
        ('"date","n","y"', number_rows(f'"{day}",{i},{i % 7}' for i, day in enumerate(DAYS))),
        ("date,y", number_rows((f"{day},{i % 7}" for i, day in enumerate(DAYS)), "{},{}")),
        ("date;y", number_rows((f"{day};{i % 7}" for i, day in enumerate(DAYS)), "{};{}")),
    ],
)
def test_names_of_rows_need_no_name_in_the_header(write, header, rows):
    data = read_data(write(header, *rows), ColumnChoices(target=["y"]))
    assert data.frame()["ds"].dt.strftime("%Y-%m-%d").tolist() == DAYS
    assert (data.ids, values(data)) == (["y"], [i % 7 for i in range(120)])
    note = "Lines have one cell more than there are names: the first names the rows"
    assert note in data.notes
    broken = write(header, *rows[:-1], f"{rows[-1][:-1]}low")
    with pytest.raises(CommandError, match="line 121, column 'y': 'low' is not a number"):
        read_data(broken, ColumnChoices(target=["y"]))


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("date,y", "{},{},5"),  # a decimal comma
        ("x,y", "{},{},5"),
        ("date,sold,town", "{},{},Boston, MA"),
        ("kind,y", "a,{},{}.5"),  # names of rows differ
        ("Stichtag;Menge", "{};5;{}"),  # the last name may be missing
        ("x,y", "{},0.5,{}"),
    ],
)
def test_a_cell_more_that_is_no_name_of_a_row_is_an_error(write, header, form):
    rows = [form.format(day, i) for i, day in enumerate(DAYS)]
    with pytest.raises(CommandError, match="cells but the header"):
        read_data(write(header, *rows))


@pytest.mark.parametrize("form", ["%b %Y", "%d.%m.%Y", "%y-%m-%d", "%Y-W%V"])
def test_dates_are_no_names_of_rows(write, form):
    months = pd.date_range("2020-01-01", periods=9, freq="MS").strftime(form)
    with pytest.raises(CommandError, match="line 2 has 3 cells but the header 2; name all columns"):
        read_data(write("Month;Menge", *(f"{month};5;100" for month in months)))


def test_each_row_must_have_a_name(write):
    rows = number_rows(f'"{day}",3.5' for day in DAYS * 20)
    rows[1500] = '"2024-01-01",3.5'
    with pytest.raises(CommandError, match="line 2 has 3 cells but the header 2"):
        read_data(write('"date","y"', *rows))


# Times of computers, clocks, parts of dates ---------------------------------------------------

HOURS = pd.date_range("2024-01-01", periods=96, freq="h")


@pytest.mark.parametrize(
    ("n", "form"), [(1, "{}.5,{},1.5"), (1000, "{}.25,{},1"), (1, "{},5;{};1")]
)
def test_seconds_since_1970_may_have_decimals(write, n, form):
    rows = [form.format(int(hour.timestamp()) * n, i % 24) for i, hour in enumerate(HOURS)]
    data = read_data(write("time;a;b" if ";" in form else "time,a,b", *rows))
    assert (data.ids, data.freq) == (["a", "b"], "h")
    late = pd.Timedelta("0.5s") if n == 1 else pd.Timedelta("250us")
    assert data.frame()["ds"].tolist() == [hour + late for hour in HOURS] * 2
    assert "are read as times in UTC" in data.notes[0]


@pytest.mark.parametrize("name", ["ts", "timestamp", "epoch", "time"])
@pytest.mark.parametrize("n", [1, 10**3, 10**6, 10**9])
def test_seconds_since_1970_are_dates(write, name, n):
    stamps = [int(hour.timestamp()) * n for hour in HOURS]
    path = write(f"{name},a,b", *(f"{t},{i % 24},1" for i, t in enumerate(stamps)))
    data = read_data(path)
    assert (data.ids, data.freq) == (["a", "b"], "h")
    assert data.frame()["ds"].tolist() == [*HOURS] * 2
    note = f"Numbers such as {stamps[0]} are read as times in UTC, this one as 2024-01-01 00:00:00"
    assert f"{note} (otherwise: --time-col)" in data.notes
    assert read_data(path, ColumnChoices(time=["none"], target=["a"])).freq == 1


def test_other_large_numbers_count_steps(write):
    data = read_data(write("ts,y", *(f"{10**8 + i},{i % 7}" for i in range(50))))
    assert (data.freq, data.ids) == (1, ["y"])


@pytest.mark.parametrize("name", ["hour", "Time", "Uhrzeit"])
@pytest.mark.parametrize("clock", ["{:d}", "{:02d}.30", "{:02d}:30"])
def test_clocks_are_no_series(write, name, clock):
    rows = [f"{day};{clock.format(i % 24)};{i};{i % 7}" for i, day in enumerate(DAYS)]
    path = write(f"date;{name};a;b", *rows)
    data = read_data(path)
    assert data.ids == ["a", "b"]
    assert f"Not used: '{name}'" in data.notes
    if ":" not in clock:
        assert read_data(path, ColumnChoices(target=[name, "b"])).ids == [name, "b"]


def test_hours_that_were_worked_are_a_series(write):
    rows = [f"{day};{20 + i % 9}.5;{i % 7}" for i, day in enumerate(DAYS)]
    assert read_data(write("date;hour;b", *rows)).ids == ["hour", "b"]


@pytest.mark.parametrize(
    ("unit", "cell", "message"),
    [
        ("month", "13", "'13' is no month"),
        ("month", "", "the month is missing"),
        ("month", "Jully", "'Jully' is no month"),
        ("day", "32", "'32' is no day"),
        ("year", "202", "'202' is no year"),
    ],
)
@pytest.mark.parametrize("told", [False, True])
def test_a_cell_that_is_no_part_of_a_date_is_named(write, unit, cell, message, told):
    parts = {"year": "%Y", "month": "%m", "day": "%d"}
    rows = [[pd.Timestamp(day).strftime(form) for form in parts.values()] for day in DAYS]
    rows[30][[*parts].index(unit)] = cell
    path = write("year,month,day,y", *(",".join([*row, str(i % 7)]) for i, row in enumerate(rows)))
    with pytest.raises(CommandError, match=f"line 32, column '{unit}': {message}; correct it"):
        read_data(path, ColumnChoices(time=[*parts] if told else []))


def test_parts_that_are_not_needed_may_be_wrong(write):
    dated = [f"{day},{day[:4]},{13 if i == 5 else day[5:7]},3" for i, day in enumerate(DAYS)]
    assert read_data(write("date,year,month,y", *dated)).freq == "D"
    ends = [
        f"{day.year},{day.month},{day.days_in_month if i else ''},{i}"
        for i, day in enumerate(MONTHS)
    ]
    assert read_data(write("year,month,day,y", *ends)).freq == "MS"
    frost = [f"{1950 + i},{40 + i % 9 if i else ''},{i % 7}" for i in range(30)]
    assert read_data(write("year,week,y", *frost), ColumnChoices(target=["y"])).freq == "YS"


@pytest.mark.parametrize(
    "header",
    [
        "date,Mar-24,Jun-24,Sep-24,Dec-24",
        "Datum,Mär-24,Jun-24,Sep-24,Dez-24",
        "Stichtag,Open interest,Mar-24,Jun-24,Sep-24",
        "date,May 2020,April 2019,June 2018,weekday",
        "id,date,2021-01,2021-02,2021-03,2021-04",
    ],
)
def test_rows_with_dates_of_their_own_are_no_series(write, header):
    names = header.split(",")
    day = next(i for i, name in enumerate(names) if name in ("date", "Datum", "Stichtag"))
    cells = {"weekday": lambda i: "SMTWTFS"[i % 7], "id": str}
    lines = [
        ",".join(
            f"2024-02-{i + 1:02d}" if k == day else cells.get(name, lambda i: f"{i}.5")(i)
            for k, name in enumerate(names)
        )
        for i in range(20)
    ]
    data = read_data(write(header, *lines))
    assert data.ids == [c for c in names if c not in (names[day], "weekday", "id")]
    assert data.notes[0] == (
        f"Rows are the dates in '{names[day]}', though columns are named by dates, too "
        "(otherwise: --layout rows)"
    )


@pytest.mark.parametrize("last", ["2024-02-20,97.5,9,9,9", "Total,99.5,9,9,9"])
def test_a_repeated_date_or_a_total_does_not_turn_a_table(write, last):
    lines = [f"2024-02-{i + 1:02d},{i}.5,1,2,3" for i in range(20)]
    data = read_data(write("date,Open interest,Mar-24,Jun-24,Sep-24", *lines, last))
    assert data.ids == ["Open interest", "Mar-24", "Jun-24", "Sep-24"]


@pytest.mark.parametrize("name", ["item", "id"])
def test_dates_beside_names_of_rows_are_attributes(write, name):
    lines = [f"{i},2024-02-{3 * i % 20 + 1:02d},1,2,3" for i in range(20)]
    if name == "item":
        lines = [f"x{line}" for line in lines]
    data = read_data(write(f"{name},date,Jan-24,Feb-24,Mar-24", *lines))
    assert data.source.startswith(f"ids from '{name}', steps from columns 'Jan-24'")

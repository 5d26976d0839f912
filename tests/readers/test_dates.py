"""Dates in pieces: numbers, weeks, months and days as tables have them."""

import pandas as pd
import pytest

from cli_files import fails
from rbfdiffnet.readers import ColumnChoices, read_data
from rbfdiffnet.support.checks import CommandError

DAYS = pd.date_range("2023-01-01", periods=120)


def dates(data):
    return data.frame()["ds"].tolist()


def values(data):
    return data.frame()["y"].tolist()


def rows(cells, sep=","):
    return [f"{cell}{sep}{i % 7}" for i, cell in enumerate(cells)]


# Whole numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["%d%m%Y", "%m%d%Y"])
def test_eight_digits_that_end_in_a_year(write, form):
    cells = DAYS.strftime(form)
    for written in (cells, [cell.lstrip("0") for cell in cells]):
        data = read_data(write("date,y", *rows(written)))
        assert dates(data) == DAYS.tolist()
        example = DAYS[30].strftime(form)
        assert data.notes[0] == (
            f"Numbers such as {example} are read as dates, this one as 2023-01-31"
        )


def test_eight_digits_of_an_unclear_order_are_said_and_can_be_told(write):
    path = write("date,y", *rows(DAYS[:12].strftime("%d%m%Y")))
    data = read_data(path)
    assert dates(data) == DAYS[:12].tolist()
    assert "Dates such as '02012023' are read as day, month, year" in data.notes[0]
    assert read_data(path, ColumnChoices(order="mdy")).freq == "MS"


def test_eight_digits_that_are_no_dates_are_steps(write):
    data = read_data(write("step,y", *rows(range(10_000_000, 10_000_060))))
    assert data.freq == 1


# Weeks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("week", "%G%V"),
        ("Woche", "%V/%G"),
        ("year_week", "%G-%V"),
        ("Semaine", "%V.%G"),
        ("Datum", "KW %V/%G"),
        ("period", "W%V-%G"),
        ("when", "%G-W%V"),
        ("when", "%G KW%V"),
    ],
)
@pytest.mark.parametrize("n", [12, 120])  # twelve could be months
def test_weeks_by_their_words(write, name, form, n):
    mondays = pd.date_range("2024-01-01", periods=n, freq="7D")
    data = read_data(write(f"{name},y", *rows(mondays.strftime(form))))
    assert dates(data) == mondays.tolist()
    said = any("are read as" in note and "weeks" in note for note in data.notes)
    assert said == ("W" not in form)


def test_rows_named_by_weeks(write):
    names = [f"KW {week:02d}/2024" for week in range(1, 53)]
    data = read_data(write(f"Filiale;{';'.join(names)}", f"007;{';'.join('5' * 52)}"))
    assert (data.freq, data.ids) == ("W", ["007"])


def test_the_same_numbers_are_months_under_other_names(write):
    cells = [f"2024{month:02d}" for month in range(1, 13)]
    assert read_data(write("month,y", *rows(cells))).freq == "MS"
    assert read_data(write("date,y", *rows(cells))).freq == "MS"


# Two notations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [120, 730])  # over whole years they fill each other's gaps
@pytest.mark.parametrize("form", ["%Y-%d-%m", "%m/%d/%Y"])
@pytest.mark.parametrize("mixed", [False, True])
def test_days_and_months_that_a_spreadsheet_exchanged_are_refused(write, n, form, mixed):
    days = pd.date_range("2023-01-01", periods=n)
    cells = [day.strftime(form if day.day <= 12 else "%d/%m/%Y") for day in days]
    lines = rows(cells)
    if mixed and n == 120:
        lines = lines[60:] + lines[:60]
    message = "'.*' may have its day and month exchanged, unlike '13/0[13]/2023'.*--dates"
    path = write("date,y", *lines)
    with pytest.raises(CommandError, match=message):
        read_data(path)
    assert read_data(path, ColumnChoices(order="dmy")).series.n_values == n


def test_hours_in_any_order_keep_day_and_month(write):
    hours = pd.date_range("2023-01-01", periods=8760, freq="h")
    kept = hours[(hours.hour * 7 + hours.day_of_year) % 8 > 0]  # an eighth is missing
    shuffled = kept[pd.Series(range(len(kept))).sample(frac=1.0, random_state=0)]
    data = read_data(write("time,y", *rows(shuffled.strftime("%d/%m/%Y %H:%M"))))
    assert sorted(dates(data)) == kept.tolist()


def test_two_notations_that_agree_are_said(write):
    cells = [*DAYS[:60].strftime("%Y-%m-%d"), *DAYS[60:].strftime("%d/%m/%Y")]
    data = read_data(write("date,y", *rows(cells)))
    assert dates(data) == DAYS.tolist()
    assert data.notes == ("Dates are written in two ways, such as '2023-01-01' and '13/03/2023'",)
    shuffled = [cells[i * 7 % 120] for i in range(120)]
    assert len(read_data(write("date,y", *rows(shuffled))).notes) == 1


# Months and quarters ------------------------------------------------------------------------------

LANGUAGES = {
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "fr, short": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "es": "enero febrero marzo abril mayo junio julio agosto sept. octubre nov. dic.",
    "it": "gen feb mar apr mag giu lug ago set ott nov dic",
    "nl": "jan feb mrt apr mei jun jul aug sep okt nov dec",
}


@pytest.mark.parametrize("names", LANGUAGES.values(), ids=LANGUAGES)
@pytest.mark.parametrize("form", ["{name} {year}", "{name}-{short}", "1 {name} {year}"])
def test_months_of_other_languages(write, names, form):
    months = pd.date_range("2018-11-01", periods=40, freq="MS")
    cells = [
        form.format(name=names.split()[day.month - 1], year=day.year, short=f"{day:%y}")
        for day in months
    ]
    data = read_data(write("Mois;y", *rows(cells, ";")))
    assert dates(data) == months.tolist()


@pytest.mark.parametrize(
    "form", ["Q{q} {year}", "{year}Q{q}", "{year}-Q{q}", "Q{q}/{year}", "T{q} {year}"]
)
def test_quarters(write, form):
    quarters = pd.date_range("2015-01-01", periods=20, freq="QS")
    cells = [form.format(q=day.quarter, year=day.year) for day in quarters]
    assert dates(read_data(write("quarter,y", *rows(cells)))) == quarters.tolist()


@pytest.mark.parametrize("letter", "HSP")
def test_other_parts_of_years_are_refused(capsys, write, letter):
    cells = [f"{letter}{part} {year}" for year in range(2015, 2025) for part in (1, 2)]
    message = fails(capsys, "forecast", write("when,y", *rows(cells)), "--horizon", 1)
    assert "no column of dates" in message


def test_months_with_little_words(write):
    cells = [f"{name} de {year}" for year in (2019, 2020) for name in LANGUAGES["es"].split()]
    assert read_data(write("fecha,y", *rows(cells))).freq == "MS"


def test_words_that_begin_like_months_are_none(write):
    lines = [f"{name},{day:%Y-%m-%d},3" for name in ("Market 2024", "Genf 2024") for day in DAYS]
    data = read_data(write("place,when,y", *lines))
    assert data.ids == ["Market 2024", "Genf 2024"]


# Dates in parts -----------------------------------------------------------------------------------

MONTHS = pd.date_range("2019-01-01", periods=48, freq="MS")


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("year,month,y", "%Y,%m"),
        ("Jahr,Monat,y", "%Y,%B"),
        ("mois,année,y", "%m,%Y"),
        ("Year,Quarter,Month,y", "%Y,1,%b"),
    ],
)
def test_years_and_months_are_joined(write, header, form):
    data = read_data(write(header, *rows(MONTHS.strftime(form))))
    assert dates(data) == MONTHS.tolist()
    assert data.notes[0].startswith("Dates are joined from '")
    assert data.notes[0].endswith(", the first is 2019-01 (otherwise: --time-col)")


def test_other_parts_are_joined(write):
    mondays = pd.date_range("2022-01-03", periods=100, freq="7D")
    for header, form in (("Jahr,KW,y", "%G,%V"), ("year,week_no,y", "%G,W%V")):
        assert dates(read_data(write(header, *rows(mondays.strftime(form))))) == mondays.tolist()
    data = read_data(write("y,year,month,day", *(f"3,{day:%Y,%m,%d}" for day in DAYS)))
    assert dates(data) == DAYS.tolist()
    quarters = pd.date_range("2015-01-01", periods=20, freq="QS")
    lines = [f"{day.year},Q{day.quarter},5" for day in quarters]
    assert dates(read_data(write("year,quarter,y", *lines))) == quarters.tolist()


def test_parts_of_several_series_are_joined(write):
    lines = [f"{day:%Y;%m};{shop};1.234,5" for shop in "AB" for day in MONTHS]
    data = read_data(write("Jahr;Monat;Filiale;Umsatz", *lines))
    assert data.ids == ["A", "B"]
    assert dates(data) == [*MONTHS, *MONTHS]


def test_parts_that_make_no_date_are_named(write):
    lines = [*rows(MONTHS.strftime("%Y,%m,28")), "2024,2,30,5"]
    with pytest.raises(CommandError, match=r"line 50, column 'year . month . day': '2024-02-30'"):
        read_data(write("year,month,day,y", *lines))

    lines = [f"{year},{week},3" for year in (2020, 2021) for week in range(1, 54)]
    with pytest.raises(CommandError, match=r"line 107, column 'Jahr . KW': '2021-W53'"):
        read_data(write("Jahr,KW,y", *lines))


def test_years_of_another_name_name_no_series(capsys, write):
    path = write("Fiscal Year,Month,y", *rows(MONTHS.strftime("%Y,%m")))
    assert "name all columns that tell" in fails(capsys, "forecast", path, "--horizon", 1)


def test_parts_beside_dates_are_not_joined(write):
    data = read_data(write("year,month,date,y", *rows(MONTHS.strftime("%Y,%m,%Y-%m-%d"))))
    assert "ds from 'date', y from 'y'" in data.source


NAMES = "Jan,Feb,Mar,Apr,May,Jun,Jul,Aug,Sep,Oct,Nov,Dec"


def years(first, n=12):
    return [f"{year},{','.join(str(year % 10 * n + i) for i in range(n))}" for year in first]


@pytest.mark.parametrize("name", ["Year", "Jahr", ""])
def test_a_row_for_each_year_and_a_column_for_each_month(write, name):
    data = read_data(write(f"{name},{NAMES},Total", *(f"{y},9" for y in years(range(2013, 2018)))))
    frame = data.frame()
    assert (data.freq, data.ids) == ("MS", ["value"])
    assert frame["ds"].tolist() == pd.date_range("2013-01-01", periods=60, freq="MS").tolist()
    assert frame["y"].tolist() == list(range(36, 96))
    assert data.notes == (
        "Rows are years and columns months, the first date is 2013-01 (otherwise: --layout)",
        "Not used: 'Total'",
    )


def test_rows_of_years_of_several_series(write):
    lines = [f"{shop},{row}" for shop in "AB" for row in years(range(2013, 2018))]
    data = read_data(write(f"store,year,{NAMES}", *lines))
    assert (data.ids, data.series.n_values, data.freq) == (["A", "B"], 120, "MS")
    with pytest.raises(CommandError, match="line 3, column 'year': there is a row of '2013'"):
        read_data(write(f"year,{NAMES}", *years([2013, 2013])))
    told = read_data(
        write(f"year,{NAMES}", *years(range(2013, 2018))), ColumnChoices(layout="wide")
    )
    assert told.freq == "YS"


def test_years_that_are_not_over_and_quarters(write):
    data = read_data(write(f"Year,{NAMES}", *years([2013, 2014]), "2015,1,2,3,,,,,,,,,"))
    assert data.notes[1] == "The last 9 dates have no values and are left out"
    quarters = read_data(write("Year,Q1,Q2,Q3,Q4", *years(range(2013, 2018), 4)))
    assert (quarters.freq, values(quarters)) == ("QS", list(range(12, 32)))


def test_a_row_for_each_month_and_a_column_for_each_year(capsys, write):
    lines = [f"{name},{i},{i + 12},{i + 24}" for i, name in enumerate(NAMES.split(","))]
    data = read_data(write("Month,2013,2014,2015", *lines))
    assert (data.freq, values(data)) == ("MS", list(range(36)))
    lines = [f"{day:%m-%d},1,2,3" for day in DAYS]
    message = fails(capsys, "forecast", write("date,2013,2014,2015", *lines), "--horizon", 1)
    assert "line 2, column 'date': '01-01' has no year" in message


def test_weeks_that_a_year_does_not_have(write):
    lines = [f"{week},1,{'' if week == 53 else 2}" for week in range(1, 54)]
    data = read_data(write("KW,2020,2021", *lines))
    assert (data.freq, values(data)) == ("W", [1] * 53 + [2] * 52)
    with pytest.raises(CommandError, match="line 54, column '2021': there is no 2021-W53"):
        read_data(write("KW,2020,2021", *lines[:-1], "53,1,2"))


def test_shops_with_numbers_like_years_are_no_years(capsys, write):
    path = write(f"Store,{NAMES}", *years(range(2013, 2018)))
    assert "no column of dates" in fails(capsys, "forecast", path, "--horizon", 1)

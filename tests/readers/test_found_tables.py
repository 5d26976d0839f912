"""Tables as R, pandas and browsers write them: the right column is forecast, at the right dates."""

import numpy as np
import pandas as pd
import pytest

from cli_files import fails, run
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.readers import ColumnChoices, read_data
from rbfdiffnet.readers.dates import parse_times
from rbfdiffnet.support.checks import CommandError

N = 48
MONTHS = pd.date_range("2019-01-01", periods=N, freq="MS")
LEVEL = [round(10 + 3 * np.sin(i) + i % 5, 2) for i in range(N)]


@pytest.fixture
def read(tmp_path):
    """Write columns to a file, and read series from it."""

    def read_columns(columns, exog=(), **choices):
        path = tmp_path / "a.csv"
        pd.DataFrame(columns).to_csv(path, index=False)
        return read_data(str(path), ColumnChoices(**choices), exog=exog)

    return read_columns


def values(data):
    return data.frame()["y"].tolist()


@pytest.mark.parametrize(("first", "step"), [(2**64 - 60, 1), (10**30, 1), (1e30, 1e16)])
def test_numbers_of_steps_that_no_integer_holds_never_turn_into_others(read, first, step):
    cells = [first + i * step for i in range(N)]
    assert read({"ds": cells, "y": LEVEL}).frame()["ds"].tolist() == [*range(1, N + 1)]
    months = read({"year": cells, "month": range(1, N + 1), "y": LEVEL})
    assert months.frame()["ds"].tolist() == [*range(1, N + 1)]


# Counters -------------------------------------------------------------------------------------

COUNTERS = ["rownames", "X", "index", "id", "#", "row", "No.", "obs", "t", "Unnamed: 0", ""]


@pytest.mark.parametrize("name", COUNTERS)
@pytest.mark.parametrize("numbers", [range(1, N + 1), range(N), range(N, 0, -1)])
def test_a_counter_is_no_target_and_no_series(read, name, numbers):
    data = read({name: numbers, "month": MONTHS, "level": LEVEL})
    assert (data.ids, values(data)) == (["level"], LEVEL)
    wide = read({"month": MONTHS, "a": LEVEL, name: numbers, "b": LEVEL})
    assert wide.ids == ["a", "b"]


@pytest.mark.parametrize("name", ["t", "index", "obs"])
def test_a_counter_that_restarts_is_no_target(read, name):
    shops = np.repeat(["a", "b"], N)
    data = read({name: [*range(N)] * 2, "month": [*MONTHS] * 2, "shop": shops, "level": LEVEL * 2})
    assert (data.ids, values(data)) == (["a", "b"], LEVEL * 2)


def test_labels_of_rows_need_not_be_counted(read):
    data = read({"rownames": np.arange(N) ** 2, "month": MONTHS, "level": LEVEL})
    assert data.ids == ["level"]
    places = read({"rownames": np.arange(N) / 2, "a": LEVEL, "b": LEVEL})
    assert places.ids == ["a", "b"]
    years = read({"rownames": range(1950, 1950 + N), "level": LEVEL})
    assert (years.ids, years.freq) == (["level"], "YS")
    shuffled = read({"rowid": np.arange(N) * 5 % N, "month": MONTHS, "level": LEVEL})
    assert shuffled.ids == ["level"]


@pytest.mark.parametrize("name", ["rowid", "id"])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e99])
def test_values_with_the_name_of_a_label_are_a_series(read, name, size):
    other = [size * (3.5 + i * 5 % N) for i in range(N)]
    data = read({"month": MONTHS, "a": LEVEL, name: other}, layout="wide")
    assert data.ids == ["a", name]
    assert values(data) == pytest.approx(LEVEL + other, rel=1e-15)


def test_numbers_with_the_name_of_a_counter_may_be_series(read):
    three = np.repeat(MONTHS, 3)
    data = read({"id": [1, 2, 3] * N, "month": three, "x": LEVEL * 3})
    assert (data.ids, data.target) == (["1", "2", "3"], "'x'")
    assert read({"month": MONTHS, "index": LEVEL}).target == "'index'"
    assert read({"month": MONTHS, "n": range(N)}).target == "'n'"  # there is nothing else
    told = read({"month": MONTHS, "t": range(N), "level": LEVEL}, target=["t"])
    assert values(told) == [*range(N)]


def test_counters_name_rows_only_where_nothing_else_does(read):
    steps = {f"d_{i}": LEVEL[:4] for i in range(1, 6)}
    two = {"country": list("aabb"), "kind": list("xyxy")}
    rows = {"rownames": range(1, 5)}
    assert read({**rows, **two, **steps}).ids == ["a/x", "a/y", "b/x", "b/y"]
    assert read({**rows, "country": list("aabb"), **steps}).ids == ["1", "2", "3", "4"]
    assert read({"id": range(1, 5), **steps}).ids == ["1", "2", "3", "4"]


def test_counters_of_other_files_are_no_inputs(read, tmp_path):
    later = pd.date_range(MONTHS[0], periods=N + 3, freq="MS")
    prices = {"rownames": range(1, N + 4), "month": later, "price": range(5, N + 8)}
    pd.DataFrame(prices).to_csv(tmp_path / "prices.csv", index=False)
    data = read({"month": MONTHS, "y": LEVEL}, exog=[str(tmp_path / "prices.csv")])
    assert data.inputs == ("price",)


# What is forecast -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "right"),
    [
        ({"year": MONTHS.year, "count": LEVEL, "rate": LEVEL}, "count"),
        ({"weeks_reporting": [4] * N, "deaths": LEVEL}, "deaths"),
        ({"day_of_month": [1, 2] * (N // 2), "deaths": LEVEL}, "deaths"),
        ({"store_zip": [10115] * N, "is_open": [1, 0] * (N // 2), "visits": LEVEL}, "visits"),
        ({"open": LEVEL, "high": LEVEL, "low": LEVEL, "close": LEVEL, "volume": LEVEL}, "close"),
    ],
)
def test_the_column_that_people_mean(read, others, right):
    two = {name: [*column] * 2 for name, column in others.items()}
    data = read({"date": [*MONTHS] * 2, "state": np.repeat(["A", "B"], N), **two})
    assert (data.target, data.ids) == (f"'{right}'", ["A", "B"])


def test_how_the_column_was_chosen_is_said_in_the_first_line(capsys, read, write):
    shops = {"date": [*MONTHS] * 2, "shop": np.repeat(["a", "b"], N)}
    data = read({**shops, "takings": LEVEL * 2, "rooms": LEVEL * 2})
    first = "y from 'takings' (the first of 2 columns of numbers; another: --target-col)"
    assert first in data.describe()
    data = read({**shops, "rooms": LEVEL * 2, "sales": LEVEL * 2})
    assert "y from 'sales' (by its name; another: --target-col)" in data.describe()
    assert "y from 'rooms', ids" in read({**shops, "rooms": LEVEL * 2}).describe()
    lines = [f"{month:%Y-%m},{level},{level}" for month, level in zip(MONTHS, LEVEL, strict=True)]
    path = write("month,a,b", *lines)
    _, out, _ = run(capsys, "forecast", path, "--horizon", 1, "--preset", "fast")
    assert "(layout wide; fewer: --target-col)" in out.splitlines()[0]


def test_target_columns_of_wide_tables(capsys, read, write):
    table = {"month": MONTHS, "a": LEVEL, "b": range(N), "c": LEVEL}
    assert read(table, layout="wide", target=["b"]).ids == ["b"]
    data = read(table, target=["c", "b"])
    assert (data.ids, data.target) == (["c", "b"], "'c', 'b'")
    assert "Not used: 'a'" in data.notes
    with pytest.raises(CommandError, match="--target-col a b: several columns are series of a"):
        read(table, ids=["c"], target=["a", "b"])
    lines = [f"{month:%Y-%m},{level},1" for month, level in zip(MONTHS, LEVEL, strict=True)]
    told = ("--horizon", 1, "--layout", "wide", "--target-col", "a", "--preset", "fast")
    _, out, _ = run(capsys, "forecast", write("month,a,b", *lines), *told)
    assert "series from columns 'a' (layout wide), 1 series" in out.splitlines()[0]


@pytest.mark.parametrize(
    ("layout", "role", "option"),
    [("wide", "ids", "--id-col"), ("rows", "time", "--time-col"), ("rows", "target", "--target")],
)
def test_options_that_a_layout_has_no_place_for_are_refused(read, layout, role, option):
    with pytest.raises(CommandError, match=f"{option}.* a: with --layout {layout} there is no"):
        read({"month": MONTHS, "a": LEVEL}, layout=layout, **{role: ["a"]})


def test_parts_of_dates_are_no_series_of_wide_tables(read):
    parts = {"year": MONTHS.year, "day_of_week": MONTHS.day_of_week, "D": range(5, N + 5)}
    data = read({"date": MONTHS, **parts, "a": LEVEL})
    assert data.ids == ["D", "a"]


def test_one_series_can_be_told(read):
    table = {"date": MONTHS, "shop": ["a", "b"] * (N // 2), "y": LEVEL}
    assert read(table).ids == ["a", "b"]
    assert read(table, ids=["none"]).ids == ["y"]


def test_remarks_and_clocks_name_no_series(read):
    dates = [*MONTHS[:-1], MONTHS[-2]]
    table = {"date": dates, "Time": ["38:31:00", "41:05:00"] * (N // 2), "y": LEVEL}
    assert read({**table, "shoe": [None, "old"] * (N // 2)}).ids == ["y"]
    ends = [f"{month:%Y-%m}-28" for month in [*MONTHS[1:], MONTHS[0]]]
    assert read({"date": dates, "paid": ends, "y": LEVEL}).ids == ["y"]


# Dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "per_year", "digits", "expected"),
    [
        (1920, 12, 10, pd.date_range("1920-01-01", periods=N, freq="MS")),
        (1920.5, 12, 2, pd.date_range("1920-07-01", periods=N, freq="MS")),
        (1958 + 0.5 / 12, 12, 4, pd.date_range("1958-01-01", periods=N, freq="MS")),
        (1960, 4, 2, pd.date_range("1960-01-01", periods=N, freq="QS")),
        (1991.1, 365.25 / 7, 8, pd.date_range("1991-02-06", periods=N, freq="7D")),
        (2001, 365.25, 8, pd.date_range("2001-01-01", periods=N, freq="D")),
        (2001, 8766, 8, pd.date_range("2001-01-01", periods=N, freq="h")),
    ],
)
def test_decimal_years_are_dates(read, start, per_year, digits, expected):
    cells = [f"{start + i / per_year:.{digits}f}" for i in range(N)]
    data = read({"rownames": range(1, N + 1), "time": cells, "value": LEVEL})
    assert data.frame()["ds"].tolist() == expected.tolist()
    assert any("are read as dates, this one as" in note for note in data.notes)


def test_other_numbers_with_a_point_are_no_decimal_years():
    months = parse_times(pd.Series(["2023.11", "2023.12", "2024.01"]))
    assert months.values.dt.month.tolist() == [11, 12, 1]
    months = parse_times(pd.Series([f"{1947 + m / 100:g}" for m in range(1, 13)]))
    assert months.values.dt.month.tolist() == [*range(1, 13)]  # 1947.1 is October
    uneven = parse_times(pd.Series(["1990.0", "1990.013", "1990.2", "1991.1"]))
    assert len(uneven.bad)


def test_tables_without_dates_are_in_the_order_of_time(read):
    data = read({"DAX": LEVEL, "SMI": LEVEL})
    assert "ds from the order of the rows" in data.source
    assert data.frame()["ds"].tolist() == [*range(1, N + 1)] * 2
    assert any("Rows are taken in the order of" in note for note in data.notes)
    data = read({"rownames": range(3, N + 3), "x": LEVEL})
    assert (data.frame()["ds"].iloc[0], data.ids) == (3, ["x"])
    weeks = [f"{1 + (i + 3) / 7:.5f}" for i in range(N)]
    assert read({"rownames": range(N), "time": weeks, "value": LEVEL}).ids == ["value"]
    assert read({"V1": LEVEL, "V2": LEVEL, "V3": LEVEL}).ids == ["V1", "V2", "V3"]


def test_row_order_is_told_where_names_may_be_of_several_series(read):
    table = {"shop": ["a", "b"] * (N // 2), "x": LEVEL}
    with pytest.raises(CommandError, match=r"no column of dates .* \(--id-col shop, or --id-col"):
        read(table)
    data = read(table, ids=["shop"])
    assert data.frame()["ds"].tolist() == [*range(1, N // 2 + 1)] * 2
    assert read(table, ids=["none"]).ids == ["x"]
    dated = {"date": MONTHS, "x": LEVEL}
    assert read(dated, time=["none"]).freq == 1
    with pytest.raises(CommandError, match=r"--time-col none: rows of .* may be of several series"):
        read({"shop": "a", **dated}, time=["none"])


def test_rows_of_the_same_step_are_added(read):
    table = {"t": [*range(N)] * 2, "a": LEVEL * 2, "b": LEVEL * 2}
    data = read(table, layout="wide", repeats="sum")
    assert values(data) == [2 * level for level in LEVEL] * 2


def test_steps_that_are_counted_are_named_in_messages(read):
    with pytest.raises(CommandError, match="the step of time cannot be told"):
        read({"rownames": ["00:30"], "x": ["00:30"], "y": [1]}, ids=["rownames", "x"])


@pytest.mark.parametrize("name", [None, "", "Unnamed: 0", "column 1", "COLUMN 1"])
def test_a_column_without_a_name_has_the_years(write, name):
    path = write(",0", *(f"{1821 + i},{level}" for i, level in enumerate(LEVEL)))
    data = read_data(path, ColumnChoices(time=[] if name is None else [name]))
    assert (data.freq, data.ids, values(data)) == ("YS", ["0"], LEVEL)


@pytest.mark.parametrize("freq", ["MS", "D"])
def test_midnights_that_a_browser_wrote_in_utc_lose_no_rows(read, freq):
    days = pd.date_range("2000-01-01", periods=122, freq=freq, tz="America/Los_Angeles")
    cells = days.tz_convert("UTC").strftime("%Y-%m-%dT%H:%M:%S.000Z")
    data = read({"date": cells, "year": days.year, "count": np.arange(122) % 7})
    panel = Panel.from_frame(data.frame(), freq=data.freq)
    assert (data.freq, np.isfinite(panel.y).sum(), len(panel.y)) == (freq, 122, 122)


def test_whole_dates_win_over_their_parts(read):
    hours = pd.date_range("2013-01-01 05:00", periods=N, freq="h")
    parts = {"year": hours.year, "month": hours.month, "day": hours.day}
    stamps = hours.strftime("%Y-%m-%dT%H:%M:%SZ")
    data = read({"origin": "JFK", **parts, "temp": LEVEL, "time_hour": stamps})
    assert (data.freq, data.target) == ("h", "'temp'")
    remarks = {"year": range(1950, 1950 + N), "remark": [None] * (N - 1) + ["a"], "y": LEVEL}
    assert read(remarks).freq == "YS"
    founded = read({"year": range(1950, 1950 + N), "founded": "1931-05-01", "y": LEVEL})
    assert founded.freq == "YS"
    steps = read({"YEAR": range(1950, 1950 + N), "a": LEVEL, "b": LEVEL, "TIME": range(1, N + 1)})
    assert (steps.freq, steps.ids) == ("YS", ["a", "b"])


def test_parts_of_dates_can_be_told(capsys, read, write):
    table = {"date": [f"{2019 + i / 12:.3f}" for i in range(N)], "year": MONTHS.year}
    table |= {"month": MONTHS.month, "y": LEVEL}
    assert read(table).frame()["ds"].tolist() == MONTHS.tolist()
    for names in (["year", "month"], ["Month", "Year"]):
        data = read(table, time=names)
        assert data.frame()["ds"].tolist() == MONTHS.tolist()
        assert "Dates are joined from 'year' and 'month', the first is 2019-01" in data.notes
    with pytest.raises(CommandError, match=r"--time-col year y: 'year', 'y' of .* make no dates"):
        read(table, time=["year", "y"])
    lines = [f"{day:%Y,%m},{level}" for day, level in zip(MONTHS, LEVEL, strict=True)]
    told = ("--horizon", 1, "--time-col", "year", "month", "--preset", "fast")
    code, out, _ = run(capsys, "forecast", write("year,month,y", *lines), *told)
    assert (code, "monthly (MS)" in out) == (0, True)
    assert "put it first" in fails(capsys, "forecast", "--horizon", 1, "--time-col", "y", __file__)


@pytest.mark.parametrize("told", [[], ["date", "hour"]])
@pytest.mark.parametrize("form", ["{:d}", "{:02d}:00"])
def test_hours_beside_dates(read, told, form):
    days = np.repeat(pd.date_range("2024-02-27", periods=2).strftime("%d.%m.%Y"), 24)
    hours = [form.format(hour) for hour in [*range(24)] * 2]
    data = read({"date": days, "hour": hours, "load": LEVEL}, time=told)
    expected = pd.date_range("2024-02-27", periods=N, freq="h").tolist()
    assert (data.freq, data.frame()["ds"].tolist()) == ("h", expected)


def test_hours_from_1_to_24_begin_at_midnight(read):
    days = np.repeat(pd.date_range("2024-02-27", periods=2), 24)
    data = read({"date": days, "hour": [*range(1, 25)] * 2, "load": LEVEL})
    assert data.frame()["ds"].iloc[0] == pd.Timestamp("2024-02-27")


def test_hours_that_are_never_open_can_be_left_out(read):
    hours = pd.date_range("2024-01-01", periods=24 * 14, freq="h")
    hours = hours[(hours.hour >= 7) & (hours.hour < 19) & (hours.day_of_week < 5)]
    table = {"time": hours, "calls": np.arange(len(hours)) % 12}
    note = (
        "Days have values at 12 of 24 times only, but all times are forecast; to count rows "
        "instead: --time-col none --season-length 12"
    )
    assert note in read(table).notes
    assert read(table, time=["none"]).frame()["ds"].tolist() == [*range(1, len(hours) + 1)]
    whole = pd.date_range("2024-01-01", periods=24 * 14, freq="h")
    assert read({"time": whole, "calls": np.arange(len(whole)) % 12}).notes == ()


def test_the_report_says_what_is_forecast(capsys, write, tmp_path):
    lines = [f"{i},{day:%Y-%m},{i % 12}" for i, day in enumerate(MONTHS)]
    path, report = write("rownames,month,deaths", *lines), tmp_path / "r.html"
    told = ("--horizon", 1, "--preset", "instant", "--report", report)
    assert run(capsys, "forecast", path, *told)[0] == 0
    assert "<title>Forecasts of &#x27;deaths&#x27; in sales.csv</title>" in report.read_text()

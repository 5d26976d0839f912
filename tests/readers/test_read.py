import gzip
import io
import sys

import numpy as np
import pandas as pd
import pytest

from cli_files import days, fails, panel, run
from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.readers import ColumnChoices, read_data
from rbfdiffnet.readers.dates import parse_times
from rbfdiffnet.readers.files import read_table
from rbfdiffnet.readers.read import describe_frequency
from rbfdiffnet.readers.table import first_cells, is_text
from rbfdiffnet.support.checks import CommandError


def known(data):
    """The long frame with plain columns, sorted."""
    frame = data.frame().astype({"unique_id": str, "y": float})
    return frame.sort_values(["unique_id", "ds"], ignore_index=True)


def lines(frame, form="%Y-%m-%d", sep=",", number="{:.3f}"):
    dates = frame["ds"].dt.strftime(form)
    return [f"{d}{sep}{number.format(y)}" for d, y in zip(dates, frame["y"], strict=True)]


# Layouts ------------------------------------------------------------------------------------------


def test_three_layouts_hold_the_same_series(tmp_path):
    long = panel()
    wide = long.pivot(index="ds", columns="unique_id", values="y").rename_axis(columns=None)
    rows = wide.T.rename_axis("name").rename(columns=lambda date: date.strftime("%Y-%m-%d"))
    shuffled = long.sample(frac=1.0, random_state=0)
    for name, frame in (
        ("long", shuffled),
        ("wide", wide.reset_index()),
        ("rows", rows.reset_index()),
    ):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        frame.to_csv(tmp_path / f"{name}.csv.gz", index=False)
        frame.to_parquet(tmp_path / f"{name}.parquet", index=False)
        for suffix in ("csv", "csv.gz", "parquet"):
            data = read_data(str(tmp_path / f"{name}.{suffix}"))
            pd.testing.assert_frame_equal(
                known(data), known_frame(long), check_dtype=False, rtol=1e-12
            )
            assert (data.freq, data.season_length) == ("D", 7)
            assert f"layout {name}" in data.source or name == "long"


def known_frame(frame):
    return frame.sort_values(["unique_id", "ds"], ignore_index=True)


def test_rows_counted_like_those_of_m5(write):
    path = write("id,item_id,store_id,d_1,d_2,d_10", "a_1,a,1,5,6,7", "b_1,b,1,,8,9")
    data = read_data(path, freq="D")
    assert "ids from 'id', steps from columns 'd_1' to 'd_10' (layout rows)" in data.source
    assert (data.freq, data.season_length) == (1, 7)
    frame = known(data)
    assert frame["ds"].tolist() == [1, 2, 10, 2, 10]
    assert frame["y"].tolist() == [5, 6, 7, 8, 9]
    assert data.notes == ("Not used: 'item_id', 'store_id'",)


def test_counted_rows_end_with_their_last_value_and_have_no_season(write):
    data = read_data(write("V1,V2,V3,V4,V5", "a,1,2,3,4", "b,5,6,,", "c,,,,"))
    assert known(data).groupby("unique_id").size().to_dict() == {"a": 4, "b": 2, "c": 1}
    assert any("--season-length" in note for note in data.notes)


def test_wide_columns_are_series_unless_one_is_named_like_a_value(write):
    body = [f"{line},{i % 5}" for i, line in enumerate(lines(days(20)))]
    assert read_data(write("day,north,south", *body)).ids == ["north", "south"]
    data = read_data(write("day,sold,price", *body))
    assert data.ids == ["sold"]
    assert data.notes == ("Not used: 'price'",)
    assert read_data(write("day,sold,price", *body), ColumnChoices(layout="wide")).ids == [
        "sold",
        "price",
    ]
    assert read_data(write("day,a,b", *body), ColumnChoices(target=["b"])).ids == ["b"]


def test_as_few_columns_as_needed_name_the_series(write):
    body = [
        f"{store},{state},{item},{line}"
        for store, state in (("s1", "CA"), ("s2", "CA"))
        for item in ("x", "y")
        for line in lines(days(10))
    ]
    data = read_data(write("store,state,item,day,sold", *body))
    assert data.ids == ["s1/x", "s1/y", "s2/x", "s2/y"]
    assert "ids from 'store', 'item'" in data.source
    chosen = read_data(
        write("store,state,item,day,sold", *body), ColumnChoices(ids=["state", "store", "item"])
    )
    assert chosen.ids[0] == "CA/s1/x"


def test_zeros_before_ids_are_kept(write):
    body = [f"{sku},{line}" for sku in ("007", "012") for line in lines(days(10))]
    assert read_data(write("sku,day,sold", *body)).ids == ["007", "012"]


def test_whole_numbers_stay_small(tmp_path):
    values = np.arange(40, dtype=np.int16).reshape(2, 20)
    frame = pd.DataFrame(values, columns=[f"d_{i}" for i in range(1, 21)])
    frame.insert(0, "id", ["a", "b"])
    frame.to_parquet(tmp_path / "a.parquet")
    data = read_data(str(tmp_path / "a.parquet"))
    assert data.series.values.dtype == np.int16
    assert data.frame()["y"].dtype == np.float32
    large = frame.assign(d_1=[123_456_789, 5])
    large.to_parquet(tmp_path / "a.parquet")
    assert read_data(str(tmp_path / "a.parquet")).frame()["y"].iloc[0] == 123_456_789


# Numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1.234,5", "7", "-0,25", ""], [1234.5, 7, -0.25, np.nan]),
        (["1,234.5", "7", "-0.25", "n/a"], [1234.5, 7, -0.25, np.nan]),
        (["1 234,50", "12\u00a0345,5", "7,25", "-"], [1234.5, 12345.5, 7.25, np.nan]),
        (["1'234.50", "7.25", "3", "NULL"], [1234.5, 7.25, 3, np.nan]),
        (["1.234.567", "1.000", "5", "6"], [1234567, 1000, 5, 6]),
        (["1e3", "2.5E-1", "+4", "5"], [1000, 0.25, 4, 5]),
    ],
)
def test_numbers_as_people_write_them(write, cells, expected):
    body = [f"2024-01-0{i + 1};{cell}" for i, cell in enumerate([*cells, "1"])]
    np.testing.assert_array_equal(read_data(write("ds;y", *body)).frame()["y"], [*expected, 1])


def test_marks_that_could_be_either_are_said_and_can_be_told(write):
    path = write("ds;y", "2024-01-01;1,234", "2024-01-02;2,345", "2024-01-03;")
    data = read_data(path)
    assert data.frame()["y"].dropna().tolist() == [1.234, 2.345]
    (note,) = data.notes[:1]
    assert note == (
        "Numbers such as '1,234' in column 'y' are read as 1.234 (otherwise: --decimal .)"
    )
    assert read_data(path, decimal=".").frame()["y"].dropna().tolist() == [1234, 2345]
    quoted = write("ds,y", '2024-01-01,"1,234"', "2024-01-02,7", "2024-01-03,3")
    assert read_data(quoted).frame()["y"].tolist() == [1234, 7, 3]


# Dates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%y", "%Y%m%d", "%Y/%m/%d", "%d %b %Y", "%Y-%m-%dT%H:%M:%S"],
)
def test_forms_of_dates(write, form):
    frame = days(60)
    data = read_data(write("date,y", *lines(frame, form, number="{:.2f}")))
    assert known(data)["ds"].tolist() == frame["ds"].tolist()
    assert data.notes == ()


@pytest.mark.parametrize("cell", ["0024-01-09", "9999-12-31", "0024-01-09 00:00+01:00"])
def test_dates_of_other_centuries_are_no_dates(cell):
    cells = pd.Series([cell, cell.replace(cell[:4], "2024")])
    assert parse_times(cells, None).bad.tolist() == [0]


@pytest.mark.parametrize("form", ["%Y%m", "%b %Y", "%Y-%m", "%d/%m/%Y"])
def test_months(write, form):
    frame = days(30).assign(ds=pd.date_range("2015-01-01", periods=30, freq="MS"))
    data = read_data(write("date,y", *lines(frame, form)))
    assert known(data)["ds"].tolist() == frame["ds"].tolist()
    assert data.freq == "MS"


@pytest.mark.parametrize(("sep", "order"), [("/", "mdy"), (".", "dmy")])
def test_ambiguous_dates_are_said_and_can_be_told(write, sep, order):
    body = [f"01{sep}{i:02d}{sep}2024,{i}" for i in range(1, 13)]
    data = read_data(write("date,y", *body))
    month_first = order == "mdy"
    assert data.freq == ("D" if month_first else "MS")
    other = "dmy" if month_first else "mdy"
    (note,) = data.notes
    assert note.startswith(f"Dates such as '01{sep}02{sep}2024' are read as")
    assert f"--dates {other}" in note
    told = read_data(write("date,y", *body), ColumnChoices(order=other))
    assert told.freq == ("MS" if month_first else "D")
    assert told.notes == ()


def test_years_quarters_weeks_and_steps(write):
    yearly = read_data(write("year,y", *(f"{1990 + i},{i % 5}" for i in range(30))))
    assert yearly.freq == "YS"
    quarters = (f"{1990 + i // 4}Q{1 + i % 4},{i % 5}" for i in range(30))
    assert read_data(write("date,y", *quarters)).freq == "QS"
    weeks = read_data(write("week,y", *(f"2024-W{i:02d},{i}" for i in range(1, 20))))
    assert weeks.freq == "W"
    steps = read_data(write("t,y", *(f"{i},{i % 5}" for i in range(3, 30))))
    assert (steps.freq, steps.frame()["ds"].iloc[0]) == (1, 3)


def test_hours_over_a_change_of_clocks(write):
    local = pd.date_range("2024-03-30", periods=72, freq="h", tz="Europe/Berlin")
    body = [f"{date.isoformat()},{10 + i % 24}" for i, date in enumerate(local)]
    data = read_data(write("time,load", *body))
    assert data.freq == "h"
    assert data.series.n_values == 72


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_encodings(write, encoding):
    body = [f"Größe,{line}" for line in lines(days(10))]
    data = read_data(write("name,day,sold", *body, encoding=encoding))
    assert data.ids == ["Größe"]
    assert bool(data.notes) == (encoding == "cp1252")


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_delimiters_blank_lines_and_trailing_ones(write, sep):
    body = lines(days(10), sep=sep, number="{:.2f}")
    expected = known(read_data(write(f"ds{sep}y", *body)))
    messy = write("", f"ds{sep}y", "", *(f"{line}{sep}" for line in body), "")
    pd.testing.assert_frame_equal(known(read_data(messy)), expected)


@pytest.mark.parametrize("cells", [1, 12, 50])
def test_a_large_file_is_read_piece_by_piece(write, monkeypatch, cells):
    days = pd.date_range("2024-01-01", periods=20).strftime("%Y-%m-%d")
    columns = {
        "words": ["a", " b", "c d", ""] * 5,
        "late words": [*range(15), *"vwxyz"],
        "missing words": [""] * 12 + ["a"] * 8,
        "all different": [f"n{i}" for i in range(20)],
        "whole": range(20),
        "whole, then not": [*range(15), *(0.5, 1.5, "", 7, 8)],
        "whole, none, large": [*range(10), "", *[2**53 + 1] * 9],
        "larger": [*range(10), *[2**63 + 1] * 10],
        "too large": [*range(10), *[10**30] * 10],
        "yes": ["True", "False"] * 10,
        "yes or nothing": ["True", "False"] * 7 + [""] * 6,
        "nothing": [""] * 20,
    }
    rows = zip(days, *columns.values(), strict=True)
    path = write(
        ",".join(["ds", *(f'"{name}"' for name in columns)]), *(",".join(map(str, r)) for r in rows)
    )
    whole = read_table(path)
    monkeypatch.setattr("rbfdiffnet.readers.files._CELLS_AT_ONCE", cells)
    found = read_table(path)
    assert found.columns == whole.columns
    for name in whole.columns:
        one, other = found.frame[name], whole.frame[name]
        assert is_text(one) == is_text(other), name
        assert one.dtype == other.dtype or is_text(one), name
        pd.testing.assert_series_equal(one.astype(object), other.astype(object), check_dtype=False)
        assert found.text(name).tolist() == whole.text(name).tolist()
    assert isinstance(found.frame["words"].dtype, pd.CategoricalDtype)
    assert found.locate_row(3) == whole.locate_row(3) == "line 5"


def test_the_first_cells_are_those_that_are_not_missing():
    cells = pd.Series([np.nan] * 30 + list(range(50)) + [np.nan] * 9)
    for n in (1, 3, 40, 50, 60):
        pd.testing.assert_series_equal(first_cells(cells, n), cells.dropna().head(n))


def test_standard_input(capsys, monkeypatch):
    text = "\n".join(["\ufeffds,y", "", *lines(days(30))]).encode()
    for data in (text, gzip.compress(text)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code, out, _ = run(capsys, "forecast", "-", "--horizon", 1, "--scope", "local")
        assert code == 0
        assert "ds from 'ds', y from 'y', 1 series, daily (D)" in out


GOOD = lines(days(10))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([""], "sales.csv is empty"),
        (["ds,y"], "header but no values"),
        (GOOD, "line 1 looks like data"),
        (["a,2024-01-01,50.1", "a,2024-01-02,9"], "line 1 looks like data ('a,2024-01-01,50.1')"),
        (["a;2024-01;50", "a;2024-02;9"], "line 1 looks like data ('a;2024-01;50')"),
        (["y,y", *GOOD], "two columns are called 'y'"),
        (["a,b", "x,1", "y,2", "z,3"], "no column of dates (columns: 'a', 'b')"),
        (["ds,a,b", "2024-01-01,x,u", "2024-01-02,y,v"], "no column of numbers"),
        (["ds,y", *GOOD[:7], "2024-01-08,12a"], "line 9, column 'y': '12a' is not a number"),
        (["ds,y", "", *GOOD[:7], "2024-01-08,12a"], "line 10, column 'y': '12a' is not a number"),
        (["ds,y", *GOOD[:7], "2024-01-08,1e200"], "line 9, column 'y': '1e+200' is too large"),
        (["ds,y", *GOOD[:7], "soon,3"], "line 9, column 'ds': 'soon' is not a date"),
        (["ds,y", *GOOD[:7], ",3"], "line 9, column 'ds': the date is missing"),
        (["ds,y", *GOOD, *GOOD], "'2024-01-01' is on line 2 and on line 12"),
        (["ds,y", "2024-01-01,1,5", "2024-01-02,2"], "line 2 has 3 cells but the header 2"),
        (["ds,y", "2024-01-01,1"], "the step of time cannot be told"),
        (["ds,a,b", "2024-01-01,1,2", "2024-01-01,3,4", "2024-01-03,3,4"], "is on line 2 and on"),
    ],
)
def test_bad_file_is_explained_in_one_line(capsys, write, body, message):
    assert message in fails(capsys, "forecast", write(*body), "--horizon", 1)


def test_a_number_column_with_text_says_how_many(write):
    path = write("ds,y", *GOOD, "2024-01-11,x", "2024-01-12,y")
    with pytest.raises(CommandError, match=r"'x' is not a number \(1 more like it\); correct it"):
        read_data(path)


def test_unreadable_files(capsys, tmp_path):
    def message(path):
        return fails(capsys, "forecast", path, "--horizon", 1)

    assert "no file 'nowhere.csv'" in message("nowhere.csv")
    assert "is a folder; name a file in it" in message(tmp_path)
    broken = tmp_path / "a.parquet"
    broken.write_bytes(b"PAR1 and then nothing of the kind")
    assert "broken Parquet file" in message(broken)
    broken.write_bytes(b"ds,y\n")
    assert "no Parquet file" in message(broken)
    broken.write_bytes(b"PK\x03\x04")
    assert "spreadsheet" in message(broken)
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(b"ds,y\n" * 100)[:-9])
    assert "broken gzip file" in message(packed)
    packed.write_bytes(bytes(range(256)))
    assert "not text" in message(packed)
    plain = tmp_path / "a.csv"
    plain.write_bytes(b"id,ds,y\n" + b"a,2024-01-01,1\n" * 900 + b"a\x00,2024-01-02,1\n")
    assert "not text" in message(plain)  # pandas would read the id as a


def test_parquet_without_a_library(capsys, tmp_path, monkeypatch):
    days().to_parquet(tmp_path / "a.parquet")
    for library in ("pyarrow", "fastparquet", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    message = fails(capsys, "forecast", tmp_path / "a.parquet", "--horizon", 1)
    assert "pip install 'rbfdiffnet[parquet]'" in message
    assert "--out" not in message
    message = fails(capsys, "forecast", "--horizon", 1, "--out", tmp_path / "b.parquet")
    assert "rbfdiffnet[parquet]" in message


def test_wrong_columns(capsys, write):
    path = write("ds,y", *GOOD)
    for option in ("--time-col", "--target-col", "--id-col"):
        message = fails(capsys, "forecast", path, "--horizon", 1, option, "when")
        assert f"no column 'when' ({option}); its columns: 'ds', 'y'" in message
    assert "is about a FILE" in fails(capsys, "forecast", "--horizon", 1, "--time-col", "ds")
    assert "--freq" in fails(capsys, "forecast", path, "--horizon", 1, "--freq", "soon")
    assert "has dates" in fails(capsys, "forecast", path, "--horizon", 1, "--freq", "2")


# Steps of time -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alias", "words"),
    [
        ("YS", "yearly (YS)"),
        ("QE", "quarterly (QE)"),
        ("MS", "monthly (MS)"),
        ("1mo", "monthly (1mo)"),
        ("2MS", "every 2 months (2MS)"),
        ("W-WED", "weekly (W-WED)"),
        ("D", "daily (D)"),
        ("2D", "every 2 days (2D)"),
        ("B", "on business days (B)"),
        ("h", "hourly (h)"),
        ("15min", "every 15 minutes (15min)"),
        ("min", "every minute (min)"),
        ("WOM-2MON", "WOM-2MON"),
        (1, "whole-number steps"),
        (2, "whole-number steps of 2"),
    ],
)
def test_steps_in_words(alias, words):
    assert describe_frequency(Frequency.parse(alias)) == words


# Inputs -------------------------------------------------------------------------------------------


def test_inputs_with_rows_of_the_future(write):
    body = [f"{line},{i % 2}" for i, line in enumerate(lines(days(20)))]
    path = write("ds,y,promo", *body, "2024-01-21,,1", "2024-01-22,,0")
    data = read_data(path, exog=["promo"])
    assert data.inputs == ("promo",)
    assert data.future["promo"].tolist() == [1, 0]
    assert data.series.n_values == len(data.frame()) == 20
    assert "last 2 dates have no values" in data.notes[0]


@pytest.mark.parametrize(
    ("n", "note"),
    [(1, "The last date has no value and is left"), (2, "The last 2 dates have no values and are")],
)
def test_empty_rows_at_the_end_of_a_wide_file_are_counted(write, n, note):
    later = [f"2024-01-{day},," for day in range(21, 21 + n)]
    data = read_data(write("ds,a,b", *(f"{line},1.5" for line in lines(days(20))), *later))
    assert data.notes[0].startswith(note)


def test_inputs_from_a_calendar(tmp_path):
    calendar = pd.DataFrame({"date": pd.date_range("2023-12-01", periods=120)})
    calendar["d"] = [f"d_{i - 30}" for i in range(120)]
    calendar["event"] = np.where(calendar["date"].dt.day == 1, "first", "")
    calendar["snap"] = calendar["date"].dt.day % 3
    calendar.to_csv(tmp_path / "calendar.csv", index=False)
    panel().to_csv(tmp_path / "long.csv", index=False)
    data = read_data(
        str(tmp_path / "long.csv"), exog=[str(tmp_path / "calendar.csv"), "snap", "event"]
    )
    frame = data.frame()
    assert data.inputs == ("event", "snap")
    assert (frame["snap"] == frame["ds"].dt.day % 3).all()
    assert ((frame["event"] == "first") == (frame["ds"].dt.day == 1)).all()
    assert data.future["ds"].min() == pd.Timestamp("2024-03-01")


def test_inputs_of_counted_steps_come_by_step(tmp_path):
    calendar = pd.DataFrame({"wm_yr_wk": [11, 11, 12, 12, 13], "weekday": list("abcab")})
    calendar["d"] = [f"d_{i}" for i in range(1, 6)]
    calendar["snap"] = [1, 0, 0, 1, 1]
    calendar.to_csv(tmp_path / "calendar.csv", index=False)
    (tmp_path / "rows.csv").write_text("id,d_1,d_2,d_3\na,5,6,7\nb,8,9,10\n")
    exog = [str(tmp_path / "calendar.csv"), "snap", "weekday"]
    data = read_data(str(tmp_path / "rows.csv"), exog=exog)
    assert data.frame()["snap"].tolist() == [1, 0, 0] * 2
    assert data.frame()["weekday"].tolist() == ["a", "b", "c"] * 2
    assert data.future["snap"].tolist() == [1, 1]
    with pytest.raises(CommandError, match=r"does not have 'price'"):
        read_data(str(tmp_path / "rows.csv"), exog=[exog[0], "price"])


def test_unknown_inputs_are_named(capsys, write, tmp_path):
    path = write("ds,y,promo", *(f"{line},{i % 3}" for i, line in enumerate(GOOD)))
    message = fails(capsys, "forecast", path, "--horizon", 1, "--exog", "price")
    assert "--exog price: no such file, and no such column" in message
    message = fails(capsys, "forecast", path, "--horizon", 2, "--exog", "promo")
    assert "must be known for the 2 steps" in message
    future = tmp_path / "future.csv"
    future.write_text("ds,promo\n2024-01-11,1\n")
    message = fails(capsys, "forecast", path, "--horizon", 2, "--exog", "promo", future)
    assert "promo" in message
    assert "2024-01-12" in message


def test_zero_characters_in_names_of_rows_are_kept(tmp_path):
    names, days = ["a", "b\x00"], ["2024-01-01", "2024-01-02", "2024-01-03"]
    frame = pd.DataFrame({"unique_id": names, **{day: [1.0, 2.0] for day in days}})
    frame.to_parquet(tmp_path / "a.parquet")
    assert read_data(str(tmp_path / "a.parquet")).frame()["unique_id"].unique().tolist() == names


@pytest.mark.parametrize(
    ("header", "choices", "exog", "message"),
    [
        ("ds,y,p", {}, "ds", "column 'ds' has the dates of the series; leave it out of --exog"),
        ("ds,y,p", {"layout": "wide"}, "p", "with --layout wide no column is an input; give"),
        ("ds,y,p", {"target": ["y"]}, "y", "column 'y' has the values of the series; leave it out"),
        (
            "date,sales,y",
            {"target": ["sales"]},
            "y",
            "no input can be called 'y'; rename that column",
        ),
    ],
)
def test_inputs_have_no_other_role(tmp_path, header, choices, exog, message):
    path = tmp_path / "a.csv"
    path.write_text("\n".join([header, *(f"2024-01-0{i},{i},{i % 2}" for i in range(1, 8))]))
    with pytest.raises(CommandError, match=f"--exog {exog}: {message}"):
        read_data(str(path), ColumnChoices(**choices), exog=[exog])


def test_files_of_inputs_with_a_column_named_like_the_target(tmp_path):
    path, more = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("\n".join(["ds,y", *(f"2024-01-0{i},{i}" for i in range(1, 8))]))
    more.write_text("\n".join(["ds,y,p", *(f"2024-01-0{i},1,{i % 2}" for i in range(1, 10))]))
    with pytest.raises(CommandError, match="--exog y: no input can be called 'y'; rename"):
        read_data(str(path), exog=[str(more)])
    assert read_data(str(path), exog=[str(more), "p"]).inputs == ("p",)

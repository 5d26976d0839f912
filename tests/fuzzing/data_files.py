"""CSV and Parquet files: damaged ones are read or refused, sound ones are read as written."""

import csv
import gzip
import io
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fuzzing.claims import Refused, attempt
from fuzzing.mutations import edited, edits
from fuzzing.trial import for_all
from rbfdiffnet.readers import ColumnChoices, read_data
from rbfdiffnet.readers.columns import is_label_name, is_time_name, is_value_name
from rbfdiffnet.support.checks import CommandError

PIECES = [
    *(
        b",",
        b";",
        b"\t",
        b"|",
        b"\n",
        b"\r\n",
        b"\r",
        b'"',
        b"'",
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
    ),
    *(b"nan", b"NA", b"inf", b"-inf", b"1e999", b"-", b"1.234,5", b"1,234.5", b"%", "€".encode()),
    *(b"2024-02-30", b"31.12.99", b"1/2/2024", b"0001-01-01", b"9999-12-31", b"2024-W53", b"24:00"),
    *(b"ds", b"y", b"unique_id", b"d_1", b"2024", b"1" * 400, b"a" * 5000, "😀".encode(), b"=1+1"),
    *(
        b"Year",
        b"month",
        b"Jan",
        b"Q1 2024",
        b"KW 05/2024",
        b"01012024",
        b"(5)",
        b"Total",
        b"sep=;",
    ),
    *(b"True", b"null", b" ", b"\n\n\n", b",,,,", b"0x10", b"1_000", b"--5", b"+", b".", b"1e5"),
]


def table(layout, n=20, dates=None, names=("a", "b"), values=None):
    """Rows of text: a header, then values."""
    dates = (
        [str(d.date()) for d in pd.date_range("2024-01-01", periods=n)] if dates is None else dates
    )
    if values is None:
        values = np.round(20 + np.sin(np.arange(2 * n).reshape(2, n)), 2)
    cells = [[f"{v:g}" if np.isfinite(v) else "" for v in row] for row in values]
    if layout == "long":
        rows = [
            [name, date, cell]
            for name, row in zip(names, cells, strict=True)
            for date, cell in zip(dates, row, strict=True)
        ]
        return [["unique_id", "ds", "y"], *rows]
    if layout == "wide":
        return [
            ["ds", *names],
            *([d, *row] for d, row in zip(dates, zip(*cells, strict=True), strict=True)),
        ]
    return [["unique_id", *dates], *([name, *row] for name, row in zip(names, cells, strict=True))]


def as_csv(rows, delimiter=",", **options):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, **options).writerows(rows)
    return text.getvalue()


def as_parquet(rows, compression):
    header, *body = rows
    frame = pd.DataFrame(body, columns=header)
    for name in header:
        if name not in ("unique_id", "ds"):
            frame[name] = pd.to_numeric(frame[name])
    if "ds" in frame:
        frame["ds"] = pd.to_datetime(frame["ds"])
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False, compression=compression)
    return buffer.getvalue()


def read(data, **options):
    """What the readers make of bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data")
        path.write_bytes(data)
        return attempt(lambda: read_data(str(path), **options), kinds=CommandError)


def data_are_sound(data):
    """What was read can be forecast: ids, dates and numbers, none of them odd."""
    frame = data.frame()
    assert list(frame.columns[:3]) == ["unique_id", "ds", "y"]
    assert len(frame)
    assert not frame["unique_id"].isna().any()
    assert not frame["ds"].isna().any()
    assert frame["ds"].dtype.kind in "Miu"
    assert frame["y"].dtype.kind in "fiu"
    assert set(map(str, frame["unique_id"].unique())) <= set(data.ids)
    assert len(set(data.ids)) == len(data.ids) == data.series.n_series
    assert data.season_length >= 1
    data.describe()


@for_all(
    kind=st.sampled_from(["csv", "csv", "csv", "utf16", "gzip", "parquet", "plain parquet"]),
    layout=st.sampled_from(["long", "wide", "rows"]),
    delimiter=st.sampled_from(",;\t|"),
    changes=edits,
    told=st.one_of(st.none(), st.sampled_from(["long", "wide", "rows"])),
    repeats=st.sampled_from([None, "sum", "mean"]),
    dates=st.sampled_from([None, None, "dmy", "mdy", "ymd"]),
    decimal=st.sampled_from([None, None, ".", ","]),
    exog=st.sampled_from([(), (), ("y",), ("a",), ("none such",)]),
    freq=st.sampled_from([None, None, "D", "MS", "1", "xyz"]),
)
def changed_bytes(kind, layout, delimiter, changes, told, repeats, dates, decimal, exog, freq):
    rows = table(layout)
    text = as_csv(rows, delimiter).encode()
    data = {
        "csv": lambda: edited(text, changes, PIECES),
        "utf16": lambda: edited(text.decode().encode("utf-16"), changes),
        "gzip": lambda: gzip.compress(edited(text, changes, PIECES), mtime=0),
        "parquet": lambda: edited(as_parquet(rows, "snappy"), changes),
        "plain parquet": lambda: edited(as_parquet(rows, None), changes),
    }[kind]()
    found = read(
        data,
        choices=ColumnChoices(told, (), (), (), dates, repeats),
        decimal=decimal,
        exog=exog,
        freq=freq,
    )
    if not isinstance(found, Refused):
        data_are_sound(found)


names = st.one_of(
    st.text(min_size=1, max_size=6).filter(str.strip),
    st.sampled_from(
        ["1", "007", "1.10", "1e5", "NA", "nan", "null", "-", "True", "y", "ds", "a,b"]
    ),
    st.sampled_from(["2024", "2024-01-01", "total", "a;b", 'a"b', " a", "a ", "ä", "😀", "=1+1"]),
)


@for_all(
    layout=st.sampled_from(["long", "wide", "rows"]),
    pair=st.lists(names, min_size=2, max_size=2, unique_by=str.strip),
    n=st.integers(3, 30),
    start=st.sampled_from(["2024-01-01", "1999-12-30", "2000-02-27", "1700-01-01", "2225-06-01"]),
    freq=st.sampled_from(["D", "W", "MS", "h", "YS"]),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    scale=st.sampled_from([1e-9, 1.0, 1e6, 1e15]),
    missing=st.sampled_from([0.0, 0.0, 0.2]),
    seed=st.integers(0, 99),
    told=st.booleans(),
    parquet=st.booleans(),
)
def written_panels(
    layout, pair, n, start, freq, delimiter, quoting, encoding, scale, missing, seed, told, parquet
):
    rng = np.random.default_rng(seed)
    values = np.array([[float(f"{v:.5g}") for v in row] for row in scale * rng.random((2, n))])
    values[rng.random((2, n)) < missing] = np.nan
    stamps = pd.date_range(start, periods=n, freq=freq)
    rows = table(layout, n, [str(d) for d in stamps], pair, values)
    if parquet:
        try:
            data = as_parquet(rows, "snappy")
        except Exception:  # names that no Parquet file can have
            return
    else:
        try:
            data = as_csv(rows, delimiter, quoting=quoting).encode(encoding)
        except UnicodeEncodeError:
            return
    choices = ColumnChoices(layout) if told else None
    found = read(data, choices=choices, decimal=".")
    if isinstance(found, Refused):
        return
    data_are_sound(found)
    if layout == "wide" and any(map(is_time_name, pair)):
        return  # whole numbers of such names are parts of dates
    if layout == "wide" and any(map(is_label_name, pair)):
        return  # numbers of such names in order are labels of the rows
    if layout == "wide" and not told and any(map(is_value_name, pair)):
        return  # the names say that it is long
    frame = found.frame()
    for name, row in zip(pair, values, strict=True):
        own = frame[[str(found) in (name, name.strip()) for found in frame["unique_id"]]]
        known = dict(zip(own["ds"], own["y"], strict=True))
        for date, value in zip(stamps, row, strict=True):
            got = known.get(date, np.nan)
            assert got == value or (np.isnan(got) and np.isnan(value)), (name, date, value, got)


#: Cells of a column, by what they are; n rows in two series.
CONTENTS = {
    "counter": lambda n: range(1, n + 1),
    "restarts": lambda n: [*range(n // 2)] * 2 + [n // 2] * (n % 2),
    "years": lambda n: range(1950, 1950 + n),
    "decimal years": lambda n: [f"{1920 + i / 12:.3f}" for i in range(n)],
    "uneven years": lambda n: [f"{1920 + i * i / 7:.2f}" for i in range(n)],
    "months": lambda n: [i % 12 + 1 for i in range(n)],
    "hours": lambda n: [i % 24 for i in range(n)],
    "clocks": lambda n: [f"{i % 24:02d}:30" for i in range(n)],
    "days": lambda n: pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
    "each day twice": lambda n: [f"2024-02-{i // 2 % 28 + 1:02d}" for i in range(n)],
    "stamps": lambda n: pd.date_range("2024-01-01", periods=n, freq="h").strftime("%FT%TZ"),
    "names": lambda n: ["a"] * (n // 2) + ["b"] * (n - n // 2),
    "remarks": lambda n: ["", "new"] * (n // 2) + [""] * (n % 2),
    "flags": lambda n: [i % 2 for i in range(n)],
    "numbers": lambda n: np.round(np.sin(np.arange(n)), 3),
    "gaps": lambda n: [i if i % 3 else "" for i in range(n)],
    "nothing": lambda n: [""] * n,
}
columns = st.sampled_from(
    [
        *("", "rownames", "X", "index", "id", "t", "Unnamed: 0", "row", "ds", "date", "time"),
        *("year", "month", "day", "hour", "week", "Time", "time_hour", "shop", "y", "value"),
        *("count", "zip", "V1", "V2", "d_1", "d_2", "d_3", "2024", "Total", "a", "b", "none"),
    ]
)


@for_all(
    found=st.dictionaries(columns, st.sampled_from(sorted(CONTENTS)), min_size=1, max_size=6),
    n=st.integers(1, 60),
    layout=st.one_of(st.none(), st.none(), st.sampled_from(["long", "wide", "rows"])),
    ids=st.one_of(st.just([]), st.just(["none"]), st.lists(columns, min_size=1, max_size=2)),
    time=st.one_of(st.just([]), st.just(["none"]), st.lists(columns, min_size=1, max_size=3)),
    target=st.one_of(st.just([]), st.lists(columns, min_size=1, max_size=2)),
    repeats=st.sampled_from([None, "sum"]),
)
def tables_as_found(found, n, layout, ids, time, target, repeats):
    rows = [[*found], *zip(*(CONTENTS[kind](n) for kind in found.values()), strict=True)]
    choices = ColumnChoices(layout, ids, time, target, None, repeats)
    data = read(as_csv(rows).encode(), choices=choices)
    if isinstance(data, Refused):
        return
    data_are_sound(data)
    guessed = not target and layout != "rows" and "rows)" not in data.source
    if guessed and found.get("rownames") == "counter" and "numbers" in found.values():
        assert "rownames" not in data.ids, data.source
        assert data.target != "'rownames'", data.source

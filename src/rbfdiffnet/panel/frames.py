"""Columns of pandas and polars frames as arrays, and arrays as columns.

This is the only module that knows which library a frame comes from. Columns that are made have the
data types of columns that were read, so what goes out looks like what came in. Data types can also
be described in words that fit into a model file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.parallel import even_chunks

FrameColumn = nw.Series[Any]

_ROWS_AT_ONCE = 1_000_000  # are compared
_LARGEST = 2**61  # whole number that is allowed: differences must fit into 64 bits, too
# Nanoseconds since 1970 fit into 64 bits between these years.
_EARLIEST, _LATEST = np.datetime64("1678-01-01"), np.datetime64("2262-01-01")


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns that say which series, when, and how much."""

    id: str = "unique_id"
    time: str = "ds"
    target: str = "y"


def read_frame(
    df: Any, names: Sequence[str], what: str = "The frame", id_col: str | None = None
) -> nw.DataFrame[Any]:
    """Return the named columns of a pandas or polars frame behind one interface.

    Messages call the frame `what`, and say how to add a column of ids called `id_col`.
    """
    try:
        frame: Any = nw.from_native(df)
    except TypeError as error:
        raise TypeError(
            f"A pandas or polars data frame is needed, got {type(df).__name__}."
        ) from error
    except ValueError as error:
        names = list(df.columns)
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Two columns are called {twice!r}; rename or drop one.") from error
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        raise TypeError("The frame is lazy; call .collect() on it first.")
    if not (frame.implementation.is_pandas() or frame.implementation.is_polars()):
        raise TypeError(f"A pandas or polars data frame is needed, got {type(df).__name__}.")
    missing = [name for name in names if name not in frame.columns]
    if missing:
        index = getattr(getattr(df, "index", None), "names", ())
        remedy = "rename a column, or say which one to use"
        if missing[0] in index:
            remedy = "call .reset_index() first"
        elif missing[0] == id_col:
            remedy = (
                f"rename the column that names the series, say id_col='...', or, for one series, "
                f"add a column {id_col!r} with the same name in every row"
            )
        elif what == "X_df":
            remedy = "add it to the rows of make_future_frame(h)"
        raise ValueError(
            f"{what} has no column {missing[0]!r}, only {', '.join(map(repr, frame.columns))}; "
            f"{remedy}."
        )
    chosen: nw.DataFrame[Any] = frame.select(*dict.fromkeys(names))
    return chosen


def read_keys(
    frame: nw.DataFrame[Any], columns: ColumnNames, frequency: Frequency | None
) -> tuple[Ints, FrameColumn, FrameColumn]:
    """Return the number of each row's series, the ids of the series, and the column of times."""
    ids, time = frame[columns.id], frame[columns.time]
    null = np.flatnonzero(ids.is_null().to_numpy())
    if len(null):
        raise ValueError(
            f"Column {columns.id!r} has no value in row {null[0]}; give each row a series, or "
            "drop it."
        )
    codes, first = group_rows(ids)
    ids = nw.maybe_reset_index(ids[first])
    null = np.flatnonzero(time.is_null().to_numpy())
    if len(null):
        raise ValueError(
            f"Series {str(ids[int(codes[null[0]])])!r}: column {columns.time!r} has no value in "
            f"row {null[0]}; give each row a date, or drop it."
        )
    if len(frame) == 0 and not (time.dtype.is_integer() or _holds_dates(time)):
        polars = time.implementation.is_polars()
        words: dict[str, Any] = {"name": time.name}
        words["library"] = "polars" if polars else "pandas"
        if frequency is not None and frequency.kind == "integer":
            words |= {"dtype": "Int64" if polars else "int64"}
        else:
            words |= {"dtype": "datetime64[ns]", "unit": "ns", "zone": None}
        time = make_empty_column(words, None)
    return codes, ids, time


def group_rows(ids: FrameColumn) -> tuple[Ints, Ints]:
    """Number the series in the order they appear; return the number of each row and first rows."""
    import pandas as pd

    native = ids.to_native()
    if ids.implementation.is_polars():
        if ids.dtype.is_nested():
            raise TypeError(f"Column {ids.name!r} must hold names of series, text or numbers.")
        if ids.dtype in (nw.Categorical, nw.Enum):
            native = ids.cast(nw.String).to_native()
        native = native.rank("dense").to_numpy()
    try:
        codes = pd.factorize(native)[0].astype(np.int64)
    except TypeError as error:
        raise TypeError(
            f"Column {ids.name!r} must hold names of series, text or numbers: {error}."
        ) from error
    first = _first_rows(codes)
    if np.any(codes[first] != np.arange(first.size)):  # Arrow's dictionaries keep their own order
        codes = pd.factorize(codes)[0].astype(np.int64)
        first = _first_rows(codes)
    if not ids.implementation.is_polars():
        _check_text(ids.name, native, codes, first)
    return codes, first


def _first_rows(codes: Ints) -> Ints:
    """Return where each number appears first, if the numbers count up as they appear."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))


def _check_text(name: str, ids: Any, codes: Ints, first: Ints) -> None:
    """Raise ValueError where pandas may take two ids for one.

    These are text with zeros or broken Unicode, and values that are equal, such as 1 and True.
    """
    import pandas as pd

    python_text = getattr(ids.dtype, "storage", "") == "python"
    if ids.dtype != np.dtype(object) and not python_text:
        return
    values = np.array(ids, dtype=object) if python_text else np.asarray(ids)
    if python_text:
        values[codes < 0] = None  # pandas.NA is neither equal nor different
    names = values[first]
    for chunk in even_chunks(len(values), _ROWS_AT_ONCE):
        for wrong in np.flatnonzero(names[codes[chunk]] != values[chunk])[:1]:
            raise _invalid_text(name, values[chunk][wrong], chunk.start + int(wrong))
    if "mixed" in pd.api.types.infer_dtype(values, skipna=True):
        for row, (one, other) in enumerate(zip(names[codes], values, strict=True)):
            if str(one) != str(other):
                raise ValueError(
                    f"Column {name!r} holds {one!r} and, in row {row}, {other!r}, which are equal "
                    "and cannot be told apart; use text, or numbers of one kind."
                )
    for row, value in zip(first.tolist(), names.tolist(), strict=True):
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise _invalid_text(name, value, row) from error


def _invalid_text(name: str, value: Any, row: int) -> ValueError:
    return ValueError(
        f"Column {name!r} holds {value!r} in row {row}, which is no valid text and cannot be told "
        "from other ids; use text that can be written as UTF-8, without zeros."
    )


def read_times(times: FrameColumn) -> Ints:
    """Return whole numbers as they are, and dates as nanoseconds since 1970 in UTC."""
    if times.dtype.is_integer():
        numbers = times.to_numpy()
        far = np.flatnonzero((numbers < -_LARGEST) | (numbers > _LARGEST))
        if len(far):
            raise ValueError(
                f"Column {times.name!r} holds {numbers[far[0]]}; whole numbers must lie between "
                f"-2**61 and 2**61."
            )
        return numbers.astype(np.int64)
    if not _holds_dates(times):
        raise TypeError(
            f"Column {times.name!r} must hold dates or whole numbers, not "
            f"{times.to_native().dtype}; {_suggest_conversion(times)}."
        )
    if times.dtype == nw.Date:
        times = times.cast(nw.Datetime("us"))
    elif times.dtype != nw.Datetime:
        stamps = times.to_native().dt.tz_convert("UTC").dt.tz_localize(None)
        times = nw.from_native(stamps, series_only=True)
    elif time_zone(times) is not None:
        times = times.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    stamps = times.to_numpy()
    far = np.flatnonzero((stamps < _EARLIEST) | (stamps > _LATEST))
    if len(far):
        raise ValueError(
            f"Column {times.name!r} holds {stamps[far[0]].astype('M8[D]')}; dates must lie "
            f"between {_EARLIEST} and {_LATEST}."
        )
    return stamps.astype("M8[ns]").view(np.int64)


def latest_time(like: FrameColumn) -> int:
    """Return the latest time, as `read_times` reads them, that a column can hold."""
    if not like.dtype.is_integer():
        return int(_LATEST.astype("M8[ns]").view(np.int64))
    bits = int(str(like.dtype).lstrip("UInt"))
    return int(min(2 ** (bits - like.dtype.is_signed_integer()) - 1, _LARGEST))


def time_zone(times: FrameColumn) -> str | None:
    """Return the time zone of a column of dates, None where there is none.

    Narwhals does not know all zones of pandas: the name of America/New_York has a low line.
    """
    if times.dtype == nw.Datetime:
        return times.dtype.time_zone  # type: ignore[attr-defined,no-any-return]
    zone = getattr(times.to_native().dtype, "tz", None)
    return None if zone is None else str(zone)


def _holds_dates(times: FrameColumn) -> bool:
    """Tell whether a column holds dates; a time zone must be one that has a name."""
    import pandas as pd

    if (zone := time_zone(times)) is None:
        return times.dtype in (nw.Datetime, nw.Date)
    try:
        pd.DatetimeTZDtype("ns", zone)
    except (KeyError, TypeError, ValueError):
        return False
    return True


def read_values(values: FrameColumn) -> npt.NDArray[Any]:
    """Return numbers as floats (NaN where missing), text as objects (None where missing)."""
    if values.dtype.is_numeric() or values.dtype == nw.Boolean:
        if values.implementation.is_polars():
            return values.cast(nw.Float64).to_numpy().astype(np.float64)
        return np.array(values.to_native().to_numpy(dtype=np.float64, na_value=np.nan))

    known = ~values.is_null().to_numpy().astype(bool)
    if values.dtype in (nw.String, nw.Categorical, nw.Enum):
        text = np.full(len(known), None, dtype=object)
        text[known] = values.cast(nw.String).to_numpy()[known]
        return text
    objects = values.to_numpy()[known]
    durations = (isinstance(value, timedelta | np.timedelta64) for value in objects)
    if values.dtype == nw.Duration or any(durations):
        raise TypeError(
            f"Column {values.name!r} holds durations, which have no unit of their own; convert "
            f"them to numbers, such as seconds with df[{values.name!r}].dt.total_seconds()."
        )
    if all(isinstance(value, Real | Decimal) for value in objects):
        floats = np.full(len(known), np.nan)
        try:
            floats[known] = objects.astype(np.float64)
        except OverflowError as error:
            raise ValueError(f"Column {values.name!r} holds a number beyond 1e308.") from error
        return floats
    raise TypeError(
        f"Column {values.name!r} must hold numbers or text, not {values.to_native().dtype}; "
        "convert it first."
    )


def read_labels(column: FrameColumn, codes: Ints, ids: FrameColumn) -> npt.NDArray[Any]:
    """Return the text of a column that never changes within a series, shape (n_series,).

    `codes` has the number of each row's series. Whole numbers are written without a point, and
    truth values as True and False.
    """
    import pandas as pd

    values, kinds = pd.factorize(read_values(column))
    first = np.full(len(ids), -1)
    first[codes[::-1]] = values[::-1]
    if column.dtype == nw.Boolean or (
        column.dtype == nw.Object
        and all(isinstance(value, bool) for value in column.drop_nulls().to_list())
    ):
        kinds = kinds.astype(bool)
    texts = [f"{kind:.15g}" if isinstance(kind, float) else str(kind) for kind in kinds]
    missing = (values < 0) | np.isin(values, [k for k, text in enumerate(texts) if not text])
    for row in np.flatnonzero(missing)[:1].tolist():
        raise ValueError(
            f"Series {str(ids[int(codes[row])])!r}: column {column.name!r} has no value in row "
            f"{row}; a series belongs to one group of it in every row."
        )
    group_rows(column)  # refuses values that are equal, but not the same
    for row in np.flatnonzero(values != first[codes])[:1].tolist():
        one, other = texts[first[codes[row]]], texts[values[row]]
        raise ValueError(
            f"Series {str(ids[int(codes[row])])!r}: column {column.name!r} changes from {one!r} to "
            f"{other!r} in row {row}; a series belongs to one group of it in every row."
        )
    return np.asarray(np.array(texts, dtype=object)[first])


def read_target(column: FrameColumn) -> Array:
    """Return the target as floats, NaN where it is missing."""
    if column.is_null().all():
        return np.full(len(column), np.nan)
    values = None if column.dtype == nw.Boolean else read_values(column)
    if values is None or values.dtype.kind == "O":
        raise TypeError(
            f"Column {column.name!r} must hold numbers, not {column.to_native().dtype}; convert "
            "it first."
        )
    return values


def convert_empty(values: npt.NDArray[Any], text: bool) -> npt.NDArray[Any]:
    """Return missing values as text or as numbers: a frame may have stored them as either kind.

    Columns with a known value are returned as they are.
    """
    import pandas as pd

    if text == (values.dtype.kind == "O") or pd.notna(values).any():
        return values
    return np.full(len(values), None if text else np.nan, dtype=object if text else np.float64)


def make_column(like: FrameColumn, values: Sequence[Any]) -> FrameColumn:
    """Return a column with the library, name and data type of another one.

    Categories that a pandas data type lacks are added to it.
    """
    native: Any
    dtype = like.to_native().dtype
    if like.implementation.is_polars():
        import polars as pl

        native = pl.Series(like.name, values, dtype=dtype)
    else:
        import pandas as pd

        if isinstance(dtype, pd.CategoricalDtype):
            new = [value for value in dict.fromkeys(values) if value not in dtype.categories]
            if new:
                categories = dtype.categories.append(pd.Index(new))
                dtype = pd.CategoricalDtype(categories, dtype.ordered)
        native = pd.Series(values, dtype=dtype, name=like.name)
    return nw.from_native(native, series_only=True)


def make_times(like: FrameColumn, times: Ints, zone: str | None) -> Any:
    """Return times from `read_times` as a native column with the data type of another one."""
    dtype: Any = like.to_native().dtype
    values: Any = times if like.dtype.is_integer() else times.view("M8[ns]")
    if like.implementation.is_polars():
        import polars as pl

        series = pl.Series(values)
        if zone is not None:
            series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        return series.cast(dtype)
    import pandas as pd

    column = pd.Series(values)
    return (column if zone is None else column.dt.tz_localize("UTC")).astype(dtype)


def make_frame(
    like: FrameColumn, columns: Mapping[str, Any], *, null: bool = False, copy: bool = True
) -> Any:
    """Return a native frame of native columns and arrays, in the library of the column `like`.

    With `null`, NaN becomes a missing value in polars, as it is one in pandas. Arrays that nobody
    else has, large ones above all, need no `copy`.
    """
    if like.implementation.is_polars():
        import polars as pl

        # Polars finds the data type of text in a list with values, but not in an array of objects.
        lists = {
            name: column.tolist() or pl.Series(dtype=pl.String)
            for name, column in columns.items()
            if isinstance(column, np.ndarray) and column.dtype.kind == "O"
        }
        frame = pl.DataFrame({**columns, **lists})
        return frame.fill_nan(None) if null else frame
    import pandas as pd

    arrays = {name: getattr(column, "array", column) for name, column in columns.items()}
    return pd.DataFrame(arrays, copy=copy)


def _suggest_conversion(times: FrameColumn) -> str:
    """Say how to turn a column into dates."""
    name = times.name
    dtype = str(times.to_native().dtype)
    if dtype.startswith("period"):
        return f"convert periods with df[{name!r}].dt.to_timestamp()"
    if time_zone(times) is not None:
        convert = "convert_time_zone" if times.implementation.is_polars() else "tz_convert"
        return f"name the time zone with df[{name!r}].dt.{convert}('Europe/Berlin') or the like"
    if times.dtype.is_numeric():
        return f"convert it with df[{name!r}].astype(int)"
    if times.implementation.is_polars():
        return f"convert text with pl.col({name!r}).str.to_datetime()"
    return f"convert it with pd.to_datetime(df[{name!r}])"


def describe_column(column: FrameColumn) -> tuple[dict[str, Any], npt.NDArray[Any] | None]:
    """Describe library, name and data type of a column in words; also return its categories."""
    dtype: Any = column.to_native().dtype
    words: dict[str, Any] = {"name": column.name}
    if column.implementation.is_polars():
        words |= {"library": "polars", "dtype": type(dtype).__name__}
        if column.dtype == nw.Datetime:
            words |= {"unit": dtype.time_unit, "zone": dtype.time_zone}
        is_enum = column.dtype == nw.Enum
        return words, pack_values(dtype.categories.to_list(), "Categories") if is_enum else None

    words |= {"library": "pandas", "dtype": _pandas_name(column)}
    if column.dtype != nw.Categorical and column.dtype != nw.Enum:
        return words, None
    index = dtype.categories
    words |= {"ordered": bool(dtype.ordered), "categories": str(index.dtype)}
    return words, pack_values(index.tolist(), f"Categories of {column.name!r}")


def make_empty_column(words: Mapping[str, Any], categories: npt.NDArray[Any] | None) -> FrameColumn:
    """Return an empty column that fits a description made by `describe_column`."""
    native: Any
    dtype: Any = words["dtype"]
    if words["library"] == "polars":
        import polars as pl

        if "unit" in words:
            dtype = pl.Datetime(words["unit"], words["zone"])
        else:
            known: Any = getattr(pl, dtype)
            is_type = isinstance(known, type) and issubclass(known, pl.DataType)
            if not is_type:
                raise ValueError(f"{dtype!r} is no data type")  # functions would be called
            dtype = known() if categories is None else known(categories.tolist())
        native = pl.Series(words["name"], [], dtype=dtype)
    else:
        import pandas as pd

        if categories is not None:
            index = pd.Index(categories.tolist(), dtype=words["categories"])
            dtype = pd.CategoricalDtype(index, words["ordered"])
        native = pd.Series([], dtype=dtype, name=words["name"])
    return nw.from_native(native, series_only=True)


def pack_values(values: Sequence[Any], what: str) -> npt.NDArray[Any]:
    """Return text or numbers as an array that can be stored without pickling."""
    kinds = {type(value) for value in values}
    if kinds <= {str}:
        text = np.array(values, dtype=np.str_)
        if text.tolist() != list(values):  # NumPy drops zeros at the end
            raise ValueError(f"{what} end in zero characters, which cannot be saved.")
        return text
    array = np.array(values)
    if len(kinds) > 1 or array.dtype.kind not in "biuf":
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"{what} are of type {names}; only text or numbers can be saved.")
    return array


def _pandas_name(column: FrameColumn) -> str:
    """Return a name from which pandas finds the data type again."""
    import pandas as pd

    dtype: Any = column.to_native().dtype
    if isinstance(dtype, pd.StringDtype):
        return f"string[{dtype.storage}]" if dtype.na_value is pd.NA else "str"
    if isinstance(dtype, pd.ArrowDtype) and (zone := time_zone(column)) is not None:
        # Pandas cannot read the name of this type; its own type for dates says the same.
        return f"datetime64[{column.dtype.time_unit}, {zone}]"  # type: ignore[attr-defined]
    return str(dtype)

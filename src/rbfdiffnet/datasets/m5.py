"""Daily unit sales of the M5 competition, by store and category (its aggregation level 8).

The data belongs to Walmart and the M5 competition and is not part of this package: download it
from https://www.kaggle.com/competitions/m5-forecasting-accuracy/data and name the folder.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from rbfdiffnet.support.files import BoundedStream, unpacked_limit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["M5_FIRST_DAY", "M5_LEVEL8_SERIES", "M5_N_DAYS", "load_m5_level8"]

M5_FIRST_DAY = "2011-01-29"
M5_N_DAYS = 1941

_STORES = ("CA_1", "CA_2", "CA_3", "CA_4", "TX_1", "TX_2", "TX_3", "WI_1", "WI_2", "WI_3")
_CATEGORIES = ("FOODS", "HOBBIES", "HOUSEHOLD")
#: The paper's series 1 to 30, in its order.
M5_LEVEL8_SERIES = tuple(f"{store}_{category}" for store in _STORES for category in _CATEGORIES)

_SALES = "sales_train_evaluation.csv"
_CANDIDATES = (
    *(_SALES, f"{_SALES}.zip", f"{_SALES}.gz", "m5-forecasting-accuracy.zip"),
    *("level8.csv.gz", "level8.csv"),
)
_SOURCE = (
    "the data is at https://www.kaggle.com/competitions/m5-forecasting-accuracy/data "
    f"({_SALES} is the file needed)"
)
_DAYS = [f"d_{day}" for day in range(1, M5_N_DAYS + 1)]
_N_ITEMS = 30490  # rows of the wide file
_IDENTITIES = (("id",), ("item_id", "store_id"))  # columns that tell its rows apart
_CHUNK = 2000  # rows of the wide file held at a time: about 30 MB


def load_m5_level8(path: str | Path) -> pd.DataFrame:
    """Load the 30 series of daily unit sales by store and category.

    Parameters
    ----------
    path : str or Path
        The competition's download (its folder, its zip, or ``sales_train_evaluation.csv``), whose
        30,490 item series are added up here, a few thousand at a time; or a CSV file with one row
        a day and the 30 series as columns ``CA_1_FOODS``, ..., ``WI_3_HOUSEHOLD``.

    Returns
    -------
    DataFrame of shape (1941, 30)
        Columns in alphabetical order, which is the paper's; the index holds the dates, from
        2011-01-29 to 2016-05-22.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file lacks rows or columns, holds a row twice, has its days in another order, or
        holds something else than sales.

    Warns
    -----
    UserWarning
        If the competition's file does not have its 30,490 rows.

    Examples
    --------
    >>> from rbfdiffnet.datasets.m5 import load_m5_level8
    >>> load_m5_level8("no such folder")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no file or folder 'no such folder'; the data is at https://www.kaggle.com...
    """
    import pandas as pd

    file = _find_file(Path(path))
    with ExitStack() as stack:
        try:
            stream = _open(file, stack)
            header = pd.read_csv(stream, nrows=0).columns
        except (OSError, EOFError, zipfile.BadZipFile, ValueError) as error:
            raise ValueError(f"'{file}' cannot be read as CSV: {error}; {_SOURCE}") from error
        stream.seek(0)
        wide = {"store_id", "cat_id", "d_1"} & set(header)
        read = _read_items if wide else _read_level8
        try:
            frame = read(stream, list(header), str(file))
        except (EOFError, OSError, zipfile.BadZipFile, pd.errors.ParserError) as error:
            raise ValueError(f"'{file}' is damaged: {error}; {_SOURCE}") from error
    frame.index = pd.date_range(M5_FIRST_DAY, periods=M5_N_DAYS, freq="D", name="date")
    return frame


def _find_file(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise FileNotFoundError(f"no file or folder '{path}'; {_SOURCE}")
    for name in _CANDIDATES:
        if (path / name).is_file():
            return path / name
    hint = ""
    if any(path.glob("sales_train_validation.csv*")):
        hint = " (sales_train_validation.csv ends before the test days)"
    raise FileNotFoundError(f"no {_SALES} in the folder '{path}'{hint}; {_SOURCE}")


def _open(file: Path, stack: ExitStack) -> IO[bytes]:
    """Open a plain, gzipped or zipped CSV file."""
    if file.suffix == ".zip":
        archive = stack.enter_context(zipfile.ZipFile(file))
        members = [name for name in archive.namelist() if name.rpartition("/")[2] == _SALES]
        if not members:
            raise ValueError(f"there is no {_SALES} in it")
        stream = stack.enter_context(archive.open(members[0]))
    elif file.suffix == ".gz":
        import gzip

        stream = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(file)))
    else:
        return stack.enter_context(file.open("rb"))
    return io.BufferedReader(BoundedStream(stream, unpacked_limit(file.stat().st_size)))


def _read_items(stream: IO[bytes], header: list[str], file: str) -> pd.DataFrame:
    """Read the competition's wide file and add its item series up to level 8."""
    import pandas as pd

    needed = ["store_id", "cat_id", *_DAYS]
    _check_columns(header, needed, file)
    identity = next(([*names] for names in _IDENTITIES if set(names) <= set(header)), [])
    lines: dict[tuple[str, ...], int] = {}
    totals = {name: np.zeros(M5_N_DAYS) for name in M5_LEVEL8_SERIES}
    items = dict.fromkeys(M5_LEVEL8_SERIES, 0)
    chunks: Iterator[pd.DataFrame] = pd.read_csv(
        stream, usecols=[*{*needed, *identity}], chunksize=_CHUNK, low_memory=False
    )
    for chunk in chunks:
        if identity:
            _check_not_repeated(chunk[identity], lines, file)
        sales = _read_sales(chunk[_DAYS], file)
        names = (chunk["store_id"] + "_" + chunk["cat_id"]).to_numpy()
        for name in np.unique(names.astype(str)):
            if name not in totals:
                line = int(chunk.index[names.astype(str) == name][0]) + 2
                raise ValueError(
                    f"'{file}', line {line}: columns 'store_id' and 'cat_id' say '{name}', which "
                    f"is none of M5's 10 stores and 3 categories; {_SOURCE}"
                )
            rows = names == name
            totals[name] += sales[rows].sum(axis=0)
            items[name] += int(rows.sum())
    _check_complete(items, file)
    return pd.DataFrame(totals)


def _check_complete(items: dict[str, int], file: str) -> None:
    """Raise ValueError if a series lacks rows, and warn if there are not as many as in M5."""
    # Every store sells the same items, so a download that broke off shows.
    for name, count in items.items():
        full = max(items[f"{store}_{name[5:]}"] for store in _STORES)
        if count == 0 or count < full:
            raise ValueError(
                f"'{file}' is incomplete: {count} rows for store '{name[:4]}' and category "
                f"'{name[5:]}' (columns 'store_id' and 'cat_id'), other stores have {full}; "
                f"{_SOURCE}"
            )
    n_rows = sum(items.values())
    if n_rows != _N_ITEMS:
        warnings.warn(
            f"'{file}' has {n_rows:,} rows, the competition's has {_N_ITEMS:,}: the sums are those "
            "of other sales",
            stacklevel=4,
        )


def _check_not_repeated(ids: pd.DataFrame, lines: dict[tuple[str, ...], int], file: str) -> None:
    """Raise ValueError if a row came before; note the lines of these rows."""
    for row, *names in ids.itertuples(name=None):
        line, key = row + 2, tuple(names)
        if key in lines:
            columns = "columns 'item_id' and 'store_id'" if len(key) > 1 else "column 'id'"
            raise ValueError(
                f"'{file}', line {line}, {columns}: '{' '.join(map(str, key))}' is on line "
                f"{lines[key]} already; {_SOURCE}"
            )
        lines[key] = line


def _read_level8(stream: IO[bytes], header: list[str], file: str) -> pd.DataFrame:
    import pandas as pd

    _check_columns(header, list(M5_LEVEL8_SERIES), file)
    frame = pd.read_csv(stream)
    if len(frame) != M5_N_DAYS:
        raise ValueError(
            f"'{file}' has {len(frame)} days, M5 has {M5_N_DAYS} (d_1 to d_{M5_N_DAYS}); {_SOURCE}"
        )
    dates = pd.date_range(M5_FIRST_DAY, periods=M5_N_DAYS).strftime("%Y-%m-%d")
    for column, expected in (("d", np.array(_DAYS)), ("date", dates.to_numpy())):
        if column not in frame:
            continue
        found = frame[column].astype(str).str[:10].to_numpy()  # without a time of day
        if (found != expected).any():
            wrong = int(np.argmax(found != expected))
            raise ValueError(
                f"'{file}', line {wrong + 2}, column '{column}': expected '{expected[wrong]}', "
                f"found '{frame[column][wrong]}'; sort the days, one row each"
            )
    columns = list(M5_LEVEL8_SERIES)
    return pd.DataFrame(_read_sales(frame[columns], file), columns=columns)


def _check_columns(header: list[str], needed: list[str], file: str) -> None:
    missing = [name for name in needed if name not in set(header)]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(f"'{file}' has no column '{missing[0]}'{more}; {_SOURCE}")


def _read_sales(frame: pd.DataFrame, file: str) -> Any:
    """Return the cells as floats, each of which must be a sale: finite and not negative."""
    import pandas as pd

    flags = [bool(pd.api.types.is_bool_dtype(kind)) for kind in frame.dtypes]
    numeric = all(map(pd.api.types.is_numeric_dtype, frame.dtypes))
    numbers = frame if numeric else frame.apply(pd.to_numeric, errors="coerce")
    sales = numbers.to_numpy(dtype=np.float64)
    bad = ~(np.isfinite(sales) & (sales >= 0.0)) | flags
    if not bad.any():
        return sales
    column = int(np.argmax(bad.any(axis=0)))
    row = int(np.argmax(bad[:, column]))
    cell: Any = frame.iloc[row, column]
    found = "an empty cell" if pd.isna(cell) else f"'{cell}'"
    raise ValueError(
        f"'{file}', line {int(frame.index[row]) + 2}, column '{frame.columns[column]}': expected a "
        f"sale (a number of at least 0), found {found}; {_SOURCE}"
    )

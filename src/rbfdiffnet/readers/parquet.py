"""Parquet files, by whichever library is installed."""

from __future__ import annotations

import io
from importlib import import_module
from typing import IO, Any

import pandas as pd

from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.files import unpacked_limit


def read_parquet(stream: IO[bytes], name: str) -> pd.DataFrame:
    """Read a Parquet file with the dtypes it has, so that small whole numbers stay small.

    Texts become categories, whose words are kept once, if pyarrow reads the file.
    """
    check_parquet()
    texts = _check_size(stream, name)
    options: Any = {"read_dictionary": texts} if texts else {}
    frame: Any
    try:
        try:
            frame = pd.read_parquet(stream, **options)
        except ImportError:
            import polars as pl

            columns = pl.read_parquet(stream)
            frame = pd.DataFrame({name: columns[name].to_numpy() for name in columns.columns})
    except Exception as error:  # each library has errors of its own
        if isinstance(error, MemoryError):
            raise
        first = str(error).strip().partition("\n")[0]
        raise CommandError(f"{name} is a broken Parquet file ({first}); write it again") from None
    index = frame.index
    only_counts = index.nlevels == 1 and index.name is None and index.dtype.kind in "iu"
    frame = frame.reset_index(drop=only_counts)  # numbers of rows, as sorting leaves them
    frame.columns = [str(column) for column in frame.columns]
    if not len(frame):
        raise CommandError(f"{name} has columns but no rows; write it again with values")
    return frame  # type: ignore[no-any-return]


def write_parquet(frame: pd.DataFrame, path: str) -> None:
    """Write a frame to a Parquet file."""
    try:
        frame.to_parquet(path, index=False)
    except ImportError:
        import polars as pl

        columns = {
            name: frame[name].astype(str) if name == "unique_id" else frame[name].to_numpy()
            for name in frame
        }
        pl.DataFrame(
            {k: list(v) if v.dtype == object else v for k, v in columns.items()}
        ).write_parquet(path)


def check_parquet() -> None:
    """Raise CommandError if nothing that reads and writes Parquet files is installed."""
    for library in ("pyarrow", "fastparquet", "polars"):
        try:
            import_module(library)
        except ImportError:
            continue
        return
    raise CommandError(
        "Parquet files need pyarrow: pip install 'rbfdiffnet[parquet]' (fastparquet and polars "
        "read and write them, too)"
    )


def _check_size(stream: IO[bytes], name: str) -> list[str]:
    """Refuse a small file with so many cells that they would fill the memory; list its texts."""
    try:
        from pyarrow.parquet import ParquetFile

        file = ParquetFile(stream)
        found, schema = file.metadata, file.schema_arrow
        texts = [field.name for field in schema if str(field.type).endswith("string")]
    except Exception:  # the library that reads the file will say what is wrong with it
        return []
    finally:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
    unpacked = sum(found.row_group(i).total_byte_size for i in range(found.num_row_groups))
    if max(8 * found.num_rows * found.num_columns, unpacked) > unpacked_limit(size):
        raise CommandError(
            f"{name} has {found.num_rows:,} rows in {size:,} bytes, which would take more than "
            f"{unpacked_limit(size):,} bytes; if you trust it, give it as a CSV file"
        )
    return texts

"""Data types of columns in words that can be saved, and empty columns from words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frames import Column, time_zone

__all__ = ["describe", "pack", "restore", "untyped_times"]


def describe(column: Column) -> tuple[dict[str, Any], npt.NDArray[Any] | None]:
    """Return library, name and data type of a column in words, and its categories if it has any.

    Examples
    --------
    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.column_types import describe, restore
    >>> ids = nw.from_native(pd.Series(["b"], dtype="category", name="shop"), series_only=True)
    >>> words, categories = describe(ids)
    >>> words["dtype"], categories
    ('category', array(['b'], dtype='<U1'))
    >>> restore(words, categories).dtype == ids.dtype
    True
    """
    dtype: Any = column.to_native().dtype
    words: dict[str, Any] = {"name": column.name}
    if column.implementation.is_polars():
        words |= {"library": "polars", "dtype": type(dtype).__name__}
        if column.dtype == nw.Datetime:
            words |= {"unit": dtype.time_unit, "zone": dtype.time_zone}
        is_enum = column.dtype == nw.Enum
        return words, pack(dtype.categories.to_list(), "Categories") if is_enum else None

    words |= {"library": "pandas", "dtype": _pandas_name(column)}
    if column.dtype != nw.Categorical and column.dtype != nw.Enum:
        return words, None
    index = dtype.categories
    words |= {"ordered": bool(dtype.ordered), "categories": str(index.dtype)}
    return words, pack(index.tolist(), f"Categories of {column.name!r}")


def restore(words: Mapping[str, Any], categories: npt.NDArray[Any] | None) -> Column:
    """Return an empty column that fits a description made by `describe`.

    Examples
    --------
    >>> from rbfdiffnet.panel.column_types import restore
    >>> words = {"name": "ds", "library": "pandas", "dtype": "datetime64[us]"}
    >>> restore(words, None).to_native().dtype
    dtype('<M8[us]')
    """
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


def untyped_times(like: Column, *, integer: bool) -> Column:
    """Return an empty column of times, for a frame without rows whose columns have no data type.

    Examples
    --------
    >>> import narwhals as nw
    >>> import pandas as pd
    >>> from rbfdiffnet.panel.column_types import untyped_times
    >>> like = nw.from_native(pd.Series([], dtype=object, name="ds"), series_only=True)
    >>> untyped_times(like, integer=False).to_native().dtype
    dtype('<M8[ns]')
    """
    polars = like.implementation.is_polars()
    words = {"name": like.name, "library": "polars" if polars else "pandas"}
    if integer:
        return restore({**words, "dtype": "Int64" if polars else "int64"}, None)
    return restore({**words, "dtype": "datetime64[ns]", "unit": "ns", "zone": None}, None)


def pack(values: Sequence[Any], what: str) -> npt.NDArray[Any]:
    """Return text or numbers as an array that can be stored without pickling.

    Raises
    ------
    ValueError
        If the values, which ``what`` names, are something else or a mixture.

    Examples
    --------
    >>> from rbfdiffnet.panel.column_types import pack
    >>> pack(["a", "bc"], "The ids")
    array(['a', 'bc'], dtype='<U2')
    """
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


def _pandas_name(column: Column) -> str:
    """Return a name from which pandas finds the data type again."""
    import pandas as pd

    dtype: Any = column.to_native().dtype
    if isinstance(dtype, pd.StringDtype):
        return f"string[{dtype.storage}]" if dtype.na_value is pd.NA else "str"
    if isinstance(dtype, pd.ArrowDtype) and (zone := time_zone(column)) is not None:
        # Pandas cannot read the name of this one; its own type says the same.
        return f"datetime64[{column.dtype.time_unit}, {zone}]"  # type: ignore[attr-defined]
    return str(dtype)

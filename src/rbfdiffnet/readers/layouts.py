"""Many series in memory, as lean as they came, and parts of them as long frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LongLayout", "MatrixLayout"]

_EXACT = 2**24  # whole numbers up to here are exact in 32 bits


@dataclass(frozen=True, eq=False)
class LongLayout:
    """Series as rows of a long frame, series by series.

    Parameters
    ----------
    frame : DataFrame
        ``unique_id`` (a categorical column), ``ds``, ``y`` and inputs.
    offsets : ndarray of shape (n_series + 1,)
        Where the series begin.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.layouts import LongLayout
    >>> ids = pd.Categorical(["b", "a", "b"], categories=["b", "a"])
    >>> long = LongLayout.of(pd.DataFrame({"unique_id": ids, "ds": [1, 1, 2], "y": [5, 6, 7]}))
    >>> long.n_series, long.part(0, 1)["y"].tolist()
    (2, [5, 7])
    """

    frame: pd.DataFrame
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> LongLayout:
        """Sort a frame by series, in the order of their categories."""
        codes = frame["unique_id"].cat.codes.to_numpy()
        if (np.diff(codes) < 0).any():
            order = np.argsort(codes, kind="stable")
            frame, codes = frame.iloc[order].reset_index(drop=True), codes[order]
        counts = np.bincount(codes, minlength=len(frame["unique_id"].cat.categories))
        return cls(frame, np.append(0, np.cumsum(counts)))

    @property
    def ids(self) -> list[str]:
        """Names of the series."""
        return self.frame["unique_id"].cat.categories.tolist()

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self.offsets) - 1

    @property
    def n_values(self) -> int:
        """Number of known values."""
        return int(self.frame["y"].notna().sum())

    def part(self, start: int, stop: int) -> pd.DataFrame:
        """Return the series from one position to another as a long frame."""
        rows = self.frame.iloc[self.offsets[start] : self.offsets[stop]]
        return rows.reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class MatrixLayout:
    """Series that share their dates: a row each.

    A series begins with its first value. With ``open_end`` it also ends with its last one.

    Parameters
    ----------
    names : list of str
    times : Series
        Dates or whole numbers of the columns, ascending.
    values : ndarray of shape (n_series, n_times)
    open_end : bool

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from rbfdiffnet.readers.layouts import MatrixLayout
    >>> values = np.array([[1.0, 2.0], [np.nan, 3.0]])
    >>> MatrixLayout(["a", "b"], pd.Series([1, 2]), values).part(0, 2)
      unique_id  ds    y
    0         a   1  1.0
    1         a   2  2.0
    2         b   2  3.0
    """

    names: list[str]
    times: pd.Series[Any]
    values: npt.NDArray[Any]
    open_end: bool = False

    @property
    def ids(self) -> list[str]:
        """Names of the series."""
        return self.names

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self.names)

    @property
    def n_values(self) -> int:
        """Number of known values."""
        if self.values.dtype.kind != "f":
            return self.values.size
        return int(self.values.size - sum(np.isnan(row).sum() for row in self.values))

    def part(self, start: int, stop: int) -> pd.DataFrame:
        """Return the series from one position to another as a long frame."""
        import pandas as pd

        values = self.values[start:stop]
        n, width = values.shape
        kept = np.ones((n, width), dtype=bool)
        if values.dtype.kind == "f":
            known = ~np.isnan(values)
            kept = np.maximum.accumulate(known, axis=1)
            if self.open_end:
                kept &= np.maximum.accumulate(known[:, ::-1], axis=1)[:, ::-1]
            kept[~known.any(axis=1), -1:] = True  # series without values stay
        rows, columns = np.nonzero(kept)
        ids = pd.Categorical.from_codes(rows + start, categories=pd.Index(self.names))
        return pd.DataFrame(
            {
                "unique_id": ids,
                "ds": self.times.take(columns).array,
                "y": lean(values[kept]),
            },
            copy=False,
        )


def lean(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers as floats, in 32 bits where nothing is lost.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.readers.layouts import lean
    >>> lean(np.array([1, 2], dtype=np.int16)).dtype, lean(np.array([0.1])).dtype
    (dtype('float32'), dtype('float64'))
    """
    if values.dtype.kind in "iub" and (
        values.dtype.itemsize <= 2 or (values.size and np.abs(values).max() <= _EXACT)
    ):
        return values.astype(np.float32)
    return values if values.dtype.kind == "f" else values.astype(np.float64)

"""Columns of a frame as numbers a network can use."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frames import convert_empty
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.parallel import SINGLE_MACHINE, Collective, flatten

FlatColumns = Mapping[str, npt.NDArray[Any]]
DescribeRow = Callable[[int], str]  # such as "series 'A' on 2024-05-01", for errors

_MOST_TEXTS = 60
_FEWEST_CODES, _MOST_CODES = 3, 31  # whole numbers with so few values may be codes, like weekdays


@dataclass(frozen=True)
class ColumnEncoding:
    r"""How one column becomes numbers.

    .. math:: x \mapsto x, \qquad x \mapsto (1[x = v_1], \ldots, 1[x = v_k]) \qquad\text{or}\qquad
        x \mapsto (x, 1[x = v_1], \ldots, 1[x = v_k])

    for numbers, for text, and for whole numbers that may be codes, where
    :math:`v_1, \ldots, v_k` are the values known from training, `values`. Any other text has no
    known effect and gives zeros; any other whole number still has its slope. `means` are those of
    the resulting columns in training, which stand in for a missing number; a mean of NaN leaves it
    missing. For text they are None, and a missing text gives zeros. `span` is the smallest and the
    largest number in training that is no typo.
    """

    name: str
    values: tuple[str, ...] | tuple[int, ...] | None
    means: tuple[float, ...] | None
    span: tuple[float, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the resulting columns."""
        if self.values is None:
            return (self.name,)
        switches = tuple(f"{self.name}={value}" for value in self.values)
        return switches if self.means is None else (self.name, *switches)

    def encode(self, values: npt.NDArray[Any]) -> Array:
        """Return the columns, shape (n, len(names)), of values of shape (n,)."""
        if self.values is None:
            encoded = values[:, np.newaxis].astype(np.float64)
        elif self.means is None:
            position = {value: j for j, value in enumerate(self.values)}
            code = {v: position.get(str(v), -1) for v in set(values.tolist()) if not _is_missing(v)}
            codes = np.array([code.get(value, -1) for value in values.tolist()], dtype=np.int64)
            encoded = np.equal.outer(codes, np.arange(len(position))).astype(np.float64)
        else:
            switches = np.equal.outer(values, np.array(self.values)).astype(np.float64)
            encoded = np.column_stack([values, switches])
        if self.means is not None:
            encoded[np.isnan(values)] = self.means
        return encoded


@dataclass(frozen=True)
class Encoder:
    """Turns the columns of a panel into numbers, in the same way after training as in it.

    Text becomes one 0/1 column for each value, a missing text zeros in all of them. Whole numbers
    with 3 to 31 different values may be codes, like the days 1 to 7 of a week, or amounts, like a
    discount: they get both, one 0/1 column for each value and the number itself. All other numbers
    stay as they are, and columns that never change are left out. Missing numbers raise an error, or
    get the mean of training if `allow_missing`. Fitted with `as_is`, all numbers stay as they are,
    missing ones, too.
    """

    columns: tuple[ColumnEncoding, ...]
    allow_missing: bool = False

    @classmethod
    def fit(
        cls,
        columns: FlatColumns,
        where: DescribeRow,
        *,
        ranges: Mapping[str, Array] | None = None,
        allow_missing: bool = False,
        as_is: bool = False,
        collective: Collective = SINGLE_MACHINE,
    ) -> Self:
        """Decide from training data how each column, of shape (n,), is encoded.

        `ranges`, (2, n_series) each, are the smallest and the largest numbers that are no typos; by
        default no number is one.
        """

        def summarize() -> list[_TextSummary | _NumberSummary]:
            return [
                _TextSummary.of(values)
                if values.dtype == object
                else _NumberSummary.of(
                    check_numbers(name, values, where, allow_missing), (ranges or {}).get(name)
                )
                for name, values in columns.items()
            ]

        found = (
            collective.all_reduce(
                summarize, partial(_choose_encodings, names=list(columns), as_is=as_is)
            )
            if columns
            else []
        )
        names = [name for column in found for name in column.names]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"Two inputs are called {twice!r}; rename one of the columns.")
        return cls(tuple(found), allow_missing)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the resulting columns."""
        return tuple(name for column in self.columns for name in column.names)

    def encode(self, columns: FlatColumns, where: DescribeRow) -> Array:
        """Return the inputs, shape (n, len(names)); columns not used are ignored."""
        rows = len(next(iter(columns.values()), ()))
        blocks = [np.empty((rows, 0))]
        for column in self.columns:
            if column.name not in columns:
                raise ValueError(
                    f"Column {column.name!r} was there in training and is not now; add it."
                )
            text = column.means is None
            values = convert_empty(columns[column.name], text)
            if text != (values.dtype == object):
                before, now = ("text", "numbers") if text else ("numbers", "text")
                raise ValueError(
                    f"Column {column.name!r} held {before} in training and holds {now} now; "
                    f"give it as {before}."
                )
            if not text:
                values = check_numbers(column.name, values, where, self.allow_missing)
            blocks.append(column.encode(values))
        return np.hstack(blocks)

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> Self:
        """Restore an encoder that was written as a dictionary."""
        columns = tuple(
            ColumnEncoding(
                column["name"],
                *(_as_tuple(column.get(part)) for part in ("values", "means", "span")),
            )
            for column in settings["columns"]
        )
        return cls(columns, settings["allow_missing"])


@dataclass(frozen=True)
class _TextSummary:
    """What the encoding of a text column depends on."""

    values: frozenset[str]
    missing: bool

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Self:
        distinct = set(values.tolist())
        known = frozenset(str(value) for value in distinct if not _is_missing(value))
        return cls(known, any(map(_is_missing, distinct)))


@dataclass(frozen=True)
class _NumberSummary:
    """What the encoding of a numeric column depends on; no counts where there are many values."""

    n: int
    mean: float
    smallest: float
    largest: float
    span: tuple[float, float]
    counts: dict[float, int] | None

    @classmethod
    def of(cls, values: Array, ranges: Array | None) -> Self:
        known = values[~np.isnan(values)]
        low, high = (known, known) if ranges is None else ranges
        distinct, counts = np.unique(known, return_counts=True)
        codes = distinct.size <= _MOST_CODES and bool((distinct == np.rint(distinct)).all())
        return cls(
            known.size,
            float(known.mean()) if known.size else 0.0,
            float(known.min(initial=np.inf)),
            float(known.max(initial=-np.inf)),
            (float(low.min(initial=np.inf)), float(high.max(initial=-np.inf))),
            dict(zip(distinct.tolist(), counts.tolist(), strict=True)) if codes else None,
        )


def _choose_encodings(
    parts: list[list[_TextSummary | _NumberSummary]], names: list[str], as_is: bool
) -> list[ColumnEncoding]:
    """Choose the encodings of the columns that change, from what each machine has seen."""
    found = []
    for name, *seen in zip(names, *parts, strict=True):
        texts = [part for part in seen if isinstance(part, _TextSummary)]
        numbers = [part for part in seen if isinstance(part, _NumberSummary)]
        # Where every value is missing, a frame may have stored it as either kind.
        if any(part.values for part in texts) and any(part.n for part in numbers):
            raise ValueError(f"Column {name!r} holds text in some rows, numbers in others.")
        if any(part.n for part in numbers) or not texts:
            column = _encode_numbers(name, numbers, as_is)
        else:
            missing = any(part.missing for part in texts) or bool(numbers)
            column = _encode_text(name, set(flatten(part.values for part in texts)), missing)
        if column is not None:
            found.append(column)
    return found


def _encode_text(name: str, values: set[str], missing: bool) -> ColumnEncoding | None:
    """Return the encoding of a text column, None if it never changes."""
    if len(values) > _MOST_TEXTS:
        raise ValueError(
            f"Column {name!r} has {len(values)} different texts, more than {_MOST_TEXTS}; "
            "group the values or leave the column out."
        )
    changes = len(values) > 1 or (len(values) == 1 and missing)
    return ColumnEncoding(name, tuple(sorted(values)), None) if changes else None


def _encode_numbers(name: str, parts: list[_NumberSummary], as_is: bool) -> ColumnEncoding | None:
    """Return the encoding of a numeric column, None if it never changes."""
    if not min(part.smallest for part in parts) < max(part.largest for part in parts):
        return None
    span = min(part.span[0] for part in parts), max(part.span[1] for part in parts)
    if as_is:
        return ColumnEncoding(name, None, (math.nan,), span)
    n = sum(part.n for part in parts)
    mean = sum(part.mean * (part.n / n) for part in parts)
    if all(part.counts is not None for part in parts):
        counts: dict[float, int] = {}
        for value, count in flatten((part.counts or {}).items() for part in parts):
            counts[value] = counts.get(value, 0) + count
        if _FEWEST_CODES <= len(counts) <= _MOST_CODES:
            values = sorted(counts)
            shares = [counts[value] / n for value in values]
            return ColumnEncoding(name, tuple(map(int, values)), (mean, *shares), span)
    return ColumnEncoding(name, None, (mean,), span)


def check_numbers(
    name: str, values: npt.NDArray[Any], where: DescribeRow, allow_missing: bool
) -> Array:
    """Return the numbers of a column, or say which one is missing or infinite."""
    numbers = values.astype(np.float64)
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(infinite.argmax())
        raise ValueError(f"Column {name!r} is infinite for {where(row)}; correct it.")
    missing = np.isnan(numbers)
    if missing.any() and not allow_missing:
        row = int(missing.argmax())
        raise ValueError(f"Column {name!r} has no value for {where(row)}; fill it in.")
    return numbers


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _as_tuple(values: Any) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)

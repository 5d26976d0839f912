r"""Many numbers as little text: three bytes each, by significance, compressed, in base 64.

A number is kept as the first three bytes of its 32-bit float, rounded to nearest, so

.. math:: |\tilde y - y| \le 2^{-17} \max_{2^k \le |y|} 2^{k+1} \le 2^{-16} |y|

which is between four and five digits, and whole numbers up to 65,536 exactly. All first bytes
come before all second ones, since bytes of the same significance are alike and compress well.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.frames import ColumnNames, read_frame
from rbfdiffnet.pretrained.exemplars import load_exemplars
from rbfdiffnet.report.tables import Table, read_table
from rbfdiffnet.support.arrays import Array, Ints, Mask

_LARGEST = 3.3e38  # a little below the largest 32-bit float

_NUMBERS = ("contribution", "value", "weight", "activation")  # columns of explanations
_WORDS = ("part", "term", "nearest")
_MOST_ROWS = 150_000  # of explanations
_NEGLIGIBLE = 1e-6  # of the largest term of a series
_MOST_PICTURES = 3  # exemplars of a series that are drawn


class Packer:
    """Collects named arrays, and where in the bytes each of them begins."""

    def __init__(self) -> None:
        self.sections: dict[str, list[Any]] = {}
        self._stream = zlib.compressobj(level=6, wbits=31)  # in the format of gzip
        self._parts: list[bytes] = []
        self._size = 0

    def add_floats(self, name: str, values: npt.NDArray[Any]) -> None:
        """Add numbers of which four to five digits are kept."""
        self._add_planes("floats", name, np.clip(values, -_LARGEST, _LARGEST), 3)

    def add_singles(self, name: str, values: npt.NDArray[Any]) -> None:
        """Add numbers of which seven digits are kept."""
        self._add_planes("singles", name, np.clip(values, -_LARGEST, _LARGEST), 4)

    def add_counts(self, name: str, values: npt.NDArray[Any]) -> None:
        """Add whole numbers from 0 to 2^32 - 1."""
        bits = np.ascontiguousarray(values).astype(">u4")
        self._add("counts", name, bits.view(np.uint8).reshape(-1, 4).T.tobytes(), len(values))

    def add_doubles(self, name: str, values: npt.NDArray[Any]) -> None:
        """Add numbers as they are."""
        self._add("doubles", name, np.asarray(values).astype("<f8").tobytes(), len(values))

    def add_table(self, name: str, table: Table, axis: Ints, base: Array) -> None:
        """Add a table: rows of each series, where they are on the axis of times, and numbers.

        A place on the axis is kept as the step from the row before. ``base`` (series,) is taken off
        the numbers.
        """
        self.add_counts(f"{name}/rows", np.bincount(table.series, minlength=len(base)))
        first = np.diff(table.series, prepend=-1) != 0
        cutoffs = {} if table.cutoffs is None else {"cutoff": table.cutoffs}
        for key, times in {"step": table.times, **cutoffs}.items():
            place = np.searchsorted(axis, times)
            step = np.where(first, place, np.diff(place, prepend=0))
            self.add_counts(f"{name}/{key}", step % 2**32)  # back to an earlier window is negative
        for column, values in table.columns.items():
            self.add_floats(f"{name}:{column}", values - base[table.series])

    def size(self) -> int:
        """Return how many bytes everything takes so far, compressed."""
        self._parts.append(self._stream.flush(zlib.Z_SYNC_FLUSH))
        return sum(map(len, self._parts))

    def finish(self) -> str:
        """Return everything as text; nothing can be added any more."""
        self._parts.append(self._stream.flush())
        return base64.b64encode(b"".join(self._parts)).decode("ascii")

    def _add_planes(self, kind: str, name: str, values: npt.NDArray[Any], size: int) -> None:
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        if size == 3:  # to nearest; a NaN stays one
            bits = np.where(np.isnan(values), bits, bits + np.uint32(0x80))
        planes = bits.astype(">u4").view(np.uint8).reshape(-1, 4).T[:size]
        self._add(kind, name, planes.tobytes(), len(values))

    def _add(self, kind: str, name: str, data: bytes, count: int) -> None:
        self.sections[name] = [kind, self._size, count]
        self._parts.append(self._stream.compress(data))
        self._size += len(data)


def pack_explanations(
    packer: Packer,
    explanations: Mapping[str, Any] | None,
    columns: ColumnNames,
    ids: dict[str, int],
    axis: Ints,
) -> dict[str, Any]:
    """Pack the terms of forecasts of some series, and return what goes into JSON.

    ``series`` are those with terms, ``left_out`` is how many were too many, ``words`` are the texts
    that terms refer to, ``pictures`` the values of exemplars by their terms, and ``equations`` the
    terms of the operator by series.
    """
    given = dict(explanations or {})
    unknown = set(given) - {"terms", "equation"}
    if unknown:
        raise ValueError(
            f"explanations has an entry {sorted(unknown)[0]!r}; it may have 'terms', a frame that "
            "RBFDiffNet.explain returns, and 'equation', one that RBFDiffNet.equation returns."
        )
    facts: dict[str, Any] = {"series": [], "left_out": 0, "words": [], "pictures": {}}
    facts["equations"] = {}
    if given.get("terms") is not None and len(given["terms"]):
        facts |= _pack_terms(packer, given["terms"], columns, ids, axis)
    if given.get("equation") is not None:
        facts["equations"] = _read_equations(given["equation"], columns, ids)
    return facts


def _pack_terms(
    packer: Packer, df: Any, columns: ColumnNames, ids: dict[str, int], axis: Ints
) -> dict[str, Any]:
    what = "explanations['terms']"
    every = read_table(df, what, columns, ids, _NUMBERS, text=_WORDS)
    every = every.take(np.isin(every.times, axis))  # forecasts that are in the report
    size = np.abs(every.columns["contribution"])
    largest = np.zeros(len(ids))
    np.fmax.at(largest, every.series, size)
    drawn, beside, pictures = _find_drawn(every)
    table = every.take((size >= _NEGLIGIBLE * largest[every.series]) & ~beside | drawn)
    all_series = np.unique(table.series)
    ends = np.searchsorted(table.series, all_series, side="right")
    series = all_series[ends <= _MOST_ROWS]
    table = table.take(np.isin(table.series, series))
    packer.add_counts("terms/rows", np.bincount(table.series, minlength=len(ids)))
    packer.add_counts("terms/place", np.searchsorted(axis, table.times))
    for name in _NUMBERS:
        packer.add_singles(f"terms:{name}", table.columns[name])
    texts = np.concatenate([table.columns[name] for name in _WORDS])
    words, codes = np.unique(texts, return_inverse=True)
    for name, code in zip(_WORDS, codes.reshape(len(_WORDS), -1), strict=True):
        packer.add_counts(f"terms/{name}", code)
    return {
        "series": series.tolist(),
        "left_out": len(all_series) - len(series),
        "words": words.tolist(),
        "pictures": pictures,
    }


def _find_drawn(terms: Table) -> tuple[Mask, Mask, dict[str, list[float | None]]]:
    """Return which terms of the pretrained network are drawn, which are not summed, and pictures.

    Drawn are the most active exemplars of a series, and responses of its first and last forecast.
    """
    part, value = terms.columns["part"], terms.columns["value"]
    beside = (part == "response") | ((part == "exemplar") & np.isfinite(value))
    drawn = np.zeros(len(part), dtype=bool)
    if not beside.any():
        return drawn, beside, {}
    known = {one.name: one.values for one in load_exemplars()}
    names, gates = terms.columns["term"], terms.columns["activation"]
    rows = np.flatnonzero(beside & np.isin(names, list(known)))
    rows = rows[np.lexsort((-gates[rows], terms.times[rows], terms.series[rows]))]
    keys = np.stack([terms.series[rows], terms.times[rows]])
    starts = np.flatnonzero(np.any(np.diff(keys, axis=1, prepend=-1) != 0, axis=0))
    rank = np.arange(rows.size) - np.repeat(starts, np.diff(starts, append=rows.size))
    drawn[rows[rank < _MOST_PICTURES]] = True
    pictures = {
        str(name): [round(v, 3) if np.isfinite(v) else None for v in known[name].tolist()]
        for name in np.unique(names[drawn])
    }
    _, first, count = np.unique(terms.series, return_index=True, return_counts=True)
    ends = np.stack([terms.times[first], terms.times[first + count - 1]])
    at_end = (terms.times == np.repeat(ends, count, axis=1)).any(axis=0)
    return drawn | ((part == "response") & at_end), beside, pictures


def _read_equations(df: Any, columns: ColumnNames, ids: dict[str, int]) -> dict[int, list[Any]]:
    """Return order, input and coefficient of the terms of each series, the largest first."""
    names = (columns.id, "order", "input", "coefficient")
    frame = read_frame(df, list(names))
    equations: dict[int, list[Any]] = {}
    for name, order, by, value in zip(*(frame[key].to_list() for key in names), strict=True):
        if str(name) in ids:
            term = [int(order), str(by), float(f"{value:.6g}")]
            equations.setdefault(ids[str(name)], []).append(term)
    for terms in equations.values():
        terms.sort(key=lambda term: -abs(term[2]))
    return equations

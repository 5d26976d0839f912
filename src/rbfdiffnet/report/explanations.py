"""Terms of forecasts and learned equations of some series, packed for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rbfdiffnet.panel.columns import Columns
from rbfdiffnet.panel.frames import read_frame
from rbfdiffnet.report.packing import Packer
from rbfdiffnet.report.tables import read_table

__all__ = ["add_explanations"]

Ints = npt.NDArray[np.int64]

_NUMBERS = ("contribution", "value", "weight", "activation")
_WORDS = ("part", "term", "nearest")
_MOST_ROWS = 150_000
_NEGLIGIBLE = 1e-6  # of the largest term of a series


def add_explanations(
    packer: Packer,
    explanations: Mapping[str, Any] | None,
    columns: Columns,
    ids: dict[str, int],
    axis: Ints,
) -> dict[str, Any]:
    """Pack explanations, and return what goes into JSON.

    Parameters
    ----------
    packer : Packer
    explanations : mapping or None
        As in `rbfdiffnet.report.write_report`.
    columns : Columns
    ids : dict of str to int
    axis : ndarray of int
        Times that places on the axis of the page stand for.

    Returns
    -------
    dict
        ``series``: those with terms; ``left_out``: how many were too many; ``words``: texts that
        terms refer to; ``equations``: terms of the operator by series.
    """
    given = dict(explanations or {})
    unknown = set(given) - {"terms", "equation"}
    if unknown:
        raise ValueError(
            f"explanations has an entry {sorted(unknown)[0]!r}; it may have 'terms', a frame that "
            "RBFDiffNet.explain returns, and 'equation', one that RBFDiffNet.equation returns."
        )
    facts: dict[str, Any] = {"series": [], "left_out": 0, "words": [], "equations": {}}
    if given.get("terms") is not None and len(given["terms"]):
        facts |= _terms(packer, given["terms"], columns, ids, axis)
    if given.get("equation") is not None:
        facts["equations"] = _equations(given["equation"], columns, ids)
    return facts


def _terms(
    packer: Packer, df: Any, columns: Columns, ids: dict[str, int], axis: Ints
) -> dict[str, Any]:
    what = "explanations['terms']"
    every = read_table(df, what, columns, ids, _NUMBERS, text=_WORDS)
    every = every.taken(np.isin(every.times, axis))  # forecasts that are in the report
    size = np.abs(every.columns["contribution"])
    largest = np.zeros(len(ids))
    np.fmax.at(largest, every.series, size)
    table = every.taken(size >= _NEGLIGIBLE * largest[every.series])
    all_series = np.unique(table.series)
    ends = np.searchsorted(table.series, all_series, side="right")
    series = all_series[ends <= _MOST_ROWS]
    table = table.taken(np.isin(table.series, series))
    packer.counts("terms/rows", np.bincount(table.series, minlength=len(ids)))
    packer.counts("terms/place", np.searchsorted(axis, table.times))
    for name in _NUMBERS:
        packer.singles(f"terms:{name}", table.columns[name])
    texts = np.concatenate([table.columns[name] for name in _WORDS])
    words, codes = np.unique(texts, return_inverse=True)
    for name, code in zip(_WORDS, codes.reshape(len(_WORDS), -1), strict=True):
        packer.counts(f"terms/{name}", code)
    return {
        "series": series.tolist(),
        "left_out": len(all_series) - len(series),
        "words": words.tolist(),
    }


def _equations(df: Any, columns: Columns, ids: dict[str, int]) -> dict[int, list[Any]]:
    """Order, input and coefficient of the terms of each series, the largest first."""
    frame = read_frame(df, [columns.id, "order", "input", "coefficient"])
    equations: dict[int, list[Any]] = {}
    names = (columns.id, "order", "input", "coefficient")
    for name, order, by, value in zip(*(frame[key].to_list() for key in names), strict=True):
        if str(name) in ids:
            term = [int(order), str(by), float(f"{value:.6g}")]
            equations.setdefault(ids[str(name)], []).append(term)
    for terms in equations.values():
        terms.sort(key=lambda term: -abs(term[2]))
    return equations

"""Explanations as frames: the terms of forecasts, and the learned differential operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rbfdiffnet.models.base import Terms
from rbfdiffnet.models.networks.explain import operator_terms
from rbfdiffnet.models.networks.series_model import SeriesModel
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.arrays import Array


def explanation_frame(panel: Panel, tables: Sequence[Terms], values: Array, bounded: Array) -> Any:
    """Return the frame `RBFDiffNet.explain` promises; values (n, h) are bounded afterwards."""
    for terms, before, after in zip(tables, values, bounded, strict=True):
        if np.any(after != before):
            terms.add("bound", "lower bound", after - before)
    h = bounded.shape[1]
    n_terms = np.array([len(t.rows) for t in tables], dtype=np.int64)
    texts: dict[str, list[str]] = {"part": [], "term": [], "nearest": []}
    numbers: dict[str, list[Array]] = {
        name: [] for name in ("value", "weight", "activation", "contribution")
    }
    for t in tables:
        for name, column in numbers.items():
            column.append(np.stack([row[name] for row in t.rows], axis=1).ravel())
        for text, words in texts.items():
            words += [row[text] for row in t.rows] * h
    series = np.repeat(np.arange(panel.n_series), n_terms * h)
    step = np.concatenate(
        [np.repeat(np.arange(h), n) for n in n_terms] + [np.empty(0, dtype=np.int64)]
    )
    flat = {name: np.concatenate([*column, np.empty(0)]) for name, column in numbers.items()}
    columns = {
        "part": np.array(texts["part"], dtype=object),
        "term": np.array(texts["term"], dtype=object),
        **flat,
        "nearest": np.array(texts["nearest"], dtype=object),
    }
    first = panel.lengths[series] + step
    return panel.select(series).make_frame(first, np.ones(series.size, dtype=np.int64), columns)


def operator_frame(
    panel: Panel, models: Mapping[int, SeriesModel], extra_names: tuple[str, ...]
) -> Any:
    """Return the frame `RBFDiffNet.equation` promises, for models by the position of a series."""
    rows = [
        (i, *term)
        for i, model in models.items()
        if model.windows.network.order
        for term in operator_terms(model, extra_names)
    ]
    series, orders, inputs, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    return panel.make_table(
        np.array(series, dtype=np.int64),
        {
            "order": np.array(orders, dtype=np.int64),
            "input": np.array(inputs, dtype=object),
            "coefficient": np.array(values, dtype=np.float64),
        },
    )

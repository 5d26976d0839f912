"""Ways to the same forecasts: frame library, order, chunks, threads, files, `fit` and `predict`.

docs/versions.md promises the same bits for each of them, whatever the panel. Chunks of the stack
agree up to rounding, and so does a GPU, where there is one.
"""

import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

from fuzzing.odd_panels import DRAWN, FREQ, KINDS, make_panel, to_polars
from fuzzing.trial import for_all
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.forecasting import chunks
from rbfdiffnet.models import sampled

LEVELS = [80, 95]


def reordered(model, df, h, rng):
    """Rows in another order, and so series, too."""
    return model.forecast(df.iloc[rng.permutation(len(df))], h, level=LEVELS)


def in_chunks(model, df, h, _):
    """One series after the other; of a stack those that it does not learn from."""
    with (
        patch.object(chunks, "split_by_memory", lambda n, *_: list(np.arange(n.size)[:, None])),
        patch.object(sampled, "_BYTES", 2 * 10**9),
    ):
        return model.forecast(df, h, level=LEVELS)


def in_threads(model, df, h, _):
    several = RBFDiffNet(**{**vars(model.options), "n_jobs": 3})
    return several.forecast(df, h, level=LEVELS)


def fitted(model, df, h, _):
    return model.fit(df, h).predict(h, level=LEVELS)


def saved(model, df, h, _):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        model.fit(df, h).save(path)
        return RBFDiffNet.load(path).predict(h, level=LEVELS)


def on_card(model, df, h, _):
    try:
        other = RBFDiffNet(**{**vars(model.options), "device": "cuda"})
    except ValueError:  # settings that are for the processor only
        return None
    return other.forecast(df, h, level=LEVELS)


def _has_card():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


WAYS = {way.__name__: way for way in (reordered, in_chunks, in_threads, fitted, saved)}
if _has_card():
    WAYS["on_card"] = on_card


@for_all(kind=st.sampled_from(KINDS), way=st.sampled_from([*WAYS, "polars"]), **DRAWN)
def ways_that_agree(kind, way, series, ids, parameters, h, polars, seed):
    del polars
    df = make_panel(kind, series, ids, seed)
    if df.empty:  # refused
        return
    if kind == "integer":
        parameters = {**parameters, "calendar": None}
    model = RBFDiffNet(FREQ[kind], **parameters)
    with patch.object(sampled, "MOST_LEARNED_FROM", 2):  # so that small panels have chunks
        expected = model.forecast(df, h, level=LEVELS)
        if way == "polars":
            found = model.forecast(to_polars(df, kind, ids), h, level=LEVELS)
        else:
            found = WAYS[way](model, df, h, np.random.default_rng(seed))
    if found is None:
        return
    found, expected = _by_series(found), _by_series(expected)
    assert found.keys() == expected.keys()
    rounding = {"in_chunks": 1e-9 * (model.options.chosen_scope != "local"), "on_card": 1e-6}
    for name, values in expected.items():
        size = np.abs(values).max(initial=0.0)
        np.testing.assert_allclose(
            found[name], values, rtol=0.0, atol=rounding.get(way, 0.0) * size, err_msg=way
        )


def _by_series(frame):
    """Forecasts and ends of intervals of each id, of shape (h, columns)."""
    ids, values = np.array(frame["unique_id"].to_list()), frame[frame.columns[2:]].to_numpy()
    return {name: values[ids == name] for name in dict.fromkeys(ids.tolist())}

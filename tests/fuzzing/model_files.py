"""Files of models: bytes changed anywhere, and contents changed under right checksums.

Files carry checksums of their parts and a digest of the whole, so one that was damaged, or has
parts of another, is refused or gives the very same forecasts. One that was changed and signed anew
on purpose is refused or loaded, and takes neither forever nor all memory.
"""

import io
import json
import tempfile
import warnings
import zipfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from fuzzing.claims import Refused, attempt
from fuzzing.mutations import ARRAYS, change_tree, edited, edits, places, words
from fuzzing.trial import for_all
from panels import CONFIGURATIONS, make_panel
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.forecasting.saving import write_arrays

H = 3
KINDS = {
    "fast": ({"preset": "fast", "lags": 7}, ()),
    "direct": ({"preset": "fast", "lags": 7, "strategy": "direct"}, ()),
    "log1p": ({"transforms": ["log1p", "difference"], "lags": 3}, ()),
    "noise": ({"noise": 0.5, "lags": 3}, ()),
    "global": ({"scope": "global", "lags": 7}, ()),
    "everything": CONFIGURATIONS["everything"],
    "stack": ({}, ()),
}


@cache
def saved(kind):
    """The bytes of a file, its arrays and JSON document, the plan and the forecasts."""
    parameters, columns = KINDS[kind]
    df = make_panel("ab", n=40, columns=columns)
    model = RBFDiffNet("D", **parameters).fit(df, h=H)
    plan = None
    if columns:
        plan = model.make_future_frame(H).assign(price=2.0, offer="none")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        model.save(path)
        data = path.read_bytes()
    with np.load(io.BytesIO(data)) as file:
        arrays = dict(file)
    document = json.loads(arrays.pop("json").tobytes())
    return data, arrays, document, plan, model.predict(H, X_df=plan, level=[80])


def loaded(data):
    """What becomes of a file: a model, or a refusal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        path.write_bytes(data)
        return attempt(lambda: RBFDiffNet.load(path), kinds=ValueError)


@for_all(kind=st.sampled_from(sorted(KINDS)), changes=edits)
def changed_bytes(kind, changes):
    data, _, _, plan, expected = saved(kind)
    model = loaded(edited(data, changes))
    if not isinstance(model, Refused):
        assert model.predict(H, X_df=plan, level=[80]).equals(expected)


@for_all(kind=st.sampled_from(sorted(KINDS)), signed=st.booleans(), drawn=st.data())
def changed_contents(kind, signed, drawn):
    original, arrays, document, plan, expected = saved(kind)
    document = json.loads(json.dumps(document))
    arrays = dict(arrays)
    for _ in range(drawn.draw(st.integers(1, 2), label="changes")):
        if drawn.draw(st.booleans(), label="of the document"):
            path = drawn.draw(st.sampled_from(places(document)), label="place")
            action = drawn.draw(st.sampled_from(["replace", "replace", "remove", "repeat"]))
            change_tree(document, path, action, drawn.draw(words, label="value"))
        else:
            name = drawn.draw(st.sampled_from(sorted(arrays)), label="array")
            change = drawn.draw(st.sampled_from(sorted(ARRAYS)), label="change")
            arrays |= {name: changed(arrays[name], change)}
            arrays = {key: values for key, values in arrays.items() if values is not None}
    arrays["json"] = np.frombuffer(json.dumps(document, separators=(",", ":")).encode(), np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = loaded(signed_anew(arrays) if signed else packed(arrays, original))
        if isinstance(model, Refused):
            return
        if not signed:
            assert model.predict(H, X_df=plan, level=[80]).equals(expected)
            return
        with suppress(Exception):  # someone took pains: all that is promised is an end
            model.predict(H, X_df=plan, level=[80])


def changed(values, change):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ARRAYS[change](values)
    except (TypeError, ValueError, IndexError):  # no such change of these values
        return values
    return None if found is None else np.asanyarray(found)


def signed_anew(arrays):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        write_arrays(path, arrays)
        return path.read_bytes()


def packed(arrays, original):
    """The arrays in a file with the digest of another."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file, zipfile.ZipFile(io.BytesIO(original)) as other:
        file.comment = other.comment
        for name, values in arrays.items():
            with file.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    return buffer.getvalue()

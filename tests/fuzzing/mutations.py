"""Bytes and trees of values, changed a little."""

import numpy as np
from hypothesis import strategies as st

#: What is done to bytes, where (as a share of their length), how far, and with which value.
edits = st.lists(
    st.tuples(
        st.sampled_from(["flip", "set", "insert", "delete", "repeat", "cut", "swap", "zero"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(1, 64),
        st.integers(0, 255),
    ),
    min_size=1,
    max_size=4,
)


def edited(data, changes, pieces=()):
    """Return bytes after edits; inserted are single bytes, or pieces that mean something."""
    data = bytearray(data)
    for action, place, size, value in changes:
        at = int(place * len(data))
        if action == "flip" and data:
            data[at] ^= 1 << (value % 8)
        elif action == "set" and data:
            data[at] = value
        elif action == "insert":
            data[at:at] = pieces[value % len(pieces)] if pieces else bytes([value]) * size
        elif action == "delete":
            del data[at : at + size]
        elif action == "repeat":
            data[at:at] = data[at : at + size]
        elif action == "cut":
            del data[at:]
        elif action == "swap":
            data[at:] = data[at + size :] + data[at : at + size]
        elif action == "zero":
            data[at : at + size] = bytes(len(data[at : at + size]))
    return bytes(data)


#: Values for a place in a JSON document.
words = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 60),
    st.sampled_from([10**9, -(10**9), 2**63, 10**40, 1e308, -1e308, 1e-320, 0.5]),
    st.sampled_from([float("nan"), float("inf"), -float("inf")]),
    st.text(max_size=5),
    st.sampled_from(["auto", "local", "global", "D", "MS", "datetime64[ns]", "mean", "shared"]),
    st.just([]),
    st.just({}),
    st.lists(st.integers(-3, 60), max_size=3),
)


def places(tree, path=()):
    """Return paths to all values of a tree of dicts and lists."""
    found = [path] if path else []
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            found += places(value, (*path, key))
    return found


def change_tree(tree, path, action, value):
    """Replace, remove or repeat the value at a path."""
    for key in path[:-1]:
        tree = tree[key]
    if action == "remove":
        del tree[path[-1]]
    elif action == "repeat" and isinstance(tree, list):
        tree.append(tree[path[-1]])
    else:
        tree[path[-1]] = value


ARRAYS = {
    "remove": lambda a: None,  # noqa: ARG005
    "empty": lambda a: a[:0],
    "shorter": lambda a: a[:-1],
    "longer": lambda a: np.concatenate([a, a[-1:]]),
    "twice": lambda a: np.concatenate([a, a]),
    "reverse": lambda a: a[::-1],
    "flat": lambda a: a.ravel(),
    "deep": lambda a: a[None],
    "scalar": lambda a: a.ravel()[0] if a.size else a,
    "text": lambda a: a.astype(str),
    "floats": lambda a: a.astype(np.float64),
    "halves": lambda a: a.astype(np.float16),
    "integers": lambda a: a.astype(np.int64),
    "bytes": lambda a: a.astype(np.uint8),
    "flags": lambda a: a.astype(bool),
    "complex": lambda a: a.astype(complex),
    "dates": lambda a: a.astype("M8[ns]"),
    "records": lambda a: np.zeros(len(a), dtype=[("a", float)]),
    "negative": lambda a: -a,
    "larger": lambda a: a * np.float64(1000.0) + 7,
    "huge": lambda a: np.full_like(a, np.iinfo(a.dtype).max if a.dtype.kind in "iu" else 1e308),
    "zero": lambda a: np.zeros_like(a),
    "nan": lambda a: np.full(a.shape, np.nan),
    "infinite": lambda a: np.full(a.shape, np.inf),
    "one nan": lambda a: np.where(np.arange(a.size).reshape(a.shape) == a.size // 2, np.nan, a),
}

"""Small long frames, and whether two panels are the same."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st


def long_frame(ids="ab", n=4, start="2024-01-30", freq="D"):
    dates = pd.date_range(start, periods=n, freq=freq)
    return pd.concat(
        [
            pd.DataFrame({"unique_id": i, "ds": dates, "y": 10.0 * k + np.arange(n)})
            for k, i in enumerate(ids)
        ],
        ignore_index=True,
    )


def assert_same(a, b):
    np.testing.assert_array_equal(a.offsets, b.offsets)
    np.testing.assert_array_equal(a.y, b.y)
    assert a.inputs.keys() == b.inputs.keys()
    for name in a.inputs:
        assert a.inputs[name].dtype == b.inputs[name].dtype
        np.testing.assert_array_equal(a.inputs[name], b.inputs[name])
    assert a.problems == b.problems
    assert a.columns == b.columns
    assert [a.name(i) for i in range(a.n_series)] == [b.name(i) for i in range(b.n_series)]
    codes = np.repeat(np.arange(a.n_series), 3)
    steps = np.tile([0, 1, 50], a.n_series)
    np.testing.assert_array_equal(a.dates(codes, steps), b.dates(codes, steps))


# Rows of two or three series, with holes, repeated dates and missing values.
messy = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 12),
        st.one_of(st.none(), st.sampled_from([1.0, 2.5, np.inf, -3.0])),
    ),
    min_size=1,
    max_size=25,
)

"""Values of every kind, most of them wrong wherever they are given."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
from hypothesis import strategies as st


class Odd:
    """An object that is nothing in particular."""

    def __repr__(self):
        return "Odd()"


ODD = [
    *(None, True, False, 0, -1, 1, 2, 3, 10**30, -(10**30), 0.0, 1.5, -2.5, 1e-300, 1e300),
    *(float("nan"), float("inf"), -float("inf"), 1j, Decimal("2"), Decimal("NaN"), Fraction(7, 2)),
    *("", "auto", "D", "1", "nan", "ü\x00\n", "x" * 300, b"D", b""),
    *((), [], {}, set(), (1,), [2, 3], [None], ["a"], [[1, 2], [3, 4]], {"a": 1}, {1, 2}, range(3)),
    *(np.int64(2), np.uint8(200), np.float32(2.0), np.bool_(True), np.float64("nan"), np.str_("D")),
    *(np.array(3), np.array([]), np.array([1.0, 2.0]), np.array(["a"]), np.zeros((2, 2))),
    *(np.array([None]), np.datetime64("2024-01-01"), np.timedelta64(1, "D")),
    *(pd.NA, pd.NaT, pd.Timestamp("2024-01-01"), pd.Timedelta("1D"), dt.date(2024, 1, 1)),
    *(pd.Series([1, 2]), pd.DataFrame({"unique_id": ["a"]}), pd.offsets.Day(2), Odd(), int, len),
]


def one_of_odd(k):
    return ODD[k]


odd = st.integers(0, len(ODD) - 1).map(one_of_odd)
anything = st.one_of(
    odd,
    st.integers(-5, 40),
    st.floats(),
    st.text(max_size=8),
    st.lists(odd, max_size=3),
)

"""The benchmark of intervals: shares of sums inside their intervals are counted right."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import intervals  # noqa: E402
from accuracy_parts.data import DataSet, Window  # noqa: E402
from accuracy_parts.errors import naive_scale  # noqa: E402


def test_totals_are_compared_with_the_sums_that_came(rng):
    y = np.cumsum(rng.normal(size=(12, 66)), axis=1)
    names = [f"series {i:02d}" for i in range(12)]
    df = pd.DataFrame(
        {"unique_id": np.repeat(names, 66), "ds": np.tile(np.arange(66), 12), "y": y.ravel()}
    )
    window = Window(df[df["ds"] < 60], df[df["ds"] >= 60].sample(frac=1.0, random_state=0))
    data = DataSet("walks", 1, 6, 1, naive_scale, 1, {})
    found = intervals.cover_totals("instant", window, data, [3, 4]).set_index("steps")
    model = RBFDiffNet(1, season_length=1, preset="instant")
    for steps, ends in ((3, [60, 63, 66]), (4, [60, 64, 66])):
        sums = model.forecast(window.train, 6, level=[80], totals=steps)
        came = [own[a:b].sum() for own in y for a, b in pairwise(ends)]
        inside = (sums["RBFDiffNet-lo-80"] <= came) & (came <= sums["RBFDiffNet-hi-80"])
        assert found.loc[steps, 80] == pytest.approx(inside.mean())

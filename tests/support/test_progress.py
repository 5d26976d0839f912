"""Whoever watches hears how much is done."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.stack import parts
from rbfdiffnet.support.progress import tell, watched, within


def test_nobody_needs_to_watch():
    heard = []
    with within(0.0, 0.5):
        tell(1.0)
        with watched(heard.append):
            tell(1.0)  # of the whole, since nobody watched the part
    assert heard == [1.0]


def test_shares_of_shares():
    heard = []
    with watched(heard.append):
        with within(0.5, 1.0), within(0.0, 0.5):
            tell(0.5)
        tell(1.0)
    tell(0.1)
    assert heard == [0.625, 1.0]


@pytest.mark.parametrize("most", [10**9, 100])
def test_a_stack_tells_how_far_it_is(rng, monkeypatch, most):
    monkeypatch.setattr(parts, "_MOST_VALUES", most)
    ds = pd.date_range("2020-01-01", periods=30, freq="MS")
    names = [f"s{i}" for i in range(8)]
    frames = [pd.DataFrame({"unique_id": k, "ds": ds, "y": rng.normal(size=30)}) for k in names]
    heard = []
    with watched(heard.append):
        RBFDiffNet("MS").cross_validation(pd.concat(frames), 3, n_windows=2, level=[80])
    assert len(heard) >= 6
    assert (np.diff(heard) >= 0.0).all()
    assert heard[-1] == pytest.approx(1.0)

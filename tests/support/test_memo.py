"""Results that forecasts of one job share."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.stack import windows
from rbfdiffnet.support.memo import Memo, current_memo, fingerprint, share_results
from stacks import frame


def count_up(calls, size=3):
    calls.append(size)
    return np.full(size, len(calls))


def test_results_are_shared_inside_of_a_block_only():
    calls = []
    for _ in range(2):
        current_memo().get(b"a", lambda: count_up(calls))
    assert len(calls) == 2
    with share_results():
        memo = current_memo()
        for _ in range(2):
            found = memo.get(b"a", lambda: count_up(calls))
        with share_results():
            assert current_memo() is memo
        assert current_memo() is memo
    assert len(calls) == 3
    assert_array_equal(found, 3)
    assert not current_memo().is_shared


def test_the_oldest_results_are_forgotten_where_they_take_too_much_memory():
    calls, memo = [], Memo(is_shared=True, most_bytes=100)
    for key in (b"a", b"b", b"c", b"a"):
        memo.get(key, lambda: count_up(calls, 5))
        assert memo.n_bytes <= 100
    assert len(calls) == 4
    memo.get(b"c", lambda: count_up(calls, 5))
    assert len(calls) == 4
    memo.get(b"d", lambda: count_up(calls, 50))  # too large to be kept
    assert memo.n_bytes == 0


def test_fingerprints_tell_contents_apart():
    x = np.arange(6.0)
    parts = [(x,), (x.reshape(2, 3),), (x.astype(int),), (x[:3], x[3:]), (x, 1), (x, 2), (x + 1,)]
    assert len({fingerprint(*own) for own in parts}) == len(parts)
    assert fingerprint(x[::2]) == fingerprint(x[::2].copy())


@pytest.mark.parametrize("n_series", [1, 6])
def test_a_backtest_computes_windows_once_and_forecasts_the_same(rng, monkeypatch, n_series):
    t = np.arange(120)
    series = {
        f"s{i}": 50.0 + 8.0 * np.sin(t * np.pi / 6) + rng.normal(0, 2, 120) for i in range(n_series)
    }
    df, calls, forecast = frame(series, freq="MS"), [], windows.learn_members
    monkeypatch.setattr(
        windows, "learn_members", lambda *own, **more: calls.append(1) or forecast(*own, **more)
    )
    model = RBFDiffNet(freq="MS")
    found = model.cross_validation(df, h=12, n_windows=4)
    shared = len(calls)
    calls.clear()
    for cutoff, part in found.groupby("cutoff"):
        alone = model.forecast(df[df["ds"] <= cutoff], h=12)
        assert_allclose(part["RBFDiffNet"], alone["RBFDiffNet"], rtol=1e-9)
    assert shared < 0.7 * len(calls)

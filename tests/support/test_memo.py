"""Results that forecasts of one job share."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.stack import windows
from rbfdiffnet.support.memo import Memo, current_memo, fingerprint, share_results
from stacks import frame


def test_results_are_shared_inside_of_a_block_only():
    current_memo().keep(b"a", np.ones(3))
    assert current_memo().find(b"a") is None
    with share_results():
        memo, kept = current_memo(), np.ones(3)
        memo.keep(b"a", kept)
        with share_results():
            assert current_memo() is memo
            assert current_memo().find(b"a") is kept
        assert current_memo() is memo
    assert current_memo().find(b"a") is None
    assert not current_memo().is_shared


def test_the_oldest_results_are_forgotten_where_they_take_too_much_memory():
    memo = Memo(is_shared=True, most_bytes=100)
    for key in (b"a", b"b", b"c"):
        memo.keep(key, np.ones(5))
        assert memo.n_bytes <= 100
    assert [memo.find(key) is not None for key in (b"a", b"b", b"c")] == [False, True, True]
    memo.keep(b"d", np.ones(50))  # too large to be kept
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
    df, calls, learn = frame(series, freq="MS"), [], windows.learn_members
    monkeypatch.setattr(
        windows, "learn_members", lambda tasks, **more: calls.extend(tasks) or learn(tasks, **more)
    )
    model = RBFDiffNet(freq="MS")
    found = model.cross_validation(df, h=12, n_windows=4)
    shared = len(calls)
    calls.clear()
    for cutoff, part in found.groupby("cutoff"):
        alone = model.forecast(df[df["ds"] <= cutoff], h=12)
        assert_allclose(part["RBFDiffNet"], alone["RBFDiffNet"], rtol=1e-9)
    assert shared < 0.7 * len(calls)

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.rows import RowMaker, RowTable, choose_lags, choose_row_cut


def walk(rng, n, level=50.0):
    return level + rng.normal(size=n).cumsum()


def make_rows(histories, n_lags, h):
    return RowMaker.of(histories, replace(choose_row_cut(histories, h), n_lags=n_lags, h=h))


def exponential_mean(values, alpha):
    """Mean of a list of values, the latest of which counts alpha."""
    mean = values[0]
    for value in values[1:]:
        mean = (1.0 - alpha) * mean + alpha * value
    return mean


def row_by_hand(y, t, m, n_lags, h, n_long):
    """Base, unit, X, ahead and targets of one series at the origin t, value by value."""
    past = y[: t + 1]

    def at(s):
        return past[max(s, 0)]  # before its start a series repeats its first value

    def phase_mean(s, alpha):
        if s < 0:
            return past[0]
        return exponential_mean(past[s % m : s + 1 : m], alpha)

    lag = m if t >= m else 1
    unit = np.mean([abs(past[s] - past[s - lag]) for s in range(lag, t + 1)])
    base = past[t]
    X = [at(t - i) - base for i in range(1, n_lags)]
    X += [exponential_mean(past, alpha) - base for alpha in (0.01, 0.05, 0.15, 0.4)]
    X = [x / unit for x in X] + [np.clip(base / unit, -10.0, 10.0)]
    ahead = []
    long = {7: 364, 24: 168}.get(m, 0)
    for k in range(1, h + 1):
        inputs = []
        if m > 1:
            last = t + k
            while last > t:
                last -= m
            inputs += [(phase_mean(last, alpha) - base) / unit for alpha in (0.2, 0.5)]
        for j in range(n_long):
            turns = j + 1
            while t + k - turns * long > t - j * long:
                turns += 1
            then = t + k - turns * long
            level = exponential_mean(past[: max(t - (j + 1) * long, 0) + 1], 0.05)
            inputs.append((past[then] - level) / unit if then >= 0 else 0.0)
            if m == 7:
                then = t + k - round(turns * 365.25)
                usual = phase_mean(then - 7, 0.2)
                inputs.append((past[then] - usual) / unit if then >= 0 else 0.0)
        ahead.append(inputs)
    targets = [(y[t + k] - base) / unit if t + k < y.size else np.nan for k in range(1, h + 1)]
    return base, unit, X, ahead, targets


@pytest.mark.parametrize(
    ("m", "lengths", "n_lags", "h", "n_long"),
    [
        (1, (30, 12, 3), 5, 4, 0),
        (4, (40, 9, 23), 6, 6, 0),
        (12, (60, 40, 30), 3, 15, 0),
        (7, (4 * 364 + 3, 3 * 364 + 50, 1200), 15, 10, 1),
        (7, (5 * 364 + 100, 5 * 364 + 33, 500), 8, 380, 3),
        (24, (900, 850, 600), 25, 30, 3),
    ],
)
def test_rows_by_hand(rng, m, lengths, n_lags, h, n_long):
    series = [walk(rng, n) for n in lengths]
    histories = Histories.of(series, m)
    maker = make_rows(histories, n_lags, h)
    assert maker.row_cut.long_seasons == n_long
    T = max(lengths)
    for i, y in enumerate(series):
        for t in {1, y.size // 2, y.size - h - 1, y.size - 2, y.size - 1} & set(range(1, y.size)):
            rows = maker.cut(np.array([i]), np.array([T - y.size + t]))
            found = (rows.base[0], rows.unit[0], rows.X[0], rows.ahead[0], rows.targets[0])
            if n_long:
                assert rows.ahead.shape == (1, h, 2 + n_long * (2 if m == 7 else 1))
            for value, expected in zip(found, row_by_hand(y, t, m, n_lags, h, n_long), strict=True):
                expected = np.reshape(expected, np.shape(value))
                assert_allclose(value, expected, rtol=1e-9, atol=1e-9)
    latest = RowTable.of(histories, maker.row_cut).now
    for value, expected in zip(
        vars(latest).values(), vars(maker.latest_rows()).values(), strict=True
    ):
        assert_allclose(value, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("m", "n", "h"), [(1, 40, 5), (12, 60, 14), (7, 1500, 20), (24, 760, 30)])
def test_no_value_after_the_origin_enters_a_row(rng, m, n, h):
    before = Histories.of([walk(rng, n), walk(rng, n - 9)], m)
    at = n - h - 3
    values = before.values.copy()
    values[:, at + 1 :] = 1e6 * rng.normal(size=(2, n - at - 1))
    cut = before.with_values(before.values[:, : at + 1])
    makers = [make_rows(x, 6, h) for x in (before, before.with_values(values), cut)]
    rows = [maker.cut(np.arange(2), np.full(2, at)) for maker in makers]
    for name in ("base", "unit", "X", "ahead"):
        for other in rows[1:]:
            assert_allclose(getattr(rows[0], name), getattr(other, name), rtol=1e-12)
    assert not np.isclose(rows[0].targets, rows[1].targets).any()
    assert np.isnan(rows[2].targets).all()
    usable = [np.isfinite(maker.units[:, : at + 1]) for maker in makers]
    assert_array_equal(usable[0], usable[1])


def test_training_rows_have_a_target_and_all_their_lags(rng):
    histories = Histories.of([walk(rng, 30), walk(rng, 12), walk(rng, 5)], 4)
    rows = make_rows(histories, 6, 3).training_rows(10_000)[0]
    expected = [(0, t) for t in range(5, 29)] + [(1, t) for t in range(23, 29)]
    assert list(zip(rows.series, rows.at, strict=True)) == expected
    assert np.isfinite(rows.targets[:, 0]).all()
    for k in (1, 2):
        assert_array_equal(np.isfinite(rows.targets[:, k]), rows.at + k + 1 < 30)
    few = make_rows(histories, 6, 3).training_rows(10)[0]
    assert 8 <= len(few.at) <= 12
    assert set(zip(few.series, few.at, strict=True)) <= set(expected)


def test_series_that_end_earlier_have_the_same_rows_and_a_few_more(rng):
    series = [walk(rng, n) for n in (400, 300, 350, 380)]
    ends, maker = [], None
    for less in (0, 30):
        maker = make_rows(Histories.of([y[: y.size - less] for y in series], 12), 12, 6)
        rows, few = maker.training_rows(300, 200)
        assert 180 <= few.sum() <= 220
        assert 280 <= rows.at.size <= 320
        assert set(rows.at % 12) == set(range(12))  # of all phases
        ends.append(set(zip(rows.series, rows.at - maker.starts[rows.series], strict=True)))
    last = np.array([y.size - 30 - 2 for y in series])
    latest = {(i, at) for i, at in ends[0] if at <= last[i]}
    assert latest <= ends[1]
    assert len(latest) > 0.85 * len(ends[1])


def test_nothing_is_learned_from_a_few_series_that_hardly_ever_change(rng):
    sale = np.where(np.arange(84) == 42, 1.0, 0.0)
    walks, tenths = [walk(rng, 84) for _ in range(18)], [walk(rng, 84).round() for _ in range(2)]
    for n_sales, expected in ((1, set(range(1, 20))), (2, set(range(2, 20))), (3, set(range(20)))):
        series = [*[sale] * n_sales, *tenths, *walks][:20]
        table = RowTable.learnable(Histories.of(series, 7), 3)
        assert set(table.train.series) == expected
        assert table.now.series.tolist() == list(range(20))  # but they are forecast
    short = np.r_[np.zeros(10), [1.0, 0.0, 2.0]]  # whose few values are no few changes
    maker = make_rows(Histories.of([short, *[walk(rng, 13) for _ in range(9)]], 1), 3, 2)
    assert not maker.find_still().any()


def test_series_that_never_changed_have_no_rows():
    still, later = np.full(20, 3.0), np.r_[np.full(15, 3.0), [4.0, 5.0, 4.0, 6.0, 5.0]]
    maker = make_rows(Histories.of([still, later], 1), 3, 2)
    assert set(maker.training_rows(100)[0].series) == {1}
    assert maker.training_rows(100)[0].at.min() == 15
    assert maker.latest_rows().series.tolist() == [1]
    assert RowTable.of(Histories.of([still, later], 1), maker.row_cut).now.series.tolist() == [1]


def test_how_many_lags_a_row_has():
    def lags(m, n, n_series=1):
        return choose_lags(Histories.of([np.arange(float(n))] * n_series, m))

    assert [lags(m, 10_000) for m in (1, 4, 7, 12, 24, 52)] == [12, 32, 56, 36, 169, 110]
    assert [lags(12, n, 3) for n in (1, 2, 9, 40)] == [1, 1, 4, 20]
    assert [lags(12, n) for n in (1, 9, 40, 120)] == [1, 1, 6, 20]

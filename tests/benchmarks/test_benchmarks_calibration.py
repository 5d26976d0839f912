"""The benchmark of intervals on simulated series runs, and its ideal intervals are right."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, poisson
from statsmodels.tsa.statespace.exponential_smoothing import ExponentialSmoothing

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import calibration  # noqa: E402
from calibration_parts import families, judge  # noqa: E402

P = np.array(judge.LEVELS) / 100.0


def ideal(paths):
    """Bounds (levels, 2, n, h) of the ideal intervals, by sorting."""
    ordered, m = np.sort(paths, axis=2), paths.shape[2]
    ends = [(np.ceil(m * (1 - p) / 2) - 1, np.ceil(m * (1 + p) / 2) - 1) for p in P.round(6)]
    return np.array([[ordered[:, :, int(end)] for end in pair] for pair in ends])


def in_scales(paths):
    """Deviations of continuations (n, h, m) from their mean, in units of the first step's size."""
    wide = paths - paths.mean(axis=2, keepdims=True)
    return wide / wide[:, :1].std(axis=2, keepdims=True)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_ideal_intervals_cover_what_happens(family):
    panel = families.simulate(family, 40, n=4000, seed=3, m=400)
    for level, (low, high) in zip(P, ideal(panel.paths), strict=True):
        hits = ((low <= panel.future) & (panel.future <= high)).mean(axis=1)
        claimed = (low[..., None] <= panel.paths) & (panel.paths <= high[..., None])
        # Of m + 1 draws from a distribution, any may be the one that happens.
        off = hits.mean() - (claimed.mean() * 400 - 1) / 401
        assert abs(off) < 4.0 * hits.std() / np.sqrt(len(hits))
        if family in ("counts", "intermittent"):  # no interval has just the level
            assert claimed.mean() >= level
        else:
            assert claimed.mean() == pytest.approx(level, abs=0.003)
    assert (high > low).all()


@pytest.mark.parametrize(
    ("family", "variance"),
    [
        ("autoregression", (1 - 0.49 ** np.arange(1, 13)) / (1 - 0.49)),
        ("walk", np.arange(1, 13)),
    ],
)
def test_continuations_have_the_variance_of_the_textbook(family, variance):
    paths = in_scales(families.simulate(family, 20, n=50).paths)
    np.testing.assert_allclose(paths.var(axis=(0, 2)), variance, rtol=0.03)
    low, high = np.quantile(paths, [0.1, 0.9], axis=(0, 2))
    np.testing.assert_allclose(high - low, 2 * norm.ppf(0.9) * np.sqrt(variance), rtol=0.03)


def test_continuations_of_a_trend_and_season_are_those_of_its_kalman_filter():
    panel = families.simulate("trend+season", 720, n=2, seed=1, m=20_000)
    for past, paths in zip(panel.past, panel.paths, strict=True):
        model = ExponentialSmoothing(
            past, trend=True, seasonal=12, initialization_method="heuristic"
        )
        scale = paths[0].std()
        gains = dict(zip(model.param_names, [0.3, 0.02, 0.1], strict=False))
        found = model.filter([gains[name] for name in model.param_names])
        told = found.get_forecast(12)
        np.testing.assert_allclose(told.predicted_mean, paths.mean(axis=1), atol=0.1 * scale)
        spread = np.sqrt(told.var_pred_mean / told.var_pred_mean[0])
        np.testing.assert_allclose(spread, paths.std(axis=1) / scale, rtol=0.03)


def test_series_are_what_their_names_say():
    made = {name: families.simulate(name, 120, n=300, m=2) for name in families.FAMILIES}
    rate = made["counts"].values
    assert (rate == rate.round()).all()
    assert (rate >= 0).all()
    share = (made["intermittent"].values > 0).mean(axis=1)
    assert 0.02 < share.min() < 0.2 < 0.5 < share.max() < 0.75
    grown = made["multiplicative"].values
    assert (grown > 0).all()
    assert (grown[:, -24:].sum(axis=1) > grown[:, :24].sum(axis=1)).mean() > 0.7
    changes = np.diff(made["walk"].values)
    assert abs(np.mean([np.corrcoef(c[1:], c[:-1])[0, 1] for c in changes])) < 0.02
    scales = changes.std(axis=1)
    assert scales.max() / scales.min() > 50
    squares = (made["garch"].values - made["garch"].values.mean(axis=1, keepdims=True)) ** 2
    assert np.mean([np.corrcoef(s[1:], s[:-1])[0, 1] for s in squares]) > 0.1
    known = np.isfinite(made["lengths"].past).sum(axis=1)
    assert known.min() == 20
    assert known.max() > 110
    for name, panel in made.items():
        assert np.isfinite(panel.future).all()
        again = families.simulate(name, 120, n=300, m=2)
        np.testing.assert_array_equal(panel.values, again.values)
        other = families.simulate(name, 120, n=300, m=2, seed=1)
        assert (panel.future != other.future).any()


def knowing(panel, factor=1.0):
    """A forecaster that knows the future's distribution, with widths times the factor."""

    def forecast(df):
        rows = df["unique_id"].unique().astype(int)
        best = ideal(panel.paths)[:, :, rows]
        center = best.mean(axis=1, keepdims=True)
        bounds = center + factor * (best - center)
        frame = pd.DataFrame(
            {
                "unique_id": np.repeat(df["unique_id"].unique(), 12),
                "ds": np.tile(range(12), len(rows)),
            }
        )
        for i, level in enumerate(judge.LEVELS):
            for j, side in enumerate(("lo", "hi")):
                frame[f"knowing-{side}-{level}"] = bounds[i, j].ravel()
        return frame.sample(frac=1.0, random_state=0)  # the judge sorts

    return forecast


@pytest.mark.parametrize("mode", ["panel", "alone"])
def test_one_who_knows_is_right_and_others_are_not(mode):
    panel = families.simulate("walk", 30, 40, seed=5)
    right = judge.run(knowing(panel), ["walk"], [30], mode, n=40, seed=5)
    np.testing.assert_allclose(right["coverage"], right["level"], atol=0.1)
    np.testing.assert_allclose(right["width"], 1.0)
    assert (right["series"] == (40 if mode == "panel" else 20)).all()
    assert judge.summarize(right)["within"].all()
    wide = judge.run(knowing(panel, 1.5), ["walk"], [30], mode, n=40, seed=5)
    np.testing.assert_allclose(wide["width"], 1.5)
    told = 100 * (2 * norm.cdf(1.5 * norm.ppf(0.5 + wide["level"] / 200)) - 1)
    np.testing.assert_allclose(wide["coverage"], told, atol=1.0)
    assert not judge.summarize(wide).query("level < 95")["within"].any()


def test_counts_may_cover_what_the_ideal_interval_covers():
    rate = np.array([[0.5], [3.0]])
    paths = np.random.default_rng(0).poisson(rate, size=(2, 20_000))[:, None].astype(float)
    p = np.stack([(1 - P) / 2, (1 + P) / 2], axis=1)
    bounds = poisson.ppf(p[:, :, None], rate[:, 0])[..., None]
    cells = judge.score(bounds, bounds[0, 0], paths, [1])
    exact = poisson.cdf(bounds[:, 1], rate) - poisson.cdf(bounds[:, 0] - 1, rate)
    np.testing.assert_allclose(cells["coverage"], 100 * exact.mean(axis=(1, 2)), atol=0.7)
    np.testing.assert_allclose(judge.error(cells), 0.0, atol=1e-9)
    cells["coverage"] = [40.0, 79.0, 99.9]
    off = judge.error(cells).to_numpy()
    np.testing.assert_allclose(off[:2], [-10.0, -1.0])
    assert off[2] == pytest.approx(99.9 - cells["ideal"].iloc[2])


def test_totals_are_scored_by_paths():
    panel = families.simulate("walk", 20, 30, m=4000)

    def score(paths):
        bounds = judge._central(judge.add_up(paths, 12))
        came = judge.add_up(panel.future, 12), judge.add_up(panel.paths, 12)
        return judge.score(bounds, *came, [1])

    cells = score(panel.paths)
    np.testing.assert_allclose(cells["coverage"], cells["level"], atol=0.1)
    alone = panel.paths.copy()
    for k in range(12):  # as wide at each step, but with steps that know nothing of each other
        alone[:, k] = np.random.default_rng(k).permuted(alone[:, k], axis=1)
    assert (score(alone)["coverage"] < cells["level"] - 15)[:2].all()


def test_sums_are_those_of_neighboring_steps():
    values = np.arange(24.0).reshape(2, 12)
    np.testing.assert_array_equal(judge.add_up(values, 6), [[15.0, 51.0], [87.0, 123.0]])


def test_repeats_are_averaged():
    columns = {"mode": "panel", "family": "walk", "T": 40, "level": 80, "step": judge.STEPS}
    first = pd.DataFrame({**columns, "coverage": 78.0, "ideal": 80.0, "se": 2.0, "series": 9})
    second = first.assign(coverage=[70.0, 90.0, 95.0])
    mean = judge.average([first, second])
    np.testing.assert_allclose(mean["coverage"], [74.0, 84.0, 86.5])
    np.testing.assert_allclose(mean["se"], np.sqrt(2.0))
    np.testing.assert_allclose(mean["spread"], np.std([78.0, 85.0], ddof=1))
    assert judge.average([first])["spread"].isna().all()
    (cell,) = judge.summarize(mean).to_dict("records")
    assert cell["error"] == pytest.approx(1.5)
    assert cell["worst"] == pytest.approx(6.5)
    assert cell["series"] == 18
    assert cell["within"]


@pytest.mark.usefixtures("limits_of_threads")
def test_the_command_prints_and_writes(tmp_path, capsys):
    small = ["--n", "10", "--lengths", "30", "--families", "walk", "heavy tails"]
    file = tmp_path / "new" / "cells.csv"
    calibration.main(["--preset", "instant", *small, "--repeats", "2", "--out", str(file)])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("preset")] == [
        f"preset=instant, {mode}" for mode in ("panel", "alone", "mixed")
    ]
    assert sum(line.startswith("heavy tails") for line in lines) == 3
    assert "of 6 cells" in lines[-1]
    table = pd.read_csv(file)
    assert len(table) == 3 * 2 * 3 * 3
    assert table["coverage"].between(0, 100).all()
    assert (table["width"] > 0).all()
    with pytest.raises(SystemExit):
        calibration.main(["--n", "9"])

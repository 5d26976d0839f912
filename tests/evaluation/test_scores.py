import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from utilsforecast.losses import bias, coverage, mae, mase

from rbfdiffnet.evaluation import (
    BASELINE,
    LAST,
    BacktestRows,
    Comparison,
    Coverage,
    ModelColumns,
    Scores,
    compare,
    describe_comparison,
    describe_coverage,
    find_better_rule,
    find_models,
    score_models,
    simple_forecasts,
)
from rbfdiffnet.evaluation.metrics import evaluate_quantiles, rmsse
from rbfdiffnet.panel.panel import Panel
from rbfdiffnet.support.text import format_percent
from report_files import frames

DAY = pd.Timedelta(days=1)


def gaps(kind, n_series=3, n_days=120, seed=0):
    """Daily series without Sundays, or without one row in six, in any order."""
    rng = np.random.default_rng(seed)
    days = pd.date_range("2024-01-01", periods=n_days)
    week = 20 + 10 * np.sin(2 * np.pi * np.arange(n_days) / 7)
    parts = [
        pd.DataFrame({"unique_id": f"s{i}", "ds": days, "y": week + rng.normal(0, 2, n_days)})
        for i in range(n_series)
    ]
    full = pd.concat(parts, ignore_index=True)
    if kind == "sundays":
        return full[full["ds"].dt.day_of_week != 6]
    return full.sample(frac=5 / 6, random_state=seed)


def folds_of(df, h=10, n_windows=3, seed=1):
    """BacktestRows before the last date of every series, whose rows are all dates."""
    rng = np.random.default_rng(seed)
    rows = []
    for name, own in df.groupby("unique_id", sort=False):
        y = own.set_index("ds")["y"]
        for window in range(n_windows, 0, -1):
            cutoff = y.index.max() - window * h * DAY
            for k in range(1, h + 1):
                value = y.get(cutoff + k * DAY, np.nan)
                rows.append((name, cutoff + k * DAY, cutoff, value, 20 + rng.normal(0, 3)))
    return pd.DataFrame(rows, columns=["unique_id", "ds", "cutoff", "y", "M"])


def brute_naive(y, cutoff, date, m):
    """The latest known value whole weeks before, at or before the cutoff."""
    first = y.index.min()
    while date > cutoff:
        date -= m * DAY
    while date >= first:
        if date in y.index:
            return y[date]
        date -= m * DAY
    return y[y.index <= cutoff].sort_index().iloc[-1]


def brute_scores(df, folds, models, m):
    """MASE, RMSSE and MAE, date by date."""
    by_series = {name: [] for name in models}
    absolute = {name: [] for name in models}
    for name, own in folds.groupby("unique_id"):
        y = df[df["unique_id"] == name].set_index("ds")["y"]
        windows = {model: [] for model in models}
        for cutoff, window in own.groupby("cutoff"):
            past = y[y.index <= cutoff]
            seasonal = [abs(v - past[t - m * DAY]) for t, v in past.items() if t - m * DAY in past]
            single = [(v - past[t - DAY]) ** 2 for t, v in past.items() if t - DAY in past]
            known = window.dropna(subset=["y"])
            for model in models:
                error = (known[model] - known["y"]).to_numpy()
                windows[model].append(
                    (
                        np.abs(error).mean() / np.mean(seasonal),
                        math.sqrt((error**2).mean() / np.mean(single)),
                    )
                )
                absolute[model].extend(np.abs(error))
        for model in models:
            by_series[model].append(np.mean(windows[model], axis=0))
    return {
        model: (*np.mean(by_series[model], axis=0), np.mean(absolute[model])) for model in models
    }


def scored(df, folds, season, freq="D"):
    panel = Panel.from_frame(df, freq=freq)
    windows = BacktestRows.locate(panel, folds)
    columns = {name: folds[name].to_numpy(float) for name in folds.columns[3:]}
    models = find_models([name for name in columns if name != "y"], "folds")
    return score_models(panel, windows, columns, "y", models, season)


@pytest.mark.parametrize("kind", ["sundays", "random"])
def test_gaps_are_missing_values_not_missing_steps(kind):
    df = gaps(kind)
    folds = folds_of(df)
    panel = Panel.from_frame(df, freq="D")
    folds[BASELINE] = simple_forecasts(panel, BacktestRows.locate(panel, folds), 7)[BASELINE]
    for name, own in folds.groupby("unique_id"):
        y = df[df["unique_id"] == name].set_index("ds")["y"]
        expected = [
            brute_naive(y, cutoff, date, 7)
            for date, cutoff in zip(own["ds"], own["cutoff"], strict=True)
        ]
        np.testing.assert_array_equal(own[BASELINE], expected)
    total = scored(df, folds, 7).total()
    expected = brute_scores(df, folds, ["M", BASELINE], 7)
    for j, model in enumerate(("M", BASELINE)):
        found = [total[name][j] for name in ("MASE", "RMSSE", "MAE")]
        np.testing.assert_allclose(found, expected[model], rtol=1e-12)


def test_scores_of_one_window_are_those_of_utilsforecast():
    history, _, backtest = frames(n_series=4, n_windows=1, level=(50, 90), seed=3)
    history.loc[[2, 70], "y"] = np.nan
    backtest["Other"] = backtest["y"] + np.random.default_rng(1).normal(size=len(backtest))
    backtest = backtest[["unique_id", "ds", "cutoff", "y", *backtest.columns[4:]]]
    scores = scored(history, backtest, 7)
    names = ["RBFDiffNet", "Other"]
    rows = backtest.drop(columns="cutoff")
    train = history[history["ds"] <= backtest["cutoff"].max()]
    for mine, theirs in (
        (scores.mae, mae(rows, names)),
        (scores.mase, mase(rows, names, 7, train)),
        (scores.bias, bias(rows, names)),
        (scores.rmsse, rmsse(rows, names, train)),
    ):
        np.testing.assert_allclose(mine, theirs[names].to_numpy(), rtol=1e-12)
    np.testing.assert_allclose(scores.total()["MAE"], mae(rows, names)[names].mean())
    for level in (50, 90):
        inside = coverage(rows, ["RBFDiffNet"], level)["RBFDiffNet"].mean()
        assert scores.coverage("RBFDiffNet", str(level)) == pytest.approx(inside)
    np.testing.assert_allclose(scores.best.sum(axis=1), 1.0)
    np.testing.assert_array_equal(scores.best.argmax(axis=1), scores.mae.argmin(axis=1))


def test_parts_of_a_panel_make_the_same_scores():
    df = gaps("random")
    folds = folds_of(df).assign(Other=20.0)
    whole = scored(df, folds, 7)
    order = df["unique_id"].unique()
    parts = [
        scored(df[df["unique_id"] == name], folds[folds["unique_id"] == name], 7) for name in order
    ]
    joined = Scores.concatenate(parts)
    for name in ("mase", "rmsse", "mae", "bias", "rows", "size"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name))
    assert (joined.windows, joined.steps, joined.left_out) == (3, 10, whole.left_out)


def test_parts_of_different_length_make_the_same_scores_of_intervals():
    history, _, backtest = frames(n_series=3, level=(80, 95))
    short = backtest["unique_id"].eq("item 2") & (backtest["ds"] - backtest["cutoff"] > 4 * DAY)
    backtest = backtest[~short].assign(**{"RBFDiffNet-q-30": backtest["RBFDiffNet"] - 0.3})
    whole = scored(history, backtest, 7)
    parts = [scored(history, own, 7) for _, own in backtest.groupby("unique_id")]
    assert [part.steps for part in parts] == [7, 7, 4]
    joined = Scores.concatenate(parts[::-1])
    for key, counts in whole.inside.items():
        np.testing.assert_array_equal(joined.inside[key], counts)
        assert joined.winkler[key] == pytest.approx(whole.winkler[key])
    np.testing.assert_allclose(joined.losses["RBFDiffNet"], whole.losses["RBFDiffNet"])


def test_intervals_and_quantiles_score_as_in_frames():
    history, _, backtest = frames(n_series=3, level=(80, 95))
    backtest["RBFDiffNet-q-30"] = backtest["RBFDiffNet"] - 0.3
    backtest["Other"] = backtest["y"] + 1.0
    backtest.loc[3, ["y", "RBFDiffNet-lo-80"]] = np.nan
    found = scored(history, backtest, 7)
    total = evaluate_quantiles(backtest)
    by_step = evaluate_quantiles(backtest, by="horizon")
    name = "RBFDiffNet"
    assert found.weighted_quantile_loss(name) == pytest.approx(total["wql"].item())
    assert math.isnan(found.weighted_quantile_loss("Other"))
    for level in ("80", "95"):
        assert found.coverage(name, level) == pytest.approx(total[f"coverage-{level}"].item())
        assert found.mean_winkler(name, level) == pytest.approx(total[f"winkler-{level}"].item())
        np.testing.assert_allclose(
            found.coverage_by_step(name, level), by_step[f"coverage-{level}"]
        )


def test_a_share_by_chance_is_that_of_independent_windows():
    """Nineteen times of twenty; of h values of a window sqrt(h) count."""
    inside = np.random.default_rng(0).binomial(144, 0.8, size=20_000) / 144
    chance = Coverage(0.8, 0, 144, 1, 1).by_chance
    assert np.mean(np.abs(inside - 0.8) <= chance) == pytest.approx(0.95, abs=0.02)
    assert Coverage(0.8, 0, 9 * 144, 1, 81).by_chance == pytest.approx(chance)


def counted(*shares, n=1000):
    """Scores of 80 % intervals that held these shares of n values, by step ahead."""
    history, _, backtest = frames(n_series=1, h=len(shares))
    counts = np.stack([np.round(n * np.array(shares)).astype(int), np.full(len(shares), n)], axis=1)
    return replace(scored(history, backtest, 7), inside={("RBFDiffNet", "80"): counts})


@pytest.mark.parametrize(
    ("shares", "n", "said"),
    [
        ([0.62] * 6, 1000, "held 62 % of the values: too narrow."),
        ([0.99] * 6, 1000, "held 99.0 % of the values: wider than they need to be."),
        ([0.82] * 6, 1000, None),
        ([0.62] * 6, 5, None),  # may be chance
        ([0.9, 0.9, 0.8, 0.8, 0.7, 0.7], 1000,
         "held 80 % of the values (90 % in steps 1 to 2, 70 % in steps 5 to 6)."),
        ([0.9, 0.9, 0.8, 0.8, 0.7, 0.7], 5, None),
        ([0.8, 0.7, 0.7, 0.6, 0.5, 0.4], 1000,
         "held 62 % of the values: too narrow (75 % in steps 1 to 2, 45 % in steps 5 to 6)."),
        ([0.95, 0.8, 0.65], 1000, "held 80 % of the values (95 % in step 1, 65 % in step 3)."),
        ([0.9, 0.5], 1000, "held 70 % of the values: too narrow."),  # too few steps for thirds
        ([0.0] * 6, 0, None),
    ],
)  # fmt: skip
def test_intervals_that_are_far_off_are_named(shares, n, said):
    found = describe_coverage(counted(*shares, n=n), "RBFDiffNet", "80")
    assert found == (said if said is None else f"RBFDiffNet's 80 % intervals {said}")


def test_windows_without_a_scale_count_for_no_model():
    frame = pd.DataFrame({"unique_id": "a", "ds": range(16), "y": [3.0] * 12 + [4.0] * 4})
    folds = frame.iloc[[10, 11, 14, 15]].assign(cutoff=[9, 9, 13, 13])
    folds = folds[["unique_id", "ds", "cutoff", "y"]]
    folds = folds.assign(exact=folds["y"], wrong=folds["y"] + 1.0)
    constant = scored(frame, folds[folds["cutoff"] == 9], 1, freq=1)
    assert np.isnan(constant.mase).all()
    assert constant.total()["MAE"].tolist() == [0.0, 1.0]
    changed = scored(frame, folds, 1, freq=1)
    assert changed.windows == 2
    np.testing.assert_allclose(changed.mase[0], [0.0, 13.0])  # the later window: 1 change in 13


def test_rows_that_a_model_lacks_count_for_none():
    history, _, backtest = frames(n_series=2, level=())
    holes = backtest.assign(Other=backtest["y"] + 1.0)
    holes.loc[[0, 5, 9], "Other"] = np.nan
    found = scored(history, holes, 7)
    rest = scored(history, holes.dropna(), 7)
    np.testing.assert_array_equal(found.mase, rest.mase)
    assert found.left_out == 3


def test_rows_off_the_grid_or_of_unknown_series_do_not_count():
    history, _, backtest = frames(n_series=2, level=())
    odd = backtest.copy()
    odd.loc[0, "ds"] += pd.Timedelta(hours=3)
    odd.loc[1, "unique_id"] = "nobody"
    assert scored(history, odd, 7).left_out == 2
    panel = Panel.from_frame(history, freq="D")
    for forecasts in simple_forecasts(panel, BacktestRows.locate(panel, odd), 7).values():
        assert np.isnan(forecasts[:2]).all()
        assert np.isfinite(forecasts[2:]).all()


def test_a_season_is_repeated_as_soon_as_there_is_one():
    df = pd.DataFrame({"unique_id": "a", "ds": range(9), "y": np.arange(9.0)})
    panel = Panel.from_frame(df, freq=1)
    rules = simple_forecasts(panel, BacktestRows.locate(panel, df[5:].assign(cutoff=4)), 4)
    assert rules[BASELINE].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert rules[LAST].tolist() == [4.0] * 4
    early = simple_forecasts(panel, BacktestRows.locate(panel, df[3:5].assign(cutoff=2)), 4)
    assert early[BASELINE].tolist() == early[LAST].tolist() == [2.0, 2.0]
    without = simple_forecasts(panel, BacktestRows.locate(panel, df[5:].assign(cutoff=4)), 1)
    assert list(without) == [LAST]


def test_the_better_of_the_simple_rules_is_to_be_beaten():
    rng = np.random.default_rng(0)
    walk = rng.normal(size=60).cumsum()
    week = np.tile([0.0, 1, 2, 3, 4, 9, 9], 9)[:60] + 0.1 * rng.normal(size=60)
    for y, expected in ((walk, LAST), (week, BASELINE)):
        df = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024", periods=60), "y": y})
        folds = df[46:].assign(cutoff=df["ds"][45])[["unique_id", "ds", "cutoff", "y"]]
        panel = Panel.from_frame(df, freq="D")
        folds = folds.assign(**simple_forecasts(panel, BacktestRows.locate(panel, folds), 7))
        assert find_better_rule(scored(df, folds, 7)) == expected


def test_the_past_of_a_window_may_be_short():
    history, _, backtest = frames(n_series=1, n_days=20, n_windows=2, level=())
    found = scored(history, backtest, 12)  # 6 and 13 values before the windows of 7 steps
    y = history["y"].to_numpy()
    error = np.abs(backtest["RBFDiffNet"] - backtest["y"]).to_numpy()
    expected = [
        error[:7].mean() / np.abs(np.diff(y[:6])).mean(),
        error[7:].mean() / np.abs(y[12] - y[0]),
    ]
    assert found.mase.item() == pytest.approx(np.mean(expected))


def describe(mine, theirs, scored=30, of=30):
    return describe_comparison(Comparison("ours", "naive", "MASE", mine, theirs, 5, scored, of))


def test_losing_is_said_plainly():
    lost = "ours lost to naive: its MASE, 1.100, is 10 % above 1.000 (30 series; closer on 5)."
    assert describe(1.1, 1.0) == lost
    assert describe(2.1, 1.0).count("110 % above") == 1
    assert describe(1.0, 1.001).startswith("ours and naive are about equal: MASE 1.000 and 1.001")
    assert "cannot be compared" in describe(np.nan, 1.0)
    assert "is above 0 (" in describe(1.0, 0.0)


def test_few_series_of_a_panel_make_no_verdict():
    few = "ours and naive: no verdict from 1 of 300 series (MASE 1.100 and 1.000)."
    assert describe(1.1, 1.0, 1, 300) == few
    assert "no verdict" in describe(1.1, 1.0, 9, 300)
    assert "(10 of 300 series; closer on 5)" in describe(1.1, 1.0, 10, 300)
    assert "lost to" in describe(1.1, 1.0, 5, 6)
    assert "lost to" in describe(1.1, 1.0, 1, 1)


def test_the_counts_of_a_comparison():
    history, _, backtest = frames(n_series=4, level=())
    shifts = backtest["unique_id"].map({"item 0": 9.0, "item 1": 9.0, "item 2": 9.0, "item 3": 0.0})
    scores = scored(history, backtest.assign(Other=backtest["RBFDiffNet"] + shifts), 7)
    found = compare(scores, "RBFDiffNet", "Other", 5)
    assert (found.closer, found.n_scored, found.n_series, found.outcome) == (3, 4, 5, "won")


def test_percent_has_no_exponents():
    shares = map(format_percent, (0.0123, 0.256, 0.9951, 1.1, 12.345))
    assert list(shares) == ["1.2 %", "26 %", "99.5 %", "110 %", "1,234 %"]


def test_intervals_belong_to_models():
    found = find_models(["A", "A-lo-95", "A-hi-95", "A-lo-80", "A-hi-80", "B"], "forecasts")
    assert found == [ModelColumns("A", ("80", "95")), ModelColumns("B")]
    assert found[0].ends("80") == ("A-lo-80", "A-hi-80")
    for columns in (["A", "A-lo-80"], ["A-lo-80", "A-hi-80"], ["A-q-10"], []):
        with pytest.raises(ValueError, match="forecasts"):
            find_models(columns, "forecasts")
    with pytest.raises(ValueError, match="'A-lo-100': levels and quantiles must lie between 0 and"):
        find_models(["A", "A-lo-100", "A-hi-100"], "forecasts")


def test_quantiles_belong_to_models():
    found = find_models(["A", "A-q-97.5", "A-q-5", "A-lo-80", "A-hi-80", "B-q-x"], "forecasts")
    assert found == [ModelColumns("A", ("80",), ("5", "97.5")), ModelColumns("B-q-x")]
    assert found[0].by_probability() == {
        0.05: "A-q-5", 0.1: "A-lo-80", 0.5: "A", 0.9: "A-hi-80", 0.975: "A-q-97.5"
    }  # fmt: skip

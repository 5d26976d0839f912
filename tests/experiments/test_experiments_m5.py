import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from m5_files import real_m5, sales
from rbfdiffnet.datasets.m5 import load_m5_level8
from rbfdiffnet.evaluation.metrics import rmsse_score
from rbfdiffnet.experiments.m5 import (
    M5_MODELS,
    fill_closures,
    fit_plus,
    fit_recursive,
    m5_tasks,
    paper_steps,
    run_series,
)
from rbfdiffnet.experiments.results import (
    PAPER_MEAN,
    PAPER_MEDIAN,
    PAPER_P_VALUES,
    m5_summary,
    m5_table,
    paper_rmsse,
    root_evidence,
    seed_evidence,
    side_evidence,
    signed_rank,
)
from rbfdiffnet.experiments.rivals import LSTMRegressor, fit_arima, lstm_members, mlp_members


@pytest.fixture(scope="module")
def series():
    return sales(400).to_numpy(dtype=float)[:, 0]


def test_paper_tables_agree_with_their_own_means():
    for model, mean in PAPER_MEAN.items():
        column = [paper_rmsse(number, model) for number in range(1, 31)]
        assert np.mean(column) == pytest.approx(mean, abs=0.006)
        assert np.median(column) == pytest.approx(PAPER_MEDIAN[model], abs=0.006)


def test_rmsse_of_the_last_value_on_a_walk_is_that_of_m5():
    utilsforecast = pytest.importorskip("utilsforecast.losses")
    import pandas as pd

    rng = np.random.default_rng(0)
    train, test, forecast = rng.normal(size=50), rng.normal(size=9), rng.normal(size=9)
    frame = pd.DataFrame({"unique_id": 1, "ds": range(9), "y": test, "m": forecast})
    past = pd.DataFrame({"unique_id": 1, "ds": range(-50, 0), "y": train})
    theirs = utilsforecast.rmsse(frame, ["m"], seasonality=1, train_df=past)["m"].iloc[0]
    assert rmsse_score(test, forecast, train) == pytest.approx(theirs)


def test_steps_differ_until_stationary():
    noise = np.random.default_rng(0).normal(size=300)
    assert [len(paper_steps(s).steps) for s in (noise, noise.cumsum())] == [1, 2]


@pytest.mark.parametrize("scale", [False, True])
def test_recursion_continues_a_linear_recurrence(scale):
    t = np.arange(200.0)
    wave = 50 + 0.5 * t + 9 * np.sin(0.7 * t) + 5 * np.cos(1.9 * t)
    forecast = fit_recursive(wave[:170], lambda X, y: [LinearRegression().fit(X, y)], scale=scale)
    np.testing.assert_allclose(forecast(28), wave[170:198], rtol=1e-6)


def test_ensembles_give_the_median(series):
    class Constant:
        def __init__(self, value):
            self.value = value

        def predict(self, X):
            return np.full(len(X), self.value)

    forecasts = [
        fit_recursive(series, lambda _X, _y, v=values: [Constant(x) for x in v])(3)
        for values in ([1.0, 2.0, 90.0], [2.0])
    ]
    np.testing.assert_allclose(*forecasts)


@pytest.mark.parametrize("model", ["RBF-DiffNet", "u-RBFN", "n-RBFN", "RBF-DiffNet+"])
def test_networks_forecast_sensibly(model, series):
    record = run_series("shop", series, model)
    assert len(record["forecast"]) == len(record["actual"]) == 28
    assert record["rmsse"] < 1.5
    assert record["rmsse"] == run_series("shop", series, model)["rmsse"]


def test_closures_are_filled_from_the_same_weekday():
    values = sales(400).to_numpy(dtype=float)[:, 3]
    filled = fill_closures(values)
    assert filled[300] == (values[293] + values[307]) / 2
    np.testing.assert_array_equal(np.delete(filled, 300), np.delete(values, 300))
    np.testing.assert_array_equal(fill_closures(np.zeros(30)), np.zeros(30))
    last = values.copy()
    last[-1] = 0.0
    assert fill_closures(last)[-1] == values[-8]


def test_closures_do_not_reach_the_forecast(series):
    closed = series[:-28].copy()
    closed[-40] = 0.0
    np.testing.assert_allclose(fit_plus(closed, 0)(28), fit_plus(series[:-28], 0)(28), rtol=0.05)


def test_mlp_members_differ_and_repeat():
    X, y = np.random.default_rng(0).normal(size=(60, 14)), np.arange(60.0) / 60
    a, b = mlp_members(X, y, 0, n_iterations=3), mlp_members(X, y, 0, n_iterations=3)
    assert len(a) == 10
    assert {member.n_iter_ for member in a} == {3}
    np.testing.assert_array_equal(a[4].predict(X), b[4].predict(X))
    assert not np.array_equal(a[4].predict(X), a[5].predict(X))


@pytest.mark.slow
def test_lstm_learns_repeats_and_leaves_the_global_seed_alone():
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(400, 14))
    y = X[:, -1] - 0.5 * X[:, -2]
    torch.manual_seed(5)
    expected = torch.rand(1).item()
    torch.manual_seed(5)
    model = LSTMRegressor(n_iterations=200, seed=1).fit(X, y)
    assert torch.rand(1).item() == expected
    assert np.mean((model.predict(X) - y) ** 2) < 0.2 * y.var()
    short = [m.predict(X) for m in lstm_members(X, y, 0, n_iterations=1)]
    np.testing.assert_array_equal(
        short[2], LSTMRegressor(n_iterations=1, seed=2).fit(X, y).predict(X)
    )
    assert len(short) == 10


@pytest.mark.slow
def test_arima_sees_the_season():
    pytest.importorskip("statsforecast")
    week = np.tile([5.0, 3.0, 4.0, 4.0, 6.0, 9.0, 8.0], 20)
    noisy = week + np.random.default_rng(0).normal(size=week.size) / 5
    errors = [np.abs(fit_arima(noisy, m).predict(7)["mean"] - week[:7]).mean() for m in (7, 1)]
    assert errors[0] < 0.5
    assert errors[0] < errors[1]


def test_tasks_pair_series_and_models():
    values = np.arange(60.0).reshape(2, 30)
    tasks = m5_tasks(values, ["MLP", "ARIMA"])
    assert len({task.key for task in tasks}) == 60
    assert tasks[3].arguments[0] == "CA_2_FOODS"
    np.testing.assert_array_equal(tasks[3].arguments[1], [3.0, 33.0])
    assert set(M5_MODELS) >= {"RBF-DiffNet", "u-RBFN", "n-RBFN", "ARIMA", "MLP", "LSTM"}


def test_summary():
    rng = np.random.default_rng(0)
    names = load_names()
    runs = [
        {"series": s, "model": m, "rmsse": e + rng.uniform(0, 0.01), "fit_seconds": t}
        for m, e, t in (("RBF-DiffNet", 0.7, 0.5), ("u-RBFN", 1.0, 0.1), ("LSTM", 0.8, 100.0))
        for s in (names if m != "LSTM" else names[:7])
    ]
    summary = m5_summary(m5_table(runs)).set_index("model")
    assert summary.loc["RBF-DiffNet", "ratio_to_lstm"] == pytest.approx(200.0)
    assert summary.loc["u-RBFN", "p_value"] < 1e-5
    assert np.isnan(summary.loc["RBF-DiffNet", "p_value"])
    assert summary.loc["LSTM", "paper_mean"] == 0.776
    assert "u-RBFN" in root_evidence(m5_table(runs))


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
def test_signed_rank_agrees_with_a_count_over_all_signs(alternative):
    x, y = np.random.default_rng(1).normal(size=(2, 8))
    ranks = np.abs(x - y).argsort().argsort() + 1
    signs = np.array(np.meshgrid(*[[0, 1]] * 8)).reshape(8, -1)
    sums, observed = ranks @ signs, ranks[x > y].sum()
    tails = [np.mean(sums <= observed), np.mean(sums >= observed)]
    expected = tails[0] if alternative == "less" else min(1.0, 2 * min(tails))
    assert signed_rank(x, y, alternative) == pytest.approx(expected)
    assert np.isnan(signed_rank(x, x))


def test_evidence_on_the_sides():
    lines = side_evidence(paper_table()).splitlines()
    assert "4 of 5 printed p-values are nearer to the one-sided" in lines[1]
    rows = {line.split()[0]: [float(cell) for cell in line.split()[1:]] for line in lines[5:]}
    assert list(rows) == list(PAPER_P_VALUES)
    for printed, two_sided, one_sided, *ours in rows.values():
        assert ours == [two_sided, one_sided]  # the paper's rows in the place of ours
        assert two_sided == pytest.approx(2 * one_sided, rel=0.01)
        assert one_sided < 2 * printed
    assert rows["ARIMA"] == [0.0262, 0.0667, 0.0333, 0.0667, 0.0333]


def test_evidence_on_the_seeds():
    rng = np.random.default_rng(0)
    records = [
        {
            "series": name,
            "model": model,
            "rmsse_by_seed": [
                paper_rmsse(number, "RBF-DiffNet"),
                shift + rng.uniform(),
            ],
        }
        for model, shift in (("RBF-DiffNet", 0.0), ("RBF-DiffNet+", 5.0))
        for number, name in enumerate(load_names(), start=1)
    ]
    header, mean, correlation, plus, p_value = seed_evidence(records).splitlines()
    assert header.split()[-2:] == ["0", "1"]
    assert mean.split()[-2] == "0.759"
    assert correlation.split()[-2] == "1.000"  # with its own column
    assert abs(float(correlation.split()[-1])) < 0.5
    assert "RBF-DiffNet+ mean" in plus
    assert p_value.split()[-2:] == ["nan", "1.9e-09"]  # no difference; all differ, 2 / 2 ** 30
    assert seed_evidence([{**r, "rmsse_by_seed": [1.0]} for r in records]) == ""


def paper_table():
    return m5_table(
        {"series": name, "model": model, "rmsse": paper_rmsse(number, model), "fit_seconds": 1.0}
        for model in PAPER_MEAN
        for number, name in enumerate(load_names(), start=1)
    )


def load_names():
    from rbfdiffnet.datasets.m5 import M5_LEVEL8_SERIES

    return M5_LEVEL8_SERIES


@pytest.mark.slow
def test_real_series_come_out_as_in_the_paper():
    frame = load_m5_level8(real_m5())
    chosen = [0, 8, 16, 18, 24]
    ours = [
        run_series(frame.columns[i], frame.iloc[:, i].to_numpy(), "RBF-DiffNet")["rmsse"]
        for i in chosen
    ]
    paper = [paper_rmsse(i + 1, "RBF-DiffNet") for i in chosen]
    assert np.corrcoef(ours, paper)[0, 1] > 0.95


def test_pairs_that_are_equal_do_not_count():
    assert signed_rank([1, 2, 3, 4, 5, 7], [2, 4, 6, 8, 10, 7], "less") == 1 / 2**5

"""The benchmark on noisy chaotic series runs and means what it says, on small settings."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import noise  # noqa: E402
from noise_parts import (  # noqa: E402
    data,
    kernel_ridge,
    methods,
    reservoir,
    rivals,
    runner,
    search,
    summary,
    tasks,
)


@pytest.fixture(scope="module")
def cell():
    return data.make_cell("henon", 0.1, 4, seed=1)


@pytest.mark.parametrize("system", data.SYSTEMS)
def test_cells_differ_in_what_they_should(system):
    cell = data.make_cell(system, 0.2, 4, seed=0)
    louder, longer, other = (
        data.make_cell(system, 0.4, 4, seed=0),
        data.make_cell(system, 0.2, 8, seed=0),
        data.make_cell(system, 0.2, 4, seed=1),
    )
    assert cell.clean.shape == cell.noisy.shape == (1000,)
    assert cell.training.shape == (900,)
    added = cell.noisy - cell.clean
    assert added.std() == pytest.approx(0.2 * cell.scale, rel=0.1)
    np.testing.assert_allclose(louder.noisy - louder.clean, 2.0 * added)
    np.testing.assert_array_equal(longer.noisy, cell.noisy)
    assert not np.isclose(other.clean, cell.clean).all()
    quiet = data.make_cell(system, 0.0, 4, seed=0)
    np.testing.assert_array_equal(quiet.noisy, quiet.clean)


def test_unknown_systems_are_named():
    with pytest.raises(ValueError, match=r"no system 'rossler'.*henon"):
        data.clean_series("rossler", 0)


class Truth:
    """Hénon's map itself."""

    def predict(self, X):
        return 1.0 - 1.4 * X[:, -1] ** 2 + 0.3 * X[:, -2]


def test_the_true_map_has_no_error_on_clean_windows(cell):
    found = tasks.score(cell, Truth())
    assert found["clean_windows"] < 1e-12
    assert found["noisy_windows"] > 0.05
    assert np.isnan(found["latent_error"])
    assert tasks.score(replace(cell, noisy=cell.clean), Truth())["twenty_steps"] < 1e-8


def test_errors_are_those_of_the_definition(cell):
    zeros = np.zeros(100), np.zeros(100), np.zeros((21, 20))
    found = tasks.errors(cell, *zeros, latent_error=0.5)
    paths = [np.abs(cell.clean[start : start + 20]).mean() for start in range(900, 981, 4)]
    assert found["clean_windows"] == pytest.approx(np.abs(cell.clean[900:]).mean() / cell.scale)
    assert found["twenty_steps"] == pytest.approx(np.median(paths) / cell.scale)
    assert found["latent_error"] == 0.5
    histories = tasks.histories(cell)
    assert histories.shape == (21, 900)
    np.testing.assert_array_equal(histories[1], cell.noisy[4:904])


def test_folds_without_retraining_are_those_of_scikit_learn(cell):
    from sklearn.kernel_ridge import KernelRidge

    X, y, _, _ = (each[:200] if np.ndim(each) else each for each in rivals.rows(cell))
    gamma, alpha = 0.3, 0.05
    tests = [test for _, test in search.folds(len(y))]
    loss = kernel_ridge._trials(X, y, tests, gamma, np.array([alpha]))[0][0]
    make = search.validated(lambda **settings: KernelRidge(kernel="rbf", **settings), X, y)
    assert loss == pytest.approx(make(gamma=gamma, alpha=alpha), rel=1e-9)
    model = kernel_ridge.fit(X, y)
    same = KernelRidge(kernel="rbf", gamma=model.gamma, alpha=model.alpha).fit(X, y)
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-8)


def test_the_search_walks_to_the_lowest_place():
    tried = []

    def loss(a, b):
        tried.append((a, b))
        return (a - 7) ** 2 + (b - 2) ** 2 + a * b / 10

    found = search.lattice_search(loss, {"a": range(10), "b": range(10)}, [(0, 9), (3, 3)])
    assert found == {"a": 7, "b": 2}
    assert len(set(tried)) == len(tried) < 30


@pytest.mark.parametrize("name", [*rivals.RIVALS, methods.PLAIN])
def test_rivals_learn_the_map(name, cell, monkeypatch):
    monkeypatch.setattr(kernel_ridge, "GAMMAS", np.array([0.1, 0.5]))
    monkeypatch.setattr(kernel_ridge, "ALPHAS", np.array([0.1]))
    monkeypatch.setattr(rivals, "SVR_AXES", {"C": [1.0], "gamma": [0.5], "epsilon": [0.05]})
    monkeypatch.setattr(rivals, "MLP_AXES", {"units": [8], "alpha": [0.1]})
    monkeypatch.setattr(rivals, "SVR_STARTS", [(0, 0, 0)])
    monkeypatch.setattr(rivals, "MLP_STARTS", [(0, 0)])
    rival = rivals.RIVALS.get(name, rivals.plain)
    found = rivals.figures(rival, replace(cell, n_lags=2, n_train=300))
    limit = 1.0 if "paper" in name else 0.15
    assert found["clean_windows"] < found["noisy_windows"] < limit
    assert np.isfinite(found["twenty_steps"])


def test_the_reservoir_learns_the_map(cell, monkeypatch):
    pytest.importorskip("reservoirpy")
    monkeypatch.setattr(reservoir, "UNITS", 60)
    series = (cell.training - cell.training.mean()) / cell.training.std()
    chosen = reservoir.search(series, 6, seed=0)
    found = reservoir.network_figures(cell, chosen)
    assert found["clean_windows"] < found["noisy_windows"] < 0.3
    assert found["twenty_steps"] < 2.0


def made_up_rows(methods, noise_levels=(0.0, 0.1), n_lags=(2, 4), seeds=2):
    rng = np.random.default_rng(0)
    rows = [
        dict(zip(runner.KEY, (name, "henon", level, lags, seed), strict=True))
        | dict(zip(runner.VALUES, rng.uniform(0.1, 1.0, 5), strict=True))
        for name in methods
        for level in noise_levels
        for lags in n_lags
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows)


def test_summaries_compare_with_the_best_rival():
    frame = made_up_rows(["kernel ridge", "SVR", methods.PLAIN])
    part = frame[(frame["noise"] > 0.0) & (frame["n_lags"] == 4)]
    mean = part.groupby("method")["noisy_windows"].mean()
    expected = mean[methods.PLAIN] / min(mean["kernel ridge"], mean["SVR"])
    rows = summary.against_rivals(part, methods.PLAIN, "").rows
    row = next(r for r in rows if r["task"] == "noisy_windows" and r["system"] == summary.ALL)
    assert row["to_best_rival"] == pytest.approx(expected)
    assert row["lowest"] == float(expected < 1.0)
    assert row["cells"] == 1
    assert row["cells_by_seed"] == 2
    assert row["to_plain"] == pytest.approx(1.0)
    table = summary.errors(part, "noisy_windows", "SVR", by_seed=True)
    assert (summary.ratios(table, "SVR") == table["SVR"] / table["kernel ridge"]).all()
    texts = [str(table) for table in summary.report(frame, methods.PLAIN)]
    assert len(texts) == 5
    assert texts[-1].startswith("no noise")


@pytest.mark.usefixtures("limits_of_threads")
def test_a_run_goes_on_where_it_ended(tmp_path, monkeypatch, capsys):
    calls = []

    def method(cell):
        calls.append(cell)
        return dict.fromkeys(tasks.FIGURES, 0.5)

    for name in ("kernel ridge", "SVR", methods.PLAIN):
        monkeypatch.setitem(methods.METHODS, name, method)
    arguments = ["--systems", "henon", "--seeds", "1", "--out", str(tmp_path)]
    arguments += ["--about", methods.PLAIN, "--methods"]
    noise.main([*arguments, "kernel ridge", methods.PLAIN])
    assert len(calls) == 2 * 5 * 3
    noise.main([*arguments, "kernel ridge", "SVR", methods.PLAIN])
    assert len(calls) == 3 * 5 * 3
    frame = summary.read(tmp_path)
    assert not frame.duplicated(list(runner.KEY)).any()
    assert tuple(frame.columns) == runner.COLUMNS
    assert "4 lags and more" in capsys.readouterr().out

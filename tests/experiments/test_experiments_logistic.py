import numpy as np
import pytest

from rbfdiffnet.datasets import logistic_map
from rbfdiffnet.experiments.logistic import (
    LAGS,
    LOGISTIC_MODELS,
    NOISE_LEVELS,
    logistic_tasks,
    make_cell,
    run_cell,
)
from rbfdiffnet.experiments.results import noise_evidence, paper_mae, ridge_evidence


def test_noise_is_on_the_training_part_only():
    clean, noisy = make_cell(0.0, 4, seed=3), make_cell(0.12, 4, seed=3)
    np.testing.assert_allclose(noisy.y_test + noisy.mean, logistic_map()[-100:])
    np.testing.assert_allclose(noisy.X_test + noisy.mean, clean.X_test + clean.mean)
    noise = (noisy.y + noisy.mean) - (clean.y + clean.mean)
    assert noise.std() == pytest.approx(0.12, rel=0.1)


def test_training_mean_is_subtracted_and_windows_end_before_the_test():
    cell = make_cell(0.04, 2, seed=0)
    assert cell.y.size == 898
    assert cell.X[0, 0] + cell.X[:, -1].sum() + cell.y[-1] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(cell.X_test[0] + cell.mean, logistic_map()[898:900])


def test_tasks_cover_the_papers_table():
    tasks = logistic_tasks(2)
    assert len({task.key for task in tasks}) == len(tasks) == 2 * 25 * len(LOGISTIC_MODELS)
    assert {task.arguments[:2] for task in tasks} == {(o, k) for o in NOISE_LEVELS for k in LAGS}


def test_runs_repeat_and_depend_on_the_seed():
    first = run_cell(0.08, 2, "n-RBFN", seed=1)
    again = run_cell(0.08, 2, "n-RBFN", seed=1)
    assert first["mae"] == again["mae"]
    assert first["prediction"] == again["prediction"]
    assert first["mae"] != run_cell(0.08, 2, "n-RBFN", seed=2)["mae"]


@pytest.mark.parametrize(
    ("model", "omega", "lag"),
    [("RBF-DiffNet", 0.0, 1), ("u-RBFN", 0.0, 4), ("n-RBFN", 0.08, 16), ("u-RBFN", 0.08, 1)],
)
def test_cells_come_out_as_in_the_paper(model, omega, lag):
    mae = np.mean([run_cell(omega, lag, model, seed)["mae"] for seed in range(2)])
    assert mae == pytest.approx(paper_mae(omega, lag, model), rel=0.1)


def test_evidence_decides_for_a_standard_deviation_and_a_clean_test():
    lines = noise_evidence(n_seeds=1).splitlines()
    distance = {line[3:25].strip(): float(line.split()[-1]) for line in lines[3:7]}
    assert min(distance, key=distance.get) == "deviation, test clean"
    assert distance["deviation, test clean"] < 0.5 * sorted(distance.values())[1]


def test_evidence_on_ridge():
    text = ridge_evidence()
    good, bad = (float(word.strip(".,")) for word in text.split() if "e-" in word or "e+" in word)
    assert good < 1e-10 < 1e-3 < bad

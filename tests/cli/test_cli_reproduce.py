import functools
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from m5_files import items_frame, level8_frame
from rbfdiffnet.cli import main, reproduce
from rbfdiffnet.experiments import logistic, m5, report, results, rivals
from rbfdiffnet.experiments.results import paper_mae

LOGISTIC = ["omega", "lag", "model", "seed", "mae", "paper_mae"]
M5 = ["series", "model", "rmsse", "paper_rmsse", "fit_seconds"]
SUMMARY = ["model", "mean", "median", "paper_mean", "paper_median", "p_value", "paper_p_value"]
SUMMARY += ["fit_seconds", "ratio_to_lstm"]


@pytest.fixture
def small(monkeypatch):
    """Make the experiments small: 2 x 2 cells; 3 series of a year, ensembles hardly trained."""
    tasks = functools.partial(logistic.logistic_tasks, noise_levels=(0.0, 0.08), lags=(1, 4))
    monkeypatch.setattr(logistic, "logistic_tasks", tasks)
    monkeypatch.setattr(
        results, "noise_evidence", lambda n_seeds: f"1. The noise level is ... {n_seeds} seeds"
    )
    all_tasks = m5.m5_tasks

    def few_tasks(values, models):
        wanted = ("CA_1_FOODS", "TX_3_FOODS", "WI_3_HOUSEHOLD")
        return [t for t in all_tasks(values[-400:], models) if t.arguments[0] in wanted]

    monkeypatch.setattr(m5, "m5_tasks", few_tasks)
    monkeypatch.setattr(m5, "SEEDS", {})
    for name in ("mlp_members", "lstm_members"):
        quick = functools.partial(getattr(rivals, name), n_iterations=2)
        monkeypatch.setattr(rivals, name, quick)


@pytest.fixture
def few_rows(monkeypatch):
    """Make the training of a cell short, in this process."""
    make_cell = logistic.make_cell

    def make(*cell):
        made = make_cell(*cell)
        return replace(made, X=made.X[:150], y=made.y[:150])

    monkeypatch.setattr(logistic, "make_cell", make)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("m5") / "level8.csv"
    level8_frame().to_csv(path, index=False)
    return str(path)


def run(capsys, *arguments):
    code = main(["reproduce", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.usefixtures("small", "few_rows")
def test_logistic(capsys, tmp_path):
    code, out, _ = run(capsys, "logistic", "--seeds", 2, "--out", tmp_path)
    assert code == 0
    table = pd.read_csv(tmp_path / "logistic.csv")
    assert table.columns.tolist() == LOGISTIC
    assert len(table) == 2 * 2 * 4 * 2
    assert set(table["model"]) == {"RBF-DiffNet", "u-RBFN", "n-RBFN", "RBF-DiffNet+"}
    row = table[(table["omega"] == 0.08) & (table["lag"] == 4)]
    assert row.set_index("model")["paper_mae"]["u-RBFN"].unique() == paper_mae(0.08, 4, "u-RBFN")
    assert table[table["model"] == "RBF-DiffNet+"]["paper_mae"].isna().all()
    assert "0.0659" in out
    assert 0 < out.index("1. The noise level") < out.index("3. The closed form")
    cell = table[(table["omega"] == 0.08) & (table["lag"] == 4)].groupby("model")["mae"].mean()
    assert f"l = 4, omega = 0.08    RBF-DiffNet {cell['RBF-DiffNet']:.4f}  u-RBFN" in out
    assert out.count("\nl = ") == 3  # the first cell begins the output
    assert f"Wrote {tmp_path / 'logistic.csv'}, {tmp_path / 'report.html'}\n" in out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == 1 + 4
    assert not re.search(r"(src|href)\s*=\s*['\"]?https?:", page)
    for text in ("paper", "ours", "ratio", "0.066", "l = 4, omega = 0.08"):
        assert text in page


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_m5_with_the_extra(capsys, tmp_path, data):
    pytest.importorskip("torch")
    pytest.importorskip("statsforecast")
    code, out, err = run(capsys, "m5", "--data", data, "--out", tmp_path)
    assert code == 0
    assert "Skipping" not in err
    table = pd.read_csv(tmp_path / "m5.csv")
    assert table.columns.tolist() == M5
    assert len(table) == 3 * len(m5.M5_MODELS)
    assert table.notna()[["rmsse", "fit_seconds"]].all(axis=None)
    assert table["paper_rmsse"].tolist()[:3] == [0.5, 1.55, 0.676]
    summary = pd.read_csv(tmp_path / "m5_summary.csv")
    assert summary.columns.tolist() == SUMMARY
    assert summary["model"].tolist() == list(m5.M5_MODELS)
    indexed = summary.set_index("model")
    assert indexed.loc["LSTM", "ratio_to_lstm"] == 1.0
    assert indexed.loc["u-RBFN", "paper_p_value"] == 3.473e-5
    assert np.isfinite(indexed["p_value"].drop("RBF-DiffNet")).all()
    assert "CA_1_FOODS      LSTM " in out
    assert 0 < out.index("2. RMSSE has its root.") < out.index("4. The paper's p-values")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == 3
    for text in ("WI_3_HOUSEHOLD", "Wilcoxon", "median", "633.61", "RBF-DiffNet+"):
        assert text in page
    assert "networks: mean of 1 seeds; figures: seed 0" in page


@pytest.mark.slow
@pytest.mark.usefixtures("small", "few_rows")
def test_tables_are_written_when_a_noise_level_is_complete(capsys, tmp_path, monkeypatch):
    real, seen = logistic.run_cell, []

    def cell(omega, lag, model, seed):
        if omega == 0.08:
            seen.append(pd.read_csv(tmp_path / "logistic.csv")["omega"].tolist())
        return real(omega, lag, model, seed)

    monkeypatch.setattr(logistic, "run_cell", cell)
    assert run(capsys, "logistic", "--seeds", 2, "--out", tmp_path)[0] == 0
    assert seen == [[0.0] * 2 * 2 * 4] * 2 * 2 * 4


@pytest.mark.usefixtures("small")
def test_tables_are_written_when_a_model_is_complete(capsys, tmp_path, data, monkeypatch):
    real, seen = m5.M5_MODELS["n-RBFN"], []

    def fit(train, seed):
        seen.append(pd.read_csv(tmp_path / "m5.csv")["model"].tolist())
        return real(train, seed)

    monkeypatch.setitem(m5.M5_MODELS, "n-RBFN", fit)
    arguments = "--data", data, "--models", "u-RBFN,n-RBFN", "--out", tmp_path
    assert run(capsys, "m5", *arguments)[0] == 0
    assert seen == [["u-RBFN"] * 3] * 3


@pytest.mark.slow
@pytest.mark.usefixtures("small", "few_rows")
def test_another_version_starts_anew_and_says_so(capsys, tmp_path, data, monkeypatch):
    models = "--data", data, "--models", "u-RBFN"
    assert run(capsys, "m5", *models, "--out", tmp_path)[0] == 0
    arguments = "logistic", "--seeds", 1, "--out", tmp_path
    assert "set aside" not in run(capsys, *arguments)[2]
    monkeypatch.setattr(results, "noise_evidence", lambda _n: "1. Now otherwise.")
    assert "1. Now otherwise." not in run(capsys, *arguments)[1]
    for number in (1, 2):
        for module in (reproduce, report):
            monkeypatch.setattr(module, "__version__", f"9.{number}")
        code, out, err = run(capsys, *arguments)
        assert code == 0
        assert "1. Now otherwise." in out
        for name in ("logistic_runs", "logistic_evidence"):
            assert f"set aside as {name}.jsonl.old{number}" in err
    assert (tmp_path / "logistic_runs.jsonl.old1").exists()
    # The other experiment's results are kept, but are no part of this version's page.
    assert "m5.csv" not in out
    assert "Experiment 2" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "m5_runs.jsonl").exists()


@pytest.mark.usefixtures("small")
def test_m5_without_the_extra(capsys, tmp_path, data, monkeypatch):
    class Block:
        @staticmethod
        def find_spec(name, *_):
            if name.partition(".")[0] in ("torch", "statsforecast"):
                raise ModuleNotFoundError(name)

    monkeypatch.setattr(sys, "meta_path", [Block, *sys.meta_path])
    for name in ("torch", "statsforecast"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    code, _, err = run(capsys, "m5", "--data", data, "--out", tmp_path)
    assert code == 0
    for model, library in (("ARIMA", "statsforecast"), ("LSTM", "torch")):
        line = f"Skipping {model}: it needs {library}, which is not installed: pip install "
        assert line + "'rbfdiffnet[paper]'" in err
    table = pd.read_csv(tmp_path / "m5.csv")
    assert set(table["model"]) == {"RBF-DiffNet", "u-RBFN", "n-RBFN", "RBF-DiffNet+", "MLP"}
    summary = pd.read_csv(tmp_path / "m5_summary.csv")
    assert summary["ratio_to_lstm"].isna().all()
    assert "LSTM" not in summary["model"].tolist()


def break_library(monkeypatch, folder, name, code):
    """Put a library that runs the code when imported in the place of the real one."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)


@pytest.mark.usefixtures("small")
def test_broken_libraries(capsys, tmp_path, data, monkeypatch):
    for name in ("torch", "matplotlib"):
        break_library(monkeypatch, tmp_path / "broken", name, "raise ImportError('no lib.so\\nat')")
    arguments = "m5", "--data", data, "--out", tmp_path, "--models"
    code, out, err = run(capsys, *arguments, "LSTM")
    problem = "cannot be imported (ImportError: no lib.so): pip install 'rbfdiffnet[paper]'\n"
    assert (code, out) == (2, "")
    assert err == f"rbfdiffnet: error: --models: LSTM needs torch, which {problem}"
    assert not (tmp_path / "m5.csv").exists()
    code, out, err = run(capsys, *arguments, "u-RBFN", "LSTM")
    assert code == 0
    assert f"Skipping LSTM: it needs torch, which {problem}" in err
    assert err.count(f"No figures in {tmp_path / 'report.html'}: matplotlib {problem}") == 1
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert page.count("No figures") == 1


@pytest.mark.usefixtures("small")
def test_an_unusual_number_of_rows_is_mentioned(capsys, tmp_path):
    items_frame().to_csv(tmp_path / "sales_train_evaluation.csv", index=False)
    arguments = "m5", "--data", tmp_path, "--out", tmp_path, "--models", "u-RBFN"
    code, _, err = run(capsys, *arguments)
    assert code == 0
    assert "rbfdiffnet: warning: --data: '" in err
    assert "has 60 rows, the competition's has 30,490" in err


@pytest.mark.usefixtures("small")
def test_an_interrupted_run_goes_on_without_refitting(capsys, tmp_path, data, monkeypatch):
    fitted = []
    real = m5.M5_MODELS["n-RBFN"]

    def fit(train, seed):
        if len(fitted) == 2 and "stopped" not in fitted:
            fitted.append("stopped")
            raise KeyboardInterrupt
        fitted.append(train[0])
        return real(train, seed)

    monkeypatch.setitem(m5.M5_MODELS, "n-RBFN", fit)
    arguments = "m5", "--data", data, "--models", "n-RBFN", "--out", tmp_path
    code, _, err = run(capsys, *arguments)
    assert code == 130
    assert "stopped" in err
    assert len(pd.read_csv(tmp_path / "m5.csv")) == 2
    assert "n-RBFN" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert run(capsys, *arguments)[0] == 0
    assert len(pd.read_csv(tmp_path / "m5.csv")) == 3
    assert len(fitted) == 4  # three fits and the one that was stopped
    code, _, err = run(capsys, *arguments)
    assert (code, len(fitted)) == (0, 4)
    assert "3 of 3 results are in" in err


@pytest.mark.slow
@pytest.mark.usefixtures("small", "few_rows")
def test_runs_into_one_folder_add_up(capsys, tmp_path, data):
    for models in (["u-RBFN"], ["n-RBFN"]):
        assert run(capsys, "m5", "--data", data, "--models", *models, "--out", tmp_path)[0] == 0
    assert run(capsys, "logistic", "--seeds", 1, "--out", tmp_path)[0] == 0
    assert pd.read_csv(tmp_path / "m5_summary.csv")["model"].tolist() == ["u-RBFN", "n-RBFN"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Experiment 1" in page
    assert "Experiment 2" in page


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_processes_give_the_same_numbers(capsys, tmp_path):
    for jobs in (1, 2):
        arguments = "--seeds", 1, "--jobs", jobs, "--out", tmp_path / str(jobs)
        assert run(capsys, "logistic", *arguments)[0] == 0
    one, two = (
        pd.read_csv(tmp_path / str(jobs) / "logistic.csv").sort_values(LOGISTIC[:4])
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one["mae"], two["mae"])


def test_errors_are_one_line(capsys, tmp_path, data):
    cases = [
        (("m5", "--data", tmp_path / "none", "--out", tmp_path), "no file or folder .*kaggle.com"),
        (("m5", "--data", tmp_path, "--out", tmp_path), "no sales_train_evaluation.csv in the"),
        (("m5", "--data", data, "--models", "GRU", "--out", tmp_path), "no model 'GRU'; there are"),
        (("m5", "--data", data, "--models", "", "--out", tmp_path), "none is named; there are RBF"),
        (("m5", "--data", data, "--out", data), "--out '.*level8.csv'"),
        (("logistic", "--seeds", "0"), "'0' is not a whole number of at least 1"),
        (("m5",), "--data"),
    ]
    for arguments, message in cases:
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert err.count("\n") == 1
        assert re.search(message, err), err

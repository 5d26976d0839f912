"""``rbfdiffnet reproduce``: run the paper's experiments and set its numbers beside ours."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from rbfdiffnet import __version__
from rbfdiffnet.datasets.m5 import load_m5_level8
from rbfdiffnet.experiments import logistic, m5, report, results, rivals
from rbfdiffnet.experiments.runner import run_tasks
from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.text import format_table

_INSTALL = "pip install 'rbfdiffnet[paper]'"


def run(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    experiments = {"logistic": _run_logistic, "m5": _run_m5}
    experiments[arguments.experiment](arguments)


def _run_logistic(arguments: argparse.Namespace) -> None:
    folder = _make_folder(arguments.out)
    owner = {"experiment": "logistic", "version": __version__}
    tasks = logistic.logistic_tasks(arguments.seeds)
    left = Counter(task.arguments[:2] for task in tasks)  # tasks of a cell that are to be run
    cells: dict[tuple[float, int], list[dict[str, Any]]] = {cell: [] for cell in left}
    written: list[Path] = []
    try:
        path = folder / report.LOGISTIC_RUNS
        for record in run_tasks(tasks, path, belongs_to=owner, n_jobs=arguments.jobs):
            cell = record["omega"], record["lag"]
            cells[cell].append(record)
            left[cell] -= 1
            if not left[cell]:
                print(_describe_cell(cells[cell]), flush=True)
                if not any(n for (omega, _), n in left.items() if omega == cell[0]):
                    report.write_tables(folder)
        path, owner = folder / report.EVIDENCE_RUNS, {**owner, "experiment": "logistic evidence"}
        for _ in run_tasks(results.evidence_tasks(), path, belongs_to=owner):
            pass
    finally:
        written = [*report.write_tables(folder), *report.write_report(folder)]
    print()
    _print_logistic(report.read_runs(folder / report.LOGISTIC_RUNS))
    for text in report.logistic_evidence(folder):
        print(f"\n{text}")
    print(f"\nWrote {', '.join(map(str, written))}")


def _run_m5(arguments: argparse.Namespace) -> None:
    values, fingerprint = _load_sales(arguments.data)
    folder = _make_folder(arguments.out)
    tasks = m5.m5_tasks(values, _choose_models(arguments.models))
    left = Counter(task.kind for task in tasks)
    owner = {"experiment": "m5", "version": __version__, "data": fingerprint}
    written: list[Path] = []
    try:
        path = folder / report.M5_RUNS
        for record in run_tasks(tasks, path, belongs_to=owner, n_jobs=arguments.jobs):
            print(
                f"{record['series']:<15} {record['model']:<18} RMSSE {record['rmsse']:.3f}  "
                f"{record['fit_seconds']:9.2f} s",
                flush=True,
            )
            left[record["model"]] -= 1
            if not left[record["model"]]:
                report.write_tables(folder)
    finally:
        written = [*report.write_tables(folder), *report.write_report(folder)]
    _print_m5(folder)
    print(f"\nWrote {', '.join(map(str, written))}")


def _print_m5(folder: Path) -> None:
    table, summary, records = report.m5_results(folder)
    print(f"\n{summary.to_string(index=False, float_format='{:.4g}'.format, na_rep='')}")
    n_seeds = max(len(record["rmsse_by_seed"]) for record in records)
    print(
        f"RBF networks: mean of {n_seeds} seeds. p_value is two-sided, paper_p_value looks "
        "one-sided (4 below)."
    )
    n_series = table["series"].nunique()
    for model, rows in table.groupby("model", sort=False):
        if len(rows) < n_series:
            print(
                f"{model} has {len(rows)} of {n_series} series so far, so its mean "
                f"does not compare: on these the paper's mean is {rows['paper_rmsse'].mean():.3f}"
            )
    both = table[table["model"] == "RBF-DiffNet"].dropna()
    if len(both) > 2:
        correlation = both["rmsse"].corr(both["paper_rmsse"])
        print(f"Correlation of RBF-DiffNet's RMSSE with the paper's: {correlation:.3f}")
    for text in report.m5_evidence(table, records):
        print(f"\n{text}")


def _make_folder(out: str) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--out '{out}': {error.strerror or error}") from None
    if not os.access(folder, os.W_OK):
        raise CommandError(f"--out '{out}': no permission to write there")
    return folder


def _choose_models(wanted: list[str] | None) -> list[str]:
    """Check the names, and leave out models whose library is missing or broken."""
    parts = wanted if wanted is not None else list(m5.M5_MODELS)
    names = [name.strip() for part in parts for name in part.split(",") if name.strip()]
    if not names:
        raise CommandError(f"--models: none is named; there are {', '.join(m5.M5_MODELS)}")
    for name in names:
        if name not in m5.M5_MODELS:
            raise CommandError(f"--models: no model '{name}'; there are {', '.join(m5.M5_MODELS)}")
    missing = {name: library for name in names if (library := rivals.missing_library(name))}
    models = [name for name in m5.M5_MODELS if name in names and name not in missing]
    if not models:
        needs = ", and ".join(f"{name} needs {library}" for name, library in missing.items())
        raise CommandError(f"--models: {needs}: {_INSTALL}")
    for name, library in missing.items():
        print(f"Skipping {name}: it needs {library}: {_INSTALL}", file=sys.stderr)
    return models


def _load_sales(path: str) -> tuple[Any, str]:
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            values = load_m5_level8(path).to_numpy()
    except (OSError, ValueError) as error:
        raise CommandError(f"--data: {error}") from None
    for warning in caught:
        print(f"rbfdiffnet: warning: --data: {warning.message}", file=sys.stderr)
    return values, hashlib.sha256(values.tobytes()).hexdigest()[:16]


def _describe_cell(records: list[dict[str, Any]]) -> str:
    """Write the mean error of every model in one cell."""
    table = results.logistic_table(records)
    means = table.groupby("model", sort=False)["mae"].mean()
    first = f"l = {table['lag'][0]}, omega = {table['omega'][0]:g}"
    return f"{first:<21}" + "".join(f"  {model} {mae:.4f}" for model, mae in means.items())


def _print_logistic(records: list[dict[str, Any]]) -> None:
    table = results.logistic_table(records)
    models = list(dict.fromkeys(table["model"]))
    rows = [("l, omega", *(f"{m} {part}" for m in models for part in ("paper", "ours")))]
    for (lag, omega), cell in table.groupby(["lag", "omega"]):
        means = cell.groupby("model")[["paper_mae", "mae"]].mean().reindex(models)
        texts = [f"{number:.4f}" if number == number else "" for number in means.to_numpy().ravel()]
        rows.append((f"{lag}, {omega}", *texts))
    print(format_table(rows))

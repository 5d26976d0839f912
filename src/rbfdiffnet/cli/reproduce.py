"""``rbfdiffnet reproduce``: run the paper's experiments and set its numbers beside ours."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from rbfdiffnet.readers.errors import CommandError

_INSTALL = "pip install 'rbfdiffnet[paper]'"


def run(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    experiments = {"logistic": _run_logistic, "m5": _run_m5}
    experiments[arguments.experiment](arguments)


def _run_logistic(arguments: argparse.Namespace) -> None:
    """Carry out ``reproduce logistic``."""
    from rbfdiffnet import __version__
    from rbfdiffnet.experiments.evidence import evidence_tasks
    from rbfdiffnet.experiments.logistic import logistic_tasks
    from rbfdiffnet.experiments.output import (
        EVIDENCE_RUNS,
        LOGISTIC_RUNS,
        logistic_texts,
        read_runs,
        write_report,
        write_tables,
    )
    from rbfdiffnet.experiments.runner import run_tasks

    folder = _folder(arguments.out)
    owner = {"experiment": "logistic", "version": __version__}
    tasks = logistic_tasks(arguments.seeds)
    left = Counter(task.arguments[:2] for task in tasks)
    cells: dict[tuple[float, int], list[dict[str, Any]]] = {cell: [] for cell in left}
    written: list[Path] = []
    try:
        for record in run_tasks(
            tasks, folder / LOGISTIC_RUNS, belongs_to=owner, n_jobs=arguments.jobs
        ):
            cell = record["omega"], record["lag"]
            cells[cell].append(record)
            left[cell] -= 1
            if not left[cell]:
                print(_cell_line(cells[cell]), flush=True)
                if not any(n for (omega, _), n in left.items() if omega == cell[0]):
                    write_tables(folder)
        evidence_owner = {**owner, "experiment": "logistic evidence"}
        for _ in run_tasks(evidence_tasks(), folder / EVIDENCE_RUNS, belongs_to=evidence_owner):
            pass
    finally:
        written = [*write_tables(folder), *write_report(folder)]
    print()
    _print_logistic(read_runs(folder / LOGISTIC_RUNS))
    for text in logistic_texts(folder):
        print(f"\n{text}")
    print(f"\nWrote {', '.join(map(str, written))}")


def _run_m5(arguments: argparse.Namespace) -> None:
    """Carry out ``reproduce m5``."""
    from rbfdiffnet import __version__
    from rbfdiffnet.experiments.m5 import m5_tasks
    from rbfdiffnet.experiments.output import (
        M5_RUNS,
        m5_results,
        m5_texts,
        write_report,
        write_tables,
    )
    from rbfdiffnet.experiments.runner import run_tasks

    values, fingerprint = _load(arguments.data)
    folder = _folder(arguments.out)
    tasks = m5_tasks(values, _models(arguments.models))
    left = Counter(task.kind for task in tasks)
    written: list[Path] = []
    try:
        for record in run_tasks(
            tasks,
            folder / M5_RUNS,
            belongs_to={"experiment": "m5", "version": __version__, "data": fingerprint},
            n_jobs=arguments.jobs,
        ):
            print(
                f"{record['series']:<15} {record['model']:<18} RMSSE {record['rmsse']:.3f}  "
                f"{record['fit_seconds']:9.2f} s",
                flush=True,
            )
            left[record["model"]] -= 1
            if not left[record["model"]]:
                write_tables(folder)
    finally:
        written = [*write_tables(folder), *write_report(folder)]
    table, summary, records = m5_results(folder)
    print(f"\n{summary.to_string(index=False, float_format='{:.4g}'.format, na_rep='')}")
    n_seeds = max(len(record["rmsse_by_seed"]) for record in records)
    print(
        f"RBF networks: mean of {n_seeds} seeds. p_value is two-sided, paper_p_value looks "
        "one-sided (4 below)."
    )
    for model, rows in table.groupby("model", sort=False):
        n_series = table["series"].nunique()
        if len(rows) < n_series:
            print(
                f"{model} has {len(rows)} of {n_series} series so far, so its mean "
                f"does not compare: on these the paper's mean is {rows['paper_rmsse'].mean():.3f}"
            )
    both = table[table["model"] == "RBF-DiffNet"].dropna()
    if len(both) > 2:
        correlation = both["rmsse"].corr(both["paper_rmsse"])
        print(f"Correlation of RBF-DiffNet's RMSSE with the paper's: {correlation:.3f}")
    for text in m5_texts(table, records):
        print(f"\n{text}")
    print(f"\nWrote {', '.join(map(str, written))}")


def _folder(out: str) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--out '{out}': {error.strerror or error}") from None
    if not os.access(folder, os.W_OK):
        raise CommandError(f"--out '{out}': no permission to write there")
    return folder


def _models(wanted: list[str] | None) -> list[str]:
    """Check the names, and leave out models whose library is missing or broken."""
    from rbfdiffnet.experiments.m5 import M5_MODELS
    from rbfdiffnet.experiments.rivals import missing_library

    parts = wanted if wanted is not None else list(M5_MODELS)
    names = [name.strip() for part in parts for name in part.split(",") if name.strip()]
    if not names:
        raise CommandError(f"--models: none is named; there are {', '.join(M5_MODELS)}")
    for name in names:
        if name not in M5_MODELS:
            raise CommandError(f"--models: no model '{name}'; there are {', '.join(M5_MODELS)}")
    missing = {name: library for name in names if (library := missing_library(name))}
    models = [name for name in M5_MODELS if name in names and name not in missing]
    if not models:
        needs = ", and ".join(f"{name} needs {library}" for name, library in missing.items())
        raise CommandError(f"--models: {needs}: {_INSTALL}")
    for name, library in missing.items():
        print(f"Skipping {name}: it needs {library}: {_INSTALL}", file=sys.stderr)
    return models


def _load(path: str) -> tuple[Any, str]:
    import hashlib
    import warnings

    from rbfdiffnet.datasets.m5 import load_m5_level8

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            values = load_m5_level8(path).to_numpy()
    except (OSError, ValueError) as error:
        raise CommandError(f"--data: {error}") from None
    for warning in caught:
        print(f"rbfdiffnet: warning: --data: {warning.message}", file=sys.stderr)
    return values, hashlib.sha256(values.tobytes()).hexdigest()[:16]


def _cell_line(records: list[dict[str, Any]]) -> str:
    """Write the mean error of every model in one cell."""
    from rbfdiffnet.experiments.tables import logistic_table

    table = logistic_table(records)
    means = table.groupby("model", sort=False)["mae"].mean()
    first = f"l = {table['lag'][0]}, omega = {table['omega'][0]:g}"
    return f"{first:<21}" + "".join(f"  {model} {mae:.4f}" for model, mae in means.items())


def _print_logistic(records: list[dict[str, Any]]) -> None:
    from rbfdiffnet.experiments.tables import logistic_table
    from rbfdiffnet.support.text import format_table

    table = logistic_table(records)
    models = list(dict.fromkeys(table["model"]))
    rows = [("l, omega", *(f"{m} {part}" for m in models for part in ("paper", "ours")))]
    for (lag, omega), cell in table.groupby(["lag", "omega"]):
        means = cell.groupby("model")[["paper_mae", "mae"]].mean().reindex(models)
        texts = [f"{number:.4f}" if number == number else "" for number in means.to_numpy().ravel()]
        rows.append((f"{lag}, {omega}", *texts))
    print(format_table(rows))

"""``rbfdiffnet reproduce``: run the paper's experiments and set its numbers beside ours."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbfdiffnet.cli.arguments import positive
from rbfdiffnet.cli.errors import CommandError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["add_parser", "run_logistic", "run_m5"]

_LOGISTIC_RUNS, _M5_RUNS = "logistic_runs.jsonl", "m5_runs.jsonl"
_EVIDENCE = "logistic_evidence.txt"
_FOLDER = "reproduction"


def add_parser(commands: Any) -> None:
    """Declare the command and its arguments.

    Parameters
    ----------
    commands : object
        What ``ArgumentParser.add_subparsers`` returned.

    Examples
    --------
    >>> import argparse
    >>> from rbfdiffnet.cli.reproduce import add_parser
    >>> parser = argparse.ArgumentParser()
    >>> add_parser(parser.add_subparsers())
    >>> parser.parse_args(["reproduce", "logistic", "--seeds", "5"]).seeds
    5
    """
    parser = commands.add_parser(
        "reproduce",
        help="run the paper's experiments",
        description="Run an experiment of the paper and set its numbers beside ours. Results are "
        "kept as they come: a run that was stopped goes on where it was, and runs into one folder "
        "add up.",
    )
    experiments = parser.add_subparsers(title="experiments", metavar="EXPERIMENT", required=True)
    logistic = experiments.add_parser(
        "logistic",
        help="one-step prediction of the noisy logistic map",
        description="One-step prediction of the logistic map, five noise levels by five numbers of "
        "lags. Writes logistic.csv and report.html.",
    )
    logistic.add_argument(
        "--seeds", metavar="N", type=positive, default=3, help="seeds (default: 3)"
    )
    logistic.set_defaults(run=run_logistic)
    m5 = experiments.add_parser(
        "m5",
        help="28-day forecasts of the M5 sales by store and category",
        description="28-day forecasts of the 30 series of M5's level 8. Writes m5.csv, "
        "m5_summary.csv and report.html. ARIMA and LSTM need: pip install 'rbfdiffnet[paper]'. "
        "The LSTM ensemble takes minutes for a series; everything else, seconds.",
    )
    m5.add_argument(
        "--data",
        metavar="DIR",
        required=True,
        help="the competition's download (folder, zip or sales_train_evaluation.csv), or a CSV "
        "file with the 30 series as columns",
    )
    m5.add_argument(
        "--models", metavar="MODEL", nargs="+", help="models to run (default: all of them)"
    )
    m5.set_defaults(run=run_m5)
    for experiment in (logistic, m5):
        experiment.add_argument(
            "--out", metavar="DIR", default=_FOLDER, help=f"folder to write (default: {_FOLDER})"
        )
        experiment.add_argument(
            "--jobs",
            metavar="N",
            type=positive,
            default=1,
            help="processes (default: 1; times are to be compared from runs with 1)",
        )


def run_logistic(arguments: argparse.Namespace) -> None:
    """Carry out ``reproduce logistic``.

    Parameters
    ----------
    arguments : Namespace
        The parsed arguments.

    Examples
    --------
    >>> from rbfdiffnet.cli import main
    >>> main(["reproduce", "logistic", "--seeds", "3", "--out", "results"])  # doctest: +SKIP
    """
    from rbfdiffnet import __version__
    from rbfdiffnet.experiments.evidence import noise_evidence, ridge_evidence
    from rbfdiffnet.experiments.logistic import logistic_tasks
    from rbfdiffnet.experiments.runner import read_results, run_tasks

    folder = _folder(arguments.out)
    runs = folder / _LOGISTIC_RUNS
    try:
        for _ in run_tasks(
            logistic_tasks(arguments.seeds),
            runs,
            belongs_to={"experiment": "logistic", "version": __version__},
            n_jobs=arguments.jobs,
        ):
            pass
        if not (folder / _EVIDENCE).exists():
            text = f"{noise_evidence()}\n\n{ridge_evidence()}\n"
            (folder / _EVIDENCE).write_text(text, encoding="utf-8")
    finally:
        _write(folder)
    _print_logistic(read_results(runs))
    print(f"\n{(folder / _EVIDENCE).read_text(encoding='utf-8')}")
    print(f"Wrote {folder / 'logistic.csv'} and {folder / 'report.html'}")


def run_m5(arguments: argparse.Namespace) -> None:
    """Carry out ``reproduce m5``.

    Parameters
    ----------
    arguments : Namespace
        The parsed arguments.

    Raises
    ------
    CommandError
        If the data or a model's name is at fault.

    Examples
    --------
    >>> from rbfdiffnet.cli import main
    >>> main(["reproduce", "m5", "--data", "m5", "--models", "RBF-DiffNet"])  # doctest: +SKIP
    """
    from rbfdiffnet import __version__
    from rbfdiffnet.experiments.evidence import root_evidence, seed_evidence
    from rbfdiffnet.experiments.m5 import m5_tasks
    from rbfdiffnet.experiments.runner import run_tasks

    values, fingerprint = _load(arguments.data)
    folder = _folder(arguments.out)
    models = _models(arguments.models)
    try:
        for record in run_tasks(
            m5_tasks(values, models),
            folder / _M5_RUNS,
            belongs_to={"experiment": "m5", "version": __version__, "data": fingerprint},
            n_jobs=arguments.jobs,
        ):
            print(
                f"{record['series']:<15} {record['model']:<18} RMSSE {record['rmsse']:.3f}  "
                f"{record['fit_seconds']:9.2f} s",
                flush=True,
            )
    finally:
        _write(folder)
    table, summary, records = _m5_tables(folder)
    print(f"\n{summary.to_string(index=False, float_format='{:.4g}'.format, na_rep='')}")
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
    for evidence in filter(None, (seed_evidence(records), root_evidence(table))):
        print(f"\n{evidence}")
    names = "m5.csv", "m5_summary.csv", "report.html"
    print(f"\nWrote {', '.join(str(folder / name) for name in names)}")


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
    """Check the names, and leave out models whose library is not installed."""
    from rbfdiffnet.experiments.m5 import M5_MODELS
    from rbfdiffnet.experiments.rivals import missing_library

    names = [name for part in wanted or list(M5_MODELS) for name in part.split(",") if name]
    for name in names:
        if name not in M5_MODELS:
            raise CommandError(f"--models: no model '{name}'; there are {', '.join(M5_MODELS)}")
    for name in names:
        library = missing_library(name)
        if library is not None:
            print(
                f"Skipping {name}: it needs {library}, which is not installed: "
                "pip install 'rbfdiffnet[paper]'",
                file=sys.stderr,
            )
    return [name for name in M5_MODELS if name in names and missing_library(name) is None]


def _load(path: str) -> tuple[Any, str]:
    import hashlib

    from rbfdiffnet.datasets.m5 import load_m5_level8

    try:
        values = load_m5_level8(path).to_numpy()
    except (OSError, ValueError) as error:
        raise CommandError(f"--data: {error}") from None
    return values, hashlib.sha256(values.tobytes()).hexdigest()[:16]


def _write(folder: Path) -> None:
    """Write the tables and the page from all results in the folder."""
    from rbfdiffnet.experiments.evidence import root_evidence, seed_evidence
    from rbfdiffnet.experiments.report import logistic_section, m5_section, write_report
    from rbfdiffnet.experiments.runner import read_results
    from rbfdiffnet.experiments.tables import logistic_table, write_table

    sections = []
    records = read_results(folder / _LOGISTIC_RUNS)
    if records:
        table = logistic_table(records)
        write_table(table, folder / "logistic.csv")
        known = folder / _EVIDENCE
        evidence = [known.read_text(encoding="utf-8")] if known.exists() else []
        sections.append(logistic_section(table, records, evidence))
    if read_results(folder / _M5_RUNS):
        table, summary, records = _m5_tables(folder)
        write_table(table, folder / "m5.csv")
        write_table(summary, folder / "m5_summary.csv")
        evidence = [text for text in (root_evidence(table), seed_evidence(records)) if text]
        sections.append(m5_section(table, summary, records, evidence))
    if sections:
        write_report(folder / "report.html", sections)


def _m5_tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, list[dict[str, Any]]]:
    from rbfdiffnet.datasets.m5 import M5_LEVEL8_SERIES
    from rbfdiffnet.experiments.m5 import M5_MODELS
    from rbfdiffnet.experiments.runner import read_results
    from rbfdiffnet.experiments.tables import m5_summary, m5_table

    models = list(M5_MODELS)

    def place(record: dict[str, Any]) -> tuple[int, int]:
        return models.index(record["model"]), M5_LEVEL8_SERIES.index(record["series"])

    records = sorted(read_results(folder / _M5_RUNS), key=place)
    table = m5_table(records)
    return table, m5_summary(table, models), records


def _print_logistic(records: list[dict[str, Any]]) -> None:
    from rbfdiffnet.cli.text import format_table
    from rbfdiffnet.experiments.tables import logistic_table

    table = logistic_table(records)
    models = list(dict.fromkeys(table["model"]))
    rows = [("l, omega", *(f"{m} {part}" for m in models for part in ("paper", "ours")))]
    for (lag, omega), cell in table.groupby(["lag", "omega"]):
        means = cell.groupby("model")[["paper_mae", "mae"]].mean().reindex(models)
        texts = [f"{number:.4f}" if number == number else "" for number in means.to_numpy().ravel()]
        rows.append((f"{lag}, {omega}", *texts))
    print(format_table(rows))

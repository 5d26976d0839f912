"""A folder of results: the runs kept in it, and the tables and the page made from them.

Every function takes what the folder holds, of both experiments and from any number of commands;
results that another version left are not among it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbfdiffnet import __version__
from rbfdiffnet.datasets.m5 import M5_LEVEL8_SERIES
from rbfdiffnet.experiments.libraries import import_problem
from rbfdiffnet.experiments.m5 import M5_MODELS
from rbfdiffnet.experiments.m5_evidence import root_evidence, seed_evidence, side_evidence
from rbfdiffnet.experiments.report import logistic_section, m5_section, write_page
from rbfdiffnet.experiments.runner import read_results
from rbfdiffnet.experiments.tables import logistic_table, m5_summary, m5_table, write_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EVIDENCE_RUNS", "LOGISTIC_RUNS", "M5_RUNS", "logistic_texts", "m5_results"]
__all__ += ["m5_texts", "read_runs", "write_report", "write_tables"]

Record = dict[str, Any]

#: Files of results.
LOGISTIC_RUNS, M5_RUNS = "logistic_runs.jsonl", "m5_runs.jsonl"
EVIDENCE_RUNS = "logistic_evidence.jsonl"


def read_runs(path: Path) -> list[Record]:
    """Read the results of this version from a file; none if there is no such file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of dict

    Examples
    --------
    >>> import pathlib
    >>> from rbfdiffnet.experiments.output import read_runs
    >>> read_runs(pathlib.Path("no such file"))
    []
    """
    return read_results(path, version=__version__)


def m5_results(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, list[Record]]:
    """Tables and results of the second experiment, in the paper's order of models and series.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    table, summary : DataFrame
        From `m5_table` and `m5_summary` of `rbfdiffnet.experiments.tables`.
    records : list of dict

    Examples
    --------
    >>> import pathlib
    >>> from rbfdiffnet.experiments.output import m5_results
    >>> table, summary, records = m5_results(pathlib.Path("no such folder"))
    >>> len(table), len(summary), records
    (0, 0, [])
    """
    models = list(M5_MODELS)

    def place(record: Record) -> tuple[int, int]:
        return models.index(record["model"]), M5_LEVEL8_SERIES.index(record["series"])

    records = sorted(read_runs(folder / M5_RUNS), key=place)
    table = m5_table(records)
    return table, m5_summary(table, models), records


def logistic_texts(folder: Path) -> list[str]:
    """Evidence that the first experiment has left in the folder.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    list of str

    Examples
    --------
    >>> import pathlib
    >>> from rbfdiffnet.experiments.output import logistic_texts
    >>> logistic_texts(pathlib.Path("no such folder"))
    []
    """
    return sorted(record["text"] for record in read_runs(folder / EVIDENCE_RUNS))


def m5_texts(table: pd.DataFrame, records: list[Record]) -> list[str]:
    """Evidence from the second experiment.

    Parameters
    ----------
    table : DataFrame
    records : list of dict
        Both from `m5_results`.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from rbfdiffnet.experiments.output import m5_texts
    >>> from rbfdiffnet.experiments.tables import m5_table
    >>> [text[:2] for text in m5_texts(m5_table([]), [])]
    ['2.', '4.']
    """
    texts = root_evidence(table), side_evidence(table), seed_evidence(records)
    return [text for text in texts if text]


def write_tables(folder: Path) -> list[Path]:
    """Write the tables.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    list of Path
        What was written: a table without results is not.

    Examples
    --------
    >>> import pathlib
    >>> from rbfdiffnet.experiments.output import write_tables
    >>> write_tables(pathlib.Path("no such folder"))
    []
    """
    tables = {}
    records = read_runs(folder / LOGISTIC_RUNS)
    if records:
        tables["logistic.csv"] = logistic_table(records)
    table, summary, records = m5_results(folder)
    if records:
        tables |= {"m5.csv": table, "m5_summary.csv": summary}
    for name, frame in tables.items():
        write_table(frame, folder / name)
    return [folder / name for name in tables]


def write_report(folder: Path) -> list[Path]:
    """Write the page, and say on standard error if it has to do without figures.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    list of Path
        What was written: nothing without results.

    Examples
    --------
    >>> import pathlib
    >>> from rbfdiffnet.experiments.output import write_report
    >>> write_report(pathlib.Path("no such folder"))
    []
    """
    sections = []
    records = read_runs(folder / LOGISTIC_RUNS)
    if records:
        sections.append(logistic_section(logistic_table(records), records, logistic_texts(folder)))
    table, summary, records = m5_results(folder)
    if records:
        sections.append(m5_section(table, summary, records, m5_texts(table, records)))
    if not sections:
        return []
    path = folder / "report.html"
    write_page(path, sections)
    problem = import_problem("matplotlib.figure")
    if problem:
        print(
            f"No figures in {path}: matplotlib {problem}: pip install 'rbfdiffnet[paper]'",
            file=sys.stderr,
        )
    return [path]

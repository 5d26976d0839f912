"""Tables and one HTML page from the results in a folder, with the paper's numbers beside ours.

The folder may hold results of both experiments, from any number of runs. Results of another
version of the package are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet import __version__
from rbfdiffnet.datasets import logistic_map
from rbfdiffnet.datasets.m5 import M5_LEVEL8_SERIES
from rbfdiffnet.experiments import figures
from rbfdiffnet.experiments.m5 import M5_MODELS
from rbfdiffnet.experiments.paper_tables import LAGS, NOISE_LEVELS, PAPER_FIT_SECONDS, paper_mae
from rbfdiffnet.experiments.results import (
    logistic_table,
    m5_summary,
    m5_table,
    root_evidence,
    seed_evidence,
    side_evidence,
)
from rbfdiffnet.experiments.rivals import import_problem
from rbfdiffnet.experiments.runner import read_results
from rbfdiffnet.report.page import build_page
from rbfdiffnet.support.files import replace_file

Record = dict[str, Any]

#: Files of results.
LOGISTIC_RUNS, M5_RUNS = "logistic_runs.jsonl", "m5_runs.jsonl"
EVIDENCE_RUNS = "logistic_evidence.jsonl"

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem;
  color: #111827; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
.wide { overflow-x: auto; }
th, td { padding: 2px 8px; text-align: right; border-bottom: 1px solid #e5e7eb; }
th:first-child, td:first-child { text-align: left; }
th.group { text-align: center; border-left: 1px solid #9ca3af; }
td.group { border-left: 1px solid #9ca3af; }
pre { background: #f3f4f6; padding: 1rem; overflow-x: auto; }
img { max-width: 100%; }
details { margin: .3rem 0; }
"""


def read_runs(path: Path) -> list[Record]:
    """Read the results of this version from a file; none if there is no such file."""
    return read_results(path, version=__version__)


def m5_results(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, list[Record]]:
    """Return the table, the summary and the records of M5, in the paper's order."""
    models = list(M5_MODELS)

    def place(record: Record) -> tuple[int, int]:
        return models.index(record["model"]), M5_LEVEL8_SERIES.index(record["series"])

    records = sorted(read_runs(folder / M5_RUNS), key=place)
    table = m5_table(records)
    return table, m5_summary(table, models), records


def logistic_evidence(folder: Path) -> list[str]:
    """Return the evidence that the first experiment has left in the folder."""
    return sorted(record["text"] for record in read_runs(folder / EVIDENCE_RUNS))


def m5_evidence(table: pd.DataFrame, records: list[Record]) -> list[str]:
    """Return the evidence from the second experiment, of what `m5_results` returned."""
    texts = root_evidence(table), side_evidence(table), seed_evidence(records)
    return [text for text in texts if text]


def write_tables(folder: Path) -> list[Path]:
    """Write the tables that have results, and return their paths."""
    tables = {}
    records = read_runs(folder / LOGISTIC_RUNS)
    if records:
        tables["logistic.csv"] = logistic_table(records)
    table, summary, records = m5_results(folder)
    if records:
        tables |= {"m5.csv": table, "m5_summary.csv": summary}
    for name, frame in tables.items():
        with replace_file(folder / name) as temporary:
            frame.to_csv(temporary, index=False)
    return [folder / name for name in tables]


def write_report(folder: Path) -> list[Path]:
    """Write the page if there are results, and return its path.

    Standard error says so if the page has to do without figures.
    """
    sections = []
    records = read_runs(folder / LOGISTIC_RUNS)
    if records:
        table = logistic_table(records)
        sections.append(_logistic_section(table, records, logistic_evidence(folder)))
    table, summary, records = m5_results(folder)
    if records:
        sections.append(_m5_section(table, summary, records, m5_evidence(table, records)))
    if not sections:
        return []
    path = folder / "report.html"
    title = "RBF-DiffNet: the paper's experiments"
    body = (
        f"<h1>{title}</h1>"
        "<p>K. S. Gyamfi, J. Brusey, E. Gaura, <i>Differential radial basis function network for "
        "sequence modelling</i>, Expert Systems with Applications 189 (2022) 115982. "
        f"Made with rbfdiffnet {escape(__version__)}; ratio is ours divided by the paper's.</p>"
        + "\n".join(sections)
    )
    with replace_file(path) as temporary:
        page = build_page(title, _STYLE, body, sources="img-src data:; ")
        temporary.write_text(page, encoding="utf-8")
    problem = import_problem("matplotlib.figure")
    if problem:
        print(
            f"No figures in {path}: matplotlib {problem}: pip install 'rbfdiffnet[paper]'",
            file=sys.stderr,
        )
    return [path]


def _logistic_section(
    table: pd.DataFrame, records: Sequence[Record], evidence: Sequence[str]
) -> str:
    """Write the section about the logistic map; the records have the predictions."""
    models = list(dict.fromkeys(table["model"]))
    mean = table.groupby(["omega", "lag", "model"])["mae"].mean()
    present = set(zip(table["omega"], table["lag"], strict=True))
    cells = [(omega, lag) for lag in LAGS for omega in NOISE_LEVELS if (omega, lag) in present]
    rows = [
        [f"l = {lag}, omega = {omega:g}"]
        + [
            cell
            for model in models
            for cell in _compare(paper_mae(omega, lag, model), mean.get((omega, lag, model)))
        ]
        for omega, lag in cells
    ]
    n_seeds = table["seed"].nunique()
    parts = [
        "<h2>Experiment 1: logistic map</h2>",
        f"<p>Mean absolute error of one-step predictions: mean of {n_seeds} seed(s); figures: "
        f"seed {min(table['seed'])}. RBF-DiffNet+ is "
        "<code>RBFDiffNetRegressor(noise='auto')</code>.</p>",
        _table("cell", models, ("paper", "ours", "ratio"), rows),
        *_evidence(evidence),
    ]
    if problem := import_problem("matplotlib.figure"):
        return "\n".join([*parts, _no_figures(problem)])
    return "\n".join([*parts, *_draw_logistic(records, cells, models)])


def _draw_logistic(
    records: Sequence[Record], cells: Sequence[tuple[float, int]], models: Sequence[str]
) -> list[str]:
    """Draw the map, and the predictions of every cell for the first seed."""
    parts = ["<h3>The first 200 values of the map</h3>", _image(figures.draw_map(), "the map")]
    parts += ["<h3>Predictions of the 100 test values (black: the test values)</h3>"]
    first = {(r["omega"], r["lag"], r["model"]): r["prediction"] for r in reversed(list(records))}
    for omega, lag in cells:
        chosen = {m: first[omega, lag, m] for m in models if (omega, lag, m) in first}
        title = f"l = {lag}, omega = {omega:g}"
        actual = logistic_map()[-len(next(iter(chosen.values()))) :]
        image = _image(figures.draw_predictions(actual, chosen), title)
        parts.append(f"<details open><summary>{title}</summary>{image}</details>")
    return parts


def _m5_section(
    table: pd.DataFrame, summary: pd.DataFrame, records: Sequence[Record], evidence: Sequence[str]
) -> str:
    """Write the section about M5; the records have the forecasts."""
    models = list(summary["model"])
    ours = table.pivot(index="series", columns="model", values="rmsse")
    paper = table.pivot(index="series", columns="model", values="paper_rmsse")
    names = list(dict.fromkeys(table["series"]))
    rows = [
        [name, *(c for m in models for c in _compare(paper.loc[name, m], ours.loc[name, m]))]
        for name in names
    ]
    for statistic in ("mean", "median"):
        line = summary.set_index("model")
        pairs = [(line.loc[m, f"paper_{statistic}"], line.loc[m, statistic]) for m in models]
        rows.append([statistic, *(cell for pair in pairs for cell in _compare(*pair))])
    counts = {m: int(ours[m].notna().sum()) for m in models}
    partial = [f"{m} has {n} of {len(names)} series" for m, n in counts.items() if n < len(names)]
    note = f" Incomplete: {', '.join(partial)}; run the command again to go on." if partial else ""
    n_seeds = max(len(record.get("rmsse_by_seed", [0])) for record in records)
    parts = [
        "<h2>Experiment 2: M5, sales by store and category</h2>",
        f"<p>RMSSE of 28-day forecasts.{note}</p>",
        f"<p>RBF networks: mean of {n_seeds} seeds; figures: seed 0. Means, medians, p-values and "
        "times are those of these means; ARIMA and the ensembles are trained once. RBF-DiffNet+ "
        "is not the default network in the paper's place: it is the recipe of "
        "<code>rbfdiffnet.experiments.m5_plus</code>, one network with 28 outputs on the same 14 "
        "days, with closures filled in and the window's mean as level.</p>",
        _table("series", models, ("paper", "ours", "ratio"), rows),
        "<h3>Wilcoxon signed-rank test against RBF-DiffNet, and training times</h3>",
        "<p>Our p-values are two-sided; the paper does not say, and its own look one-sided "
        "(4 below). Times are seconds for a series, preprocessing included, on one thread; the "
        "ratio is the LSTM ensemble's time divided by the model's, on the series that both "
        "have.</p>",
        _summary_table(summary),
        *_evidence(evidence),
    ]
    if problem := import_problem("matplotlib.figure"):
        return "\n".join([*parts, _no_figures(problem)])
    return "\n".join([*parts, *_draw_m5(records, names, models)])


def _draw_m5(records: Sequence[Record], names: Sequence[str], models: Sequence[str]) -> list[str]:
    """Draw the test days and the forecasts of every series."""
    parts = ["<h3>The 28 test days</h3>"]
    for name in names:
        runs = {r["model"]: r for r in records if r["series"] == name}
        chosen = {m: runs[m]["forecast"] for m in models if m in runs}
        actual = next(iter(runs.values()))["actual"]
        image = _image(figures.draw_forecasts(actual, chosen), name)
        parts.append(f"<details open><summary>{escape(name)}</summary>{image}</details>")
    return parts


def _summary_table(summary: pd.DataFrame) -> str:
    rows = []
    for row in summary.to_dict("records"):
        paper_time = PAPER_FIT_SECONDS.get(row["model"], np.nan)
        paper_ratio = PAPER_FIT_SECONDS["LSTM"] / paper_time
        rows.append(
            [row["model"]]
            + [_number(row[key], ".3g") for key in ("paper_p_value", "p_value")]
            + [_number(paper_time, ".2f"), _number(row["fit_seconds"], ".3f")]
            + [_number(paper_ratio, ".3g"), _number(row["ratio_to_lstm"], ".4g")]
        )
    groups = ("p-value", "seconds", "LSTM's time / model's")
    return _table("model", groups, ("paper", "ours"), rows)


def _compare(paper: Any, ours: Any) -> list[str]:
    """Return the cells paper, ours and ratio; empty where there is no number."""
    paper, ours = (np.nan if value is None else float(value) for value in (paper, ours))
    return [_number(paper, ".3f"), _number(ours, ".3f"), _number(ours / paper, ".2f")]


def _number(value: float, style: str) -> str:
    return format(value, style) if np.isfinite(value) else ""


def _table(
    first: str, groups: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Lay out a table whose columns come in groups."""
    top = "".join(f"<th class='group' colspan='{len(columns)}'>{escape(g)}</th>" for g in groups)
    below = "".join(_cells("th", columns) for _ in groups)
    body = ""
    for label, *cells in rows:
        chunks = [cells[i : i + len(columns)] for i in range(0, len(cells), len(columns))]
        body += f"<tr><td>{escape(label)}</td>{''.join(_cells('td', c) for c in chunks)}</tr>\n"
    return (
        f"<div class='wide'><table><thead><tr><th rowspan='2'>{first}</th>{top}</tr>"
        f"<tr>{below}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(tag: str, cells: Sequence[str]) -> str:
    kinds = (" class='group'", *[""] * (len(cells) - 1))
    return "".join(
        f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True)
    )


def _evidence(texts: Sequence[str]) -> list[str]:
    if not texts:
        return []
    body = escape("\n\n".join(texts), quote=False)
    return ["<h3>Evidence</h3>", f"<pre>{body}</pre>"]


def _no_figures(problem: str) -> str:
    return (
        f"<p>No figures: matplotlib {escape(problem)}: "
        "<code>pip install 'rbfdiffnet[paper]'</code></p>"
    )


def _image(source: str, title: str) -> str:
    return f"<img alt='{escape(title)}' src='{source}'>"

"""Tables and one HTML page from the results in a folder, with the paper's numbers beside ours.

The figures are drawn with matplotlib, where it is installed, and lie in the page as SVG images.

The folder may hold results of both experiments, from any number of runs. Results of another
version of the package are left out.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rbfdiffnet import __version__
from rbfdiffnet.datasets import logistic_map
from rbfdiffnet.datasets.m5 import M5_LEVEL8_SERIES
from rbfdiffnet.experiments.logistic import LAGS, LOGISTIC_MODELS, NOISE_LEVELS
from rbfdiffnet.experiments.m5 import M5_MODELS
from rbfdiffnet.experiments.results import (
    PAPER_FIT_SECONDS,
    logistic_table,
    m5_summary,
    m5_table,
    paper_mae,
    root_evidence,
    seed_evidence,
    side_evidence,
)
from rbfdiffnet.experiments.rivals import import_problem
from rbfdiffnet.experiments.runner import read_results
from rbfdiffnet.report.page import build_page
from rbfdiffnet.support.files import replace_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = dict[str, Any]

#: Files of results.
LOGISTIC_RUNS, M5_RUNS = "logistic_runs.jsonl", "m5_runs.jsonl"
EVIDENCE_RUNS = "logistic_evidence.jsonl"

_INSTALL = "pip install 'rbfdiffnet[paper]'"

_ACTUAL = "#111827"
_COLORS = {
    "RBF-DiffNet": "#d1495b",
    "RBF-DiffNet+": "#7b2d8b",
    "u-RBFN": "#2e86ab",
    "n-RBFN": "#3a9d5d",
    "ARIMA": "#e3a008",
    "ARIMA-nonseasonal": "#b9770e",
    "MLP": "#6b7280",
    "LSTM": "#0f766e",
}

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
    problem = import_problem("matplotlib.figure")
    missing = f"matplotlib {problem}: "
    no_figures = f"<p>No figures: {escape(missing)}<code>{_INSTALL}</code></p>"
    parts = []
    if records := read_runs(folder / LOGISTIC_RUNS):
        parts += _describe_logistic(logistic_table(records), logistic_evidence(folder))
        parts += [no_figures] if problem else _draw_logistic(records)
    table, summary, records = m5_results(folder)
    if records:
        parts += _describe_m5(table, summary, records)
        parts += [no_figures] if problem else _draw_m5(records)
    if not parts:
        return []
    path = folder / "report.html"
    title = "RBF-DiffNet: the paper's experiments"
    body = (
        f"<h1>{title}</h1>"
        "<p>K. S. Gyamfi, J. Brusey, E. Gaura, <i>Differential radial basis function network for "
        "sequence modelling</i>, Expert Systems with Applications 189 (2022) 115982. "
        f"Made with rbfdiffnet {escape(__version__)}; ratio is ours divided by the paper's.</p>"
        + "\n".join(parts)
    )
    with replace_file(path) as temporary:
        page = build_page(title, _STYLE, body, sources="img-src data:; ")
        temporary.write_text(page, encoding="utf-8")
    if problem:
        print(f"No figures in {path}: {missing}{_INSTALL}", file=sys.stderr)
    return [path]


def _describe_logistic(table: pd.DataFrame, evidence: Sequence[str]) -> list[str]:
    """Write the section about the logistic map, without its figures."""
    models = list(dict.fromkeys(table["model"]))
    mean = table.groupby(["omega", "lag", "model"])["mae"].mean()
    rows = []
    for omega, lag in _cells_of(zip(table["omega"], table["lag"], strict=True)):
        pairs = [(paper_mae(omega, lag, m), mean.get((omega, lag, m))) for m in models]
        rows.append([_cell_title(omega, lag), *_compare(pairs)])
    return [
        "<h2>Experiment 1: logistic map</h2>",
        f"<p>Mean absolute error of one-step predictions: mean of {table['seed'].nunique()} "
        f"seed(s); figures: seed {min(table['seed'])}. RBF-DiffNet+ is "
        "<code>RBFDiffNetRegressor(noise='auto')</code>.</p>",
        _table("cell", models, ("paper", "ours", "ratio"), rows),
        *_evidence(evidence),
    ]


def _cells_of(present: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return those noise levels and numbers of lags that are present, in the paper's order."""
    present = set(present)
    return [(omega, lag) for lag in LAGS for omega in NOISE_LEVELS if (omega, lag) in present]


def _cell_title(omega: float, lag: int) -> str:
    return f"l = {lag}, omega = {omega:g}"


def _describe_m5(table: pd.DataFrame, summary: pd.DataFrame, records: list[Record]) -> list[str]:
    """Write the section about M5, without its figures."""
    models = list(summary["model"])
    ours = table.pivot(index="series", columns="model", values="rmsse")
    paper = table.pivot(index="series", columns="model", values="paper_rmsse")
    names = list(dict.fromkeys(table["series"]))
    rows = [
        [name, *_compare((paper.loc[name, m], ours.loc[name, m]) for m in models)] for name in names
    ]
    for statistic in ("mean", "median"):
        pairs = zip(summary[f"paper_{statistic}"], summary[statistic], strict=True)
        rows.append([statistic, *_compare(pairs)])
    counts = {m: int(ours[m].notna().sum()) for m in models}
    partial = [f"{m} has {n} of {len(names)} series" for m, n in counts.items() if n < len(names)]
    note = f" Incomplete: {', '.join(partial)}; run the command again to go on." if partial else ""
    n_seeds = max(len(record.get("rmsse_by_seed", [0])) for record in records)
    return [
        "<h2>Experiment 2: M5, sales by store and category</h2>",
        f"<p>RMSSE of 28-day forecasts.{note}</p>",
        f"<p>RBF networks: mean of {n_seeds} seeds; figures: seed 0. Means, medians, p-values and "
        "times are those of these means; ARIMA and the ensembles are trained once. RBF-DiffNet+ "
        "is not the default network in the paper's place: it is the recipe of "
        "<code>rbfdiffnet.experiments.m5.fit_plus</code>, one network with 28 outputs on the same "
        "14 days, with closures filled in and the window's mean as level.</p>",
        _table("series", models, ("paper", "ours", "ratio"), rows),
        "<h3>Wilcoxon signed-rank test against RBF-DiffNet, and training times</h3>",
        "<p>Our p-values are two-sided; the paper does not say, and its own look one-sided "
        "(4 below). Times are seconds for a series, preprocessing included, on one thread; the "
        "ratio is the LSTM ensemble's time divided by the model's, on the series that both "
        "have.</p>",
        _summary_table(summary),
        *_evidence(m5_evidence(table, records)),
    ]


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


def _compare(pairs: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    """Yield the cells paper, ours and ratio of each pair; empty where there is no number."""
    for pair in pairs:
        paper, ours = (np.nan if value is None else float(value) for value in pair)
        yield from (_number(paper, ".3f"), _number(ours, ".3f"), _number(ours / paper, ".2f"))


def _number(value: float, style: str) -> str:
    return format(value, style) if np.isfinite(value) else ""


def _table(
    first: str, groups: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Lay out a table whose columns come in groups."""
    top = "".join(f"<th class='group' colspan='{len(columns)}'>{escape(g)}</th>" for g in groups)
    below = _cells("th", [*columns] * len(groups), len(columns))
    body = "".join(
        f"<tr><td>{escape(label)}</td>{_cells('td', cells, len(columns))}</tr>\n"
        for label, *cells in rows
    )
    return (
        f"<div class='wide'><table><thead><tr><th rowspan='2'>{first}</th>{top}</tr>"
        f"<tr>{below}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(tag: str, cells: Sequence[str], every: int) -> str:
    """Lay out cells of a row; a group begins with every so many of them."""
    kinds = [" class='group'" if i % every == 0 else "" for i in range(len(cells))]
    return "".join(
        f"<{tag}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True)
    )


def _evidence(texts: Sequence[str]) -> list[str]:
    if not texts:
        return []
    body = escape("\n\n".join(texts), quote=False)
    return ["<h3>Evidence</h3>", f"<pre>{body}</pre>"]


def _draw_logistic(records: Sequence[Record]) -> list[str]:
    """Draw the first values of the map, and the predictions of every cell for the first seed."""
    figure, (axes,) = _make_axes(2.4)
    axes.plot(np.arange(1, 201), logistic_map(200), color=_ACTUAL, linewidth=0.8)
    axes.set_xlabel("t")
    axes.set_ylabel("s")
    parts = ["<h3>The first 200 values of the map</h3>", _image(figure, "the map")]
    parts += ["<h3>Predictions of the 100 test values (black: the test values)</h3>"]
    first = {(r["omega"], r["lag"], r["model"]): r["prediction"] for r in reversed(records)}
    for omega, lag in _cells_of((omega, lag) for omega, lag, _ in first):
        chosen = {m: first[omega, lag, m] for m in LOGISTIC_MODELS if (omega, lag, m) in first}
        parts.append(_fold(_draw_predictions(chosen), _cell_title(omega, lag)))
    return parts


def _draw_predictions(predictions: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the test values of the logistic map and the predictions, a panel for each model."""
    figure, panels = _make_axes(1.1 * len(predictions) + 0.3, len(predictions))
    for axes, (model, values) in zip(panels, predictions.items(), strict=True):
        steps, color = np.arange(1, len(values) + 1), _COLORS.get(model)
        axes.plot(steps, logistic_map()[-len(values) :], color=_ACTUAL, linewidth=0.7)
        axes.plot(steps, values, color=color, linewidth=0.9)
        axes.set_ylabel(model, fontsize=7, color=color)
    panels[-1].set_xlabel("test value", fontsize=7)
    figure.supylabel("s", fontsize=7)
    return figure


def _draw_m5(records: Sequence[Record]) -> list[str]:
    """Draw the test days of every series and every model's forecast."""
    parts = ["<h3>The 28 test days</h3>"]
    for name in sorted({record["series"] for record in records}, key=M5_LEVEL8_SERIES.index):
        runs = [record for record in records if record["series"] == name]
        figure, (axes,) = _make_axes(2.6)
        days = np.arange(1, len(runs[0]["actual"]) + 1)
        axes.plot(days, runs[0]["actual"], color=_ACTUAL, linewidth=1.8, label="sales")
        for run in runs:
            model = run["model"]
            axes.plot(days, run["forecast"], color=_COLORS.get(model), linewidth=1.0, label=model)
        axes.set_xlabel("test day", fontsize=7)
        axes.set_ylabel("unit sales", fontsize=7)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=7)
        parts.append(_fold(figure, name))
    return parts


def _make_axes(height: float, n: int = 1) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, height), layout="constrained")
    panels = list(figure.subplots(n, sharex=True, sharey=True, squeeze=False)[:, 0])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.25)
        axes.tick_params(labelsize=7)
    return figure, panels


def _fold(figure: Figure, title: str) -> str:
    """Return a figure that can be folded away."""
    image = _image(figure, title)
    return f"<details open><summary>{escape(title)}</summary>{image}</details>"


def _image(figure: Figure, title: str) -> str:
    from matplotlib import rc_context

    stream = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "rbfdiffnet"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return f"<img alt='{escape(title)}' src='data:image/svg+xml;base64,{data}'>"

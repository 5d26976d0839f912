"""Results of a command: tables, plots and HTML reports as files, documents on standard output."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from rbfdiffnet.cli.folds import count_below_quantiles, describe_quantiles
from rbfdiffnet.cli.markdown import write_markdown
from rbfdiffnet.cli.run import Console, Job, as_command_error
from rbfdiffnet.readers import Data
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.checks import CheckFailed, CommandError
from rbfdiffnet.support.files import check_writable, is_same_file, replace_file
from rbfdiffnet.support.notes import FALLBACK_KINDS
from rbfdiffnet.support.text import format_dates, printable, quote_formula

if TYPE_CHECKING:
    from rbfdiffnet.cli.evaluate import Evaluation

_PARQUET = (".parquet", ".pq")
_TABLES = (".csv", ".csv.gz", *_PARQUET)
_DRAWN = 4  # series in a plot
_EXPLAINED, _EXTREMES = 20, 3  # explained in a report: the first, the best and the worst series
_MOST_FITTED = 1000  # series that are fitted once more to explain forecasts that depend on all
_SCHEMA = 1  # of JSON documents; a key that goes, or means something else, makes it 2
# Signs that steer terminals and that JSON does not escape.
_STEERING = re.compile(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_UNDATED: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def check_outputs(arguments: argparse.Namespace) -> None:
    """Find out before the work whether its results can be written."""
    out, plot, report = arguments.out, getattr(arguments, "plot", None), arguments.report
    outputs = {"--out": out, "--plot": plot, "--report": report}
    outputs = {option: path for option, path in outputs.items() if path}
    _check_apart(arguments, outputs)
    for path in outputs.values():
        with _name_unwritable(path):
            check_writable(path)
    if out and not out.lower().endswith(_TABLES):
        raise CommandError(
            f"--out: cannot write '{out}'; end its name in .csv, .csv.gz or .parquet"
        )
    if out and out.lower().endswith(_PARQUET):
        from rbfdiffnet.readers.parquet import check_parquet

        check_parquet()
    if report and not report.lower().endswith((".html", ".htm")):
        raise CommandError(f"--report: cannot write '{report}'; end its name in .html")
    if report:
        try:
            import_module("rbfdiffnet.report")
        except ImportError as error:
            raise CommandError(f"--report: {error}") from error
    if plot:
        try:
            from matplotlib.backend_bases import FigureCanvasBase
        except ImportError:
            raise CommandError("--plot needs matplotlib: pip install 'rbfdiffnet[plot]'") from None
        if Path(plot).suffix.lower().lstrip(".") not in FigureCanvasBase.get_supported_filetypes():
            raise CommandError(f"--plot: cannot draw '{plot}'; end its name in .png, .pdf or .svg")


def _check_apart(arguments: argparse.Namespace, outputs: Mapping[str, str]) -> None:
    """Refuse to write results over a file that is read, or over each other."""
    seen = {"FILE": arguments.file} if arguments.file not in (None, "-") else {}
    seen |= {f"--exog {path}": path for path in arguments.exog if Path(path).is_file()}
    for option, path in outputs.items():
        for other, taken in seen.items():
            if is_same_file(path, taken):
                raise CommandError(
                    f"{option} {path} is the same file as {other}; give another name"
                )
        seen[option] = path


@contextmanager
def _name_unwritable(path: str) -> Iterator[None]:
    """Turn the error of a file that cannot be written into a CommandError."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"cannot write '{path}': {error.strerror or error}") from error


def write_all(*writers: Callable[[], None]) -> list[str]:
    """Call all writers, even if one of them fails, and return what went wrong."""
    problems = []
    for write in writers:
        try:
            write()
        except CommandError as error:
            problems.append(str(error))
    return problems


def finish(console: Console, problems: Sequence[str], *paths: str | None) -> None:
    """Name the files that were written, or raise CommandError with all problems."""
    if problems:
        raise CommandError("; ".join(problems))
    for path in filter(None, paths):
        console.say(f"Wrote {path}")


def check_results(job: Job, notes: pd.DataFrame, evaluation: Evaluation | None) -> None:
    """Raise CheckFailed if the results are such as ``--fail-on`` names."""
    found = []
    fallbacks = notes.loc[notes["kind"].isin(FALLBACK_KINDS), "unique_id"].unique()
    if "fallback" in job.arguments.fail_on and len(fallbacks):
        have = "1 series has" if len(fallbacks) == 1 else f"{len(fallbacks):,} series have"
        found.append(f"{have} a fallback, such as '{fallbacks[0]}'")
    if "worse" in job.arguments.fail_on and evaluation is not None and evaluation.is_worse():
        found.append("a simple rule forecast the backtest better")
    if found:
        raise CheckFailed(f"{'; '.join(found)} (--fail-on)")


def write_frame(path: str, frame: pd.DataFrame, *, raw_ids: bool = False) -> None:
    """Write a frame as CSV, gzipped CSV or Parquet, by the end of the name.

    CSV has ids that look like formulas with an apostrophe before them, unless `raw_ids`.
    """
    if not (raw_ids or path.lower().endswith(_PARQUET)):
        frame = quote_ids(frame)
    try:
        _write_table(path, frame)
    except CommandError as error:
        raise CommandError(f"{error}; {_rescue_table(path, frame)}") from error


def quote_ids(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose ids no spreadsheet takes for formulas."""
    quoted = {name: quote_formula(name) for name in frame["unique_id"].unique()}
    if all(name == same for name, same in quoted.items()):
        return frame
    return frame.assign(unique_id=frame["unique_id"].astype(object).map(quoted))


def note_formulas(job: Job, frame: pd.DataFrame) -> None:
    """Say what became of ids that look like formulas, if a file of a spreadsheet has them."""
    path, raw = job.arguments.out or "", job.arguments.raw_ids
    for name in frame["unique_id"].unique() if path and not path.lower().endswith(_PARQUET) else ():
        if quote_formula(name) != name:
            done = "in a spreadsheet, import their column as text"
            if not raw:
                done = "the file has an apostrophe before them; --raw-ids writes them as they are"
            job.console.warn(f"ids such as '{name}' look like formulas: {done}")
            return


def _rescue_table(path: str, frame: pd.DataFrame) -> str:
    """Write a table elsewhere, since it may have taken a night, and say where it is."""
    folder = tempfile.mkdtemp(prefix="rbfdiffnet-")
    place = os.path.join(folder, os.path.basename(path))
    try:
        _write_table(place, frame)
    except CommandError:
        shutil.rmtree(folder, ignore_errors=True)
        return "nor is there room elsewhere: make room and run the command again"
    return f"the results are in '{place}' instead"


def _write_table(path: str, frame: pd.DataFrame) -> None:
    with _name_unwritable(path), replace_file(path) as temporary:
        if path.lower().endswith(_PARQUET):
            from rbfdiffnet.readers.parquet import write_parquet

            write_parquet(frame, str(temporary))
        elif path.lower().endswith(".gz"):  # without name and time: the same bytes every time
            with (
                open(temporary, "wb") as file,
                gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
            ):
                frame.to_csv(packed, index=False, lineterminator="\n", mode="wb")
        else:
            frame.to_csv(temporary, index=False, lineterminator="\n")


def write_plot(path: str, data: Data, forecast: pd.DataFrame) -> None:
    """Draw the forecasts of the first four series, with their intervals."""
    from matplotlib import rc_context

    from rbfdiffnet.panel.panel import Panel
    from rbfdiffnet.report.plots import plot_panel

    n = min(_DRAWN, data.series.n_series)
    panel = Panel.from_frame(data.series.part(0, n), freq=data.freq)
    rows = forecast[forecast["unique_id"].isin([panel.name(i) for i in range(n)])]
    h = len(rows) // n
    columns = {name: rows[name].to_numpy().reshape(n, h) for name in forecast.columns[2:]}
    figure = plot_panel(panel, columns, h, history=max(3 * h, 120))
    undated = _UNDATED.get(Path(path).suffix.lower())
    salt = rc_context({"svg.hashsalt": "rbfdiffnet"})
    with _name_unwritable(path), replace_file(path) as temporary, salt:
        figure.savefig(temporary, metadata=undated)


def write_report(
    job: Job,
    forecast: pd.DataFrame,
    notes: pd.DataFrame,
    evaluation: Evaluation | None,
    tested: Data,
    totals: pd.DataFrame | None = None,
) -> None:
    """Write the HTML report, with explanations of some series.

    ``forecast``, ``totals`` and ``notes`` are of all series, ``evaluation`` of the series
    ``tested``. Of many series the report shows a choice, so that its size is bounded.
    """
    from rbfdiffnet.cli.evaluate import describe_totals
    from rbfdiffnet.panel.frames import ColumnNames
    from rbfdiffnet.report.data import FullPanel, choose_series
    from rbfdiffnet.report.page import write_page
    from rbfdiffnet.report.tree import MOST_GROUPS, Tree

    arguments, data = job.arguments, job.shown
    tree = None if job.data.groups is None else Tree.of(job.panel, job.make_model().hierarchy)
    n, n_tested = data.series.n_series, tested.series.n_series
    errors = np.full(n, np.nan)
    if evaluation is not None:
        positions = {name: i for i, name in enumerate(data.ids)}
        errors[[positions[name] for name in tested.ids]] = evaluation.scores.mase[:, 0]
    upper = range(n - job.data.series.n_series)[:MOST_GROUPS]
    chosen = choose_series(n, errors, upper)
    first = _choose_explained(errors)
    explanations, outliers = _explain_some(job, first)
    anomalies = _judge_some(job, chosen, first)
    if tree is not None:  # the page tells whether all of them add up
        chosen = np.arange(n)
    job.progress.update("Writing")
    columns_read = f"Read {job.data.source}"
    extent = job.data.describe().removeprefix(f"Reading {job.data.source}, ")
    source = ". ".join([extent, *data.notes, columns_read]) + "."
    remarks = []
    if evaluation is not None:
        remarks += [describe_totals(evaluation)] if totals is not None else []
        remarks += describe_quantiles(count_below_quantiles(evaluation.folds))
    if n_tested < n:
        remarks.append(f"The backtest is of {n_tested:,} of {n:,} series, evenly spread.")
    full = FullPanel(n, source=source, remark=" ".join(remarks))
    folds = None if evaluation is None else evaluation.complete_folds()
    if evaluation is not None and folds is not None and len(chosen) < n:
        rivals = evaluation.rivals()
        columns = [name for name in folds if str(name).split("-")[0] not in rivals]
        folds = folds.loc[np.isin(data.find_series(folds), chosen), columns]
        full = replace(full, scores=evaluation.scores, ids=tested.ids)
    what = f"{data.target} in " if data.target else ""
    from_file = arguments.file not in (None, "-")
    with _name_unwritable(arguments.report):
        write_page(
            arguments.report,
            f"Forecasts of {what}{Path(arguments.file).name}" if from_file else None,
            data.select(chosen).frame(),
            forecast[np.isin(data.find_series(forecast), chosen)],
            columns=ColumnNames(),
            backtest=folds,
            explanations=explanations,
            notes=notes,
            anomalies=anomalies,
            outliers=outliers,
            season_length=data.season_length,
            freq=data.freq,
            full=full,
            tree=tree,
            totals=totals,
        )


def _choose_explained(errors: Array) -> list[int]:
    """Return the positions of the first series, the best and the worst."""
    ranking = np.argsort(errors, kind="stable")[: np.isfinite(errors).sum()]
    extremes = [*ranking[:_EXTREMES].tolist(), *ranking[::-1][:_EXTREMES].tolist()]
    return sorted({*range(min(len(errors), _EXPLAINED)), *extremes})


def _explain_some(job: Job, positions: Sequence[int]) -> tuple[dict[str, Any] | None, Any]:
    """Fit the series that the forecasts of some depend on, explain them, and find outliers.

    Returns None for both where the forecasts depend on too many series.
    """
    data, model, ids = job.data, job.make_model(), job.shown.ids
    fitted = data
    if model.options.method.learns_series_alone and not (
        data.inputs or data.past or data.groups is not None
    ):
        fitted = data.select(positions)
    elif len(ids) > _MOST_FITTED:
        return None, None
    job.progress.update("Explaining")
    terms = job.explain(model, fitted.frame(), [ids[i] for i in positions])
    return dict(terms), model.outliers_


def _judge_some(job: Job, shown: Ints, wanted: Sequence[int]) -> pd.DataFrame:
    """Judge past values of some of the series that a report shows, the wanted ones first."""
    from rbfdiffnet.report.anomalies import LATEST, LEVEL, choose_judged

    job.progress.update("Judging")
    first = np.flatnonzero(np.isin(shown, wanted)).tolist()
    chosen = shown[choose_judged(len(shown), job.shown.series.longest, first)]
    ids = [job.shown.ids[i] for i in chosen]
    data = job.data if job.data.groups is not None else job.data.select(chosen)
    with as_command_error(data.origins):
        return cast(
            "pd.DataFrame", job.make_model().detect_anomalies(data.frame(), LEVEL, LATEST, ids)
        )


def _frame_to_json(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame for JSON: dates as text, None for missing values."""
    columns: dict[str, list[Any]] = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind == "M":
            columns[str(name)] = format_dates(pd.DatetimeIndex(column))
        else:
            columns[str(name)] = [_to_json(value) for value in column.tolist()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def print_document(job: Job, command: str, **result: Any) -> None:
    """Print what was read and the results of a command as one document, JSON or Markdown."""
    data = job.data
    head = {"schema": _SCHEMA, "command": command, "file": job.arguments.file}
    head["source"] = data.describe()
    document = {**head, "notes": list(data.notes), **result}
    if job.arguments.document == "markdown":
        print(printable(write_markdown(document)))
        return
    text = json.dumps(_to_json(document), ensure_ascii=False, allow_nan=False)
    print(_STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def _to_json(value: Any) -> Any:
    """Replace frames by rows, numbers of NumPy by plain ones, and those not finite by None."""
    if isinstance(value, pd.DataFrame):
        return _frame_to_json(value)
    if isinstance(value, dict):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value

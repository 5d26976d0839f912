"""``rbfdiffnet forecast``: forecast the series of a file."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from dataclasses import replace
from itertools import zip_longest

import pandas as pd

from rbfdiffnet.cli import output
from rbfdiffnet.cli.evaluate import backtest_sample, make_verdict, summarize
from rbfdiffnet.cli.folds import judge_totals
from rbfdiffnet.cli.run import Console, describe_problems, start_job
from rbfdiffnet.readers import Data
from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.memo import share_results
from rbfdiffnet.support.text import format_frame, printable

_MOST_SHOWN, _FIRST_SHOWN = 60, 12  # rows of a table on the terminal: all, or the first of more
_MANY = 1000  # rows that are better written to a file
_LABELS, _NARROWEST = 14, 54  # columns of the terminal: of the labels of a chart, of a chart


@share_results()
def run(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    output.check_outputs(arguments)
    if arguments.totals and arguments.plot:
        raise CommandError("--plot draws no totals; take --report, or leave --plot or --totals out")
    if arguments.group and arguments.plot:
        raise CommandError("--plot shows series, not groups; take --report, or leave --group out")
    with start_job(arguments) as job:
        data, console = job.data, job.console
        rows = data.series.n_series * arguments.horizon
        if rows > _MANY and not (arguments.out or arguments.document or arguments.quiet):
            console.warn(f"of {rows:,} forecasts the first are shown; --out FILE keeps them all")
        began = time.perf_counter()
        forecast, notes = job.forecast()
        seconds = time.perf_counter() - began
        evaluation, tested = None, data
        single = data.series.n_series == 1 and data.groups is None
        alone = single and not arguments.quiet
        if alone or arguments.report or arguments.document or "worse" in arguments.fail_on:
            evaluation, tested = backtest_sample(job)
        if evaluation is not None and arguments.totals:
            error = judge_totals(evaluation.folds, forecast, arguments.totals)
            evaluation = replace(evaluation, total_error=error)
        if alone and evaluation is None:
            count = data.series.n_values
            console.say(f"No backtest: {count} values are too few to hold {arguments.horizon} out.")
        steps = forecast
        if arguments.report and arguments.totals:
            steps, _ = job.forecast(totals=False)
        job.progress.update("Writing")
        writers = {
            arguments.out: lambda: output.write_frame(
                arguments.out, forecast, raw_ids=arguments.raw_ids
            ),
            arguments.plot: lambda: output.write_plot(arguments.plot, data, forecast),
            arguments.report: lambda: output.write_report(
                job, steps, notes, evaluation, tested, forecast if arguments.totals else None
            ),
        }
        problems = output.write_all(*(write for path, write in writers.items() if path))
    _show_forecast(console, data, forecast, notes, seconds)
    output.note_formulas(job, forecast)
    if arguments.document:
        facts = {**summarize(job, evaluation), "seconds": round(seconds, 3)}
        output.print_document(job, "forecast", **facts, report=notes, forecast=forecast)
    elif arguments.quiet and not arguments.out:
        table = forecast if arguments.raw_ids else output.quote_ids(forecast)
        text = table.to_csv(index=False, lineterminator="\n")
        print(printable(text) if sys.stdout.isatty() else text, end="")
    elif alone and evaluation is not None:
        console.say(f"\n{evaluation.text(make_verdict(job, evaluation).wrap(_columns()))}")
    output.finish(console, problems, arguments.out, arguments.plot, arguments.report)
    output.check_results(job, notes, evaluation)


def _show_forecast(
    console: Console, data: Data, forecast: pd.DataFrame, notes: pd.DataFrame, seconds: float
) -> None:
    """Show the forecasts, and what was unusual on the way."""
    n = data.series.n_series
    if data.groups is not None:
        n = forecast["unique_id"].nunique()
    if n > 1:
        rate = f", {n / seconds:,.0f} series/s" if n >= 100 else ""
        what = "series" if data.groups is None else "series and groups"
        console.say(f"Forecast {n:,} {what} in {seconds:.1f} s{rate}")
    for line in describe_problems(notes):
        console.warn(line)
    if console.document or console.quiet:
        return
    shown = forecast if len(forecast) <= _MOST_SHOWN else forecast.head(_FIRST_SHOWN)
    if n > 1:
        console.say(f"\n{format_frame(shown)}")
    else:
        table = format_frame(shown.drop(columns="unique_id"))
        console.say(table if "steps" in shown else _draw_beside(table, data, forecast))
    if len(forecast) > len(shown):
        console.say(f"... and {len(forecast) - len(shown):,} more rows")


def _columns() -> int:
    """Return how wide lines may be."""
    return min(shutil.get_terminal_size((100, 24)).columns, 100)


def _draw_beside(table: str, data: Data, forecast: pd.DataFrame) -> str:
    """Draw one series and its forecast beside a table, or below it if there is little room."""
    lines = table.splitlines()
    left = max(map(len, lines)) + 3
    room = _columns() - left
    if room < _NARROWEST:
        return f"{table}\n\n{_draw_chart(data, forecast, _columns())}"
    chart = _draw_chart(data, forecast, room).splitlines()
    pairs = zip_longest(lines, chart, fillvalue="")
    return "\n".join(f"{line:<{left}}{drawn}".rstrip() for line, drawn in pairs)


def _draw_chart(data: Data, forecast: pd.DataFrame, width: int) -> str:
    """Draw one series and its forecast, with signs of ASCII where the terminal has no others."""
    from rbfdiffnet.report.plots import text_plot

    width = max(width - _LABELS, 20)
    past = data.frame().sort_values("ds")["y"].ffill().bfill().fillna(0.0).to_numpy()
    future = forecast["RBFDiffNet"].to_numpy()
    chart = text_plot(past, future, width=width)
    try:
        chart.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        chart = text_plot(past, future, width=width, ascii_only=True)
    return chart

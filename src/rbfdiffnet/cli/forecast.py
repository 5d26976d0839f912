"""``rbfdiffnet forecast``: forecast the series of a file."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time

import pandas as pd

from rbfdiffnet.cli import output
from rbfdiffnet.cli.evaluate import Evaluation, backtest_sample
from rbfdiffnet.cli.run import Console, Job, describe_problems, start_job
from rbfdiffnet.readers import Data
from rbfdiffnet.support.memo import share_results
from rbfdiffnet.support.text import format_frame, printable

_MOST_SHOWN, _FIRST_SHOWN = 60, 12  # rows of a table on the terminal: all, or the first of more
_MANY = 1000  # rows that are better written to a file
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,]+$)")  # to a spreadsheet; -1 is a number


@share_results()
def run(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    output.check_outputs(arguments)
    with start_job(arguments) as job:
        data, console = job.data, job.console
        rows = data.series.n_series * arguments.horizon
        if rows > _MANY and not (arguments.out or arguments.json or arguments.quiet):
            console.warn(f"of {rows:,} forecasts the first are shown; --out FILE keeps them all")
        began = time.perf_counter()
        forecast, notes = job.forecast()
        seconds = time.perf_counter() - began
        evaluation, tested = None, data
        alone = data.series.n_series == 1 and (arguments.json or not arguments.quiet)
        if alone or arguments.report:
            evaluation, tested = backtest_sample(job)
        if alone and evaluation is None:
            count = data.series.n_values
            console.say(f"No backtest: {count} values are too few to hold {arguments.horizon} out.")
        job.progress.update("Writing")
        writers = {
            arguments.out: lambda: output.write_frame(arguments.out, forecast),
            arguments.plot: lambda: output.write_plot(arguments.plot, data, forecast),
            arguments.report: lambda: output.write_report(job, forecast, notes, evaluation, tested),
        }
        problems = output.write_all(*(write for path, write in writers.items() if path))
    _print_results(job, forecast, notes, evaluation if alone else None, seconds)
    output.finish(console, problems, arguments.out, arguments.plot, arguments.report)


def _print_results(
    job: Job,
    forecast: pd.DataFrame,
    notes: pd.DataFrame,
    backtest: Evaluation | None,
    seconds: float,
) -> None:
    """Print the results for a person, as CSV (quietly) or as one JSON document."""
    arguments, data, console = job.arguments, job.data, job.console
    _show_forecast(console, data, forecast, notes, seconds)
    if arguments.json:
        output.print_result(
            "forecast",
            data,
            horizon=arguments.horizon,
            frequency=str(data.freq),
            season_length=data.season_length,
            seconds=round(seconds, 3),
            report=output.frame_to_json(notes),
            backtest=backtest.as_json() if backtest is not None else None,
            forecast=output.frame_to_json(forecast),
        )
        return
    if backtest is not None:
        console.say(f"\n{backtest.text()}")
    if arguments.quiet and not arguments.out:
        text = forecast.to_csv(index=False, lineterminator="\n")
        print(printable(text) if sys.stdout.isatty() else text, end="")
    elif data.series.n_series == 1:
        console.say(f"\n{_draw_chart(data, forecast)}")


def _show_forecast(
    console: Console, data: Data, forecast: pd.DataFrame, notes: pd.DataFrame, seconds: float
) -> None:
    """Show the forecasts, and what was unusual on the way."""
    n = data.series.n_series
    rate = f", {n / seconds:,.0f} series/s" if n >= 100 else ""
    console.say(f"Forecast {n:,} series in {seconds:.1f} s{rate}")
    for line in describe_problems(notes):
        console.warn(line)
    for name in filter(_FORMULA.match, map(str, forecast["unique_id"].unique())):
        console.warn(
            f"ids such as '{name}' look like formulas: in a spreadsheet, import their column "
            "as text"
        )
        break
    if console.json or console.quiet:
        return
    shown = forecast if len(forecast) <= _MOST_SHOWN else forecast.head(_FIRST_SHOWN)
    console.say(f"\n{format_frame(shown if n > 1 else shown.drop(columns='unique_id'))}")
    if len(forecast) > len(shown):
        console.say(f"... and {len(forecast) - len(shown):,} more rows")


def _draw_chart(data: Data, forecast: pd.DataFrame) -> str:
    """Draw one series and its forecast, with signs of ASCII where the terminal has no others."""
    from rbfdiffnet.report.plots import text_plot

    width = max(min(shutil.get_terminal_size().columns, 100) - 14, 20)
    past = data.frame().sort_values("ds")["y"].ffill().bfill().fillna(0.0).to_numpy()
    future = forecast["RBFDiffNet"].to_numpy()
    chart = text_plot(past, future, width=width)
    try:
        chart.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        chart = text_plot(past, future, width=width, ascii_only=True)
    return chart

"""``rbfdiffnet forecast``: forecast the series of a file."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from rbfdiffnet.cli.arguments import add_data, add_model, add_results, read_arguments
from rbfdiffnet.readers.errors import CommandError

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet.cli.console import Console
    from rbfdiffnet.readers import Data

__all__ = ["add_parser", "run"]

_SHOWN = 60  # rows of a table on the terminal
_MANY = 1000  # rows from which on a file is the place for them


def add_parser(commands: Any) -> None:
    """Declare the command and its arguments.

    Parameters
    ----------
    commands : object
        What ``ArgumentParser.add_subparsers`` returned.

    Examples
    --------
    >>> import argparse
    >>> from rbfdiffnet.cli.forecast import add_parser
    >>> parser = argparse.ArgumentParser()
    >>> add_parser(parser.add_subparsers())
    >>> parser.parse_args(["forecast", "sales.csv", "--horizon", "6"]).horizon
    6
    """
    parser = commands.add_parser(
        "forecast",
        help="forecast the series of a file",
        description="Forecast the series of a CSV or Parquet file. A single series is also "
        "backtested against simple rules and drawn.",
        epilog="Without FILE: the built-in monthly air passengers of 1949 to 1960.",
    )
    add_data(parser, optional=True)
    add_model(parser)
    group = add_results(parser, "write forecasts")
    group.add_argument(
        "--plot", metavar="FILE.png", help="draw the first four series (PNG, PDF, SVG)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    r"""Carry out the command.

    Parameters
    ----------
    arguments : Namespace
        The parsed arguments.

    Raises
    ------
    CommandError
        If the file or an argument is at fault.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet.cli import main
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.csv")
    ...     _ = file.write_text("day,sold\n2024-04-01,3\n2024-04-02,4\n2024-04-03,6\n")
    ...     main(["forecast", str(file), "--horizon", "2", "--quiet"])
    unique_id,ds,RBFDiffNet
    sold,2024-04-04,6.0
    sold,2024-04-05,6.0
    0
    """
    from rbfdiffnet.cli import output
    from rbfdiffnet.cli.closed import open_days
    from rbfdiffnet.cli.console import Console
    from rbfdiffnet.cli.reporting import backtest_for_report, write_report
    from rbfdiffnet.cli.running import forecasts
    from rbfdiffnet.support.progress import ProgressLine
    from rbfdiffnet.support.text import printable

    output.check_outputs(arguments.out, arguments.plot, arguments.report)
    console = Console(arguments.quiet, arguments.json)
    with ProgressLine(quiet=arguments.quiet) as progress:
        progress.update("Reading")
        data = read_arguments(arguments, console)
        rows = data.series.n_series * arguments.horizon
        if rows > _MANY and not (arguments.out or arguments.json or arguments.quiet):
            console.warn(f"of {rows:,} forecasts the first are shown; --out FILE keeps them all")
        began = time.perf_counter()
        forecast, report = forecasts(arguments, data, progress)
        seconds = time.perf_counter() - began
        forecast, report = open_days(arguments, data, forecast, report)
        evaluation, tested = None, data
        alone = data.series.n_series == 1 and (arguments.json or not arguments.quiet)
        if alone or arguments.report:
            evaluation, tested = backtest_for_report(arguments, data, progress, console)
        if alone and evaluation is None:
            count = data.series.n_values
            console.say(f"No backtest: {count} values are too few to hold {arguments.horizon} out.")
        progress.update("Writing")
        work = {
            arguments.out: lambda: output.write_frame(arguments.out, forecast),
            arguments.plot: lambda: output.write_plot(arguments.plot, data, forecast),
            arguments.report: lambda: write_report(
                arguments, data, forecast, report, evaluation, tested, progress
            ),
        }
        problems = output.attempt(*(write for path, write in work.items() if path))
    _tell(console, data, forecast, report, seconds)
    if evaluation is not None and alone and not arguments.json:
        console.say(f"\n{evaluation.text()}")
    if arguments.json:
        output.print_result(
            "forecast",
            data,
            horizon=arguments.horizon,
            frequency=str(data.freq),
            season_length=data.season_length,
            seconds=round(seconds, 3),
            report=output.rows_of(report),
            backtest=evaluation.as_json() if alone and evaluation is not None else None,
            forecast=output.rows_of(forecast),
        )
    elif arguments.quiet and not arguments.out:
        text = forecast.to_csv(index=False, lineterminator="\n")
        print(printable(text) if sys.stdout.isatty() else text, end="")
    elif data.series.n_series == 1:
        console.say(f"\n{_chart(data, forecast)}")
    if problems:
        raise CommandError("; ".join(problems))
    for path in filter(None, (arguments.out, arguments.plot, arguments.report)):
        console.say(f"Wrote {path}")


def _tell(
    console: Console, data: Data, forecast: pd.DataFrame, report: pd.DataFrame, seconds: float
) -> None:
    """Say what came out, and what was unusual on the way."""
    from rbfdiffnet.cli.output import formulas
    from rbfdiffnet.cli.problems import problem_lines
    from rbfdiffnet.support.text import format_frame

    n = data.series.n_series
    rate = f", {n / seconds:,.0f} series/s" if n >= 100 else ""
    console.say(f"Forecast {n:,} series in {seconds:.1f} s{rate}")
    for line in problem_lines(report):
        console.warn(line)
    if (warning := formulas(forecast)) is not None:
        console.warn(warning)
    if console.json or console.quiet:
        return
    shown = forecast.head(_SHOWN if len(forecast) <= _SHOWN else 12)
    console.say(f"\n{format_frame(shown if n > 1 else shown.drop(columns='unique_id'))}")
    if len(forecast) > len(shown):
        console.say(f"... and {len(forecast) - len(shown):,} more rows")


def _chart(data: Data, forecast: pd.DataFrame) -> str:
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

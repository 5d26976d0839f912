"""``rbfdiffnet evaluate``: backtest the forecaster against others on the series of a file."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import Any

from rbfdiffnet.cli.arguments import add_data, add_model, add_results, positive, read_arguments
from rbfdiffnet.readers.errors import CommandError

__all__ = ["add_parser", "run"]


def add_parser(commands: Any) -> None:
    """Declare the command and its arguments.

    Parameters
    ----------
    commands : object
        What ``ArgumentParser.add_subparsers`` returned.

    Examples
    --------
    >>> import argparse
    >>> from rbfdiffnet.cli.evaluate import add_parser
    >>> parser = argparse.ArgumentParser()
    >>> add_parser(parser.add_subparsers())
    >>> parser.parse_args(["evaluate", "sales.csv", "--horizon", "6"]).windows
    3
    """
    parser = commands.add_parser(
        "evaluate",
        help="backtest on the series of a file, against other methods",
        description="Forecast windows at the end of the series from what precedes them, and "
        "compare with the last season, the last value and, where statsforecast is installed, "
        "AutoETS and AutoARIMA.",
    )
    add_data(parser)
    parser.add_argument(
        "--windows", metavar="N", type=positive, default=3, help="windows (default: 3)"
    )
    add_model(parser)
    group = add_results(parser, "write the forecasts of all windows")
    group.add_argument(
        "--rival-seconds",
        metavar="S",
        type=float,
        default=60.0,
        help="about how long AutoETS and AutoARIMA may take each; 0 leaves them out (default: 60)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Carry out the command.

    Parameters
    ----------
    arguments : Namespace
        The parsed arguments.

    Raises
    ------
    CommandError
        If the file or an argument is at fault.
    """
    from rbfdiffnet.cli import output
    from rbfdiffnet.cli.closed import open_days
    from rbfdiffnet.cli.console import Console
    from rbfdiffnet.cli.evaluation import evaluate, windows_for
    from rbfdiffnet.cli.problems import problem_lines
    from rbfdiffnet.cli.reporting import write_report
    from rbfdiffnet.cli.running import forecasts
    from rbfdiffnet.support.progress import ProgressLine

    output.check_outputs(arguments.out, None, arguments.report)
    console = Console(arguments.quiet, arguments.json)
    with ProgressLine(quiet=arguments.quiet) as progress:
        progress.update("Reading")
        data = read_arguments(arguments, console)
        if arguments.report and data.inputs and data.future is None:
            raise CommandError(
                f"--report also shows forecasts, for which the inputs ({', '.join(data.inputs)}) "
                f"must be known {arguments.horizon} steps ahead: add rows after the last date with "
                "the target left empty, name a file with them in --exog, or leave --report out"
            )
        windows = windows_for(data, arguments.horizon, arguments.windows)
        if not windows:
            raise CommandError(
                f"{arguments.file}: no series is long enough to hold {arguments.horizon} steps "
                "out; choose a smaller --horizon"
            )
        if windows < arguments.windows:
            console.warn(f"there is room for {windows} of {arguments.windows} windows")
        result = evaluate(
            arguments, data, windows, progress, console, rival_seconds=arguments.rival_seconds
        )
        if arguments.rival_seconds > 0.0 and find_spec("statsforecast") is None:
            console.say("Not compared with AutoETS and AutoARIMA: pip install statsforecast")
        folds, notes = open_days(arguments, data, result.folds, result.report)
        problems = []
        if arguments.out:
            problems = output.attempt(lambda: output.write_frame(arguments.out, folds))
    for line in problem_lines(notes):
        console.warn(line)
    if arguments.json:
        output.print_result(
            "evaluate",
            data,
            horizon=arguments.horizon,
            **result.as_json(),
            report=output.rows_of(notes),
        )
    else:
        print(result.text(), flush=True)
    if arguments.report:
        with ProgressLine(quiet=arguments.quiet) as progress:
            forecast, report = forecasts(arguments, data, progress)
            forecast, report = open_days(arguments, data, forecast, report)
            problems += output.attempt(
                lambda: write_report(arguments, data, forecast, report, result, data, progress)
            )
    if problems:
        raise CommandError("; ".join(problems))
    for path in filter(None, (arguments.out, arguments.report)):
        console.say(f"Wrote {path}")

"""The arguments of all commands.

Importing this module is quick, so that ``--help`` is; a command is loaded only when it is run.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rbfdiffnet.forecasting.hierarchy import RECONCILERS
from rbfdiffnet.forecasting.presets import PRESETS
from rbfdiffnet.models.scopes import SCOPES

_RESULTS = "reproduction"  # folder of results
_FILE = "CSV (also .gz) or Parquet file, or - for standard input"
_RAW_IDS = "write ids that look like formulas to CSV as they are, without an apostrophe"
# Options that take all words up to the next option.
_LIST_OPTIONS = ("--id-col", "--time-col", "--target-col", "--exog", "--past-exog", "--missing")


def add_forecast(commands: Any) -> None:
    """Declare ``rbfdiffnet forecast``."""
    parser = commands.add_parser(
        "forecast",
        help="forecast the series of a file",
        description="Forecast the series of a CSV or Parquet file. A single series is also "
        "backtested against simple rules and drawn.",
        epilog="Without FILE: the built-in monthly air passengers of 1949 to 1960.",
    )
    _add_data(parser, optional=True)
    add = _add_model(parser).add_argument
    totals = "sums of weeks (W), months (M), quarters (Q), years (Y) or of N steps"
    add("--totals", metavar="T", type=period, help=totals)
    group = _add_results(parser, "write forecasts")
    group.add_argument(
        "--plot", metavar="FILE.png", help="draw the first four series (PNG, PDF, SVG)"
    )


def add_evaluate(commands: Any) -> None:
    """Declare ``rbfdiffnet evaluate``."""
    parser = commands.add_parser(
        "evaluate",
        help="backtest on the series of a file, against other methods",
        description="Hide the last steps of the series, forecast them from earlier values, and "
        "compare with the last season, the last value and, where statsforecast is installed, "
        "AutoETS and AutoARIMA.",
    )
    _add_data(parser)
    parser.add_argument(
        "--windows", metavar="N", type=positive, default=3, help="windows (default: 3)"
    )
    _add_model(parser)
    group = _add_results(parser, "write the forecasts of all windows")
    group.add_argument(
        "--rival-seconds",
        metavar="S",
        type=float,
        default=60.0,
        help="about how long AutoETS and AutoARIMA may take each; 0 leaves them out (default: 60)",
    )


def add_explain(commands: Any) -> None:
    """Declare ``rbfdiffnet explain``."""
    parser = commands.add_parser(
        "explain",
        help="explain the forecast of a series",
        description="Split the forecast of a series into what it is made of: the members of the "
        "stack, and, for the network of this series alone, the learned differential operator, the "
        "lags and the exemplars. Contributions add up to the forecast.",
    )
    _add_data(parser, optional=True)
    parser.add_argument("--id", metavar="ID", help="which series (not needed if there is one)")
    parser.add_argument(
        "--step", metavar="K", type=positive, default=1, help="which step ahead (default: 1)"
    )
    _add_model(parser, level=False)


def add_anomalies(commands: Any) -> None:
    """Declare ``rbfdiffnet anomalies``."""
    parser = commands.add_parser(
        "anomalies",
        help="find past values outside of what was forecast before them",
        description="Forecast every value from the values before it, by the network that was "
        "trained on simulated series, and find those that lie outside of the interval of a level.",
        epilog="Without FILE: the built-in monthly air passengers of 1949 to 1960.",
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help=_FILE)
    _add_reading(parser)
    add = parser.add_argument
    level = "level of the intervals, in percent, from 50 to 99.99 (default: 99)"
    add("--level", metavar="P", type=percent, default=99.0, help=level)
    add("--last", metavar="N", type=positive, help="judge only so many latest steps of each series")
    _add_bounds(add)
    _add_groups(add)
    add("--jobs", metavar="N", type=positive, default=1, help="threads (default: 1)")
    add("--out", metavar="FILE", help="write all judged values (.csv, .csv.gz, .parquet)")
    add("--raw-ids", action="store_true", help=_RAW_IDS)
    _add_printing(parser)
    parser.set_defaults(report=None)


def add_reproduce(commands: Any) -> None:
    """Declare ``rbfdiffnet reproduce``."""
    parser = commands.add_parser(
        "reproduce",
        help="run the paper's experiments",
        description="Run an experiment of the paper and set its numbers beside ours. Results are "
        "kept as they come: a run that was stopped goes on where it was, and runs into one folder "
        "add up.",
    )
    experiments = parser.add_subparsers(
        title="experiments", metavar="EXPERIMENT", dest="experiment", required=True
    )
    logistic = _add_experiment(
        experiments,
        "logistic",
        "one-step prediction of the noisy logistic map",
        "One-step prediction of the logistic map, five noise levels by five numbers of lags. "
        "Writes logistic.csv and report.html.",
    )
    logistic.add_argument(
        "--seeds", metavar="N", type=positive, default=3, help="seeds (default: 3)"
    )
    m5 = _add_experiment(
        experiments,
        "m5",
        "28-day forecasts of the M5 sales by store and category",
        "28-day forecasts of the 30 series of M5's level 8. Writes m5.csv, m5_summary.csv and "
        "report.html. ARIMA, LSTM and the figures need: pip install 'rbfdiffnet[paper]'. "
        "The LSTM ensemble takes minutes for a series; everything else, seconds.",
    )
    data = (
        "the competition's download (folder, zip or sales_train_evaluation.csv), or a CSV file "
        "with the 30 series as columns"
    )
    models = "models to run (default: all of them)"
    m5.add_argument("--data", metavar="DIR", required=True, help=data)
    m5.add_argument("--models", metavar="MODEL", nargs="+", help=models)


def _add_experiment(
    experiments: Any, name: str, summary: str, description: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = experiments.add_parser(
        name, help=summary, description=description
    )
    out = f"folder to write (default: {_RESULTS})"
    jobs = "processes (default: 1; times are to be compared from runs with 1)"
    parser.add_argument("--out", metavar="DIR", default=_RESULTS, help=out)
    parser.add_argument("--jobs", metavar="N", type=positive, default=1, help=jobs)
    return parser


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return number


def seasons(text: str) -> int | tuple[int, ...]:
    """Read a season, or several with commas between them."""
    found = tuple(positive(part) for part in text.split(","))
    return found if len(found) > 1 else found[0]


def percent(text: str) -> float:
    """Read the level of a prediction interval in percent."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1.0 <= number < 100.0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a percentage such as 80 or 95")
    return number


def share(text: str) -> float:
    """Read the probability of a quantile."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < 1.0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a probability such as 0.1 or 0.9")
    return number


def period(text: str) -> str | int:
    """Read what is summed up: a period of the calendar, or a number of steps."""
    return positive(text) if text.isdecimal() else text


def _add_data(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Declare the arguments that say what to read; with ``optional``, FILE may be left out."""
    h = "steps to forecast"
    parser.add_argument("file", metavar="FILE", nargs="?" if optional else None, help=_FILE)
    parser.add_argument("--horizon", metavar="H", type=positive, required=True, help=h)
    past = "columns of FILE known only afterwards, such as orders that are delivered later"
    add = _add_reading(parser).add_argument
    add("--past-exog", metavar="C", nargs="+", default=[], help=past)


def _add_reading(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare the arguments that say what the columns of a file mean, and how it is written.

    Returns the group, to which a command may add arguments of its own.
    """
    layout = "a row for each series and date, a column for each series, a row for each series"
    ids = "columns that name the series; none: there is one series"
    time = (
        "column of dates or whole-number steps, or columns of their parts: year month; none: rows "
        "are in the order of time"
    )
    target = "column of values, or columns if each is a series"
    exog = (
        "inputs known ahead: columns of FILE, files with inputs by date (and series), and which "
        "columns of these"
    )
    repeats = "add up or average rows with the same series and date, as sales of a day"
    dates = "whether days, months or years come first in 1/2/2024 and 01-02-03"
    missing = "what cells say where there is no value, beside NA, null, - and the like: closed -999"
    group = parser.add_argument_group("reading (all of it is guessed, and said, if not given)")
    add = group.add_argument
    add("--layout", choices=("long", "wide", "rows"), help=layout)
    add("--id-col", metavar="C", nargs="+", default=[], help=ids)
    add("--time-col", metavar="C", nargs="+", default=[], help=time)
    add("--target-col", metavar="C", nargs="+", default=[], help=target)
    add("--exog", metavar="X", nargs="+", default=[], help=exog)
    add("--freq", metavar="F", help="step of time: D, W, MS, QS, h, 15min, 1, ...")
    season = "steps in a season, or in a season and a longer one: 48,336"
    add("--season-length", metavar="M", type=seasons, help=season)
    add("--repeats", choices=("sum", "mean"), help=repeats)
    add("--dates", choices=("dmy", "mdy", "ymd"), help=dates)
    add("--decimal", choices=(".", ","), help="decimal mark of numbers")
    add("--missing", metavar="WORD", nargs="+", default=[], help=missing)
    return group


def _add_model(parser: argparse.ArgumentParser, *, level: bool = True) -> argparse._ArgumentGroup:
    """Declare the arguments that say how to forecast; ``level`` says if there are intervals.

    Returns the group, to which a command may add arguments of its own.
    """
    preset = (
        "nothing fitted (instant), milliseconds a series (fast), more time for accuracy (best), "
        "the paper's settings"
    )
    scope = "a stack of forecasts, a network for each series, one for all (default: by preset)"
    jobs = f"threads (default: 1; this computer has {os.cpu_count()} cores)"
    group = parser.add_argument_group("forecasting")
    add = group.add_argument
    if level:
        add("--level", metavar="P", type=percent, nargs="+", help="intervals, in percent: 80 95")
        add("--quantiles", metavar="P", type=share, nargs="+", help="quantiles: 0.1 0.5 0.9")
    add("--preset", choices=tuple(PRESETS), default="default", help=preset)
    add("--scope", choices=SCOPES, help=scope)
    _add_bounds(add)
    add("--jobs", metavar="N", type=positive, default=1, help=jobs)
    _add_groups(add)
    reconcile = "how forecasts with --group are made to add up (default: variance)"
    add("--reconcile", choices=RECONCILERS, help=reconcile)
    _add_printing(parser)
    return group


def _add_bounds(add: Callable[..., Any]) -> None:
    """Declare the bounds of forecasts."""
    add("--lower", metavar="X", type=float, help="bound of forecasts: 0 for sales")
    add("--upper", metavar="X", type=float, help="bound of forecasts: 100 for percentages")


def _add_groups(add: Callable[..., Any]) -> None:
    """Declare the columns of groups."""
    column = "column of groups, sums of series; again for groups inside of those"
    add("--group", metavar="C", action="append", default=[], help=column)


def _add_printing(parser: argparse.ArgumentParser) -> None:
    """Declare how results are printed: for people, or as one document."""
    quiet = "say nothing but results and errors"
    parser.add_argument("--quiet", action="store_true", help=quiet)
    group = parser.add_mutually_exclusive_group()
    for name in ("JSON", "Markdown"):
        what = f"print one {name} document, and nothing else"
        kind = name.lower()
        group.add_argument(
            f"--{kind}", dest="document", action="store_const", const=kind, help=what
        )


def _add_results(parser: argparse.ArgumentParser, out: str) -> argparse._ArgumentGroup:
    """Declare what to do with forecasts; ``out`` is the help of --out.

    Returns the group, to which a command may add arguments of its own.
    """
    closed = "leave out forecasts of weekdays on which a daily series never has a value"
    group = parser.add_argument_group("results")
    group.add_argument("--out", metavar="FILE", help=f"{out} (.csv, .csv.gz, .parquet)")
    group.add_argument("--raw-ids", action="store_true", help=_RAW_IDS)
    group.add_argument("--report", metavar="FILE.html", help="write an HTML report")
    group.add_argument("--skip-closed", action="store_true", help=closed)
    fail = "exit code 3, after the work, if series have a fallback, or a simple rule was better"
    group.add_argument("--fail-on", choices=("fallback", "worse"), nargs="+", default=[], help=fail)
    return group


def hint_to_put_file_first(words: Sequence[str]) -> str:
    """Return a hint if the last word of an option is a file, which may be meant as FILE."""
    if not (words and Path(words[-1]).is_file()):
        return ""
    return f"if that is '{words[-1]}', put it first"


def hint_for_missing_file(given: Sequence[str]) -> str:
    """Return a hint if FILE is missing because an option with many words took it, else nothing."""
    words: dict[str, list[str]] = {}
    option = ""
    for word in given:
        if word.startswith("--"):
            option = word
        elif option in _LIST_OPTIONS:
            words.setdefault(option, []).append(word)
    return next(filter(None, map(hint_to_put_file_first, words.values())), "")

"""Arguments that several commands have, and their types."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rbfdiffnet.forecasting.presets import PRESETS

if TYPE_CHECKING:
    from rbfdiffnet.cli.console import Console
    from rbfdiffnet.readers import Data

__all__ = ["add_data", "add_model", "add_results", "file_behind", "file_first", "percent"]
__all__ += ["positive", "read_arguments", "seed"]

_SEVERAL = ("--id-col", "--exog", "--missing")  # options that take all words up to the next one


def positive(text: str) -> int:
    """Read a whole number of at least 1.

    Parameters
    ----------
    text : str

    Returns
    -------
    int

    Examples
    --------
    >>> from rbfdiffnet.cli.arguments import positive
    >>> positive("12")
    12
    """
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return number


def seed(text: str) -> int:
    """Read a random seed, a whole number from 0 to 4294967295.

    Parameters
    ----------
    text : str

    Returns
    -------
    int

    Examples
    --------
    >>> from rbfdiffnet.cli.arguments import seed
    >>> seed("0")
    0
    """
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 to 4294967295")
    return int(text)


def percent(text: str) -> float:
    """Read the level of a prediction interval in percent.

    Parameters
    ----------
    text : str

    Returns
    -------
    float

    Examples
    --------
    >>> from rbfdiffnet.cli.arguments import percent
    >>> percent("95")
    95.0
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1.0 <= number < 100.0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a percentage such as 80 or 95")
    return number


def add_data(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Declare the arguments that say what to read.

    Parameters
    ----------
    parser : ArgumentParser
    optional : bool, default=False
        Whether the file may be left out.

    Examples
    --------
    >>> import argparse
    >>> from rbfdiffnet.cli.arguments import add_data
    >>> parser = argparse.ArgumentParser()
    >>> add_data(parser)
    >>> parser.parse_args(["a.csv", "--horizon", "6", "--id-col", "shop", "item"]).id_col
    ['shop', 'item']
    """
    file = "CSV (also .gz) or Parquet file, or - for standard input"
    if optional:
        parser.add_argument("file", metavar="FILE", nargs="?", help=file)
    else:
        parser.add_argument("file", metavar="FILE", help=file)
    parser.add_argument(
        "--horizon", metavar="H", type=positive, required=True, help="steps to forecast"
    )
    group = parser.add_argument_group("reading (all of it is guessed, and said, if not given)")
    group.add_argument(
        "--layout",
        choices=("long", "wide", "rows"),
        help="a row for each series and date, a column for each series, a row for each series",
    )
    group.add_argument(
        "--id-col", metavar="C", nargs="+", default=[], help="columns that name the series"
    )
    group.add_argument("--time-col", metavar="C", help="column of dates or whole-number steps")
    group.add_argument("--target-col", metavar="C", help="column of values")
    group.add_argument(
        "--exog",
        metavar="X",
        nargs="+",
        default=[],
        help="inputs known ahead: columns of FILE, files with inputs by date (and series), and "
        "which columns of these",
    )
    group.add_argument("--freq", metavar="F", help="step of time: D, W, MS, QS, h, 15min, 1, ...")
    group.add_argument("--season-length", metavar="M", type=positive, help="steps in a season")
    group.add_argument(
        "--repeats",
        choices=("sum", "mean"),
        help="add up or average rows with the same series and date, as sales of a day",
    )
    group.add_argument(
        "--dates",
        choices=("dmy", "mdy", "ymd"),
        help="whether days, months or years come first in 1/2/2024 and 01-02-03",
    )
    group.add_argument("--decimal", choices=(".", ","), help="decimal mark of numbers")
    group.add_argument(
        "--missing",
        metavar="WORD",
        nargs="+",
        default=[],
        help="what cells say where there is no value, beside NA, null, - and the like: closed -999",
    )


def add_model(parser: argparse.ArgumentParser, *, level: bool = True) -> None:
    """Declare the arguments that say how to forecast.

    Parameters
    ----------
    parser : ArgumentParser
    level : bool, default=True
        Whether there are intervals.

    Examples
    --------
    >>> import argparse
    >>> from rbfdiffnet.cli.arguments import add_model
    >>> parser = argparse.ArgumentParser()
    >>> add_model(parser)
    >>> parser.parse_args(["--level", "80", "95"]).level
    [80.0, 95.0]
    """
    group = parser.add_argument_group("forecasting")
    if level:
        group.add_argument(
            "--level", metavar="P", type=percent, nargs="+", help="intervals, in percent: 80 95"
        )
    group.add_argument(
        "--preset",
        choices=tuple(PRESETS),
        default="default",
        help="milliseconds a series (fast), more time for accuracy (best), the paper's settings",
    )
    group.add_argument(
        "--scope",
        choices=("auto", "local", "global"),
        help="a stack of forecasts, a network for each series, one for all (default: by preset)",
    )
    group.add_argument("--lower", metavar="X", type=float, help="bound of forecasts: 0 for sales")
    group.add_argument(
        "--jobs",
        metavar="N",
        type=positive,
        default=1,
        help=f"threads (default: 1; this computer has {os.cpu_count()} cores)",
    )
    group.add_argument("--seed", metavar="N", type=seed, default=0, help="random seed (default: 0)")
    parser.add_argument("--quiet", action="store_true", help="say nothing but results and errors")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document, and nothing else"
    )


def add_results(parser: argparse.ArgumentParser, out: str) -> argparse._ArgumentGroup:
    """Declare the arguments that say what to make of forecasts.

    Parameters
    ----------
    parser : ArgumentParser
    out : str
        What ``--out`` writes.

    Returns
    -------
    group
        For those that only one command has.

    Examples
    --------
    >>> import argparse
    >>> from rbfdiffnet.cli.arguments import add_results
    >>> parser = argparse.ArgumentParser()
    >>> group = add_results(parser, "write forecasts")
    >>> parser.parse_args(["--skip-closed"]).skip_closed
    True
    """
    group = parser.add_argument_group("results")
    group.add_argument("--out", metavar="FILE", help=f"{out} (.csv, .csv.gz, .parquet)")
    group.add_argument("--report", metavar="FILE.html", help="write an HTML report")
    group.add_argument(
        "--skip-closed",
        action="store_true",
        help="leave out forecasts of weekdays on which a daily series never has a value",
    )
    return group


def file_first(words: Sequence[str]) -> str:
    """Say that FILE comes first, if the last of an option's words is a file; else nothing.

    Examples
    --------
    >>> from rbfdiffnet.cli.arguments import file_first
    >>> file_first(["closed", "no such file.csv"])
    ''
    """
    if not (words and Path(words[-1]).is_file()):
        return ""
    return f"if that is '{words[-1]}', put it first"


def file_behind(given: Sequence[str]) -> str:
    """Return what `file_first` says of the first option whose last word is a file.

    Examples
    --------
    >>> from rbfdiffnet.cli.arguments import file_behind
    >>> file_behind(["evaluate", "--missing", "closed", "--horizon", "7"])
    ''
    """
    words: dict[str, list[str]] = {}
    option = ""
    for word in given:
        if word.startswith("--"):
            option = word
        elif option in _SEVERAL:
            words.setdefault(option, []).append(word)
    return next(filter(None, map(file_first, words.values())), "")


def read_arguments(arguments: argparse.Namespace, console: Console) -> Data:
    """Read what the arguments ask for, and say what was read and assumed.

    Parameters
    ----------
    arguments : Namespace
    console : Console

    Returns
    -------
    Data
    """
    from rbfdiffnet.readers import ColumnChoices, example_data, read_data
    from rbfdiffnet.readers.errors import CommandError

    if arguments.file is None:
        of_file = (
            *("layout", "id_col", "time_col", "target_col", "exog", "freq"),
            *("repeats", "dates", "decimal", "missing"),
        )
        for name in of_file:
            if given := getattr(arguments, name):
                remedy = (isinstance(given, list) and file_first(given)) or "give one"
                raise CommandError(f"--{name.replace('_', '-')} is about a FILE; {remedy}")
        data = example_data(arguments.season_length)
    else:
        data = read_data(
            arguments.file,
            ColumnChoices(
                arguments.layout,
                arguments.id_col,
                arguments.time_col,
                arguments.target_col,
                arguments.dates,
                arguments.repeats,
            ),
            freq=arguments.freq,
            season_length=arguments.season_length,
            exog=arguments.exog,
            decimal=arguments.decimal,
            missing=arguments.missing,
        )
    console.say(data.describe())
    for note in data.notes:
        console.say(note)
    return data

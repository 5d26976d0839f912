"""Arguments that several commands have, their types, and how files are read by them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rbfdiffnet.forecasting.presets import PRESETS
from rbfdiffnet.support.errors import CommandError

if TYPE_CHECKING:
    from rbfdiffnet.cli.terminal import Console
    from rbfdiffnet.readers import Data

_LIST_OPTIONS = ("--id-col", "--exog", "--missing")  # take all words up to the next option
_FILE_OPTIONS = (
    *("layout", "id_col", "time_col", "target_col", "exog", "freq"),
    *("repeats", "dates", "decimal", "missing"),
)


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return number


def seed(text: str) -> int:
    """Read a random seed, a whole number from 0 to 4294967295."""
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 to 4294967295")
    return int(text)


def percent(text: str) -> float:
    """Read the level of a prediction interval in percent."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1.0 <= number < 100.0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a percentage such as 80 or 95")
    return number


def add_data(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Declare the arguments that say what to read; with ``optional``, FILE may be left out."""
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
    """Declare the arguments that say how to forecast; ``level`` says if there are intervals."""
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
    """Declare what to do with forecasts; ``out`` is the help of --out.

    Returns the group, to which a command may add arguments of its own.
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


def read_arguments(arguments: argparse.Namespace, console: Console) -> Data:
    """Read the data that the arguments name, and say what was read and assumed."""
    from rbfdiffnet.readers import ColumnChoices, example_data, read_data

    if arguments.file is None:
        for name in _FILE_OPTIONS:
            if given := getattr(arguments, name):
                remedy = (isinstance(given, list) and hint_to_put_file_first(given)) or "give one"
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

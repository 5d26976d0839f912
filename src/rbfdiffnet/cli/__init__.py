"""The command line: ``rbfdiffnet COMMAND ...``.

Each command is one module with two functions: ``add_parser`` declares its arguments and ``run``
carries it out. Modules import heavy libraries inside ``run``, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from rbfdiffnet import __version__
from rbfdiffnet.cli import evaluate, explain, forecast, reproduce
from rbfdiffnet.cli.arguments import file_behind
from rbfdiffnet.cli.ending import Ending, Stopped
from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.support.files import is_same_file, remove_unfinished
from rbfdiffnet.support.text import one_line

__all__ = ["main"]

COMMANDS = (forecast, evaluate, explain, reproduce)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def __init__(self, *, given: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self._given = given

    def error(self, message: str) -> NoReturn:
        if "required: FILE" in message and (remedy := file_behind(self._given)):
            message = f"{message}; {remedy}"
        self.exit(2, f"{self.prog}: error: {one_line(message)} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0 on success, 2 when the arguments or the data are at fault and 1 when the program is (said
        in one line on standard error), 130 after Ctrl-C, 141 when the reader of a pipe has gone,
        143 when it was asked to end (SIGTERM).

    Examples
    --------
    >>> from rbfdiffnet.cli import main
    >>> main(["--version"])
    rbfdiffnet 0...
    0
    """
    parser = _Parser(
        prog="rbfdiffnet",
        description="Forecast time series with differential radial basis function networks.",
    )
    parser.add_argument("--version", action="version", version=f"rbfdiffnet {__version__}")
    given = sys.argv[1:] if argv is None else argv
    commands = parser.add_subparsers(  # type: ignore[call-overload]  # a function will do as a class
        title="commands",
        metavar="COMMAND",
        required=True,
        parser_class=partial(_Parser, given=given),
    )
    for command in COMMANDS:
        command.add_parser(commands)
    ending = Ending()
    try:
        with ending.heeding():
            _write_anything()
            arguments = parser.parse_args(argv)
            ending.watch(arguments)
            _check_files(arguments)
            arguments.run(arguments)
            sys.stdout.flush()
    except SystemExit as stop:  # argparse: --help, --version, wrong arguments
        return stop.code if isinstance(stop.code, int) else 0
    except CommandError as error:
        print(f"rbfdiffnet: error: {one_line(str(error))}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, Stopped) as stop:
        remove_unfinished()
        print(f"rbfdiffnet: {ending.line()}", file=sys.stderr)
        _silence()
        return stop.code if isinstance(stop, Stopped) else 130
    except MemoryError:
        print("rbfdiffnet: error: out of memory; forecast fewer series at a time", file=sys.stderr)
        return 1
    except BrokenPipeError:
        _silence()  # nobody reads on
        return 141
    except OSError as error:
        if os.environ.get("RBFDIFFNET_TRACEBACK"):
            raise
        where = f" ('{error.filename}')" if error.filename else ""
        reason = one_line(f"{where}: {error.strerror or error}")
        print(
            f"rbfdiffnet: error: cannot read or write{reason}; make room or allow it, and run "
            "again",
            file=sys.stderr,
        )
        _silence()
        return 2
    except Exception as error:
        if os.environ.get("RBFDIFFNET_TRACEBACK"):
            raise
        reason = one_line(f"{type(error).__name__}: {error}")
        print(
            f"rbfdiffnet: internal error: {reason} (please report it; with RBFDIFFNET_TRACEBACK=1 "
            "in the environment it says where)",
            file=sys.stderr,
        )
        return 1
    return 0


def _write_anything() -> None:
    """Let no character stop the output: those its encoding lacks are written as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _silence() -> None:
    """Drop what is still to be written: the interpreter would complain when it flushes at exit."""
    with suppress(OSError, ValueError):  # a stream that is no file has nothing to complain of
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuse to write results over what is read, or over each other."""
    given = vars(arguments)
    if given.get("file") is None and "exog" not in given:
        return
    read = {"FILE": given["file"]} if given.get("file") not in (None, "-") else {}
    read |= {f"--exog {path}": path for path in given.get("exog") or [] if Path(path).is_file()}
    seen = list(read.items())
    for option in ("out", "plot", "report"):
        path = given.get(option)
        if not path:
            continue
        for other, taken in seen:
            if is_same_file(path, taken):
                raise CommandError(
                    f"--{option} {path} is the same file as {other}; give another name"
                )
        seen.append((f"--{option}", path))

"""The command line: ``rbfdiffnet COMMAND ...``.

`arguments` declares the arguments of all commands. Each command is a module with a function
``run``, which is loaded only when it is called, so that ``--help`` is quick. Nothing else in the
package imports the command line.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from rbfdiffnet import __version__
from rbfdiffnet.cli import arguments as declared
from rbfdiffnet.cli.signals import StopHandler, Stopped
from rbfdiffnet.support.checks import CheckFailed, CommandError
from rbfdiffnet.support.files import remove_unfinished
from rbfdiffnet.support.text import one_line

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def __init__(self, *, given: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self._given = given

    def error(self, message: str) -> NoReturn:
        if "required: FILE" in message and (hint := declared.hint_for_missing_file(self._given)):
            message = f"{message}; {hint}"
        self.exit(2, f"{self.prog}: error: {one_line(message)} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    The code is 0 on success, 2 when the arguments or the data are at fault and 1 when the program
    is (one line on standard error says what), 3 when it found what ``--fail-on`` names, 130 after
    Ctrl-C, 141 when the reader of a pipe has gone, 143 after SIGTERM. Without `argv` the arguments
    are those of the program, which is taken to end after this call: signals no longer change its
    code.
    """
    parser = _make_parser(sys.argv[1:] if argv is None else argv)
    stopping = StopHandler()
    try:
        with stopping.active(ends_program=argv is None):
            _escape_unknown_characters()
            arguments = parser.parse_args(argv)
            stopping.watch_files(arguments)
            import_module(f"rbfdiffnet.cli.{arguments.command}").run(arguments)
            sys.stdout.flush()
    except SystemExit as stop:  # argparse: --help, --version, wrong arguments
        return stop.code if isinstance(stop.code, int) else 0
    except (KeyboardInterrupt, Stopped) as stop:
        remove_unfinished()
        print(f"rbfdiffnet: {stopping.message()}", file=sys.stderr)
        _discard_output()
        return stop.code if isinstance(stop, Stopped) else 130
    except BrokenPipeError:  # nobody reads on
        _discard_output()
        return 141
    except Exception as error:
        code, message = _describe_error(error)
        print(f"rbfdiffnet: {message}", file=sys.stderr)
        if isinstance(error, OSError):
            _discard_output()
        return code
    return 0


def _describe_error(error: Exception) -> tuple[int, str]:
    """Return the exit code and one line; raise the error again if the user asks for tracebacks."""
    if isinstance(error, CheckFailed):
        return 3, f"failed: {one_line(str(error))}"
    if isinstance(error, CommandError):
        return 2, f"error: {one_line(str(error))}"
    if isinstance(error, MemoryError):
        return 1, "error: out of memory; forecast fewer series at a time"
    if os.environ.get("RBFDIFFNET_TRACEBACK"):
        raise error
    if isinstance(error, OSError):
        where = f" ('{error.filename}')" if error.filename else ""
        reason = one_line(f"{where}: {error.strerror or error}")
        return 2, f"error: cannot read or write{reason}; make room or allow it, and run again"
    reason = one_line(f"{type(error).__name__}: {error}")
    return 1, (
        f"internal error: {reason} (please report it; with RBFDIFFNET_TRACEBACK=1 in the "
        "environment it says where)"
    )


def _make_parser(given: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="rbfdiffnet",
        description="Forecast time series with differential radial basis function networks.",
    )
    parser.add_argument("--version", action="version", version=f"rbfdiffnet {__version__}")
    commands = parser.add_subparsers(  # type: ignore[call-overload]  # a function will do as a class
        title="commands",
        metavar="COMMAND",
        dest="command",
        required=True,
        parser_class=partial(_Parser, given=given),
    )
    declared.add_forecast(commands)
    declared.add_evaluate(commands)
    declared.add_explain(commands)
    declared.add_anomalies(commands)
    declared.add_reproduce(commands)
    return parser


def _escape_unknown_characters() -> None:
    """Let no character stop the output: characters the encoding lacks are written as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Drop output that is not yet flushed; the interpreter would complain of it at exit."""
    with suppress(OSError, ValueError):  # a stream that is no file has nothing to complain of
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""The command line: ``rbfdiffnet COMMAND ...``.

Each command is one module with two functions: ``add_parser`` declares its arguments and ``run``
carries it out. Modules import heavy libraries inside ``run``, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from rbfdiffnet import __version__
from rbfdiffnet.cli import evaluate, explain, forecast, reproduce
from rbfdiffnet.cli.errors import CommandError

__all__ = ["main"]

COMMANDS = (forecast, evaluate, explain, reproduce)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


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
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    try:
        with _ending_cleanly():
            arguments = parser.parse_args(argv)
            arguments.run(arguments)
            sys.stdout.flush()
    except SystemExit as stop:  # argparse: --help, --version, wrong arguments
        return stop.code if isinstance(stop.code, int) else 0
    except CommandError as error:
        print(f"rbfdiffnet: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rbfdiffnet: stopped", file=sys.stderr)
        return 130
    except _Ended:
        print("rbfdiffnet: stopped", file=sys.stderr)
        return 143
    except MemoryError:
        print("rbfdiffnet: error: out of memory; forecast fewer series at a time", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Nobody reads on; without this the interpreter complains when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if os.environ.get("RBFDIFFNET_TRACEBACK"):
            raise
        print(
            f"rbfdiffnet: internal error: {type(error).__name__}: {error} (please report it; with "
            "RBFDIFFNET_TRACEBACK=1 in the environment it says where)",
            file=sys.stderr,
        )
        return 1
    return 0


class _Ended(BaseException):
    """The process was asked to end."""


@contextmanager
def _ending_cleanly() -> Iterator[None]:
    """Unwind on SIGTERM as on Ctrl-C, so that nothing half-written is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> NoReturn:
        raise _Ended

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

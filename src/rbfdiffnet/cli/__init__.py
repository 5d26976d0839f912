"""The command line: ``rbfdiffnet COMMAND ...``.

Each command is one module with two functions: ``add_parser`` declares its arguments and ``run``
carries it out. Modules import heavy libraries inside ``run``, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from rbfdiffnet import __version__
from rbfdiffnet.cli import forecast, reproduce
from rbfdiffnet.cli.errors import CommandError

__all__ = ["main"]

COMMANDS = (forecast, reproduce)


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
        0 on success, 2 when the arguments or the data are at fault (said in one line on standard
        error), 130 after Ctrl-C, 141 when the reader of a pipe has gone.

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
    except BrokenPipeError:
        # Nobody reads on; without this the interpreter complains when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0

"""The end of a command that is asked to stop: soon, with nothing half-written, said in one line."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from rbfdiffnet.support.files import remove_unfinished
from rbfdiffnet.support.text import one_line

__all__ = ["Ending", "Stopped"]

_GRACE = 1.5  # seconds in which the work may end by itself, if it hears of it at all
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_OUTPUTS = ("out", "plot", "report")
_heeding: list[object] = []  # what does so in this process


class Stopped(BaseException):
    """The process was asked to end.

    Examples
    --------
    >>> import signal
    >>> from rbfdiffnet.cli.ending import Stopped
    >>> Stopped(signal.SIGTERM).code
    143
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


class Ending:
    """What a command leaves behind where it is stopped, by Ctrl-C or SIGTERM.

    Examples
    --------
    >>> import argparse
    >>> from rbfdiffnet.cli.ending import Ending
    >>> ending = Ending()
    >>> ending.watch(argparse.Namespace(horizon=3, out="a.csv", report=None))
    >>> ending.line()
    "stopped; 'a.csv' was not written"
    """

    def __init__(self) -> None:
        self._resumes: str | None = None
        self._before: dict[str, tuple[int, int] | None] = {}
        self._ended = threading.Event()

    def watch(self, arguments: argparse.Namespace) -> None:
        """Remember what the files that a command writes are like now."""
        given = vars(arguments)
        if "horizon" not in given:  # reproduce, whose results are kept one by one
            self._resumes = given.get("out")
            return
        self._before = {given[n]: _version(given[n]) for n in _OUTPUTS if given.get(n)}

    def line(self) -> str:
        """Say what is kept."""
        if self._resumes is not None:
            return one_line(
                f"stopped; results so far are kept in '{self._resumes}', the same command goes on "
                "from there"
            )
        parts = ["stopped"]
        for path, before in self._before.items():
            now = _version(path)
            as_it_was = "was not written" if now is None else "is as it was"
            parts.append(f"'{path}' {as_it_was if now == before else 'is complete'}")
        return one_line("; ".join(parts))

    @contextmanager
    def heeding(self) -> Iterator[None]:
        """Raise Stopped on the first signal to stop, and end the process if that takes too long.

        Python itself hears of signals between its own steps only, and an exception can be lost in
        code of others; a thread is told at once.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        heard: list[int] = []

        def stop(number: int, _: object) -> None:
            if not heard:
                heard.append(number)
                raise Stopped(number)

        before = {number: signal.signal(number, stop) for number in _SIGNALS}
        _heeding.append(self)
        try:
            if os.name == "posix":
                with self._watched():
                    yield
            else:
                yield
        finally:
            _heeding.remove(self)
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        thread = threading.Thread(target=self._wait, args=(reading,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            self._ended.set()
            os.write(writing, b"\0")
            thread.join()
            os.close(reading)
            os.close(writing)

    def _wait(self, reading: int) -> None:
        while number := os.read(reading, 1)[0]:
            if number in _SIGNALS and not self._ended.wait(_GRACE):
                self._end_now(number)

    def _end_now(self, number: int) -> NoReturn:
        """End the process, whatever it does."""
        remove_unfinished()
        for child in multiprocessing.active_children():
            child.kill()
        clear = "\r\x1b[K" if sys.stderr is not None and sys.stderr.isatty() else ""
        with suppress(OSError):
            os.write(2, f"{clear}rbfdiffnet: {self.line()}\n".encode(errors="backslashreplace"))
        os._exit(128 + number)


def _version(path: str) -> tuple[int, int] | None:
    """Tell versions of a file apart; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _forget() -> None:
    """Let processes that are forked off die as usual, and not speak for this one."""
    if _heeding:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever forked them ends them


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

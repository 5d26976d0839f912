"""Stop a command by Ctrl-C or SIGTERM: soon, with nothing half written, and with one line."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from rbfdiffnet.support.files import remove_unfinished
from rbfdiffnet.support.text import one_line

_GRACE = 0.8  # seconds in which the command may end by itself
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_OUTPUTS = ("out", "plot", "report")


class Stopped(BaseException):
    """The process was asked to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


class StopHandler:
    """End a command when a signal asks for it, and say what became of its files."""

    def __init__(self) -> None:
        self._resumes: str | None = None  # the folder from which the same command goes on
        self._before: dict[str, tuple[int, int] | None] = {}  # versions of files by path
        self._heard = False
        self._ended = threading.Event()

    def watch_files(self, arguments: argparse.Namespace) -> None:
        """Remember the present versions of the files that a command writes."""
        given = vars(arguments)
        if given["command"] == "reproduce":  # which keeps its results one by one
            self._resumes = given.get("out")
        else:
            self._before = {given[n]: _version(given[n]) for n in _OUTPUTS if given.get(n)}

    def message(self) -> str:
        """Say that the command was stopped, and which files are complete."""
        if self._resumes is not None:
            return one_line(
                f"stopped; results so far are kept in '{self._resumes}', the same command goes on "
                "from there"
            )
        parts = ["stopped"]
        for path, before in self._before.items():
            now = _version(path)
            unchanged = "was not written" if now is None else "is as it was"
            parts.append(f"'{path}' {unchanged if now == before else 'is complete'}")
        return one_line("; ".join(parts))

    @contextmanager
    def active(self, *, ends_program: bool = False) -> Iterator[None]:
        """Raise Stopped at the first signal, and end the process if that takes too long.

        Python calls signal handlers only between its own instructions, and code of others may
        swallow the exception. A thread that waits at a socket hears of the signal at once. If the
        program ends after this block, signals no longer matter: what it returns is settled.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {number: signal.signal(number, self._raise_once) for number in _SIGNALS}
        reading, writing = socket.socketpair()
        writing.setblocking(False)
        wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        thread = threading.Thread(target=self._wait_for_signals, args=(reading,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            self._ended.set()
            writing.send(b"\0")
            thread.join()
            reading.close()
            writing.close()
            for number, handler in handlers.items():
                signal.signal(number, signal.SIG_IGN if ends_program else handler)

    def _raise_once(self, number: int, _: object) -> None:
        if not self._heard:
            self._heard = True
            raise Stopped(number)

    def _wait_for_signals(self, reading: socket.socket) -> None:
        while number := reading.recv(1)[0]:
            if number in _SIGNALS and not self._ended.wait(_GRACE):
                self._end_now(number)

    def _end_now(self, number: int) -> NoReturn:
        """End the process, whatever it is doing."""
        remove_unfinished()
        for child in multiprocessing.active_children():
            child.kill()
        clear = "\r\x1b[K" if sys.stderr is not None and sys.stderr.isatty() else ""
        with suppress(OSError):
            os.write(2, f"{clear}rbfdiffnet: {self.message()}\n".encode(errors="backslashreplace"))
        os._exit(128 + number)


def _version(path: str) -> tuple[int, int] | None:
    """Return numbers that change when a file is replaced; None where there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _reset_in_child() -> None:
    """Let forked processes die as usual; the parent alone prints the message and ends them."""
    handler = signal.getsignal(signal.SIGTERM)
    if isinstance(getattr(handler, "__self__", None), StopHandler):
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)

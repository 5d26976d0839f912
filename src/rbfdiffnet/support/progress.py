"""Progress of long computations: the work reports it, and a line on the terminal shows it.

Code that works reports which share of its own task is done. Its caller says which part of the whole
that task is. If nobody watches, a report does nothing.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Self, TextIO

_EVERY = 0.2  # seconds between two renewals of the line

_watcher: ContextVar[Callable[[float], None] | None] = ContextVar("watcher", default=None)


def report_progress(share: float) -> None:
    """Report which share of the present task is done, from 0 to 1."""
    callback = _watcher.get()
    if callback is not None:
        callback(share)


@contextmanager
def watch_progress(callback: Callable[[float], None]) -> Iterator[None]:
    """Call a function with every share that the code in this block reports."""
    token = _watcher.set(callback)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def progress_between(start: float, stop: float) -> Iterator[None]:
    """Map the shares that this block reports, 0 to 1, to `start` to `stop` of the whole task."""
    outer = _watcher.get()
    if outer is None:
        yield
        return
    with watch_progress(lambda share: outer(start + (stop - start) * share)):
        yield


class ProgressLine:
    """Stage, share done, rate and time left on one line, renewed several times a second.

    The line is shown only if the stream (standard error by default) is a terminal. Elsewhere
    nothing is shown, or, if `log_every` is given, one line after so many seconds.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        log_every: float | None = None,
    ) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.began = time.monotonic()
        self._on_terminal = not quiet and self.stream.isatty()
        self._log_every = None if quiet or self._on_terminal else log_every
        self._logged = 0.0
        self._state: tuple[str, int, int, str, float | None] = ("", 0, 0, "series", None)
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._on_terminal:
            self._thread = threading.Thread(target=self._renew, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._done.set()
            self._thread.join()
            self._write("")

    def update(
        self,
        stage: str,
        done: int = 0,
        total: int = 0,
        unit: str = "series",
        seconds_left: float | None = None,
    ) -> None:
        """Set what the line shows; a new stage starts the clock again.

        The time left follows from the rate, unless the caller knows better.
        """
        if stage != self._state[0]:
            self.began = time.monotonic()
        self._state = (stage, done, total, unit, seconds_left)
        now = time.monotonic()
        if self._log_every is not None and (done == total or now - self._logged >= self._log_every):
            self._logged = now
            print(self.line(), file=self.stream, flush=True)

    def clear(self) -> None:
        """Take the line off the terminal until the next update, so that others can print there."""
        with self._lock:
            self._state = ("", 0, 0, "series", None)
            if self._on_terminal:
                self._write("")

    def line(self, now: float | None = None) -> str:
        """Write the line as it is shown at the time `now`."""
        stage, done, total, unit, left = self._state
        seconds = (time.monotonic() if now is None else now) - self.began
        if not total:
            return f"{stage}  {_format_duration(seconds)}" if stage else ""
        cells = [stage, f"{done:,} of {total:,} {unit}", f"{100 * done // total} %"]
        if left is None and done and seconds > 0.0:
            rate = done / seconds
            left = (total - done) / rate
            cells += [f"{rate:,.{0 if rate >= 100 else 1}f} {unit}/s"]
        cells += [] if left is None else [f"{_format_duration(left)} left"]
        return "  ".join(cells)

    def _renew(self) -> None:
        while not self._done.wait(_EVERY):
            with self._lock:
                if text := self.line():
                    self._write(text)

    def _write(self, text: str) -> None:
        width = max(shutil.get_terminal_size().columns - 1, 20)
        self.stream.write(f"\r\x1b[K{text[:width]}")
        self.stream.flush()


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

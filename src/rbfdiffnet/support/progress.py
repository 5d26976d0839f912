"""Progress of long computations: the work reports it, and a line on the terminal shows it.

Code that works reports which share of its own task is done. Its caller says which part of the whole
that task is. If nobody watches, a report does nothing. Threads whose work nobody waits for any
more, after Ctrl-C for one, end where they report next.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from multiprocessing import parent_process
from types import TracebackType
from typing import Any, Self, TextIO

_EVERY = 0.2  # seconds between two renewals of the line
_SOON = 2.0  # seconds that a call may take before there is a line
_LONG = 60.0  # seconds, of which a call tells beforehand

Watcher = Callable[[float], None]

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)
_line: ContextVar[ProgressLine | None] = ContextVar("line", default=None)


class Unwanted(BaseException):
    """Nobody waits for the work of this thread any more."""


def report_progress(share: float) -> None:
    """Report which share of the present task is done, from 0 to 1."""
    check_wanted()
    watcher = _watcher.get()
    if watcher is not None:
        watcher(share)


def expect_seconds(seconds: float) -> None:
    """Say on the terminal, if there is a line, that what begins will take more than a minute."""
    line = _line.get()
    if line is not None and seconds > _LONG:
        line.announce(f"This will take about {_format_duration(seconds)}.")


def check_wanted() -> None:
    """Raise `Unwanted` in a thread whose work nobody waits for any more."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Unwanted


@contextmanager
def watch_progress(callback: Watcher) -> Iterator[None]:
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


def progress_of_parts(n: int) -> Callable[[int], AbstractContextManager[None]]:
    """Return a block for each of n equal parts of the task, done in any order and thread."""
    outer = _watcher.get()
    if outer is None:
        return lambda _: nullcontext()
    shares, lock, done = [0.0] * n, threading.Lock(), 0.0

    def hear(k: int, share: float) -> None:
        nonlocal done
        with lock:
            done += (share - shares[k]) / n
            shares[k] = share
            outer(min(done, 1.0))

    @contextmanager
    def part(k: int) -> Iterator[None]:
        with watch_progress(lambda share: hear(k, share)):
            yield
        hear(k, 1.0)

    return part


def without_progress(_: int = 0) -> AbstractContextManager[None]:
    """Return a block whose reports are not heard: they are no shares of the task around it."""
    return nullcontext() if _watcher.get() is None else watch_progress(lambda _: None)


@contextmanager
def until_stopped(stop: threading.Event) -> Iterator[None]:
    """Let this thread end where it reports progress in this block, once the event is set."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


def current_stop() -> threading.Event | None:
    """Return the event that ends the work of this thread, if there is one."""
    return _stop.get()


@contextmanager
def show_progress(stage: str) -> Iterator[None]:
    """Show on the terminal how far the call in this block is, if it takes more than two seconds.

    There is one line, of the outermost call, and none in threads and processes that others started.
    """
    is_main = threading.current_thread() is threading.main_thread() and parent_process() is None
    if _watcher.get() is not None or not is_main or not _is_terminal(sys.stderr):
        yield
        return
    with ProgressLine(delay=_SOON) as line:
        line.update(stage)
        yield


def _is_terminal(stream: Any) -> bool:
    """Tell whether a line can be shown, and is not switched off."""
    if os.environ.get("RBFDIFFNET_PROGRESS") == "0":
        return False
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # there is no stream, or it is closed
        return False


class ProgressLine:
    """Stage, share done, rate and time left on one line, renewed several times a second.

    The line is shown, after `delay` seconds, only if the stream (standard error by default) is a
    terminal and ``RBFDIFFNET_PROGRESS`` is not 0. Elsewhere nothing is shown, or, if `log_every` is
    given, one line after so many seconds. Shares that the work in the block reports are shown in
    stages that count nothing else.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        log_every: float | None = None,
        delay: float = _EVERY,
    ) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.began = time.monotonic()
        self._on_terminal = not quiet and _is_terminal(self.stream)
        self._delay = delay
        self._is_shown = False
        self._share = 0.0
        self._watching: Any = None
        self._before: Any = None
        self._log_every = None if quiet or self._on_terminal else log_every
        self._logged = 0.0
        self._state: tuple[str, float, int, str, float | None] = ("", 0, 0, "series", None)
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._watching = watch_progress(self._hear)
        self._watching.__enter__()
        self._before = _line.set(self)
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
        _line.reset(self._before)
        self._watching.__exit__(kind, error, trace)
        if self._thread is not None:
            self._done.set()
            self._thread.join()
        self.wipe()

    def update(
        self,
        stage: str,
        done: float = 0,
        total: int = 0,
        unit: str = "series",
        seconds_left: float | None = None,
    ) -> None:
        """Set what the line shows; a new stage starts the clock again.

        The time left follows from the rate, unless the caller knows better.
        """
        if stage != self._state[0]:
            self.began = time.monotonic()
            self._share = 0.0
        self._state = (stage, done, total, unit, seconds_left)
        now = time.monotonic()
        if self._log_every is not None and (done == total or now - self._logged >= self._log_every):
            self._logged = now
            print(self.line(), file=self.stream, flush=True)

    def announce(self, text: str) -> None:
        """Print a sentence above the line, if the stream is a terminal."""
        if self._on_terminal:
            with self._lock:
                self._write(text)
                self.stream.write("\n")

    def clear(self) -> None:
        """Take the line off the terminal until the next update, so that others can print there."""
        self._state = ("", 0, 0, "series", None)
        self.wipe()

    def wipe(self) -> None:
        """Take the line off the terminal for a moment, so that a message can be printed there."""
        with self._lock:
            if self._is_shown:
                self._is_shown = False
                self._write("")

    def line(self, now: float | None = None) -> str:
        """Write the line as it is shown at the time `now`."""
        stage, done, total, unit, left = self._state
        if not stage:
            return ""
        seconds = (time.monotonic() if now is None else now) - self.began
        share = done / total if total else self._share
        cells = [stage]
        if total > 1:
            cells += [f"{int(done):,} of {total:,} {unit}"]
        if total or share:
            cells += [f"{int(100 * share)} %"]
        if left is None and share > 0.0 and seconds > 0.0:
            left = seconds * (1.0 - share) / share
            if total > 1:
                rate = done / seconds
                cells += [f"{rate:,.{0 if rate >= 100 else 1}f} {unit}/s"]
        cells += [_format_duration(seconds) if left is None else f"{_format_duration(left)} left"]
        return "  ".join(cells)

    def _hear(self, share: float) -> None:
        self._share = share

    def _renew(self) -> None:
        delay = self._delay
        while not self._done.wait(delay):
            delay = _EVERY
            with self._lock:
                if text := self.line():
                    self._is_shown = True
                    self._write(text)

    def _write(self, text: str) -> None:
        width = max(shutil.get_terminal_size().columns - 1, 20)
        with suppress(OSError, ValueError):  # the terminal is gone, the work goes on
            self.stream.write(f"\r\x1b[K{text[:width]}")
            self.stream.flush()


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""How far a command is: a line on standard error that renews itself, if a person looks at it."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

__all__ = ["Progress"]

_EVERY = 0.2  # seconds


class Progress:
    r"""Stage, share done, series a second and time left, renewed several times a second.

    It is shown only if the stream is a terminal. The method `update` is what a long computation
    calls: with the name of its stage, and how many of how many things it has done there.

    Parameters
    ----------
    quiet : bool, default=False
        Show nothing.
    stream : text stream, optional
        By default standard error.

    Examples
    --------
    >>> from rbfdiffnet.cli.progress import Progress
    >>> with Progress(quiet=True) as progress:
    ...     progress.update("Forecasting", 500, 2000)
    ...     progress.line(now=progress.began + 10.0)
    'Forecasting  500 of 2,000 series  25 %  50.0 series/s  30 s left'
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.shown = not quiet and self.stream.isatty()
        self.began = time.monotonic()
        self._state: tuple[str, int, int, str] = ("", 0, 0, "series")
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self.shown:
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

    def update(self, stage: str, done: int = 0, total: int = 0, unit: str = "series") -> None:
        """Say how far a stage is; a new one starts the clock again."""
        if stage != self._state[0]:
            self.began = time.monotonic()
        self._state = (stage, done, total, unit)

    def line(self, now: float | None = None) -> str:
        """Return the line as it is to be shown."""
        stage, done, total, unit = self._state
        seconds = (time.monotonic() if now is None else now) - self.began
        if not total:
            return f"{stage}  {_clock(seconds)}" if stage else ""
        parts = [stage, f"{done:,} of {total:,} {unit}", f"{100 * done // total} %"]
        if done and seconds > 0.0:
            rate = done / seconds
            parts += [f"{rate:,.{0 if rate >= 100 else 1}f} {unit}/s"]
            parts += [f"{_clock((total - done) / rate)} left"]
        return "  ".join(parts)

    def _renew(self) -> None:
        while not self._done.wait(_EVERY):
            self._write(self.line())

    def _write(self, text: str) -> None:
        width = max(shutil.get_terminal_size().columns - 1, 20)
        self.stream.write(f"\r\x1b[K{text[:width]}")
        self.stream.flush()


def _clock(seconds: float) -> str:
    """Write a duration in the unit a person would."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

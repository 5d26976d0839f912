"""Run cases of a target, each within limits of time and work, and keep what failed."""

import signal
import threading
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from rbfdiffnet.support.checks import DataWarning

#: Seconds that a case may take: those of a busy machine, so only a hang is longer.
LIMIT = 120


class Hang(AssertionError):
    """A case took too long."""


class _TimeIsUp(BaseException):
    """No more cases; hypothesis lets it pass, and tries nothing again."""


@dataclass
class Trial:
    """What came of some cases: how many there were, the one that took most, and what failed.

    `longest` is in seconds of the processor, which other work on the machine hardly changes.
    """

    cases: int = 0
    longest: float = 0.0
    longest_case: str = ""
    error: Exception | None = None


@contextmanager
def _limited(seconds):
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_):
        raise Hang(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def for_all(**strategies):
    """Say what a claim is about: strategies for its arguments, by name."""

    def of(claim):
        claim.strategies = strategies
        return claim

    return of


def try_cases(claim, cases, seed=None, shrink=True, until=float("inf")):
    """Try cases, and begin none after `until`, a time of `time.monotonic`; return a `Trial`.

    Without a seed the cases are the same every time. Numbers that overflow with a warning fail.
    """
    trial = Trial()

    def case(**drawn):
        if time.monotonic() > until:
            raise _TimeIsUp
        trial.cases += 1
        start = time.process_time()
        with _limited(LIMIT), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", DataWarning)
            claim(**drawn)
        took = time.process_time() - start
        if took > trial.longest:
            trial.longest, trial.longest_case = took, repr(drawn)

    run = settings(
        max_examples=cases,
        derandomize=seed is None,
        deadline=None,
        database=None,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        suppress_health_check=list(HealthCheck),
    )(given(**claim.strategies)(case))
    if seed is not None:
        run = hypothesis.seed(seed)(run)
    try:
        run()
    except _TimeIsUp:
        pass
    except Exception as error:
        trial.error = error
    return trial

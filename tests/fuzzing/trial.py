"""Run cases of a target, each within a time limit, and keep what failed."""

import signal
import threading
import time
from contextlib import contextmanager

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

#: Seconds that a case may take: those of a busy machine, so only a hang is longer.
LIMIT = 120


class Hang(AssertionError):
    """A case took too long."""


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


def try_cases(claim, cases, seed=None, shrink=True):
    """Return the number of cases tried, the seconds of the longest, and an error or None.

    Without a seed the cases are the same every time.
    """
    tried, longest = 0, 0.0

    def case(**drawn):
        nonlocal tried, longest
        tried += 1
        start = time.perf_counter()
        with _limited(LIMIT):
            claim(**drawn)
        longest = max(longest, time.perf_counter() - start)

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
    except Exception as error:
        return tried, longest, error
    return tried, longest, None

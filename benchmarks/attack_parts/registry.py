"""What a promise is, how it is attacked, and what came of it."""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.claims import Refused, attempt

#: Settings that most attacks try, by name.
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {"preset": "fast"},
    "local": {"scope": "local"},
    "global": {"scope": "global"},
}
TESTS = Path(__file__).resolve().parents[2] / "tests"


class Cases:
    """Cases of an attack: how many there were, which failed, and why some were not tried.

    Attributes
    ----------
    rng : numpy.random.Generator
        Draws what is random in an attack.
    seed : int
        The same for what has generators of its own.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.count = 0
        self.failures: list[str] = []
        self.skipped: list[str] = []

    @contextmanager
    def __call__(self, name: Any) -> Iterator[None]:
        """Count a case; what it raises is its failure, and the next case is tried."""
        self.count += 1
        try:
            yield
        except Exception as error:
            self.failures.append(f"{name}: {_in_short(error)}")

    def add(self, number: int, failures: Sequence[str] = ()) -> None:
        """Count cases that something else has tried."""
        self.count += number
        self.failures += failures

    def fuzz(self, target: str, number: int, **fixed: Any) -> None:
        """Try cases of a target of tests/fuzzing, with some of its arguments fixed."""
        from hypothesis import strategies as st

        from fuzzing.targets import target as find
        from fuzzing.trial import for_all, try_cases

        claim = find(target)
        given = {name: st.just(value) for name, value in fixed.items()}
        changed = for_all(**claim.strategies | given)(lambda **drawn: claim(**drawn))
        found = try_cases(changed, number, self.seed, shrink=False)
        errors = getattr(found.error, "exceptions", [found.error] if found.error else [])
        notes = (" ".join(" ".join(getattr(e, "__notes__", [])).split())[:300] for e in errors)
        named = zip(errors, notes, strict=True)
        self.add(found.cases, [f"{target}: {_in_short(e)}; {note}" for e, note in named])

    def tests(self, *names: str) -> None:
        """Run tests of the repository, each of which is a case."""
        import pytest

        results = _Results()
        paths = [str(TESTS / name) for name in names]
        quiet = ["-q", "--no-header", "-m", ""]
        quiet += [
            word
            for name in ("cacheprovider", "xdist", "hypothesispytest")
            for word in ("-p", f"no:{name}")
        ]
        quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # it is in use already
        with contextlib.redirect_stdout(io.StringIO()):
            pytest.main([*quiet, *paths], plugins=[results])
        self.add(results.count, results.failures)
        self.skipped += results.skipped
        if not results.count and not results.skipped:
            self.failures.append(f"no test was found: {', '.join(names)}")


class _Results:
    """A plugin of pytest that keeps what became of tests."""

    def __init__(self) -> None:
        self.count = 0
        self.failures: list[str] = []
        self.skipped: list[str] = []

    def pytest_collectreport(self, report: Any) -> None:
        if report.skipped:  # a whole file, for want of a package
            self.skipped.append(str(report.longrepr[-1]))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.skipped:
            self.skipped.append(str(report.longrepr[-1]))
        elif report.failed:
            self.failures.append(f"{report.nodeid}: {report.longreprtext.splitlines()[-1]}")
        self.count += report.when == "call" and not report.skipped


@dataclass(frozen=True)
class Promise:
    """A sentence that must be true, and the attack on it.

    `name` and `group` are words for ``--only``, `title` is that of the group, `page` the file that
    makes the promise, below docs/, and `how` says in a few words what the attack does.
    """

    name: str
    group: str
    title: str
    says: str
    page: str
    how: str
    check: Callable[[Cases], None]

    @property
    def words(self) -> set[str]:
        """What it can be called by."""
        return {self.name, self.group, *self.name.split("-")}

    def attack(self, seed: int) -> Cases:
        """Try all cases and return what came of them; they depend on nothing but the seed."""
        cases = Cases(zlib.crc32(f"{self.name} {seed}".encode()))
        try:
            self.check(cases)
        except Exception as error:  # outside of any case
            cases.failures.append(f"the attack itself: {_in_short(error)}")
        return cases


@dataclass(frozen=True)
class Group:
    """Promises of one kind."""

    name: str
    title: str
    promises: list[Promise] = field(default_factory=list)

    def promise(self, says: str, page: str, how: str) -> Callable[[Callable[[Cases], None]], Any]:
        """Add a function of `Cases` to the group as an attack on what is said."""

        def add(check: Callable[[Cases], None]) -> Callable[[Cases], None]:
            name = check.__name__.replace("_", "-")
            self.promises.append(Promise(name, self.name, self.title, says, page, how, check))
            return check

        return add


def refused(call: Callable[[], Any], *names: str, **options: Any) -> str:
    """Assert that a call refuses its input, and names all that is wrong; return the message.

    Options are those of `fuzzing.claims.attempt`.
    """
    found = attempt(call, **options)
    assert isinstance(found, Refused), f"taken, without a word: {type(found).__name__}"
    missing = [name for name in names if name not in found.message]
    assert not missing, f"{missing} not named: {found.message}"
    return str(found.message)


def _in_short(error: BaseException) -> str:
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:240]}" if words else type(error).__name__

"""Try many cases: ``python tests/fuzzing/run.py --cases 10000 [--target NAME] [--seed N]``.

Prints the cases of each target, and what failed with the smallest case that shows it. A case that
takes the processor longer than `_WORK` fails, too. The exit code is 1 where anything failed.
"""

import argparse
import resource
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzzing.targets import NAMES, shares, target
from fuzzing.trial import Trial, try_cases

_ROUND = 250  # cases that hypothesis draws by one seed
_MEMORY = 12 * 2**30  # beyond it a case fails
_WORK = 20.0  # seconds of the processor


def told(error):
    """What failed, where, and the smallest case that shows it."""
    root = error.__cause__ or error
    places = [f"{f.filename}:{f.lineno} {f.line}" for f in traceback.extract_tb(root.__traceback__)]
    ours = [place for place in places if "/rbfdiffnet/" in place][-1:] + places[-1:]
    lines = [f"{type(error).__name__}: {error}", *dict.fromkeys(ours)]
    return "\n".join([*lines, *getattr(error, "__notes__", [])]) + "\n"


def try_rounds(name, cases, seed, shrink, seconds):
    """Try cases of a target in rounds, each with a seed of its own, and return one `Trial`."""
    claim, whole = target(name), Trial()
    until = time.monotonic() + seconds
    for k, first in enumerate(range(0, cases, _ROUND)):
        if whole.error is not None or time.monotonic() > until:
            break
        size = min(_ROUND, cases - first)
        part = try_cases(claim, size, seed * 10_007 + k, shrink, until)
        longer = max(whole, part, key=lambda trial: trial.longest)
        whole = Trial(whole.cases + part.cases, longer.longest, longer.longest_case, part.error)
    return whole


def main():
    parser = argparse.ArgumentParser(description="Try many cases of the targets.")
    parser.add_argument("--cases", type=int, default=10_000, help="of all targets together")
    parser.add_argument("--target", choices=NAMES, action="append", help="default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each target")
    parser.add_argument("--no-shrink", action="store_true", help="show failures as they were found")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))

    total = failures = 0
    began = time.monotonic()
    for name, cases in shares(arguments.cases, arguments.target or NAMES).items():
        start = time.monotonic()
        found = try_rounds(name, cases, arguments.seed, not arguments.no_shrink, arguments.seconds)
        slow, seconds = found.longest > _WORK, time.monotonic() - start
        verdict = "FAILED" if found.error is not None else "TOO SLOW" if slow else "ok"
        print(
            f"{name:24} {found.cases:7,} cases {seconds:7.0f} s, "
            f"longest {found.longest:4.1f} s of work  {verdict}"
        )
        if found.error is not None:
            print(*map(told, getattr(found.error, "exceptions", [found.error])), sep="\n")
        if slow:
            print(f"{found.longest:.1f} s, more than {_WORK:g}: {found.longest_case}\n")
        sys.stdout.flush()
        failures += found.error is not None or slow
        total += found.cases
    seconds = time.monotonic() - began
    print(f"{total:,} cases in {seconds:.0f} s, targets that failed: {failures}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

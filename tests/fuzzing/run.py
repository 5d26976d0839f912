"""Try many cases: ``python tests/fuzzing/run.py --cases 10000 [--target NAME] [--seed N]``.

Prints the cases of each target, and what failed with the smallest case that shows it. The exit code
is 1 where anything failed.
"""

import argparse
import resource
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzzing.targets import NAMES, shares, target
from fuzzing.trial import try_cases

_ROUND = 250
_MEMORY = 12 * 2**30  # beyond it a case fails


def told(error):
    """What failed, where, and the smallest case that shows it."""
    root = error.__cause__ or error
    places = [f"{f.filename}:{f.lineno} {f.line}" for f in traceback.extract_tb(root.__traceback__)]
    ours = [place for place in places if "/rbfdiffnet/" in place][-1:] + places[-1:]
    lines = [f"{type(error).__name__}: {error}", *dict.fromkeys(ours)]
    return "\n".join([*lines, *getattr(error, "__notes__", [])]) + "\n"


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
    began = time.perf_counter()
    for name, cases in shares(arguments.cases, arguments.target or NAMES).items():
        start, done, longest, error = time.perf_counter(), 0, 0.0, None
        for k, first in enumerate(range(0, cases, _ROUND)):
            if error is not None or time.perf_counter() - start > arguments.seconds:
                break
            seed = arguments.seed * 10_007 + k
            size = min(_ROUND, cases - first)
            tried, slowest, error = try_cases(
                target(name), size, seed, shrink=not arguments.no_shrink
            )
            done, longest = done + tried, max(longest, slowest)
        seconds = time.perf_counter() - start
        verdict = "FAILED" if error is not None else "ok"
        print(f"{name:24} {done:7,} cases {seconds:7.0f} s, longest {longest:4.1f} s  {verdict}")
        if error is not None:
            failures += 1
            print(*map(told, getattr(error, "exceptions", [error])), sep="\n", flush=True)
        sys.stdout.flush()
        total += done
    seconds = time.perf_counter() - began
    print(f"{total:,} cases in {seconds:.0f} s, targets that failed: {failures}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

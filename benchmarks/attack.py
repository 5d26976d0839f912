"""Attack what is promised, and write down what held: ``python benchmarks/attack.py``.

Every promise (`attack_parts`) is attacked by cases of its own; the same seed makes the same cases.
A run of all of them writes its tables into docs/reliability.md, and takes six minutes of processor
time. ``--only zones`` tries those with that word in their name or group, and writes nothing.
The exit code is 1 where a promise was broken; the table says by which case.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from shared_parts.threads import one_thread

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reliability.md"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="WORD", help="a promise, a group, or a word of a name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="name all promises, and end")
    options = parser.parse_args(arguments)
    one_thread()  # before NumPy is imported
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "faults")]
    from attack_parts import PROMISES
    from attack_parts.table import line_of, replace_tables, tables_of

    chosen = [p for p in PROMISES if options.only is None or options.only in p.words]
    if not chosen:
        groups = ", ".join(dict.fromkeys(p.group for p in PROMISES))
        parser.error(f"no promise is called {options.only!r}; groups are {groups}; see --list")
    if options.list:
        print(*(f"{p.group:12}{p.name:28}{p.says}" for p in chosen), sep="\n")
        return 0
    began, found = time.monotonic(), {}
    for promise in chosen:
        start = sum(os.times()[:4])  # of the processor, children included
        found[promise] = promise.attack(options.seed)
        seconds = sum(os.times()[:4]) - start
        print(f"{seconds:6.1f} s  {line_of(promise, found[promise])}", flush=True)
    broken = [promise.name for promise, outcome in found.items() if outcome.failures]
    cases = sum(outcome.count for outcome in found.values())
    print(
        f"{len(found)} promises, {cases:,} cases, {time.monotonic() - began:.0f} s; "
        f"broken: {', '.join(broken) or 'none'}"
    )
    if options.only is None:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(replace_tables(text, tables_of(found, options.seed)), encoding="utf-8")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

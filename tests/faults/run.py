"""Kill, stop and damage many times; the tests do it a few times.

    python tests/faults/run.py --kills 200 --stops 10 --bits 8

ends with an error where anything was lost. It takes about an hour.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bits
import resuming
import stopping
import writes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=0, help="of each writer, and of reproduce")
    parser.add_argument(
        "--stops", type=int, default=0, help="of each call and command by each signal"
    )
    parser.add_argument("--bits", type=int, default=0, help="of each byte of files, 8 at most")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    began = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - began:7.0f} s  {text}", flush=True)

    if arguments.bits:
        with tempfile.TemporaryDirectory() as folder:
            cases = bits.check_model(Path(folder), arguments.bits)
            say(f"{cases:,} damaged models, all refused")
            for suffix in (".csv", ".parquet"):
                cases, refused = bits.check_data(Path(folder), suffix, arguments.bits)
                say(f"{cases:,} damaged {suffix} files, {refused:,} refused, no crash")
    if arguments.kills:
        with tempfile.TemporaryDirectory() as folder:
            moments, left = writes.check_writes(Path(folder), arguments.kills, arguments.seed)
            say(f"{moments:,} kills while writing, {left:,} temporaries left and swept: all whole")
    if arguments.stops:
        with tempfile.TemporaryDirectory() as folder:
            took = stopping.check_interrupts(Path(folder), arguments.stops, arguments.seed)
            took |= stopping.check_stopping(Path(folder), arguments.stops, arguments.seed)
            for name, seconds in took.items():
                say(f"{name}: stopped {len(seconds)} times, within {max(seconds):.1f} s")
    if arguments.kills:
        with tempfile.TemporaryDirectory() as folder:
            done, kept = resuming.check_resuming(Path(folder), arguments.kills, arguments.seed)
            say(f"{done:,} kills of reproduce, {kept:,} finished parts kept, none computed again")


if __name__ == "__main__":
    main()

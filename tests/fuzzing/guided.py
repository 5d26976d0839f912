"""Let atheris look for cases that reach new code: ``python tests/fuzzing/guided.py TARGET``.

Needs ``pip install atheris``. The other arguments are those of libFuzzer (``-max_total_time=60``,
``-seed=1``, a folder to keep cases in). It stops at the first failure and shows the case.
"""

import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import atheris
from hypothesis import given

with atheris.instrument_imports(include=["rbfdiffnet"]):
    from fuzzing.targets import NAMES, target

_SEEDS, _LENGTH = 64, 2048


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"Give a target: {', '.join(map(repr, NAMES))}")
    claim = target(sys.argv.pop(1))
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        for k in range(_SEEDS):  # shorter ones make no case
            Path(folder, str(k)).write_bytes(rng.randbytes(_LENGTH))
        arguments = [*sys.argv, f"-max_len={_LENGTH}", "-len_control=0", folder]
        atheris.Setup(arguments, given(**claim.strategies)(claim).hypothesis.fuzz_one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

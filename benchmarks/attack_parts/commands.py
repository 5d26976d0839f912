"""The command line."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from attack_parts.registry import Cases, Group
from rbfdiffnet.cli import main

GROUP = Group("commands", "The command line")
promise = GROUP.promise
FAST = ("--preset", "fast")


def command(*words: object) -> tuple[int, str, str]:
    """Return the exit code of a command, and what it says on standard output and error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


def write_panel(path: Path, ids: list[str], n: int = 40) -> None:
    """Write a long table of daily series."""
    rng = np.random.default_rng(0)
    dates = pd.date_range("2024-01-01", periods=n)
    parts = [
        pd.DataFrame({"unique_id": i, "ds": dates, "y": rng.normal(50, 5, n).round(2)}) for i in ids
    ]
    pd.concat(parts).to_csv(path, index=False)


@promise(
    "Any arguments and any file end in results, or in one line that says what to do",
    "command_line.md",
    "random commands, options and files: exit code 0 or 2, no traceback",
)
def random_commands(cases: Cases) -> None:
    cases.fuzz("commands", 150)


@promise(
    "Ctrl-C and SIGTERM end a command soon, with 130 or 143 and one line; files are whole",
    "command_line.md",
    "both signals at random moments of six commands",
)
def signals(cases: Cases) -> None:
    from stopping import check_stopping

    with cases("all"), tempfile.TemporaryDirectory() as folder:
        check_stopping(Path(folder), 1, cases.seed)
        cases.add(2 * 6 - 1)  # signals sent; a command may have been done already


@promise(
    "`reproduce` goes on where it was killed, and computes nothing twice",
    "reproduction.md",
    "`kill -9` at random moments, then the same command to the end",
)
def resuming(cases: Cases) -> None:
    script = "import resuming, sys; from pathlib import Path; "
    script += "print(*resuming.check_resuming(Path(sys.argv[1]), 6, int(sys.argv[2])))"
    with cases("all"), tempfile.TemporaryDirectory() as folder:
        # In a process of its own, since it makes the experiment small.
        done = subprocess.run(
            [sys.executable, "-c", script, folder, str(cases.seed)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-300:]
        cases.add(int(done.stdout.split()[0]) - 1)


@promise(
    "Whoever reads the output may go: exit code 141, and nothing more",
    "command_line.md",
    "a pipe that is closed at once, with three kinds of output",
)
def closed_pipes(cases: Cases) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.csv")
        write_panel(source, [f"s{k}" for k in range(40)])
        for options in (("--quiet",), ("--json",), ()):
            with cases(options):
                words = ["forecast", source, "--horizon", 200, *FAST, *options]
                reading, writing = os.pipe()
                process = subprocess.Popen(
                    [sys.executable, "-m", "rbfdiffnet", *map(str, words)],
                    stdout=writing,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                os.close(writing)
                os.close(reading)
                _, err = process.communicate(timeout=120)
                assert process.returncode == 141, (process.returncode, err[-200:])
                assert "Traceback" not in err, err[-200:]


@promise(
    "Files of a command have the same bytes in any surroundings",
    "versions.md",
    "another locale, time zone, hash seed and folder",
)
def surroundings(cases: Cases) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.csv")
        write_panel(source, ["ä", "b"])
        expected = None
        for name, settings in {
            "plain": {},
            "elsewhere": {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONHASHSEED": "5"},
            "another encoding": {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
        }.items():
            with cases(name):
                out, page = Path(folder, "out.csv"), Path(folder, "page.html")
                words = ["forecast", source, "--horizon", 3, *FAST, "--out", out, "--report", page]
                done = subprocess.run(
                    [sys.executable, "-m", "rbfdiffnet", *map(str, words)],
                    env=os.environ | settings,
                    capture_output=True,
                    check=False,
                )
                assert done.returncode == 0, done.stderr[-300:]
                found = out.read_bytes(), page.read_bytes()
                expected = expected or found
                assert found == expected, "other bytes"


@promise(
    "No network is used, and addresses are no files",
    "SECURITY.md",
    "calls and commands with every way to connect closed; three addresses as files",
)
def network(cases: Cases) -> None:
    cases.tests(
        "test_security.py::test_nothing_reaches_for_the_network",
        "test_security.py::test_addresses_are_no_files",
    )


@promise(
    "What is refused is refused before the work",
    "command_line.md",
    "outputs that cannot be written: no folder, a folder, a device, unknown suffix",
)
def outputs_that_cannot_be_written(cases: Cases) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.csv")
        write_panel(source, ["a"])
        for name in ("none/out.csv", ".", "/dev/null", "out.xlsx"):
            with cases(name):
                path = Path(folder, name)
                code, out, err = command("forecast", source, "--horizon", 2, *FAST, "--out", path)
                assert code == 2, (code, err)
                assert "Forecast " not in out, "it was forecast"
                assert len(err.strip().splitlines()) == 1, err

"""Kills, signals and damaged files, a few of each; tests/faults/run.py does many."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "faults"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "count", "said"),
    [
        ("--kills", 2, ["14 kills while writing", "none computed again"]),
        ("--stops", 1, ["forecast: stopped", "explain, 2 threads: stopped", "--jobs 2: stopped"]),
    ],
)
def test_nothing_is_lost(option, count, said):
    done = subprocess.run(
        [sys.executable, FOLDER / "run.py", option, str(count), "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    for text in said:
        assert text in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_damaged_tables_never_crash(tmp_path, monkeypatch, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.syspath_prepend(FOLDER)
    from bits import check_data

    cases, refused = check_data(tmp_path, suffix, bits=1, every=11)
    assert cases > 100
    assert refused > cases // 4


DEAF = """
import sys, time
from rbfdiffnet.cli import main, run
def deaf(*_):
    print("working", flush=True)
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
run.read_input = deaf
sys.exit(main(["forecast", "--horizon", "2", "--out", sys.argv[1], "--plot", sys.argv[2]]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_work_that_hears_nothing_is_ended(tmp_path, number):
    out, plot = tmp_path / "out.csv", tmp_path / "plot.png"
    out.write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF, out, plot],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "working\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said == f"rbfdiffnet: stopped; '{out}' is as it was; '{plot}' was not written\n"
    assert out.read_text() == "old"


LATE = """
import atexit, os, sys
from rbfdiffnet.cli import main
number = int(sys.argv.pop(1))
atexit.register(os.kill, os.getpid(), number)
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("horizon", "code"), [("2", 0), ("-2", 2)])
def test_a_signal_after_the_end_of_a_command_changes_nothing(tmp_path, number, horizon, code):
    out = tmp_path / "out.csv"
    command = ["forecast", "--preset", "instant", "--horizon", horizon, "--quiet", "--out", out]
    process = subprocess.run(
        [sys.executable, "-c", LATE, str(int(number)), *command], capture_output=True, text=True
    )
    assert process.returncode == code
    assert process.stderr.count("\n") == (code > 0)
    assert out.exists() == (code == 0)


ORPHANS = """
import os, sys, time
from pathlib import Path
from rbfdiffnet.experiments.runner import Task, run_tasks
def work(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(300)
if __name__ == "__main__":
    tasks = [Task(str(i), "sleep", work, (sys.argv[1],)) for i in range(2)]
    list(run_tasks(tasks, Path(sys.argv[2]), belongs_to={}, n_jobs=2))
"""


def test_workers_end_with_their_parent(tmp_path):
    import time

    script, folder = tmp_path / "script.py", tmp_path / "workers"
    script.write_text(ORPHANS)
    folder.mkdir()
    process = subprocess.Popen([sys.executable, script, folder, tmp_path / "runs.jsonl"])
    try:
        while len(os.listdir(folder)) < 2:
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    workers = list(map(int, os.listdir(folder)))
    until = time.monotonic() + 60.0
    while any(map(_runs, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(_runs, workers))


def _runs(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"

"""Files that cannot be written: said in words, nothing lost."""

import errno
import os
import subprocess
import sys
import threading

import pandas as pd
import pytest

from cli_files import fails, run
from panels import make_panel
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.cli import output
from rbfdiffnet.support.files import check_writable, replace_file

LOCAL = ("--horizon", 3, "--scope", "local", "--quiet")


@pytest.fixture(scope="module")
def model():
    return RBFDiffNet("D", preset="fast").fit(make_panel("ab", n=40))


@pytest.fixture
def tiny(tmp_path):
    """A disk of 64 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        done = False
    if not done:
        pytest.skip("no permission to mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_errors_name_the_file_and_the_remedy(model, tmp_path):
    path = tmp_path / "no" / "model.npz"
    with pytest.raises(FileNotFoundError, match=r"create its folder first: '.*model\.npz'"):
        model.save(path)
    with pytest.raises(IsADirectoryError, match="give a file name"):
        model.save(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="create its folder first"):
        model.save(tmp_path / "file" / "model.npz")
    with pytest.raises(OSError, match="give a shorter name"):
        model.save(tmp_path / ("n" * 300))
    for code, remedy in ((errno.EROFS, "you may write to"), (errno.EDQUOT, "make room")):
        with pytest.raises(OSError, match=remedy), replace_file(tmp_path / "file"):
            raise OSError(code, os.strerror(code))
    assert os.listdir(tmp_path) == ["file"]


def test_long_names_are_no_problem(model, tmp_path):
    for name in ("n" * 250 + ".npz", "日" * 80 + ".npz"):
        model.save(tmp_path / name)
        assert RBFDiffNet.load(tmp_path / name).predict(3).equals(model.predict(3))


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_stay(model, tmp_path):
    path = tmp_path / "model.npz"
    model.save(path)
    path.chmod(0o600)
    model.save(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_threads_do_not_write_into_each_other(tmp_path):
    path, both = tmp_path / "a.txt", threading.Barrier(2)

    def write(text):
        with replace_file(path) as temporary, temporary.open("w") as file:
            both.wait()
            file.write(text * 1000)
            both.wait()

    threads = [threading.Thread(target=write, args=(text,)) for text in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in ("a" * 1000, "b" * 1000)
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_probe_changes_nothing(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    before = path.stat()
    check_writable(path)
    assert (path.read_text(), path.stat().st_mtime_ns) == ("old", before.st_mtime_ns)
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_full_disk_leaves_the_old_model(tiny):
    path = tiny / "model.npz"
    small = RBFDiffNet("D", preset="fast").fit(make_panel("a", n=40))
    small.save(path)
    old = path.read_bytes()
    large = RBFDiffNet("D", preset="fast").fit(make_panel("abcdefghij", n=2000))
    with pytest.raises(OSError, match=r"make room, or choose another disk: '.*model\.npz'"):
        large.save(path)
    assert path.read_bytes() == old
    assert os.listdir(tiny) == ["model.npz"]


def test_a_full_disk_is_noticed_before_the_work(capsys, tiny, monkeypatch):
    (tiny / "rest").write_bytes(bytes(2**16))
    monkeypatch.setattr("rbfdiffnet.cli.run.read_input", lambda *_: pytest.fail("worked"))
    message = fails(capsys, "forecast", *LOCAL, "--out", tiny / "a.csv")
    assert "No space left on device; make room" in message


def test_a_disk_that_may_not_be_written(capsys, tiny):
    subprocess.run(["mount", "-o", "remount,ro", str(tiny)], check=True)
    message = fails(capsys, "forecast", *LOCAL, "--out", tiny / "a.csv")
    assert "Read-only file system; choose a folder you may write to" in message


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="anything is allowed to root")
def test_a_folder_that_may_not_be_written(capsys, tmp_path):
    tmp_path.chmod(0o500)
    message = fails(capsys, "forecast", *LOCAL, "--out", tmp_path / "a.csv")
    tmp_path.chmod(0o700)
    assert "choose a folder you may write to" in message


def test_results_that_cannot_be_written_are_kept_elsewhere(capsys, tmp_path, monkeypatch):
    real, place = output._write_table, tmp_path / "elsewhere"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))

    def full(path, frame):
        if str(place) not in path:
            raise output.CommandError(f"cannot write '{path}': No space left on device")
        real(path, frame)

    monkeypatch.setattr(output, "_write_table", full)
    out, plot = tmp_path / "a.csv", tmp_path / "plot.svg"
    message = fails(capsys, "forecast", *LOCAL, "--out", out, "--plot", plot)
    kept = message.partition("the results are in '")[2].partition("'")[0]
    assert pd.read_csv(kept).columns.tolist() == ["unique_id", "ds", "RBFDiffNet"]
    assert plot.exists()  # not lost because of the other one
    monkeypatch.setattr(output, "_write_table", lambda path, _: full("/", path))
    message = fails(capsys, "forecast", *LOCAL, "--out", out)
    assert "make room and run the command again" in message
    assert len(os.listdir(place)) == 1


LIMITED = """
import resource, sys
from rbfdiffnet.cli import main
arguments = ["forecast", "--horizon", "2000", "--scope", "local", "--quiet", "--out", sys.argv[1]]
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
sys.exit(main(arguments))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_limit_of_size_leaves_the_old_file(tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, out], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert f"cannot write '{out}': File too large" in done.stderr
    assert "make room and run the command again" in done.stderr
    assert out.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_reproduce_goes_on_after_a_cut_line(tmp_path):
    from rbfdiffnet.experiments.runner import Task, run_tasks

    path = tmp_path / "runs.jsonl"
    tasks = [Task(str(n), "dict", dict, ([("n", n)],)) for n in range(3)]
    assert len(list(run_tasks(tasks, path, belongs_to={}))) == 3
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert len(list(run_tasks(tasks, path, belongs_to={}))) == 3
        assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())
        assert next(iter(run_tasks(tasks, path, belongs_to={})))["n"] == 0
    path.write_bytes(whole.replace(b"1}", b"\xff}"))
    assert [r["n"] for r in run_tasks(tasks, path, belongs_to={})] == [0, 2, 1]


def test_success_is_still_success(capsys, tmp_path):
    assert run(capsys, "forecast", *LOCAL, "--out", tmp_path / "a.csv")[0] == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_pipes_and_devices_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(OSError, match="no regular file"),
        replace_file(tmp_path / "pipe") as temporary,
    ):
        temporary.write_text("lost")
    with pytest.raises(OSError, match="no regular file; copy what it gives to a file first"):
        RBFDiffNet.load(tmp_path / "pipe")  # nobody writes into it
    with pytest.raises(OSError, match=r"no regular file; copy .*'/dev/zero'"):
        RBFDiffNet.load("/dev/zero")
    assert (tmp_path / "pipe").is_fifo()
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]

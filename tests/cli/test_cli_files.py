"""Where the command line writes, and where it refuses to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli_files import days, fails, run


@pytest.fixture
def sales(tmp_path):
    path = tmp_path / "sales.csv"
    days(30).to_csv(path, index=False)
    return path


def forecast(path, *more):
    return ("forecast", path, "--horizon", 1, "--scope", "local", *more)


@pytest.mark.parametrize("command", ["forecast", "evaluate"])
def test_nothing_is_written_over_what_is_read(capsys, tmp_path, sales, command):
    before = sales.read_bytes()
    same = tmp_path / "." / "sales.csv"
    assert "is the same file as FILE" in fails(
        capsys, command, sales, "--horizon", 1, "--out", same
    )
    hard = tmp_path / "hard.csv"
    os.link(sales, hard)
    assert "is the same file as FILE" in fails(
        capsys, command, sales, "--horizon", 1, "--out", hard
    )
    calendar = tmp_path / "calendar.csv"
    calendar.write_text("ds,promo\n")
    message = fails(capsys, command, sales, "--horizon", 1, "--exog", calendar, "--out", calendar)
    assert f"is the same file as --exog {calendar}" in message
    assert sales.read_bytes() == before


def test_results_have_files_of_their_own(capsys, tmp_path, sales):
    both = tmp_path / "a.csv"
    assert "end its name in .html" in fails(capsys, *forecast(sales, "--report", both))
    message = fails(capsys, *forecast(sales, "--report", both, "--out", both))
    assert "--report" in message
    assert "is the same file as --out" in message


@pytest.mark.skipif(os.name != "posix", reason="pipes with names are of POSIX")
def test_only_regular_files_are_replaced(capsys, tmp_path, sales):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    assert "no regular file" in fails(capsys, *forecast(sales, "--out", pipe))
    assert pipe.is_fifo()


def test_links_are_followed(capsys, tmp_path, sales):
    folder = tmp_path / "results"
    folder.mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(folder / "target.csv")
    assert run(capsys, *forecast(sales, "--out", link))[0] == 0
    assert link.is_symlink()
    assert (folder / "target.csv").read_text().startswith("unique_id,ds,RBFDiffNet")
    assert [file.name for file in folder.iterdir()] == ["target.csv"]


def call(*arguments, **options):
    code = "import sys; from rbfdiffnet.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output="stdout" not in options, check=False, **options)


def test_any_encoding_will_do(tmp_path):
    path = tmp_path / "größe.csv"
    text = days(30).assign(unique_id="Größe").to_csv(index=False)
    path.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = call(*forecast(path, "--quiet"), env=environment)
    assert done.returncode == 0
    assert rb"Gr\xf6\xdfe,2024-01-31" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
def test_a_full_disk_is_said(sales):
    with Path("/dev/full").open("w") as full:
        done = call(*forecast(sales), stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"rbfdiffnet: error: cannot read or write: No space left on device" in done.stderr
    assert b"Exception ignored" not in done.stderr

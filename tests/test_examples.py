"""The scripts of examples/ run, draw their picture, and print what the documentation shows."""

import re
import subprocess
import sys

import pytest

from test_docs import ROOT, same

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
PAGE = ROOT / "docs" / "examples.md"


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_runs_and_prints_what_its_page_shows(script, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    picture = tmp_path / "picture.png"
    command = [sys.executable, "-W", "error", str(script), str(picture)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = rf"<!-- printed by examples/{script.name} -->\n```text\n(.*?)```"
    expected = re.search(shown, PAGE.read_text(encoding="utf-8"), re.DOTALL).group(1)
    assert same(expected, ran.stdout), ran.stdout


@pytest.mark.skipif(not PAGE.exists(), reason="the tests run without the repository")
def test_every_example_is_on_the_page():
    assert len(SCRIPTS) == 3
    for script in SCRIPTS:
        assert f"--8<--\nexamples/{script.name}\n--8<--" in PAGE.read_text(encoding="utf-8")

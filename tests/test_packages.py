"""Wheels and source archives: the same bytes from the same files."""

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rbfdiffnet import __version__

pytest.importorskip("hatchling")
ROOT = Path(__file__).parent.parent
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the repository"),
]
LEFT_OUT = shutil.ignore_patterns(".*cache*", "__pycache__", ".git", "dist", "build", "*venv*")


def build(folder, mode, **surroundings):
    """Build both archives from a copy of the repository, and return their bytes by their names."""
    source, out = folder / "source", folder / "out"
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    for path in source.rglob("*"):
        if path.is_file():
            path.chmod(mode)
            os.utime(path, (mode * 10**6, mode * 10**6))  # other times
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    settings = {"PYTHONHASHSEED": str(mode), **surroundings}
    kept = {key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"}
    subprocess.run(command, cwd=source, env=kept | settings, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    return [
        build(tmp_path_factory.mktemp("one"), 0o644, TZ="UTC", LC_ALL="C.UTF-8"),
        build(tmp_path_factory.mktemp("two"), 0o600, TZ="Pacific/Apia", LC_ALL="C"),
    ]


def test_the_same_files_make_the_same_bytes(archives):
    one, two = archives
    assert len(one) == 2
    assert one.keys() == two.keys()
    for name, content in one.items():
        assert hashlib.sha256(content).digest() == hashlib.sha256(two[name]).digest(), name


def test_the_archives_the_citation_and_the_package_have_one_version(archives):
    said = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    assert said == __version__
    assert all(name.startswith(f"rbfdiffnet-{__version__}") for name in archives[0])


def test_a_wheel_has_the_package_and_nothing_else(archives):
    name = next(name for name in archives[0] if name.endswith(".whl"))
    with zipfile.ZipFile(io.BytesIO(archives[0][name])) as file:
        inside = {n: file.read(n) for n in file.namelist() if ".dist-info/" not in n}
    package = ROOT / "src"
    files = [path for path in (package / "rbfdiffnet").rglob("*") if path.is_file()]
    wanted = {
        path.relative_to(package).as_posix(): path.read_bytes()
        for path in files
        if "__pycache__" not in path.parts
    }
    assert inside == wanted

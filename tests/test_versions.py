"""The oldest versions of pyproject.toml are those that the documentation names and tests use."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = ("plot", "calendar", "fast", "parquet", "test")
BOUND = re.compile(r"([\w-]+)>=([\d.]+)$")


def bounds(requirements):
    """Oldest versions by package; every requirement of others has one, and no upper one."""
    others = [r for r in requirements if not r.startswith("rbfdiffnet[")]
    found = [BOUND.match(requirement) for requirement in others]
    assert all(found), others
    return {match[1]: match[2] for match in found}


CORE = bounds(PROJECT["dependencies"])
OPTIONAL = {extra: bounds(PROJECT["optional-dependencies"][extra]) for extra in EXTRAS}


def test_the_documentation_names_them():
    text = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \| (.+) \|$", text, re.MULTILINE)
    found = {name: (oldest, place) for name, oldest, place in rows}
    expected = {name: (oldest, "always") for name, oldest in CORE.items()}
    for extra in EXTRAS[:-1]:
        places = {
            name: (oldest, f"`rbfdiffnet[{extra}]`") for name, oldest in OPTIONAL[extra].items()
        }
        expected |= places
    polars, place = found.pop("polars")
    assert polars == OPTIONAL["test"]["polars"]
    assert place.startswith("not included")
    assert found == expected
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in text


def test_the_oldest_environment_has_them():
    script = ROOT / ".ci" / "oldest.py"
    if not script.exists():
        pytest.skip("the tests run without the repository")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    expected = CORE.copy()
    for extra in EXTRAS:
        expected |= OPTIONAL[extra]
    assert dict(pin.split("==") for pin in done.stdout.split()) == expected


def numbers(text):
    return [int(part) for part in re.findall(r"\d+", text)]


@pytest.mark.parametrize("name", CORE)
def test_what_is_installed_is_not_older(name):
    try:
        assert numbers(version(name)) >= numbers(CORE[name])
    except PackageNotFoundError:
        pytest.fail(f"{name} is not installed")

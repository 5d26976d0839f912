"""Attacks on promises: what they count, how they name what failed, and what they write."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "attack.py"
if not SCRIPT.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)


@pytest.fixture
def parts(monkeypatch):
    for folder in ("benchmarks", "tests/faults", "tests"):
        monkeypatch.syspath_prepend(ROOT / folder)
    import attack_parts
    from attack_parts import registry, table

    return attack_parts, registry, table


def run(*arguments):
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_there_are_sixty_promises_with_names_of_their_own(parts):
    names = [promise.name for promise in parts[0].PROMISES]
    assert len(set(names)) == len(names) >= 60
    for promise in parts[0].PROMISES:
        page = ROOT / ("" if promise.page.startswith("SECURITY") else "docs") / promise.page
        assert page.exists(), promise


def test_the_page_has_every_promise(parts):
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    for promise in parts[0].PROMISES:
        assert f"| {promise.says} (" in text, f"run python benchmarks/attack.py: {promise.name}"


def test_a_broken_promise_names_its_cases(parts):
    _, registry, table = parts
    group = registry.Group("values", "Values")

    @group.promise("Numbers are even", "versions.md", "five numbers")
    def even(cases):
        for k in range(5):
            with cases(k):
                if k % 2:
                    raise ValueError("odd")
        cases.fuzz("events", 10)
        cases.tests("test_maps.py::test_the_tree_names_every_folder_and_no_other")

    (promise,) = group.promises
    found = promise.attack(0)
    assert found.count >= 16
    assert found.failures == ["1: ValueError: odd", "3: ValueError: odd"]
    result = "BROKEN: 1: ValueError: odd; 3: ValueError: odd"
    row = (
        f"| Numbers are even ([versions](versions.md)) | five numbers | {found.count} | {result} |"
    )
    tables = table.tables_of({promise: found}, 0)
    assert row in tables
    page = "before\n<!-- attacked -->\nold\n<!-- end of attacks -->\nafter\n"
    assert table.replace_tables(page, tables) == page.replace("old", tables)


def test_some_promises_can_be_tried_alone():
    page = ROOT / "docs" / "reliability.md"
    before = page.read_bytes()
    done = run("--only", "memory-limits")
    assert done.returncode == 0, done.stderr
    assert "memory-limits: " in done.stdout
    assert "1 promises, 16 cases" in done.stdout
    assert page.read_bytes() == before
    assert run("--only", "none such").returncode == 2

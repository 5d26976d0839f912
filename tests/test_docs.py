"""The documentation runs: code of README.md and docs/, page by page, and what it says it prints.

A fenced ``python`` block runs after those before it on its page, in one namespace and one temporary
folder; of ``sh``, ``bash`` and ``console`` blocks the ``rbfdiffnet`` commands run. A ``text`` or
``output`` block right below is what is printed: numbers may differ in their last digit or by a
percent, ``...`` stands for anything. A comment that starts with a number, after a ``print``, is its
first number. ``<!-- not run: reason -->`` above a block keeps it from running.
"""

import ast
import importlib
import inspect
import re
import runpy
import shlex
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import rbfdiffnet
from rbfdiffnet.cli import main
from rbfdiffnet.network.basis import BASES
from rbfdiffnet.network.centers import CENTERS
from rbfdiffnet.network.widths import WIDTH_RULES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SLOW = {
    "README.md",
    "docs/attractor.md",
    "docs/choosing.md",
    "docs/ecosystem.md",
    "docs/forecaster.md",
    "docs/getting_started.md",
    "docs/mathematics/noise.md",
    "docs/report.md",
    "docs/inputs.md",
    "docs/intervals.md",
    "docs/noise.md",
}

# Other libraries that the code of a page uses.
NEEDED = {
    "docs/ecosystem.md": ("darts", "mlflow", "mlforecast", "skforecast", "sktime", "statsforecast")
}
here = pytest.mark.skipif(not PAGES[0].exists(), reason="the tests run without the repository")

FENCE = re.compile(
    r"(?P<before>[^\n]*\n\n?)?^(?P<indent> *)```(?P<language>\w*)[^\n]*\n"
    r"(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?"
CLAIM = re.compile(rf"print\(.*\)  # ({NUMBER})")


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    skipped: bool
    follows: bool  # right below the block before it


def blocks(text):
    end = -1
    for found in FENCE.finditer(text):
        before = found["before"] or ""
        start = found.start() + len(before)
        code = inspect.cleandoc("\n" + found["code"]) + "\n" if found["indent"] else found["code"]
        yield Block(
            found["language"],
            code,
            text.count("\n", 0, start) + 2,
            before.startswith("<!-- not run: "),
            not text[end:start].strip() if end >= 0 else False,
        )
        end = found.end()


def runnable(text):
    """Blocks to run, each with what it prints by the block below it, or None."""
    for block, below in pairwise([*blocks(text), None]):
        if block.language not in ("python", "sh", "bash", "console") or block.skipped:
            continue
        if "--8<--" in block.code:  # an example script, which has a test of its own
            continue
        told = below is not None and below.follows and below.language in ("text", "output", "")
        yield block, below.code if told else None


def commands(block):
    """The rbfdiffnet commands of a block."""
    code = block.code.replace("\\\n", " ")
    if block.language == "console":
        code = "\n".join(line[2:] for line in code.splitlines() if line.startswith("$ "))
    parts = (part.strip() for line in code.splitlines() for part in line.split("&&"))
    return [
        shlex.split(part, comments=True)[1:] for part in parts if part.startswith("rbfdiffnet ")
    ]


def run_python(block, names, page):
    printed = StringIO()
    lines = block.code.splitlines()
    tree = ast.parse("\n" * (block.line - 1) + block.code, str(page))
    for statement in tree.body:
        said = StringIO()
        with redirect_stdout(said):
            exec(compile(ast.Module([statement], []), str(page), "exec"), names)
        claim = CLAIM.search(lines[statement.end_lineno - block.line])
        if claim:
            first = re.search(NUMBER, said.getvalue()).group()
            assert close(claim[1], first), f"line {statement.lineno} prints {first}"
        printed.write(said.getvalue())
    return printed.getvalue()


def close(expected, actual):
    """Whether two numbers, as text, agree to about the last digit of the first."""
    expected, actual = expected.replace(",", ""), actual.replace(",", "")
    digits = len(expected.partition("e")[0].partition(".")[2])
    last = 10.0**-digits * 10.0 ** int(expected.partition("e")[2] or 0)
    return np.isclose(float(actual), float(expected), rtol=0.01, atol=1.01 * last)


def same(expected, actual):
    """Whether a printed text is the one expected, up to spaces, last digits and dots."""
    parts = re.split(rf"(\.\.\.|\s+|(?<![\w.]){NUMBER}(?![\w.]))", expected.strip())
    pattern = "".join(
        r".*?"
        if part == "..."
        else r"\s+"
        if part.isspace()
        else f"({NUMBER})"
        if re.fullmatch(NUMBER, part)
        else re.escape(part)
        for part in parts
    )
    found = re.fullmatch(pattern, actual.strip(), re.DOTALL)
    numbers = [part for part in parts if re.fullmatch(NUMBER, part)]
    return found is not None and all(map(close, numbers, found.groups()))


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def own_rules():
    """Take back the rules that a page adds."""
    before = [(rules, dict(rules)) for rules in (BASES, CENTERS, WIDTH_RULES)]
    yield
    for rules, kept in before:
        rules.clear()
        rules.update(kept)


@here
@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=[pytest.mark.slow] * (name_of(page) in SLOW))
        for page in PAGES
        if page.exists() and any(runnable(page.read_text(encoding="utf-8")))
    ],
)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    for library in NEEDED.get(name_of(page), ()):
        pytest.importorskip(library)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    np.random.seed(0)  # noqa: NPY002 - for pages that draw without a seed
    names = {"__name__": "__main__"}
    with chdir(tmp_path):
        for block, expected in runnable(page.read_text(encoding="utf-8")):
            if block.language == "python":
                printed = run_python(block, names, page)
            else:
                said = StringIO()
                with redirect_stdout(said):
                    for command in commands(block):
                        assert not main(command), f"line {block.line} fails"
                printed = said.getvalue()
                if not commands(block):
                    continue
            if expected is not None:
                assert same(expected, printed), f"line {block.line} prints\n{printed}"


def test_printed_numbers_may_differ_in_their_last_digit_only():
    assert same("error 0.018, 3 rows ...", "error  0.0185, 3 rows and more")
    assert not same("error 0.018", "error 0.021")
    assert not same("error 0.018", "errors 0.018")
    assert not same("error 0.018", "error 0.018 and more")
    assert same("1,234 x1", "1230 x1")
    assert not same("x1", "x2")


def test_blocks_are_found_with_their_marks():
    text = "a\n\n```python\n1\n```\n\n```text\n2\n```\n\n"
    text += "<!-- not run: slow -->\n```sh\npip x && rbfdiffnet forecast --quiet\n```\n"
    python, output, shell = blocks(text)
    assert (python.code, python.line, python.skipped) == ("1\n", 4, False)
    assert output.follows
    assert shell.skipped
    assert commands(shell) == [["forecast", "--quiet"]]
    assert [expected for _, expected in runnable(text)] == ["2\n"]


def public_names():
    yield from (name for name in rbfdiffnet.__all__ if not name.startswith("_"))
    modules = re.search(r"the modules (.*?)\.\s+The others", rbfdiffnet.__doc__, re.DOTALL).group(1)
    yield from re.findall(r"`(\w+)`", modules)


@here
@pytest.mark.parametrize("name", list(public_names()))
def test_every_public_name_is_in_the_reference(name):
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/api").glob("*.md"))
    if f"::: rbfdiffnet.{name}\n" in text:
        return
    module = importlib.import_module(f"rbfdiffnet.{name}")
    missing = [part for part in module.__all__ if f"::: rbfdiffnet.{name}.{part}\n" not in text]
    assert not missing


@here
def test_the_table_of_the_readme_is_that_of_the_results():
    table = runpy.run_path(str(ROOT / "benchmarks" / "readme.py"))["table"]
    shown = PAGES[0].read_text(encoding="utf-8")
    assert "\n".join(table()) in shown  # copy what python benchmarks/readme.py prints


@here
def test_the_readme_is_short_and_the_glossary_too():
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) <= 120
    words = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").count("\n| ") - 1
    assert words <= 30


@here
@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: name_of(page))
def test_every_page_begins_with_its_reader_and_question(page):
    _, line = page.read_text(encoding="utf-8").split("\n\n", 2)[:2]
    assert re.match(r"\*For [^*]+: [^*]+\?\*", line)


@here
def test_pictures_are_small_and_shown():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in [*ROOT.glob("docs/pictures/*.svg"), *ROOT.glob("docs/pictures/*.png")]:
        assert picture.stat().st_size < 100_000, picture
        assert f"pictures/{picture.name})" in text, picture

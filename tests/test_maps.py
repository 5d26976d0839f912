"""The maps of the sources, in CONTRIBUTING.md and docs/, name what is there."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rbfdiffnet"
CONTRIBUTING, EQUATIONS = ROOT / "CONTRIBUTING.md", ROOT / "docs" / "mathematics" / "index.md"
pytestmark = pytest.mark.skipif(
    not EQUATIONS.exists(), reason="the tests run without the repository"
)

ROW = re.compile(r"^\| (?:\((\S+)\) )?\|.*\| `([\w.]+)` \| `(\w+\.py)::(\w+)` \|$", re.MULTILINE)


def rows():
    """Name, function, file of tests and test of every equation of the paper."""
    text = EQUATIONS.read_text(encoding="utf-8") if EQUATIONS.exists() else ""
    return ROW.findall(text)


def home(path):
    """Return the module of a dotted path and what it leads to."""
    parts = path.split(".")
    n = next(n for n in range(len(parts), 0, -1) if is_module(parts[:n]))
    module = import_module(".".join(["rbfdiffnet", *parts[:n]]))
    found = module
    for part in parts[n:]:
        found = getattr(found, part)
    return module, found


def is_module(parts):
    path = SOURCE.joinpath(*parts)
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def test_the_table_of_equations_is_read():
    text = EQUATIONS.read_text(encoding="utf-8")
    table = text.split("## The paper's equations")[1].split("## Everything")[0]
    assert len(rows()) == table.count("\n| ") - 1 > 25  # but the head


@pytest.mark.parametrize(("name", "path", "file", "test"), rows(), ids=lambda part: part)
def test_every_equation_has_its_function_and_its_test(name, path, file, test):
    module, found = home(path)
    assert callable(found) or isinstance(found, property)
    (path,) = (ROOT / "tests").rglob(file)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert test in {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}
    if name:
        assert f"eq. ({name})" in inspect.getsource(module)


def test_every_equation_that_code_cites_is_in_the_table():
    names = {name for name, *_ in rows()}
    for path in (ROOT / "src").rglob("*.py"):
        cited = re.findall(r"paper, eq\. \((\S+)\)", path.read_text(encoding="utf-8"))
        assert set(cited) <= names, path


def levels():
    """Place of every folder and file on top of the package in the tree of CONTRIBUTING.md."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    tree = re.search(r"Below `src/rbfdiffnet/`.*?```text\n(.*?)```", text, re.DOTALL).group(1)
    return {line.split()[0].rstrip("/"): level for level, line in enumerate(tree.splitlines())}


def test_the_tree_names_every_folder_and_no_other():
    there = {path.stem for path in SOURCE.glob("[!_]*.py")}
    there |= {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert sorted(levels()) == sorted(there)
    assert len(list(SOURCE.glob("*.py"))) <= 6


def test_a_folder_imports_only_those_above_it():
    level = levels()
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = re.findall(r"rbfdiffnet(?:\.| import )(\w+)", ast.unparse(node))
                below = [n for n in names if level.get(n, 0) > level.get(own, 99)]
                assert not below or (own, *below) == ("report", "forecaster"), path  # for its type


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/mathematics/index.md"])
def test_files_that_are_named_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`([\w./]+(?:\.(?:py|md|toml)|/))`", text):
        assert (ROOT / name).exists() or (SOURCE / name).exists() or any(SOURCE.rglob(name)), name
    for path in re.findall(r"python ((?:tests|docs)/\S+\.py)", text):
        assert (ROOT / path).exists()

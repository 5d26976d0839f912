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
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    assert test in {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}
    if name:
        assert f"eq. ({name})" in inspect.getsource(module)


def test_every_equation_that_code_cites_is_in_the_table():
    names = {name for name, *_ in rows()}
    for path in (ROOT / "src").rglob("*.py"):
        cited = re.findall(r"paper, eq\. \((\S+)\)", path.read_text(encoding="utf-8"))
        assert set(cited) <= names, path


def levels():
    """Place in the map of the sources of every module and package."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    tree = re.search(r"Below `src/rbfdiffnet/`.*?```text\n(.*?)```", text, re.DOTALL).group(1)
    named = [name for line in tree.splitlines() for name in re.findall(r"[\w/]+", line[:44])]
    return {name: level for level, name in enumerate(named)}


def test_the_map_of_the_sources_is_complete():
    there = {path.stem for path in SOURCE.glob("[!_]*.py")}
    there |= {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    assert sorted(levels()) == sorted(there)


def imported(path):
    """Modules and packages of ours that a file imports when it is loaded."""
    package = ["rbfdiffnet", *path.relative_to(SOURCE).parts[:-1]]
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in getattr(node, "names", ())]
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            names = [f"{origin}.{name}" for name in names]
        elif not isinstance(node, ast.Import):
            continue
        yield from (parts[1] for name in names if is_ours(parts := name.split(".")))


def is_ours(parts):
    return parts[0] == "rbfdiffnet" and len(parts) > 1


def test_every_kind_of_import_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / "cli").mkdir()
    lines = {
        "import numpy, rbfdiffnet, rbfdiffnet.basis as b": ["basis"],
        "import rbfdiffnet.noise.maps": ["noise"],
        "from rbfdiffnet import network, plots": ["network", "plots"],
        "from rbfdiffnet.noise.maps import x": ["noise"],
        "from . import text": ["cli"],
        "from .text import one_line": ["cli"],
        "from .. import panel": ["panel"],
        "from ..panel import Panel": ["panel"],
        "from numpy import rbfdiffnet": [],
        "def f():\n    import rbfdiffnet.basis": [],
    }
    for line, expected in lines.items():
        (tmp_path / "cli" / "own.py").write_text(line, encoding="utf-8")
        assert list(imported(tmp_path / "cli" / "own.py")) == expected, line


def test_lower_layers_never_import_upper_ones():
    level = {name.rstrip("/"): place for name, place in levels().items()}
    upwards = {
        (own, other)
        for path in SOURCE.rglob("*.py")
        if (own := path.relative_to(SOURCE).parts[0].removesuffix(".py")) in level
        for other in imported(path)
        if level.get(other, 0) > level[own]
    }
    assert not upwards


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/mathematics/index.md"])
def test_files_that_are_named_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    places = [ROOT, SOURCE, ROOT / "tests"]
    places += [place / name for place in places for name in ("solvers", "noise")]
    for name in re.findall(r"`([\w./]+(?:\.(?:py|md|toml)|/))`", text):
        assert any((place / name).exists() for place in places), name
    for path in re.findall(r"python ((?:tests|docs)/\S+\.py)", text):
        assert (ROOT / path).exists()

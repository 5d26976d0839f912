"""The house stays simple: short files, and an example for everything public."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import rbfdiffnet

ROOT = Path(__file__).parent.parent
LONGEST = 600  # lines

#: Files that may be longer, and why.
LONG = {
    "src/rbfdiffnet/forecaster.py": "one public class; most of it is its documentation",
    "src/rbfdiffnet/regressors.py": "two public classes; most of it is their documentation",
}

#: Classes whose methods may be without examples, and why.
PLAIN = {
    "rbfdiffnet.network.basis.DifferentialBasis": "its module's functions show what it computes",
    "rbfdiffnet.network.basis.GaussianBasis": "it has the methods of DifferentialBasis",
    "rbfdiffnet.network.basis.RadialBasis": "it has the methods of DifferentialBasis",
    "rbfdiffnet.series.transforms.Transform": "a protocol; the steps show its methods",
}


def files():
    return [path for part in ("src", "tests") for path in sorted((ROOT / part).rglob("*.py"))]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def test_files_are_short():
    lengths = {name_of(path): len(path.read_bytes().splitlines()) for path in files()}
    long = {name: n for name, n in lengths.items() if n > LONGEST and name not in LONG}
    assert long == {}  # split them by their ideas


def public_modules():
    """The modules that the package's own words call public, with those of the adapters."""
    said = re.search(r"the modules (.*?)\.\s+The others", rbfdiffnet.__doc__, re.DOTALL).group(1)
    yield from re.findall(r"`([\w.]+)`", said)
    yield from ("adapters.mlflow", "adapters.sktime", "adapters.statsforecast", "datasets.m5")


def public_names(module):
    """What a module lists, or else what it defines without an underscore."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not name.startswith("_")]
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__
    ]


def without_examples(where, module):
    """Functions, classes, methods and properties of our own that no example shows."""
    for name in public_names(module):
        thing, full = getattr(module, name), f"{where}.{name}"
        if not callable(thing) or not is_ours(thing):
            continue
        said = inspect.getdoc(thing) or ""
        if ">>>" not in said:
            yield full
        if not inspect.isclass(thing) or full in PLAIN:
            continue
        for part, own in parts(thing):
            call = rf"\.{part}\b" if isinstance(own, property) else rf"\.{part}\("
            if ">>>" not in (own.__doc__ or "") and not re.search(call, said):
                yield f"{full}.{part}"


def is_ours(thing):
    return getattr(thing, "__module__", "").startswith("rbfdiffnet")


def parts(kind):
    """Public methods and properties written in this package, by name."""
    for name in dir(kind):
        if not name.startswith("_"):
            part = inspect.getattr_static(kind, name)
            part = getattr(part, "__func__", part)
            function = part.fget if isinstance(part, property) else part
            if inspect.isfunction(function) and is_ours(function):
                yield name, part


@pytest.mark.parametrize("name", ["", *public_modules()])
def test_everything_public_has_an_example(name):
    where = f"rbfdiffnet.{name}".rstrip(".")
    try:
        module = importlib.import_module(where)
    except ImportError as error:
        pytest.skip(str(error))
    assert list(without_examples(where, module)) == []

"""Counts of work, and whether they are within their budget: ``python benchmarks/counts.py``.

No clock is read: the same code has the same counts on every machine, however busy it is. The
package is imported with all of its calls and operators counted, in all of its threads:

==========  ======================================================================================
operations  how many there were, which is what the interpreter does
elements    numbers that operations on arrays go through
products    multiplications in products of matrices
systems     about as many in systems of equations and factors of matrices
==========  ======================================================================================

Compiled code is not seen, so numba is left out. ``counts.csv`` among the results is the budget. A
job may exceed it by 5 %: what floating point leaves open may take one step more.
"""

from __future__ import annotations

import argparse
import ast
import csv
import math
import operator
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, ClassVar

from shared_parts.threads import one_thread

BUDGET = Path(__file__).parent / "results" / "counts.csv"
MOST = 1.05  # times the budget
KINDS = ("operations", "elements", "products", "systems")
Counts = dict[str, int]
_COUNTED = "rbfdiffnet"
_OPERATORS = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    **{ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod},
    **{ast.Pow: operator.pow, ast.MatMult: operator.matmul, ast.BitAnd: operator.and_},
    **{ast.BitOr: operator.or_, ast.BitXor: operator.xor},
    **{ast.LShift: operator.lshift, ast.RShift: operator.rshift},
}
_SEE_THEIR_FRAME = {"super", "locals", "globals", "vars", "dir"}
_PRODUCTS = {"matmul", "dot", "dgemm", "dsyrk"}
_SYSTEMS = {"solve", "inv", "cholesky", "eigh", "eigvalsh", "svd", "qr", "lstsq", "pinv", "det"}
_SYSTEMS |= {"dpotrf", "dpotrs", "dtrtri"}
_VIEWS = {"asarray", "ascontiguousarray", "reshape", "swapaxes", "transpose", "broadcast_to"}
_VIEWS |= {"sliding_window_view", "ravel", "view", "isinstance", "len", "zip", "enumerate"}


# Counting ---------------------------------------------------------------------------------------


class Tally(threading.local):
    """Counts of a thread by kind; `everything` has those of all threads."""

    everything: ClassVar[list[Counts]] = []

    def __init__(self) -> None:
        self.own: Counts = dict.fromkeys(KINDS, 0)
        self.everything.append(self.own)


_tally = Tally()


def counts() -> Counts:
    """Counts so far, of all threads."""
    return {kind: sum(own[kind] for own in _tally.everything) for kind in KINDS}


def counted(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
    """Call a function, and count it; what functions of the package do is counted inside of them."""
    result = function(*arguments, **named)
    own = _tally.own
    own["operations"] += 1
    if not isinstance(function, FunctionType | MethodType | type) or _is_foreign(function):
        kind, amount = _measure(function, arguments, result)
        own[kind] += amount
    return result


def _is_foreign(function: Any) -> bool:
    return not str(getattr(function, "__module__", "")).startswith(_COUNTED)


def _measure(function: Any, arguments: tuple[Any, ...], result: Any) -> tuple[str, int]:
    """Return the kind and amount of work of a function of another library."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)  # of a method
    arrays = [a for a in (owner, *arguments) if type(a).__name__ == "ndarray"]
    made = result.size if type(result).__name__ == "ndarray" else 1
    if name in _VIEWS:
        return "elements", 0
    if name == "einsum":
        return "products", _count_einsum(arguments[0], arrays)
    if arrays and name in _PRODUCTS:
        return "products", made * arrays[0].shape[-1]
    if arrays and name in _SYSTEMS and arrays[0].ndim > 1:
        return "systems", min(arrays[0].shape[-2:]) * sum(array.size for array in arrays)
    return "elements", max([made, *(array.size for array in arrays)])


def _count_einsum(subscripts: Any, arrays: Sequence[Any]) -> int:
    """Multiplications of a product over all indices at once."""
    sizes: dict[str, int] = {}
    for letters, array in zip(str(subscripts).partition("->")[0].split(","), arrays, strict=False):
        sizes |= dict(zip(reversed(letters.strip(". ")), reversed(array.shape), strict=False))
    return math.prod(sizes.values())


# Counting code in place of plain code -----------------------------------------------------------


class _Rewriter(ast.NodeTransformer):
    """Put a counted call in the place of every call and operator."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _SEE_THEIR_FRAME:
            return node
        return _call(node.func, *node.args, keywords=node.keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _call(_operator(node.op), node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.AugAssign(
            node.target, node.op, _call(ast.Name("_passed", ast.Load()), node.value)
        )

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return node
        return _call(ast.Name("_passed", ast.Load()), node)


def _operator(op: ast.operator) -> ast.expr:
    return ast.Attribute(
        ast.Name("_operator", ast.Load()), _OPERATORS[type(op)].__name__, ast.Load()
    )


def _call(*arguments: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
    return ast.Call(ast.Name("_counted", ast.Load()), list(arguments), list(keywords))


class _Passed:
    """What an operator has made; as large as it is."""

    __name__ = "passed"

    def __call__(self, value: Any) -> Any:
        return value


class _Loader(SourceFileLoader):
    """Load modules with counting code."""

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        tree = ast.fix_missing_locations(_Rewriter().visit(ast.parse(self.get_data(path))))
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: Any) -> None:
        vars(module).update(_counted=counted, _passed=_Passed(), _operator=operator)
        super().exec_module(module)


class Counter(MetaPathFinder):
    """Find the modules whose work is counted."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return modules of the package with a loader that counts."""
        if name.partition(".")[0] != _COUNTED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path)
        return spec


# Jobs -------------------------------------------------------------------------------------------


def jobs() -> dict[str, Callable[[], Any]]:
    """Small jobs that do not change."""
    import numpy as np
    import pandas as pd

    from rbfdiffnet import RBFDiffNet

    def panel(n: int, length: int, freq: str, season: int) -> pd.DataFrame:
        rng, t = np.random.default_rng(0), np.arange(length)
        level, slope, phase = rng.uniform((20.0, 0.0, 0.0), (90.0, 0.1, season), (n, 3)).T[
            ..., None
        ]
        wave = np.sin(2.0 * np.pi * (t + phase) / season)
        y = level + slope * t + 8.0 * wave + 3.0 * rng.normal(size=(n, length))
        ids = np.repeat([f"s{i:03d}" for i in range(n)], length)
        ds = np.tile(pd.date_range("2015-01-01", periods=length, freq=freq), n)
        return pd.DataFrame({"unique_id": ids, "ds": ds, "y": y.ravel()})

    def job(method: str, df: pd.DataFrame, freq: str, h: int, **options: Any) -> Callable[[], Any]:
        given = {k: options.pop(k) for k in ("level", "n_windows") if k in options}
        return lambda: getattr(RBFDiffNet(freq, **options), method)(df, h, **given)

    one, months = panel(1, 144, "MS", 12), panel(200, 100, "MS", 12)
    days, hours = panel(30, 400, "D", 7), panel(20, 960, "h", 24)
    found = {
        "1 x 144 months": job("forecast", one, "MS", 12),
        "1 x 144 months, 5 windows": job("cross_validation", one, "MS", 12, n_windows=5),
        "30 x 400 days": job("forecast", days, "D", 28),
        "30 x 400 days, levels": job("forecast", days, "D", 28, level=[80, 95]),
        "30 x 400 days, two threads": job("forecast", days, "D", 28, n_jobs=2),
        "200 x 100 months": job("forecast", months, "MS", 12),
        "20 x 960 hours": job("forecast", hours, "h", 24),
    }
    for name, df, freq, h in (
        ("30 x 400 days", days, "D", 28),
        ("200 x 100 months", months, "MS", 12),
    ):
        for preset in ("instant", "fast"):
            found[f"{name}, {preset}"] = job("forecast", df, freq, h, preset=preset, level=[80, 95])
    return found


def measure() -> dict[str, Counts]:
    """Counts of every job."""
    found, every = {}, jobs()
    for name in (next(iter(every)), *list(every)[-2:]):
        every[name]()  # what is loaded and made but once
    for name, job in every.items():
        before = counts()
        job()
        found[name] = {kind: after - before[kind] for kind, after in counts().items()}
    return found


def compare(found: dict[str, Counts], budget: dict[str, Counts]) -> bool:
    """Print counts beside the budget; return whether all are within it."""
    print(f"{'job':28}{'count':12}{'found':>16}{'budget':>16}{'ratio':>8}")
    good = True
    for name, own in found.items():
        for kind, count in own.items():
            allowed = budget.get(name, {}).get(kind, 0)
            within = count <= MOST * allowed
            good = good and within
            ratio = f"{count / allowed:8.3f}" if allowed else " " * 8
            mark = "" if within else "  too much"
            print(f"{name:28}{kind:12}{count:16,}{allowed:16,}{ratio}{mark}")
    return good


def read_budget(path: Path) -> dict[str, Counts]:
    """Read what the counts are allowed to be."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["job"]: {k: int(row[k]) for k in KINDS} for row in csv.DictReader(file)}


def write_budget(path: Path, found: dict[str, Counts]) -> None:
    """Allow counts as they were found."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["job", *KINDS], lineterminator="\n")
        writer.writeheader()
        writer.writerows({"job": name, **own} for name, own in found.items())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--renew", action="store_true", help="take the counts as the new budget")
    options = parser.parse_args(arguments)
    one_thread()  # before NumPy is imported
    sys.modules["numba"] = None  # type: ignore[assignment]
    sys.meta_path.insert(0, Counter())
    found = measure()
    good = compare(found, read_budget(BUDGET))
    if options.renew:
        write_budget(BUDGET, found)
    elif not good:
        raise SystemExit(
            f"Some jobs do over {100 * (MOST - 1):.0f} % more than their budget. If that is on "
            "purpose, write the new one with python benchmarks/counts.py --renew, and say why in "
            "the commit."
        )


if __name__ == "__main__":
    main()

"""Work is counted by its kind and size, wherever it is written, and compared with a budget."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("the tests run without the repository", allow_module_level=True)
sys.path.append(str(BENCHMARKS))

import counts  # noqa: E402

TOY = """
import numpy as np
def gram(X):
    return X.T @ X
def fit(X, y):
    return np.linalg.solve(gram(X), X.T @ y)
def square(X):
    return X ** 2
def square_rows(X):
    return np.stack([square(row) for row in X])
def explain(a, b):
    return np.einsum("ij,jk->ik", a, b), a.sum(), super
class Base:
    def name(self):
        return "base"
class Own(Base):
    def name(self):
        return super().name() + f"{1 + 1}"
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    (tmp_path / "counted_toy.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(counts, "_COUNTED", "counted_toy")
    monkeypatch.setattr(sys, "meta_path", [counts.Counter(), *sys.meta_path])
    yield import_module("counted_toy")
    del sys.modules["counted_toy"]


def count(function, *arguments):
    before = counts.counts()
    result = function(*arguments)
    return result, {kind: after - before[kind] for kind, after in counts.counts().items()}


def test_products_and_systems_are_counted_by_their_size(toy, rng):
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    found, own = count(toy.fit, X, y)
    np.testing.assert_allclose(found, np.linalg.lstsq(X, y, rcond=None)[0])
    assert own == {
        "operations": 4,
        "elements": 0,
        "products": 3 * 3 * 40 + 3 * 40,
        "systems": 3 * (9 + 3),
    }
    (product, *_), own = count(toy.explain, X, X[:3])
    np.testing.assert_allclose(product, X @ X[:3])
    assert (own["products"], own["elements"]) == (40 * 3 * 3, 120)


def test_a_loop_makes_more_operations_of_the_same_numbers(toy, rng):
    X = rng.normal(size=(40, 3))
    (whole, at_once), (rows, one_by_one) = count(toy.square, X), count(toy.square_rows, X)
    np.testing.assert_array_equal(rows, whole)
    assert at_once == {"operations": 1, "elements": 120, "products": 0, "systems": 0}
    assert one_by_one["operations"] == 2 * 40 + 1
    assert toy.Own().name() == "base2"


def test_only_more_than_the_budget_is_too_much(tmp_path, capsys):
    budget = {"job": dict.fromkeys(counts.KINDS, 100)}
    path = tmp_path / "budget.csv"
    counts.write_budget(path, budget)
    assert counts.read_budget(path) == budget
    assert counts.compare({"job": dict.fromkeys(counts.KINDS, 105)}, budget)
    assert not counts.compare({"job": {**budget["job"], "systems": 106}}, budget)
    assert capsys.readouterr().out.count("too much") == 1
    assert not counts.compare({"new job": budget["job"]}, budget)


def test_the_budget_has_every_job():
    assert counts.read_budget(counts.BUDGET).keys() == counts.jobs().keys()

"""How the docs site is built: docstrings become Markdown, formulas become MathML."""

import importlib.util
import inspect
import re
from textwrap import dedent

import pytest

from rbfdiffnet import RBFDiffNet
from test_docs import ROOT

MACHINERY = ROOT / "docs" / "machinery"


def machinery(name, *needed):
    for package in needed:
        pytest.importorskip(package, reason="the extra [docs] is not installed")
    if not MACHINERY.exists():
        pytest.skip("the tests run without the repository")
    spec = importlib.util.spec_from_file_location(name, MACHINERY / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_formulas_tables_and_roles_of_docstrings_become_markdown():
    markdown = machinery("docstrings", "griffe").markdown
    assert markdown("of :math:`x^2`, see :func:`rmsse`") == r"of \(x^2\), see `rmsse`"
    assert markdown(".. math:: a\n    + b\n\nwhere") == "\n\\[ a + b \\]\n\nwhere"
    assert markdown(".. math::\n\n    a\n\n    b &= c\n\nend").split("\n")[1] == (
        r"\[ \begin{aligned} a b &= c \end{aligned} \]"
    )
    table = "====  ====\none   x|y\n      more\ntwo   z\n====  ===="
    assert markdown(table).strip().splitlines()[2:] == [r"| one | x\|y more |", "| two | z |"]


def test_formulas_become_mathml_that_may_break_between_its_parts():
    page = machinery("mathml", "latex2mathml").on_page_content
    inline = page(r'<span class="arithmatex">\(a &lt; \lVert x \rVert\)</span>')
    assert inline.startswith("<math")
    assert "arithmatex" not in inline
    display = page(r'<div class="arithmatex">\[a = {b \qquad c}, \qquad d\]</div>')
    assert display.count("<math") == 2
    assert re.search(r'form="prefix">&#x02212;', page(r'<span class="arithmatex">\(a(-b)\)</span>'))
    assert "prefix" not in page(r'<span class="arithmatex">\((a)-b\)</span>')
    with pytest.raises(ValueError, match="does not know"):
        page(r'<span class="arithmatex">\(\unheardof{x}\)</span>')


def parameters(module, docstring_of):
    """Type and default of every parameter, as the reference shows them."""
    sections = module[docstring_of].docstring.parsed
    found = next(section for section in sections if section.kind.value == "parameters")
    return {entry.name: (str(entry.annotation), str(entry.value)) for entry in found.value}


def test_parameters_have_their_own_types_and_defaults():
    extension = machinery("docstrings", "griffe").MarkdownDocstrings()
    import griffe

    text = """
    def f(a, b: int = 2, c: str = "x", how="q", why=None, *more, **rest: float):
        '''Do.

        Parameters
        ----------
        a : {"p", "q"}
        b, c
            As for g.

            More of it.
        how, why : {"p", "q"} or float, default="q", None
        *more : int
        **rest
            Anything.

        Returns
        -------
        b, c : float
        '''
    """
    with griffe.temporary_visited_module(
        dedent(text), extensions=griffe.Extensions(extension), docstring_parser="numpy"
    ) as module:
        found = parameters(module, "f")
        described = [entry.description for entry in module["f"].docstring.parsed[1].value]
        returned = module["f"].docstring.parsed[2].value
    assert found == {
        "a": ('one of "p", "q"', "None"),
        "b": ("int", "2"),
        "c": ("str", "'x'"),
        "how": ('one of "p", "q" or float', "'q'"),
        "why": ('one of "p", "q" or float', "None"),
        "*more": ("int", "()"),
        "**rest": ("float", "{}"),
    }
    assert described[1] == described[2] == "As for g.\n\nMore of it."
    assert len(returned) == 1


def test_every_default_of_the_reference_is_that_of_the_signature():
    extension = machinery("docstrings", "griffe").MarkdownDocstrings()
    import griffe

    package = griffe.load(
        "rbfdiffnet",
        search_paths=[ROOT / "src"],
        extensions=griffe.Extensions(extension),
        docstring_parser="numpy",
    )
    forecaster = parameters(package, "forecaster.RBFDiffNet")
    assert forecaster["time_col"] == ("str", "'ds'")
    assert forecaster["scope"][1] == "None"
    for name, parameter in inspect.signature(RBFDiffNet).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            assert forecaster[name][1] == repr(parameter.default)
    lines = parameters(package, "evaluation.metrics.rmsse")
    assert lines["time_col"][1] == "'ds'"

"""How the docs site is built: docstrings become Markdown, formulas become MathML."""

import importlib.util
import re

import pytest

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

r"""Formulas of the site, turned from LaTeX to MathML while it is built.

Browsers draw MathML themselves, so pages need no script, no font and no network. Markdown marks the
formulas (``pymdownx.arithmatex`` with ``generic: true``), in pages and in docstrings alike.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_MARKED = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<latex>.*?)\\[)\]]</(?P=tag)>',
    re.DOTALL,
)

# The few things latex2mathml does not know, in terms of others.
_PLAIN = {r"\\operatorname\{(\w+)\}": r"\\mathrm{\1}", r"\\[lr]Vert": r"\\|", r"\\!": ""}

# Spaces that browsers would get wrong: there are none around bars, nor after a sign, which is what
# a minus is at the start and after "(", "[", "=" and ",".
_BAR = '<mo stretchy="false" lspace="0" rspace="0">&#x0007C;</mo>'
_MINUS = r'\1<mo form="prefix">&#x02212;</mo>'
_SPACES = {
    r'<mo(?: stretchy="false")?>&#x0007C;</mo>': _BAR,
    r"(<mrow>|&#x000(?:28|5B|3D|2C);</mo>)<mo>&#x02212;</mo>": _MINUS,
}


def on_page_content(content: str, **_: Any) -> str:
    """Replace the formulas of a page (called by MkDocs)."""
    return _MARKED.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    latex = html.unescape(found["latex"]).strip()
    if found["open"] == "(":
        return _convert(latex, "inline")
    parts = "".join(_convert(part, "block") for part in _parts(latex))
    return f'<div class="formula">{parts}</div>'


def _convert(latex: str, display: str) -> str:
    for known, plain in _PLAIN.items():
        latex = re.sub(known, plain, latex)
    formula: str = convert(latex, display=display)
    if "\\" in formula:
        raise ValueError(f"latex2mathml does not know a part of this formula: {latex}")
    for known, better in _SPACES.items():
        formula = re.sub(known, better, formula)
    return formula


def _parts(latex: str) -> list[str]:
    r"""Split a formula at ``\qquad`` outside of groups, where a narrow page may break it."""
    parts, depth = [""], 0
    for token in re.split(r"(\\qquad|\\begin|\\end|\\(?:left|right)\b|[{}])", latex):
        depth += {"{": 1, "}": -1, r"\begin": 1, r"\end": -1, r"\left": 1, r"\right": -1}.get(
            token, 0
        )
        if token == r"\qquad" and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts if part.strip()]

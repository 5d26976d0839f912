r"""Docstrings are written for any reader; here they become Markdown for the site.

Formulas (``:math:`` and ``.. math::``) become ``\(...\)`` and ``\[...\]``, tables between rulers of
equal signs become Markdown's, other roles become code. Parameters are listed one by one, without
their defaults: each has that of the signature, and its type too where none is given.
"""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

from griffe import Extension, Object

_BLOCK = re.compile(
    r"^(?P<indent> *)\.\. math::(?P<first>[^\n]*)\n(?P<rest>(?:(?P=indent) +\S[^\n]*\n|[ ]*\n)*)",
    re.MULTILINE,
)
_TABLE = re.compile(
    r"^(?P<indent> *)(?P<ruler>=+(?: +=+)+)\n(?P<rows>.*?)\n(?P=indent)(?P=ruler)$",
    re.MULTILINE | re.DOTALL,
)
_PARAMETERS = re.compile(r"^Parameters\n-+\n(?P<items>(?:(?!.+\n---).*\n)*)", re.MULTILINE)
_PARAMETER = re.compile(
    r"^(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*)(?P<type> : .+)?\n(?P<text>(?:[ ]+.*\n|\n)*)",
    re.MULTILINE,
)


class MarkdownDocstrings(Extension):
    """Rewrite every docstring before it is parsed."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of an object (called by griffe)."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text: str) -> str:
    """Return a docstring with its formulas, tables and roles in Markdown."""
    text = _PARAMETERS.sub(lambda found: _PARAMETER.sub(_parameters, found[0]), text + "\n")
    text = _TABLE.sub(_table, text)
    text = _BLOCK.sub(_formula, text)
    text = re.sub(r":math:`([^`]+)`", _inline, text)
    return re.sub(r":\w+:`([^`]+)`", r"`\1`", text).rstrip("\n")


def _parameters(found: re.Match[str]) -> str:
    if not found["text"].startswith(" ") and not found["type"]:
        return found[0]  # the heading
    kind = re.sub(r", (?:optional|default=.*)$", "", found["type"] or "")
    kind = re.sub(r"\{(.+?)\}", r"one of \1", kind)  # else the first is taken for the default
    return "".join(f"{name}{kind}\n{found['text']}" for name in found["names"].split(", "))


def _inline(found: re.Match[str]) -> str:
    return rf"\({' '.join(found[1].split())}\)"


def _formula(found: re.Match[str]) -> str:
    indent = found["indent"]
    latex = " ".join((found["first"] + "\n" + dedent(found["rest"])).split())
    if "&" in latex and r"\begin" not in latex:
        latex = rf"\begin{{aligned}} {latex} \end{{aligned}}"
    return f"\n{indent}\\[ {latex} \\]\n\n"


def _table(found: re.Match[str]) -> str:
    starts = [m.start() for m in re.finditer(r"=+", found["ruler"])]
    rows: list[list[str]] = []
    for line in found["rows"].splitlines():
        line = line[len(found["indent"]) :]
        ends = [*starts[1:], None]
        cells = [line[a:b].strip() for a, b in zip(starts, ends, strict=True)]
        if cells[0] or not rows:
            rows.append(cells)
        else:  # a row that goes on
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
    head = ["| " + " | ".join([""] * len(starts)) + " |", "|" + "---|" * len(starts)]
    body = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]
    return "\n".join(found["indent"] + line for line in ["", *head, *body, ""])

"""One HTML file: a template, a style, a script, and the data, which can never become markup.

Everything that comes from frames is in JSON, whose ``<``, ``>`` and ``&`` are escaped, or escaped
as text; the script writes it as text too. The policy in the page allows this script and this style,
by their hashes, and nothing else: no other script, and no network.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from rbfdiffnet.report.data import payload
from rbfdiffnet.support.files import replace_file

__all__ = ["page", "write_page"]

_SCRIPTS = (
    *("numbers", "formats", "elements", "chart", "gestures", "list"),
    *("explanation", "summary", "report"),
)


def page(title: str, facts: Mapping[str, Any], numbers: str) -> str:
    r"""Assemble the page.

    Parameters
    ----------
    title : str
    facts : mapping
        What goes into JSON.
    numbers : str
        In base 64.

    Returns
    -------
    str

    Examples
    --------
    >>> from rbfdiffnet.report.page import page
    >>> text = page("Sales </title><script>", {"ids": ["</script>"]}, "")
    >>> "Sales &lt;/title&gt;&lt;script&gt;" in text, r'["\u003c/script\u003e"]' in text
    (True, True)
    """
    style = _static("report.css")
    script = "\n".join(['"use strict";', *(_static(f"{name}.js") for name in _SCRIPTS)])
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "title": html.escape(title),
        "policy": policy,
        "style": style,
        "facts": _json({"title": title, **facts}),
        "script": script,
        "numbers": numbers,
    }
    # In one pass, so that nothing in the data is taken for a place to fill.
    return re.sub(r"{{(\w+)}}", lambda match: parts[match[1]], _static("template.html"))


def write_page(path: Any, title: str | None, history: Any, forecasts: Any, **more: Any) -> None:
    """Write a report, which is complete or not there.

    Parameters
    ----------
    path : path-like
    title : str or None
    history, forecasts : DataFrame
    **more
        Further arguments of `rbfdiffnet.report.data.payload`.
    """
    facts, numbers = payload(history, forecasts, **more)
    text = page("Forecasts" if title is None else str(title), facts, numbers)
    with replace_file(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _json(facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text

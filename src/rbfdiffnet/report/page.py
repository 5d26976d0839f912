"""HTML pages in one file, and the report's: a body, a style, a script, and the data.

Data can never become markup. Everything that comes from frames is in JSON, whose ``<``, ``>`` and
``&`` are escaped, or escaped as text; the script writes it as text too. The policy in the page
allows this script and this style, by their hashes, and nothing else: no other script, and no
network.
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
from rbfdiffnet.report.plain import write_rows
from rbfdiffnet.support.files import replace_file
from rbfdiffnet.support.text import one_line

_SCRIPTS = (
    *("numbers", "formats", "elements", "chart", "gestures", "list"),
    *("explanation", "portrait", "summary", "report"),
)


def build_page(title: str, style: str, body: str, script: str = "", sources: str = "") -> str:
    """Return a page that needs no other file; ``body`` is HTML that has the script in it.

    ``sources`` are further sources of the page's policy, such as ``img-src data:; ``.
    """
    scripts = f"script-src {_hash(script)}; " if script else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {scripts}style-src \
{_hash(style)}; {sources}base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{html.escape(title)}</title>
<style>{style}</style>
</head>
<body>
{body}</body>
</html>
"""


def report_page(title: str, facts: Mapping[str, Any], numbers: str) -> str:
    """Return the page of a report: facts go into JSON, numbers are text in base 64."""
    script = "\n".join(['"use strict";', *(_static(f"{name}.js") for name in _SCRIPTS)])
    plain, verdict = facts["plain"], facts["verdict"]
    parts = {
        "title": html.escape(title),
        "extent": html.escape(plain["extent"]),
        "source": html.escape(one_line(facts["source"])),
        "lead": html.escape(verdict["lead"]),
        "more": html.escape(" ".join(verdict["more"])),
        "forecasts": write_rows(plain["forecasts"]),
        "totals": write_rows(plain["totals"]),
        "no-totals": "" if plain["totals"] else " hidden",
        "facts": _json({"title": title, **facts, "plain": None}),
        "script": script,
        "numbers": numbers,
    }
    # In one pass, so that nothing in the data is taken for a place to fill.
    body = re.sub(r"{{([\w-]+)}}", lambda match: parts[match[1]], _static("body.html"))
    return build_page(title, _static("report.css"), body, script)


def write_page(path: Any, title: str | None, history: Any, forecasts: Any, **more: Any) -> None:
    """Write a report, which is complete or not there; ``more`` goes to `payload`."""
    facts, numbers = payload(history, forecasts, **more)
    text = report_page("Forecasts" if title is None else str(title), facts, numbers)
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

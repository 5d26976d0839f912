"""Tables of promises, for the screen and for docs/reliability.md."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attack_parts.registry import Cases, Promise

_BEGIN, _END = "<!-- attacked -->", "<!-- end of attacks -->"
_MOST = 3  # failures that a line shows


def result_of(outcome: Cases) -> str:
    """Say in words what came of an attack."""
    if outcome.failures:
        more = len(outcome.failures) - _MOST
        shown = "; ".join(outcome.failures[:_MOST])
        return f"BROKEN: {shown}{f' (and {more} more)' if more > 0 else ''}"
    if not outcome.count:
        return f"not tried: {'; '.join(dict.fromkeys(outcome.skipped)) or 'no case'}"
    return "held"


def line_of(promise: Promise, outcome: Cases) -> str:
    """Return a line for the screen."""
    cells = (promise.says, promise.how, f"{outcome.count:,} cases", result_of(outcome))
    return f"{promise.name}: {' | '.join(cells)}"


def tables_of(found: Mapping[Promise, Cases], seed: int) -> str:
    """Return the tables of a run in Markdown, one for each group."""
    cases = sum(outcome.count for outcome in found.values())
    held = sum(result_of(outcome) == "held" for outcome in found.values())
    lines = [f"{held} of {len(found)} promises held, {cases:,} cases, seed {seed}."]
    group = None
    for promise, outcome in found.items():
        if promise.group != group:
            group = promise.group
            lines += ["", f"### {promise.title}", ""]
            lines += ["| promise | how it was attacked | cases | result |", "|---|---|---|---|"]
        page = promise.page if promise.page.startswith("SECURITY") else _link(promise.page)
        cells = (
            f"{promise.says} ({page})",
            promise.how,
            f"{outcome.count:,}",
            result_of(outcome),
        )
        lines.append(f"| {' | '.join(map(_escape, cells))} |")
    return "\n".join(lines)


def replace_tables(text: str, tables: str) -> str:
    """Return a page with other tables between its markers."""
    pattern = re.compile(f"{_BEGIN}.*{_END}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"The page has no lines {_BEGIN} and {_END} to write between.")
    return pattern.sub(lambda _: f"{_BEGIN}\n{tables}\n{_END}", text)


def _link(page: str) -> str:
    return f"[{page.removesuffix('.md').rpartition('/')[2].replace('_', ' ')}]({page})"


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")

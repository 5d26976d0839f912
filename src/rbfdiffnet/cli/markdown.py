"""Results of a command as a Markdown document, made from the same parts as the JSON document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from rbfdiffnet.cli.run import describe_problems
from rbfdiffnet.support.text import format_cells, one_line

#: What the scores of tables are.
LEGEND = "MASE: error / usual change over a season; RMSSE: over one step. Lower is better."

_TITLES = {
    "forecast": "Forecasts",
    "evaluate": "Backtest",
    "explain": "Explanation",
    "anomalies": "Unusual values",
}
_TABLES = {
    "forecast": "Forecasts",
    "terms": "What the forecast adds up to",
    "equation": "Learned operator",
    "anomalies": "Values outside of what was forecast",
}
_SCORES = {"model": "method", "n_series": "series", "mase": "MASE", "rmsse": "RMSSE", "mae": "MAE"}
_MOST_ROWS = 200  # of a table
_MARKUP = re.compile(r"([\\`*<|\[\]])")


def write_markdown(document: Mapping[str, Any]) -> str:
    """Write the document of a command, whose tables are frames."""
    file = document["file"]
    name = f" of {Path(file).name}" if file not in (None, "-") else ""
    title = f"# {_TITLES[document['command']]}{name}"
    source = document["source"].replace("Reading", "Read", 1)
    parts = [title, f"{_escape(source)}.", _write_list(document["notes"])]
    if "unique_id" in document:
        parts.append(f"Series '{_escape(document['unique_id'])}', step {document['step']}.")
    if "judged" in document:
        share = f"{document['level']:g} %"
        parts.append(f"{document['judged']:,} values were judged by intervals of {share}.")
    if "verdict" in document:
        verdict = document["verdict"]
        parts += ["## Can I trust this?", " ".join([verdict["lead"], *verdict["more"]])]
    if document.get("scores"):
        scores = pd.DataFrame(document["scores"])[[*_SCORES, "bias"]].rename(columns=_SCORES)
        parts += [_write_table(scores), LEGEND, _write_list(document["verdicts"])]
        if below := document["scores"][0]["below"]:
            table = {"quantile, %": [*below], "values at or below, %": [*below.values()]}
            parts.append(_write_table(pd.DataFrame(table)))
    for key, heading in _TABLES.items():
        if key in document:
            parts += [f"## {heading}", _write_table(document[key])]
    remarks = describe_problems(document["report"]) if "report" in document else []
    if remarks:
        parts += ["## Remarks", _write_list(remarks)]
    return "\n\n".join(filter(None, parts))


def _write_list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {_escape(line)}" for line in lines)


def _write_table(frame: pd.DataFrame) -> str:
    """Write the first rows of a frame, and say how many there are besides."""
    if not len(frame):
        return "None."
    shown = frame.head(_MOST_ROWS)
    header, *rows = format_cells(shown)
    numbers = [frame[name].dtype.kind in "fi" for name in frame.columns]
    rule = ["---:" if right else "---" for right in numbers]
    lines = [f"| {' | '.join(map(_escape, row))} |" for row in (header, rule, *rows)]
    more = len(frame) - len(shown)
    return "\n".join(lines) + (f"\n\nAnd {more:,} more rows." if more else "")


def _escape(text: str) -> str:
    """Write text so that nothing in it is markup."""
    return _MARKUP.sub(r"\\\1", one_line(text))

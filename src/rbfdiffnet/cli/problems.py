"""What was unusual about series, in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rbfdiffnet.support.text import one_line

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["problem_lines"]


def problem_lines(report: pd.DataFrame) -> list[str]:
    """Name the first series with each kind of problem, and how many more there are.

    Parameters
    ----------
    report : DataFrame
        As ``RBFDiffNet.report_`` is.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.problems import problem_lines
    >>> found = ["2 missing dates, first 2024-01-05", "1 missing date, first 2024-02-01"]
    >>> problem_lines(pd.DataFrame({"unique_id": ["a", "b"], "problem": found, "action": "none"}))
    ["series 'a': 2 missing dates, first 2024-01-05; none (and 1 more series)"]
    """
    lines = []
    kinds = report["problem"].astype(str).str.replace(r"[\d][\d:. -]*|s\b", "", regex=True)
    for (_, action), group in report.groupby([kinds, "action"], sort=False):
        first = group.iloc[0]
        more = f" (and {len(group) - 1:,} more series)" if len(group) > 1 else ""
        name = one_line(str(first["unique_id"]))
        lines.append(f"series '{name}': {first['problem']}; {action}{more}")
    return lines

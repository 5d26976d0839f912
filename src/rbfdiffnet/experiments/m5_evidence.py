"""Where the paper's text and its numbers disagree, and what decides: what M5 shows.

Each function takes results and returns the evidence as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.experiments.paper_tables import PAPER_MEAN, PAPER_P_VALUES, paper_rmsse
from rbfdiffnet.experiments.tables import m5_table, signed_rank

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["root_evidence", "seed_evidence", "side_evidence"]


def root_evidence(table: pd.DataFrame) -> str:
    r"""Compare mean RMSSE with and without the root that the paper's formula lacks.

    Parameters
    ----------
    table : DataFrame
        What `rbfdiffnet.experiments.tables.m5_table` returned.

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.experiments.m5_evidence import root_evidence
    >>> print(root_evidence(pd.DataFrame({"model": ["u-RBFN"], "rmsse": [1.1]})))
    2. RMSSE has its root.
       Mean over the series    with root  without root  paper
       u-RBFN                      1.100         1.210  1.020
    """
    lines = [
        "2. RMSSE has its root.",
        f"   {'Mean over the series':<22}  with root  without root  paper",
    ]
    for model in dict.fromkeys(table["model"]):
        errors = table.loc[table["model"] == model, "rmsse"].to_numpy()
        if model in PAPER_MEAN:
            lines.append(
                f"   {model:<22}  {errors.mean():>9.3f}  {np.mean(errors**2):>12.3f}"
                f"  {PAPER_MEAN[model]:.3f}"
            )
    return "\n".join(lines)


def side_evidence(table: pd.DataFrame) -> str:
    """Compare the paper's p-values with both Wilcoxon tests on the rows that it prints.

    Parameters
    ----------
    table : DataFrame
        What `rbfdiffnet.experiments.tables.m5_table` returned, for both tests on our rows.

    Returns
    -------
    str

    Examples
    --------
    >>> from rbfdiffnet.experiments.m5_evidence import side_evidence
    >>> from rbfdiffnet.experiments.tables import m5_table
    >>> print(side_evidence(m5_table([])))
    4. The paper's p-values look one-sided.
    ...
    """
    import pandas as pd

    numbers = range(1, 31)
    theirs = pd.DataFrame(
        {m: [paper_rmsse(n, m) for n in numbers] for m in ("RBF-DiffNet", *PAPER_P_VALUES)}
    )
    ours = table.pivot(index="series", columns="model", values="rmsse")
    title = "RBF-DiffNet against"
    lines, nearer = [f"   {title:<22}{'printed':>9}" + f"{'two-sided':>11}{'one-sided':>11}" * 2], 0
    for model, printed in PAPER_P_VALUES.items():
        both = _both_tests(theirs, model)
        distance = np.abs(np.log(np.array(both) / printed))
        nearer += int(distance[1] < distance[0])
        cells = "".join(f"{p:>11.3g}" if p == p else "" for p in (*both, *_both_tests(ours, model)))
        lines.append(f"   {model:<22}{printed:>9.3g}{cells}")
    return "\n".join(
        [
            "4. The paper's p-values look one-sided.",
            f"   Wilcoxon's signed-rank test, exact: {nearer} of {len(PAPER_P_VALUES)} printed "
            "p-values are nearer to the one-sided",
            "   test on the paper's own 30 rows (is RBF-DiffNet's error smaller?), none is equal.",
            f"   {'':<22}{'paper':>9}{'the 30 rows it prints':>22}{'our rows':>22}".rstrip(),
            *lines,
        ]
    )


def _both_tests(errors: pd.DataFrame, model: str) -> tuple[float, float]:
    """Test RBF-DiffNet against a model, two-sided and one-sided; NaN without both columns."""
    if not {"RBF-DiffNet", model} <= set(errors):
        return np.nan, np.nan
    pairs = errors[["RBF-DiffNet", model]].dropna()
    x, y = pairs["RBF-DiffNet"], pairs[model]
    return signed_rank(x, y), signed_rank(x, y, "less")


def seed_evidence(records: Sequence[dict[str, Any]]) -> str:
    """Show how much the results of a network depend on the seed of K-Means.

    Parameters
    ----------
    records : sequence of dict
        Results of `rbfdiffnet.experiments.m5.run_series`.

    Returns
    -------
    str
        For each seed the mean RMSSE, the two-sided p-value of Wilcoxon's signed-rank test against
        RBF-DiffNet trained from the same seed, and the correlation with the paper's column; empty
        without results from several seeds.

    Examples
    --------
    >>> from rbfdiffnet.experiments.m5_evidence import seed_evidence
    >>> run = {"series": "CA_1_FOODS", "model": "u-RBFN", "rmsse_by_seed": [0.5, 0.7]}
    >>> print(seed_evidence([run]))
    One seed at a time:            0        1
       u-RBFN mean RMSSE       0.500    0.700
    """
    import pandas as pd

    several = [record for record in records if len(record.get("rmsse_by_seed", ())) > 1]
    if not several:
        return ""
    n_seeds = max(len(record["rmsse_by_seed"]) for record in several)
    tables = [
        m5_table({**r, "rmsse": r["rmsse_by_seed"][seed], "fit_seconds": np.nan} for r in several)
        for seed in range(n_seeds)
    ]
    ours = [table.pivot(index="series", columns="model", values="rmsse") for table in tables]
    paper = tables[0].pivot(index="series", columns="model", values="paper_rmsse")
    rows: dict[str, list[str]] = {"One seed at a time:": [f"{seed}" for seed in range(n_seeds)]}
    for model in dict.fromkeys(tables[0]["model"]):
        rows[f"   {model} mean RMSSE"] = [f"{errors[model].mean():.3f}" for errors in ours]
        if model != "RBF-DiffNet":
            p_values = pd.Series([_both_tests(errors, model)[0] for errors in ours])
            if p_values.notna().any():
                rows[f"   {model} p-value, two-sided"] = [f"{p:.1e}" for p in p_values]
        if paper[model].notna().sum() > 2:
            correlations = [errors[model].corr(paper[model]) for errors in ours]
            rows[f"   {model} correlation with the paper"] = [f"{r:.3f}" for r in correlations]
    width = max(map(len, rows))
    return "\n".join(
        f"{name:<{width}}" + "".join(f"{cell:>9}" for cell in cells) for name, cells in rows.items()
    )

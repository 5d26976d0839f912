"""From results to the tidy tables that the commands write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from rbfdiffnet.datasets.m5 import M5_LEVEL8_SERIES
from rbfdiffnet.experiments.paper_tables import (
    PAPER_MEAN,
    PAPER_MEDIAN,
    PAPER_P_VALUES,
    paper_mae,
    paper_rmsse,
)
from rbfdiffnet.support.files import replace_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["logistic_table", "m5_summary", "m5_table", "signed_rank", "write_table"]

_LOGISTIC = ["omega", "lag", "model", "seed", "mae", "paper_mae"]
_M5 = ["series", "model", "rmsse", "paper_rmsse", "fit_seconds"]
_SUMMARY = ["model", "mean", "median", "paper_mean", "paper_median", "p_value", "paper_p_value"]
_SUMMARY += ["fit_seconds", "ratio_to_lstm"]


def logistic_table(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Table of the first experiment, a row for each run.

    Parameters
    ----------
    records : iterable of dict
        Results of `rbfdiffnet.experiments.logistic.run_cell`.

    Returns
    -------
    DataFrame with columns ``omega, lag, model, seed, mae, paper_mae``

    Examples
    --------
    >>> from rbfdiffnet.experiments.tables import logistic_table
    >>> run = {"omega": 0.0, "lag": 1, "model": "u-RBFN", "seed": 0, "mae": 0.144}
    >>> logistic_table([run])
       omega  lag   model  seed    mae  paper_mae
    0    0.0    1  u-RBFN     0  0.144      0.146
    """
    import pandas as pd

    rows = [
        {**record, "paper_mae": paper_mae(record["omega"], record["lag"], record["model"])}
        for record in records
    ]
    frame = pd.DataFrame(rows, columns=_LOGISTIC)
    return frame.sort_values(["omega", "lag"], kind="stable", ignore_index=True)


def m5_table(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Table of the second experiment, a row for each series and model.

    Parameters
    ----------
    records : iterable of dict
        Results of `rbfdiffnet.experiments.m5.run_series`.

    Returns
    -------
    DataFrame with columns ``series, model, rmsse, paper_rmsse, fit_seconds``

    Examples
    --------
    >>> from rbfdiffnet.experiments.tables import m5_table
    >>> run = {"series": "CA_1_FOODS", "model": "LSTM", "rmsse": 0.45, "fit_seconds": 9.0}
    >>> m5_table([run])
           series model  rmsse  paper_rmsse  fit_seconds
    0  CA_1_FOODS  LSTM   0.45         0.46          9.0
    """
    import pandas as pd

    numbers = {name: number for number, name in enumerate(M5_LEVEL8_SERIES, start=1)}
    rows = [
        {**record, "paper_rmsse": paper_rmsse(numbers.get(record["series"], 0), record["model"])}
        for record in records
    ]
    return pd.DataFrame(rows, columns=_M5)


def m5_summary(table: pd.DataFrame, models: Sequence[str] | None = None) -> pd.DataFrame:
    """Summary of the second experiment, a row for each model.

    Parameters
    ----------
    table : DataFrame
        What `m5_table` returned.
    models : sequence of str, optional
        Models, in the order wanted; by default those of the table.

    Returns
    -------
    DataFrame
        ``model``; ``mean`` and ``median`` of the RMSSE over the series with a result;
        ``p_value``, two-sided, of Wilcoxon's signed-rank test of RBF-DiffNet against the model on
        the series that both have; ``fit_seconds``, the mean for a series; ``ratio_to_lstm``, how
        many times longer the LSTM ensemble takes on the series that both have; and the paper's
        numbers, whose p-values look one-sided (`rbfdiffnet.experiments.m5_evidence`).

    Examples
    --------
    >>> from rbfdiffnet.experiments.tables import m5_summary, m5_table
    >>> runs = [
    ...     {"series": "CA_1_FOODS", "model": "LSTM", "rmsse": 0.45, "fit_seconds": 90.0},
    ...     {"series": "CA_1_FOODS", "model": "u-RBFN", "rmsse": 0.5, "fit_seconds": 0.1},
    ... ]
    >>> m5_summary(m5_table(runs))[["model", "paper_mean", "ratio_to_lstm"]]
        model  paper_mean  ratio_to_lstm
    0    LSTM       0.776            1.0
    1  u-RBFN       1.020          900.0
    """
    import pandas as pd

    errors = table.pivot(index="series", columns="model", values="rmsse")
    seconds = table.pivot(index="series", columns="model", values="fit_seconds")
    rows = [
        {
            "model": model,
            "mean": errors[model].mean(),
            "median": errors[model].median(),
            "paper_mean": PAPER_MEAN.get(model, np.nan),
            "paper_median": PAPER_MEDIAN.get(model, np.nan),
            "p_value": _wilcoxon(errors, model),
            "paper_p_value": PAPER_P_VALUES.get(model, np.nan),
            "fit_seconds": seconds[model].mean(),
            "ratio_to_lstm": _ratio(seconds, model),
        }
        for model in (models or list(dict.fromkeys(table["model"])))
        if model in errors
    ]
    return pd.DataFrame(rows, columns=_SUMMARY)


def _wilcoxon(errors: pd.DataFrame, model: str) -> float:
    if model == "RBF-DiffNet" or "RBF-DiffNet" not in errors:
        return np.nan
    pairs = errors[["RBF-DiffNet", model]].dropna()
    return signed_rank(pairs["RBF-DiffNet"], pairs[model])


def signed_rank(
    x: npt.ArrayLike, y: npt.ArrayLike, alternative: Literal["two-sided", "less"] = "two-sided"
) -> float:
    r"""P-value of Wilcoxon's signed-rank test, from its exact distribution: paper, eq. (test).

    .. math:: W = \sum_{x_i > y_i} \operatorname{rank} |x_i - y_i|

    Parameters
    ----------
    x, y : array-like of shape (n,)
        Rounded to nine digits, differences of printed numbers tie where they should.
    alternative : {"two-sided", "less"}, default="two-sided"
        Whether x differs from y, or is smaller.

    Returns
    -------
    float
        NaN for fewer than two pairs that differ.

    Examples
    --------
    >>> from rbfdiffnet.experiments.tables import signed_rank
    >>> signed_rank([1, 2, 3, 4, 5], [2, 4, 6, 8, 10], "less")  # all smaller: 1 / 2 ** 5
    0.03125
    """
    from scipy.stats import wilcoxon

    difference = np.round(np.asarray(x, dtype=np.float64) - np.asarray(y, dtype=np.float64), 9)
    difference = difference[difference != 0.0]  # with zeros older SciPy falls back to a normal one
    if difference.size < 2:
        return np.nan
    return float(wilcoxon(difference, alternative=alternative, method="exact").pvalue)


def _ratio(seconds: pd.DataFrame, model: str) -> float:
    if "LSTM" not in seconds:
        return np.nan
    both = seconds[["LSTM"]].assign(model=seconds[model]).dropna()
    return float(both["LSTM"].mean() / both["model"].mean()) if len(both) else np.nan


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV, never half of it.

    Parameters
    ----------
    frame : DataFrame
    path : Path

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from rbfdiffnet.experiments.tables import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     write_table(pd.DataFrame({"mae": [0.25]}), path)
    ...     path.read_text().splitlines()
    ['mae', '0.25']
    """
    with replace_file(path) as temporary:
        frame.to_csv(temporary, index=False)

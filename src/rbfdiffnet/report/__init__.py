"""Forecasts as one HTML file that anyone can open, without a network or anything installed.

`write_report` and `report_of` are public, as is the module `plots`. The page's markup, style and
scripts lie in ``static/``; `data` decides what the page shows, and `packing` how its numbers are
stored. Nothing here imports readers or the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from rbfdiffnet.support.progress import show_progress

if TYPE_CHECKING:
    from rbfdiffnet.forecaster import RBFDiffNet

__all__ = ["report_of", "write_report"]


@show_progress("Writing")
def write_report(
    path: Any,
    history: Any,
    forecasts: Any,
    *,
    backtest: Any = None,
    explanations: Mapping[str, Any] | None = None,
    notes: Any = None,
    anomalies: Any = None,
    outliers: Any = None,
    title: str | None = None,
    season_length: int | None = None,
    freq: Any = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
) -> None:
    """Write a report: an interactive chart of every series, accuracy, explanations, what happened.

    The file is self-contained, is complete or not there, and stays below about 15 MB: of more than
    5,000 series those explained, the best, the worst and an even spread of the others are shown, of
    long histories the latest values, and the report says so. Accuracy is that of all series.

    Parameters
    ----------
    path : path-like
        The file, by custom with the suffix ``.html``.
    history : pandas or polars DataFrame
        ``unique_id, ds, y``; other columns do not matter.
    forecasts : pandas or polars DataFrame
        ``unique_id, ds``, a column for each model, and intervals of any level as ``Model-lo-80``
        and ``Model-hi-80``. The first model is the one that the report is about.
    backtest : pandas or polars DataFrame, optional
        What `RBFDiffNet.cross_validation` returns: ``unique_id, ds, cutoff, y`` and models,
        possibly more than in ``forecasts``. Simple rules are added where there are no
        columns ``SeasonalNaive`` and ``LastValue``.
    explanations : mapping, optional
        ``"terms"``: what `RBFDiffNet.explain` returns; ``"equation"``: what `RBFDiffNet.equation`
        returns. Each may be of some series only.
    notes : pandas or polars DataFrame, optional
        ``RBFDiffNet.report_``: ``unique_id, problem, action``.
    anomalies : pandas or polars DataFrame, optional
        What `RBFDiffNet.detect_anomalies` returns, of some series or all.
    outliers : pandas or polars DataFrame, optional
        ``RBFDiffNet.outliers_``: ``unique_id, ds`` of values that were treated as missing.
    title : str, optional
    season_length : int, optional
        Steps in a season, for MASE and seasonal naive; by default the usual one of ``freq``.
    freq : str, int or pandas offset, optional
        Step of time, as `RBFDiffNet` takes it; by default what the dates suggest.
    id_col, time_col, target_col : str
        Names of the columns.

    Raises
    ------
    TypeError, ValueError
        If a frame lacks a column, holds something else in it, or has a series that history has not.
    OSError
        If the file cannot be written.

    See Also
    --------
    report_of : The same from a fitted model.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from rbfdiffnet.report import write_report
    >>> history = pd.DataFrame({"unique_id": "a", "ds": range(4), "y": [3.0, 5.0, 4.0, 6.0]})
    >>> forecasts = pd.DataFrame({"unique_id": "a", "ds": [4, 5], "Naive": 6.0})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "report.html")
    ...     write_report(file, history, forecasts, title="Sales")
    ...     "<title>Sales</title>" in file.read_text(encoding="utf-8")
    True
    """
    from rbfdiffnet.panel.frames import ColumnNames
    from rbfdiffnet.report.page import write_page

    write_page(
        path,
        title,
        history,
        forecasts,
        columns=ColumnNames(id_col, time_col, target_col),
        backtest=backtest,
        explanations=explanations,
        notes=notes,
        anomalies=anomalies,
        outliers=outliers,
        season_length=season_length,
        freq=freq,
    )


def report_of(
    model: RBFDiffNet,
    path: Any,
    df: Any,
    h: int,
    *,
    X_df: Any = None,
    level: Sequence[float] = (80, 95),
    n_windows: int = 3,
    ids: Sequence[Any] | None = None,
    title: str | None = None,
) -> None:
    """Forecast, backtest, explain and judge the past with a fitted model, and write the report.

    Past values are judged as by `RBFDiffNet.detect_anomalies`: the latest 300 of each series, of
    series that are explained and of as many others as take seconds. In a hierarchy groups are
    series of their own, and the report shows the tree of them.

    Parameters
    ----------
    model : RBFDiffNet
        Fitted to ``df``.
    path : path-like
    df : pandas or polars DataFrame
        The history.
    h : int
        Steps ahead.
    X_df : pandas or polars DataFrame, optional
        Future values of inputs, as for `RBFDiffNet.predict`, of one scenario.
    level : sequence of float, default=(80, 95)
        Levels of intervals.
    n_windows : int, default=3
        Windows of the backtest.
    ids : sequence, optional
        Series to explain; by default the first 20.
    title : str, optional

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet import RBFDiffNet
    >>> from rbfdiffnet.datasets import daily_demand
    >>> from rbfdiffnet.report import report_of
    >>> df = daily_demand(n_series=2, n_days=120).drop(columns="promotion")
    >>> model = RBFDiffNet(freq="D", scope="local", lower=0).fit(df)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report_of(model, f"{folder}/report.html", df, h=7)
    ...     [file.name for file in pathlib.Path(folder).iterdir()]
    ['report.html']
    """
    from rbfdiffnet.panel.frames import ColumnNames
    from rbfdiffnet.report import anomalies, tree
    from rbfdiffnet.report.page import write_page

    panel, hierarchy = model.fitted_panel.panel, model.options.hierarchy
    columns = ColumnNames(model.id_col, model.time_col, model.target_col)
    every = panel.ids.to_list()
    ids = every[:20] if ids is None else ids
    explanations = {"terms": model.explain(h, X_df=X_df, ids=ids)}
    if model.options.method.has_networks:
        explanations["equation"] = model.equation(ids)
    forecasts = model.predict(h, X_df=X_df, level=level)
    notes = model.report_
    judged = None
    if columns.target not in ("anomaly", "score"):  # which columns of the result are called
        explained = {str(name) for name in ids}
        first = [i for i, name in enumerate(every) if str(name) in explained]
        chosen = anomalies.choose_judged(len(every), int(panel.lengths.max(initial=0)), first)
        judge = copy(model)
        judge.errors = "fallback"  # a series that cannot be judged is left out
        some = [every[i] for i in chosen]
        judged = judge.detect_anomalies(df, anomalies.LEVEL, anomalies.LATEST, some)
    alone = hierarchy is not None and model.reconcile != "none"
    backtest = model.cross_validation(df, h, n_windows, level=level, alone=alone)
    write_page(
        path,
        title,
        df if hierarchy is None else panel.make_frame(0, panel.lengths, {columns.target: panel.y}),
        forecasts,
        columns=columns,
        backtest=backtest,
        explanations=explanations,
        notes=notes,
        anomalies=judged,
        outliers=model.outliers_,
        season_length=model.options.first_season,
        freq=model.freq,
        tree=None if hierarchy is None else tree.Tree.of(panel, hierarchy),
    )

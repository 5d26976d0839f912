"""Forecast panels that lie on a cluster: frames of Ray, Dask and Spark, through Fugue.

Series are put in groups by a hash of their id, and workers take whole groups; on Dask, rows stay in
their partitions where that is possible. What needs the whole panel is made group by group and
combined in a fixed order; so the results are those of `RBFDiffNet` on one machine, up to rounding,
with any engine and number of workers. A stack, ``scope="auto"``, learns from a thousand series,
which the groups send to the driver.

Needs the extra ``[distributed]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rbfdiffnet.forecaster import RBFDiffNet
from rbfdiffnet.forecasting.options import NAME, check_refit, name_quantiles
from rbfdiffnet.support.checks import check_count

__all__ = ["cross_validation", "forecast"]

_FEWEST = 100  # in a group, where groups do not matter


def forecast(
    df: Any,
    h: int,
    *,
    X_df: Any = None,
    level: Sequence[float] | None = None,
    quantiles: Sequence[float] | None = None,
    model: RBFDiffNet | None = None,
    engine: Any = None,
    group_size: int | None = None,
    num_partitions: int | None = None,
    with_report: bool = False,
    **settings: Any,
) -> Any:
    """Forecast the steps after the last date of each series.

    Parameters
    ----------
    df : Ray Dataset, Dask, Spark or pandas DataFrame
        One row for each series and date, in any order.
    h : int
        Number of steps.
    X_df : frame, optional
        Future values of the inputs, of any kind that the engine can read.
    level : sequence of float, optional
        Levels of prediction intervals in percent.
    quantiles : sequence of float, optional
        Probabilities of further quantiles.
    model : RBFDiffNet, optional
        Whose settings are taken; it is not fitted.
    engine : object, optional
        What Fugue takes for one, such as ``"ray"``, a Dask client or a Spark session; by default
        that of the frame.
    group_size : int, optional
        Most series in a group: how much is done at once. No result depends on it.
    num_partitions : int, optional
        Number of tasks the groups are spread over; by default one each. No result depends on it.
    with_report : bool, default=False
        Whether to return the report, too.
    **settings
        Arguments of `RBFDiffNet`, in place of a model.

    Returns
    -------
    frame
        With the columns of `RBFDiffNet.forecast`, of the engine's kind, its rows in any order.
    report : frame
        A row for everything unusual, if asked for.

    Examples
    --------
    >>> from rbfdiffnet.datasets import daily_demand
    >>> from rbfdiffnet.adapters.clusters import forecast
    >>> df = daily_demand()[["unique_id", "ds", "y"]]
    >>> result = forecast(df, 7, freq="D", scope="local", preset="fast")
    >>> result.columns.tolist()
    ['unique_id', 'ds', 'RBFDiffNet']
    """
    check_count("h", h)
    model = _choose_model(model, settings)
    options = {"h": h, "level": level, "quantiles": quantiles}
    where = engine, group_size, num_partitions
    return _run(df, X_df, model, "forecast", options, where, with_report)


def cross_validation(
    df: Any,
    h: int,
    n_windows: int = 1,
    step_size: int | None = None,
    *,
    level: Sequence[float] | None = None,
    quantiles: Sequence[float] | None = None,
    refit: bool | int | str = True,
    model: RBFDiffNet | None = None,
    engine: Any = None,
    group_size: int | None = None,
    num_partitions: int | None = None,
    with_report: bool = False,
    **settings: Any,
) -> Any:
    """Hide windows at the end of each series and forecast them from earlier values.

    Parameters
    ----------
    df : Ray Dataset, Dask, Spark or pandas DataFrame
        One row for each series and date, in any order.
    h, n_windows, step_size, level, quantiles, refit
        As for `RBFDiffNet.cross_validation`.
    model, engine, group_size, num_partitions, with_report, **settings
        As for `forecast`.

    Returns
    -------
    frame
        With the columns of `RBFDiffNet.cross_validation`, of the engine's kind, its rows in any
        order.
    report : frame
        A row for everything unusual, if asked for.

    Examples
    --------
    >>> from rbfdiffnet.datasets import daily_demand
    >>> from rbfdiffnet.adapters.clusters import cross_validation
    >>> df = daily_demand()[["unique_id", "ds", "y"]]
    >>> result = cross_validation(df, 7, 2, freq="D", scope="local", preset="fast")
    >>> result.columns.tolist(), result["cutoff"].nunique()
    (['unique_id', 'ds', 'cutoff', 'y', 'RBFDiffNet'], 2)
    """
    model = _choose_model(model, settings)
    for name, value in (("h", h), ("n_windows", n_windows), ("step_size", step_size or h)):
        check_count(name, value)
    check_refit(refit, model.options.method, or_count=True)
    windows = {"n_windows": n_windows, "step_size": step_size, "refit": refit}
    options = {"h": h, "level": level, "quantiles": quantiles, **windows}
    where = engine, group_size, num_partitions
    return _run(df, None, model, "cross_validation", options, where, with_report)


def _choose_model(model: RBFDiffNet | None, settings: dict[str, Any]) -> RBFDiffNet:
    if model is None and "freq" not in settings:
        raise ValueError("Give the step of time, such as freq='D', or a model.")
    if model is not None and settings:
        raise ValueError(f"Give a model or settings of one, not both; got {list(settings)} too.")
    model = model or RBFDiffNet(**settings)
    if model.hierarchy is not None:
        raise ValueError(
            "The levels of a hierarchy are made to add up on one machine: use RBFDiffNet.forecast, "
            "or leave hierarchy out here and reconcile the forecasts afterwards."
        )
    return model


def _run(
    df: Any,
    X_df: Any,
    model: RBFDiffNet,
    method: str,
    options: dict[str, Any],
    where: tuple[Any, int | None, int | None],
    with_report: bool,
) -> Any:
    import pandas as pd

    from rbfdiffnet.adapters.clusters.cluster import Cluster
    from rbfdiffnet.adapters.clusters.groups import Group, OneMachine, Request, find_split
    from rbfdiffnet.models.sampled import find_limit

    engine, group_size, num_partitions = where
    for name, value in (("group_size", group_size), ("num_partitions", num_partitions)):
        if value is not None:
            check_count(name, value)
    wanted = name_quantiles(options["level"], options["quantiles"])
    cluster: Any
    if engine is None and isinstance(df, pd.DataFrame):
        cluster, columns = OneMachine(model.id_col), list(df)
    else:
        cluster = Cluster.of(df, engine, model.options.columns, num_partitions)
        columns = cluster.schema.names
    inputs = bool(len(columns) > 3 or model.calendar or model.events or model.holidays)
    chosen = model.options.method
    independent = not chosen.needs_others(levels=bool(wanted), inputs=inputs)
    settings = {name: getattr(model, name) for name in model.options.names()}

    def size(n_series: int) -> int:
        largest, most_groups = chosen.cluster_group
        return group_size or largest or max(-(-n_series // most_groups), _FEWEST)

    parts = cluster.hash_series(df)
    hashes, split = find_split(parts)
    sample_limit = int(find_limit(hashes)) if hashes.size else None
    request = Request(settings, method, options, independent, sample_limit)
    only_sample = chosen.learns_from == "sample" and not inputs  # no other series matter
    if only_sample and not independent and sample_limit is not None:
        answers = Group(cluster.find_rows(df, sample_limit), None).find_answers(request)
        request, independent = replace(request, independent=True, answers=answers), True
    names = [NAME, *wanted]
    if method == "cross_validation":
        names = ["cutoff", model.target_col, *names]
    alone = independent and X_df is None and not (with_report or group_size)
    if alone and cluster.can_stay(df, parts):
        return cluster.run_in_place(df, request, names, split, size(split.size))
    groups = cluster.make_groups(df, X_df, hashes, size(hashes.size))
    if groups is not None and not independent:
        groups = cluster.answer_all(groups, request)
    frame, report = cluster.collect(groups, request, names, with_report)
    return (frame, report) if with_report else frame

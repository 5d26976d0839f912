"""How good intervals are: ``python benchmarks/intervals.py --suite DIR``.

On the data sets of ``accuracy.py``: the weighted quantile loss of nine quantiles (.1 to .9), which
is twice the sum of their pinball losses by the sum of the sizes of the values, and shares of values
inside the 80 % and 95 % intervals. Rivals are models of statsforecast with their own intervals,
and AutoTheta with conformal ones.

A share from one window may be far off by chance, since errors of a window go together. ``--windows
5`` forecasts up to five windows of the training part instead, side by side before the test part, no
farther back than half of the usual series, and prints standard errors of the shares inside 80 %.
``--series N`` takes N series of a set, evenly spread, for rivals that take long.
``--totals 7 28`` judges sums over every 7 and over all 28 steps instead, ours only: shares of sums
inside the 50 %, 80 % and 95 % intervals, and standard errors of these over the windows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared_parts.threads import one_thread

LEVELS = (20, 40, 60, 80, 95)
TOTAL_LEVELS = (50, 80, 95)
OURS = {"default": "default", "instant": "instant"}
RIVALS = ("AutoETS", "AutoARIMA", "AutoTheta", "SeasonalNaive")
CONFORMAL = {"AutoTheta": 2}  # windows that intervals of rivals without a model of errors come from


def main(arguments: Sequence[str] | None = None) -> None:
    one_thread()  # before NumPy is imported
    import pandas as pd

    from accuracy_parts.data import NAMES, SUITE, data_sets, folder

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=NAMES, default=list(SUITE), metavar="D")
    parser.add_argument("--methods", nargs="+", choices=(*OURS, *RIVALS), default=list(OURS))
    parser.add_argument("--suite", type=Path, help="folder with the archive's series")
    parser.add_argument("--m5", type=Path, help="folder with M5's files")
    parser.add_argument("--windows", type=int, default=0, help="windows before the test part")
    parser.add_argument("--series", type=int, help="series of a set, at most")
    parser.add_argument("--totals", type=int, nargs="+", metavar="K", help="steps to sum up")
    options = parser.parse_args(arguments)
    every = data_sets(folder(options.suite, "suite"), folder(options.m5, "m5"))
    if options.totals:
        shares = "".join(f"{f'in {level} %':>9}{'s.e.':>7}" for level in TOTAL_LEVELS)
        print(f"{'data':<21}{'method':<14}{'steps':>6}{shares}", flush=True)
    else:
        heads = f"{'loss':>8}{'in 80 %':>9}{'s.e.':>7}{'in 95 %':>9}"
        print(f"{'data':<21}{'method':<14}{heads}", flush=True)
    for name in options.data:
        data = every[name]
        windows = [read() for read in data.windows.values()]
        if options.series:
            windows = [some_series(window, options.series) for window in windows]
        if options.windows:
            windows = earlier_windows(windows[0], data.horizon, options.windows)
        for method in options.methods:
            if options.totals:
                print_totals(name, method, windows, data, options.totals)
                continue
            found = [
                window.test.merge(forecast(method, window.train, data), on=["unique_id", "ds"])
                for window in windows
            ]
            model = "RBFDiffNet" if method in OURS else method
            loss, inside = judge(pd.concat(found), model)
            each = pd.Series([judge(window, model)[1][80] for window in found])
            error = f"{each.sem():.1%}" if len(each) > 1 else ""
            shares = f"{inside[80]:>9.1%}{error:>7}{inside[95]:>9.1%}"
            print(f"{name:<21}{method:<14}{loss:>8.4f}{shares}", flush=True)


def some_series(window: Any, n: int) -> Any:
    """Return a window with at most n series, evenly spread."""
    import numpy as np

    ids = np.unique(window.train["unique_id"])
    chosen = ids[np.linspace(0, len(ids) - 1, min(n, len(ids))).astype(int)]
    parts = (part[part["unique_id"].isin(chosen)] for part in (window.train, window.test))
    return type(window)(*parts)


def earlier_windows(window: Any, h: int, most: int) -> list[Any]:
    """Return windows of h steps, side by side at the end of the training part."""
    train = window.train.sort_values(["unique_id", "ds"])
    groups = train.groupby("unique_id")["ds"]
    left = groups.cumcount(ascending=False)
    n = min(most, int(groups.size().median()) // (2 * h))
    ends = [h * k for k in range(max(n, 1))]
    pairs = ((left >= end + h, (left >= end) & (left < end + h)) for end in ends)
    return [type(window)(*(train[rows] for rows in pair)) for pair in pairs]


def forecast(method: str, train: Any, data: Any) -> Any:
    """Return forecasts with intervals."""
    train = train[["unique_id", "ds", "y"]]
    if method in OURS:
        from rbfdiffnet import RBFDiffNet

        model = RBFDiffNet(data.freq, season_length=data.season_length, preset=OURS[method])
        return model.forecast(train, data.horizon, level=list(LEVELS))
    from statsforecast import StatsForecast, models
    from statsforecast.utils import ConformalIntervals

    own = {}
    if method in CONFORMAL:
        own["prediction_intervals"] = ConformalIntervals(CONFORMAL[method], data.horizon)
    rival = getattr(models, method)(season_length=data.season_length, **own)
    fallback = models.SeasonalNaive(season_length=data.season_length, alias=method)
    runner = StatsForecast([rival], freq=data.freq, fallback_model=fallback)
    return runner.forecast(df=train, h=data.horizon, level=list(LEVELS))


def print_totals(
    name: str, method: str, windows: Sequence[Any], data: Any, totals: Sequence[int]
) -> None:
    """Print a line for each number of steps that are summed up."""
    import pandas as pd

    each = pd.concat([cover_totals(method, window, data, totals) for window in windows])
    for steps, own in each.groupby("steps"):
        shares = own[list(TOTAL_LEVELS)]
        errors = shares.sem() if len(own) > 1 else shares.mean() * float("nan")
        cells = "".join(f"{shares[k].mean():>9.1%}{errors[k]:>7.1%}" for k in shares)
        print(f"{name:<21}{method:<14}{steps:>6}{cells}", flush=True)


def cover_totals(method: str, window: Any, data: Any, totals: Sequence[int]) -> Any:
    """Return shares of the sums of a window inside their intervals, a row for each of `totals`."""
    import pandas as pd

    from rbfdiffnet import RBFDiffNet

    model = RBFDiffNet(data.freq, season_length=data.season_length, preset=OURS[method])
    model.fit(window.train[["unique_id", "ds", "y"]])
    test, rows = window.test.sort_values(["unique_id", "ds"]), []
    place = test.groupby("unique_id").cumcount()
    for steps in totals:
        found = model.predict(data.horizon, level=list(TOTAL_LEVELS), totals=steps)
        group = found.groupby("unique_id").cumcount()
        came = test.groupby(["unique_id", place // steps])["y"].sum(min_count=1).rename("came")
        both = found.join(came, on=["unique_id", group])
        row = {"steps": steps}
        for level in TOTAL_LEVELS:
            low, high = (both[f"RBFDiffNet-{side}-{level}"] for side in ("lo", "hi"))
            row[level] = both["came"].between(low, high)[both["came"].notna()].mean()
        rows.append(row)
    return pd.DataFrame(rows)


def judge(both: Any, name: str) -> tuple[float, dict[int, float]]:
    """Return the weighted quantile loss, and the shares of values inside intervals, by level."""
    import numpy as np

    y = both["y"].to_numpy()
    quantiles = {0.5: both[name].to_numpy()}
    for level in LEVELS[:-1]:
        for side, p in (("lo", 50 - level / 2), ("hi", 50 + level / 2)):
            quantiles[p / 100] = both[f"{name}-{side}-{level}"].to_numpy()
    losses = [np.maximum(p * (y - q), (p - 1) * (y - q)).sum() for p, q in quantiles.items()]
    inside = {}
    for level in (80, 95):
        low, high = (both[f"{name}-{side}-{level}"] for side in ("lo", "hi"))
        inside[level] = float(both["y"].between(low, high).mean())
    return 2.0 * float(np.mean(losses) / np.abs(y).sum()), inside


if __name__ == "__main__":
    main()

"""The forecaster's promises on real sales; see benchmarks/panels.py for the full measurement."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from m5_files import real_m5
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.evaluation.metrics import coverage, rmsse

pytestmark = pytest.mark.slow

H = 28
INPUTS = ["weekday", "month", "event_name_1", "event_name_2", "snap_CA", "snap_TX", "snap_WI"]


def needed(name):
    path = Path(real_m5()) / name
    if not path.exists():
        pytest.skip(f"no {name} in the folder of M5's files")
    return path


@pytest.fixture(scope="module")
def sales():
    wide = pd.read_csv(needed("level8.csv.gz"), parse_dates=["date"]).drop(columns="d")
    return wide.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})


def forecasts(sales, end, calendar=None):
    last = sales["ds"].min() + pd.Timedelta(days=end - 1)
    train = sales[sales["ds"] <= last]
    test = sales[(sales["ds"] > last) & (sales["ds"] <= last + pd.Timedelta(days=H))]
    future = None
    if calendar is not None:
        train = train.merge(calendar, on="ds")
        future = test[["unique_id", "ds"]].merge(calendar, on="ds")
    model = RBFDiffNet("D", scope="local", lower=0.0)
    level = None if calendar is not None else [80, 95]
    joined = test.merge(model.forecast(train, H, future, level=level), on=["unique_id", "ds"])
    errors = rmsse(joined, ["RBFDiffNet"], train[["unique_id", "ds", "y"]])
    return joined, float(errors["RBFDiffNet"].mean())


def test_intervals_cover_and_the_calendar_helps(sales):
    table = pd.read_csv(needed("calendar.csv"), parse_dates=["date"])
    calendar = table.assign(day=table["date"].dt.day).rename(columns={"date": "ds"})
    calendar = calendar[["ds", "day", *INPUTS]]
    ends = (1773, 1801, 1829, 1857, 1885)
    plain = [forecasts(sales, end) for end in ends]
    everything = pd.concat([joined for joined, _ in plain])
    for level in (80, 95):
        share = coverage(everything, ["RBFDiffNet"], level)["RBFDiffNet"].mean()
        assert share == pytest.approx(level / 100, abs=0.03)
    informed = [forecasts(sales, end, calendar)[1] for end in ends]
    assert np.mean(informed) < 0.9 * np.mean([error for _, error in plain])


def test_intermittent_series_get_finite_forecasts_that_are_not_negative():
    wide = pd.read_csv(needed("bottom_1000.csv.gz"), index_col=0).iloc[::5]
    dates = pd.date_range("2011-01-29", periods=wide.shape[1])
    df = wide.set_axis(dates, axis=1).melt(var_name="ds", value_name="y", ignore_index=False)
    df = df.rename_axis("unique_id").reset_index()
    model = RBFDiffNet("D", scope="local", lower=0.0)
    folds = model.cross_validation(df, H, n_windows=2, refit=False)
    assert len(folds) == 2 * H * len(wide)
    assert np.all(np.isfinite(folds["RBFDiffNet"]))
    assert folds["RBFDiffNet"].min() >= 0.0


def test_intervals_cover_noise():
    n, length, h = 250, 193, 7
    values = np.random.default_rng(0).normal(size=(n, length + h))
    df = pd.DataFrame(
        {
            "unique_id": np.repeat(np.arange(n), length + h),
            "ds": np.tile(np.arange(length + h), n),
            "y": values.ravel(),
        }
    )
    folds = RBFDiffNet(1, scope="local").cross_validation(df, h, level=[80, 95])
    for level in (80, 95):
        share = coverage(folds, ["RBFDiffNet"], level)["RBFDiffNet"].mean()
        assert share == pytest.approx(level / 100, abs=0.03)

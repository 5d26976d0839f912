"""Dates, steps of time and time zones."""

import zoneinfo

import numpy as np
import pandas as pd
import polars as pl

from attack_parts.registry import SETTINGS, Cases, Group, refused
from panels import NAME, every_series, make_panel
from rbfdiffnet import RBFDiffNet

GROUP = Group("dates", "Dates and time zones")
promise = GROUP.promise
QUICK = {"preset": "fast", "lags": 3}
#: Without two names that neither pandas nor polars takes for a zone.
ZONES = sorted(zoneinfo.available_timezones() - {"Factory", "localtime"})


@promise(
    "Every time zone works in pandas frames, and changes nothing but the dates",
    "forecaster.md",
    "daily series at noon in every zone that `zoneinfo` knows, beside the same without a zone",
)
def zones(cases: Cases) -> None:
    df = make_panel("a", n=30)
    df["ds"] += pd.Timedelta("12h")
    expected = RBFDiffNet("D", **QUICK).forecast(df, 3)
    for zone in ZONES:
        with cases(zone):
            own = df.assign(ds=df["ds"].dt.tz_localize(zone))
            found = RBFDiffNet("D", **QUICK).forecast(own, 3)
            assert str(found["ds"].dt.tz) == zone, found["ds"].dtype
            assert found["ds"].dt.tz_localize(None).tolist() == expected["ds"].tolist()
            assert found[NAME].tolist() == expected[NAME].tolist()


@promise(
    "Every time zone works in polars frames",
    "forecaster.md",
    "the same with polars",
)
def zones_in_polars(cases: Cases) -> None:
    df = make_panel("a", n=30)
    frame = pl.DataFrame({"unique_id": ["a"] * 30, "ds": list(df["ds"] + pd.Timedelta("12h"))})
    frame = frame.with_columns(y=pl.Series(df["y"].to_numpy()))
    expected = RBFDiffNet("D", **QUICK).forecast(frame, 3)
    for zone in ZONES:
        with cases(zone):
            own = frame.with_columns(pl.col("ds").dt.replace_time_zone(zone))
            found = RBFDiffNet("D", **QUICK).forecast(own, 3)
            assert found["ds"].dtype.time_zone == zone, found["ds"].dtype
            naive = found["ds"].dt.replace_time_zone(None)
            assert naive.to_list() == expected["ds"].to_list()
            assert found[NAME].to_list() == expected[NAME].to_list()


@promise(
    "Hours go on through the days on which clocks change",
    "forecaster.md",
    "hourly series that end before both changes of the clock in five zones",
)
def clocks_that_change(cases: Cases) -> None:
    for zone in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "UTC"):
        for end in ("2024-03-30 20:00", "2024-10-26 20:00", "2024-11-02 20:00"):
            with cases(f"{zone}, {end}"):
                last = pd.Timestamp(end, tz=zone)
                dates = pd.date_range(end=last, periods=60, freq="h")
                y = np.arange(60.0) % 24
                df = pd.DataFrame({"unique_id": "a", "ds": dates, "y": y})
                found = RBFDiffNet("h", **QUICK).forecast(df, 30)["ds"]
                expected = pd.date_range(last, periods=31, freq="h")[1:]
                assert found.tolist() == expected.tolist(), found.tolist()[:8]


@promise(
    "One stray date loses no series: it goes, the series stays, and `report_` has a line",
    "forecaster.md",
    "one row in 2124, or in 1924, in one of two series, in four settings",
)
def stray_dates(cases: Cases) -> None:
    df = make_panel("ab", n=90)
    for name, parameters in SETTINGS.items():
        expected = RBFDiffNet("D", **parameters).forecast(df, 3)
        for date in ("2124-01-01", "1924-01-01"):
            with cases(f"{date}, {name}"):
                row = {"unique_id": "a", "ds": pd.Timestamp(date), "y": 60.0}
                model = RBFDiffNet("D", **parameters)
                found = model.forecast(pd.concat([df, pd.DataFrame([row])]), 3)
                assert found["ds"].tolist() == expected["ds"].tolist(), found["ds"].tolist()
                moved = np.abs(found[NAME] - expected[NAME]).max()
                assert moved < 1e-6, f"forecasts moved by {moved:.3g}"
                assert "a" in set(model.report_["unique_id"]), "no line in report_"


@promise(
    "A step of time that would drop every other row is refused, and the likely one named",
    "forecaster.md",
    "daily, hourly, monthly and counted series, declared twice and three times as coarse; half of "
    "the series daily",
)
def steps_of_time(cases: Cases) -> None:
    for own, declared in (
        *(("D", "2D"), ("D", "3D"), ("h", "2h"), ("MS", "2MS"), ("MS", "QS"), ("D", "W-SUN")),
        *((1, 2), (1, 3), (5, 10)),
    ):
        with cases(f"{own} declared as {declared}"):
            df = make_panel("ab", n=60, freq=own if isinstance(own, str) else "D")
            if not isinstance(own, str):
                df["ds"] = own * df.groupby("unique_id").cumcount()
            message = refused(lambda d=df, f=declared: RBFDiffNet(f).forecast(d, 3))
            assert str(own) in message, f"{own} is not named: {message}"
    with cases("half of the series are daily"):
        df = make_panel("abcd", n=60)
        df = df[(df["unique_id"] > "b") | (df.index % 2 == 1)]
        message = refused(lambda: RBFDiffNet("2D").forecast(df, 3))
        assert "2 of 4 series ('c', 'd')" in message, message
        assert "freq='D'" in message, message


@promise(
    "Rows without values before the first value change nothing",
    "forecaster.md",
    "1, 30 and 400 such rows before one of three series, in four settings",
)
def rows_before_the_first_value(cases: Cases) -> None:
    df = make_panel("abc", n=60)
    for name, parameters in SETTINGS.items():
        expected = RBFDiffNet("D", **parameters).forecast(df, 5, level=[80])
        for n in (1, 30, 400):
            with cases(f"{n} rows, {name}"):
                dates = pd.date_range(end="2022-12-31", periods=n)
                empty = pd.DataFrame({"unique_id": "b", "ds": dates, "y": np.nan})
                both = pd.concat([df[df["unique_id"] == "a"], empty, df[df["unique_id"] != "a"]])
                found = RBFDiffNet("D", **parameters).forecast(both, 5, level=[80])
                pd.testing.assert_frame_equal(found, expected, rtol=1e-9)


@promise(
    "Missing rows are missing values",
    "forecaster.md",
    "gaps as missing rows and as rows without a value, in four settings",
)
def missing_rows(cases: Cases) -> None:
    df = make_panel("ab", n=70)
    for name, parameters in SETTINGS.items():
        for trial in range(2):
            with cases(f"{name}, {trial}"):
                gone = cases.rng.random(len(df)) < 0.15
                gone[[0, 69, 70, 139]] = False
                rows = RBFDiffNet("D", **parameters).forecast(df[~gone], 5, level=[80])
                values = df.assign(y=df["y"].mask(gone))
                cells = RBFDiffNet("D", **parameters).forecast(values, 5, level=[80])
                pd.testing.assert_frame_equal(rows, cells, check_exact=True)


@promise(
    "Other dates of the same steps change nothing but the dates",
    "versions.md",
    "the same series 100 weeks earlier and later, and in other units of time, in four settings",
)
def other_dates(cases: Cases) -> None:
    df = make_panel("ab", n=70)
    for name, parameters in SETTINGS.items():
        expected = RBFDiffNet("D", **parameters).forecast(df, 5, level=[80])
        for days in (-700, 700):
            with cases(f"{days} days, {name}"):
                shift = pd.Timedelta(days=days)
                moved = df.assign(ds=df["ds"] + shift)
                found = RBFDiffNet("D", **parameters).forecast(moved, 5, level=[80])
                assert (found["ds"] - shift).tolist() == expected["ds"].tolist()
                np.testing.assert_array_equal(found.iloc[:, 2:], expected.iloc[:, 2:])
        for unit in ("s", "ms", "us"):
            with cases(f"unit {unit}, {name}"):
                typed = df.assign(ds=df["ds"].astype(f"datetime64[{unit}]"))
                found = RBFDiffNet("D", **parameters).forecast(typed, 5, level=[80])
                assert found["ds"].dtype == typed["ds"].dtype
                np.testing.assert_array_equal(found.iloc[:, 2:], expected.iloc[:, 2:])


@promise(
    "Series that end on different dates are each forecast from their own end",
    "nightly.md",
    "three series cut off at random places, in four settings",
)
def ends_of_series(cases: Cases) -> None:
    whole = make_panel("abc", n=90)
    for name, parameters in SETTINGS.items():
        with cases(name):
            cut = dict(zip("abc", cases.rng.integers(40, 90, 3), strict=True))
            parts = [every_series(g, slice(0, cut[i])) for i, g in whole.groupby("unique_id")]
            df = pd.concat(parts)
            found = RBFDiffNet("D", **parameters).forecast(df, 4)
            last = df.groupby("unique_id")["ds"].max()
            steps = (found["ds"] - found["unique_id"].map(last)).dt.days
            assert steps.tolist() == [1, 2, 3, 4] * 3, steps.tolist()


@promise(
    "Any frame is forecast or refused in words",
    "forecaster.md",
    "random types of ids, dates (years 1 to 9999, periods, mixed zones) and values, odd columns",
)
def frames(cases: Cases) -> None:
    cases.fuzz("frames", 300)

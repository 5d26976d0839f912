"""Values of any size and kind."""

import numpy as np
import pandas as pd

from attack_parts.registry import Cases, Group, refused
from hard_series import CONFIGURATIONS, frame_of, hard_series, panel_of
from panels import make_panel
from rbfdiffnet import RBFDiffNet

GROUP = Group("values", "Values of any size")
promise = GROUP.promise
NETWORKS = ("local", "fast", "global")


@promise(
    "Forecasts of hard series are finite, intervals are nested and hold them",
    "forecaster.md",
    "41 hard series (1e-310 to 1e308, spikes, gaps, growth) in four settings",
)
def hard_series_are_forecast(cases: Cases) -> None:
    for name in ("stack", "fast", "global", "log1p"):
        cases.tests(f"test_hardness.py::test_hard_series_together[{name}]")


def _some_hard_series() -> dict[str, np.ndarray]:
    return dict(list(hard_series(60).items())[::3])


@promise(
    "The bounds `lower` and `upper` hold for forecasts, intervals and quantiles",
    "forecaster.md",
    "14 hard series with bounds inside of their range, in four settings",
)
def bounds(cases: Cases) -> None:
    df = frame_of(_some_hard_series())
    for name in ("stack", *NETWORKS):
        with cases(name):
            model = RBFDiffNet("D", lower=-2.5, upper=80.0, **CONFIGURATIONS[name])
            found = model.forecast(df, 7, level=[80], quantiles=[0.01, 0.99]).iloc[:, 2:]
            assert found.to_numpy().min() >= -2.5, found.to_numpy().min()
            assert found.to_numpy().max() <= 80.0, found.to_numpy().max()


@promise(
    "Quantiles never cross, and outer intervals hold inner ones",
    "distributions.md",
    "12 quantiles and 4 levels of 14 hard series, in four settings",
)
def quantiles_never_cross(cases: Cases) -> None:
    df = frame_of(_some_hard_series())
    shares = [0.001, 0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.99, 0.999]
    levels = [50, 80, 95, 99]
    for name in ("stack", *NETWORKS):
        found = RBFDiffNet("D", **CONFIGURATIONS[name]).forecast(
            df, 5, level=levels, quantiles=shares
        )
        with cases(f"quantiles, {name}"):
            steps = np.diff(found[[f"RBFDiffNet-q-{100 * p:g}" for p in shares]].to_numpy())
            assert steps.min() >= 0.0, steps.min()
        with cases(f"levels, {name}"):
            low, high = (
                found[[f"RBFDiffNet-{end}-{level}" for level in levels]].to_numpy()
                for end in ("lo", "hi")
            )
            assert np.diff(low).max() <= 0.0, "a lower end is above that of a smaller level"
            assert np.diff(high).min() >= 0.0, "an upper end is below that of a smaller level"


@promise(
    "Units do not matter: forecasts of a series in another unit are the same in that unit",
    "forecaster.md",
    "series times powers of 2 (the same bits) and times 1e-100 to 1e12, each in its own unit",
)
def units(cases: Cases) -> None:
    cases.tests(
        "test_hardness.py::test_powers_of_two_change_nothing_but_the_units",
        "test_hardness.py::test_units_do_not_matter",
    )


@promise(
    "Noise of size one is seen on a level of 1e9",
    "forecaster.md",
    "the same series with and without 1e9 added",
)
def levels_of_1e9(cases: Cases) -> None:
    cases.tests(
        "test_hardness.py::test_networks_see_noise_of_size_one_on_a_level_of_1e9",
        "test_hardness.py::test_a_stack_sees_noise_of_size_one_on_a_level_of_1e9",
    )


@promise(
    "Whole numbers are forecast as the numbers they are",
    "forecaster.md",
    "counts, and integers beyond 2^53, as integers and as floats",
)
def integers(cases: Cases) -> None:
    cases.tests("test_hardness.py::test_integers_are_forecast_as_the_numbers_they_are")


@promise(
    "One value of any size is an outlier and counts as missing",
    "forecaster.md",
    "1e12 within and at the end of a series; beyond 1e150 and infinite values, with a line",
)
def spikes(cases: Cases) -> None:
    cases.tests(
        "test_hardness.py::test_a_spike_counts_as_missing",
        "test_hardness.py::test_numbers_beyond_1e150_count_as_missing",
    )


@promise(
    "What repeats itself is repeated, lines and growth go on",
    "forecaster.md",
    "exact periods of 3 and 7, lines of slope -7 and 1e9, exponential growth",
)
def patterns(cases: Cases) -> None:
    cases.tests(
        "test_hardness.py::test_what_repeats_itself_is_repeated",
        "test_hardness.py::test_a_stack_repeats_a_season_exactly",
        "test_hardness.py::test_a_line_is_continued",
        "test_hardness.py::test_a_stack_continues_growth",
    )


@promise(
    "A forecast that would run away is held within bounds, and `report_` says from which step on",
    "forecaster.md",
    "growth, and swings that grow, over 40 steps; ordinary series are not held",
)
def stability(cases: Cases) -> None:
    cases.tests(
        "test_hardness.py::test_a_recursion_that_runs_away_is_held_and_reported",
        "test_hardness.py::test_steps_held_back_are_reported_also_within_the_range",
        "test_hardness.py::test_ordinary_forecasts_are_not_held",
    )


@promise(
    "Durations are no numbers: they are refused, and the column is named",
    "forecaster.md",
    "durations of several units as target and as input, in training and ahead, pandas and polars",
)
def durations(cases: Cases) -> None:
    import polars as pl

    df = make_panel("ab", n=40, columns=("price",))
    future = make_panel("ab", n=3, columns=("price",), start="2023-02-10").drop(columns="y")
    numbers = RBFDiffNet("D", preset="fast").fit(df)

    def in_hours(frame: pd.DataFrame, column: str, unit: str) -> pd.DataFrame:
        hours = pd.to_timedelta(frame[column], unit="h")
        return frame.assign(**{column: hours.astype(unit if unit == "object" else f"m8[{unit}]")})

    for unit in ("s", "ms", "us", "ns", "object"):
        for column in ("y", "price"):
            with cases(f"{column} in {unit}"):
                refused(lambda c=column, u=unit: RBFDiffNet("D").fit(in_hours(df, c, u)), column)
        with cases(f"X_df in {unit}"):
            refused(lambda u=unit: numbers.predict(3, X_df=in_hours(future, "price", u)), "price")
    for column in ("y", "price"):
        with cases(f"{column} in polars"):
            frame = pl.from_pandas(in_hours(df, column, "us"))
            refused(lambda f=frame: RBFDiffNet("D").fit(f), column)


@promise(
    "A series that nothing can be fitted to gets a forecast and a line in `report_`",
    "forecaster.md",
    "six kinds of bad series beside good ones, in four settings; `errors='raise'` names them",
)
def fallbacks(cases: Cases) -> None:
    good, n = panel_of(3, n=60), 60
    bad = {
        "no values": np.full(n, np.nan),
        "all the same": np.full(n, 7.0),
        "one value": np.array([5.0]),
        "infinite": np.where(np.arange(n) % 5 == 0, np.inf, 5.0 + np.arange(n) % 3),
        "huge": np.full(n, 1e300),
        "one value at the end": np.where(np.arange(n) == n - 1, 3.0, np.nan),
    }
    for name in ("stack", *NETWORKS):
        for kind, y in bad.items():
            with cases(f"{kind}, {name}"):
                model = RBFDiffNet("D", **CONFIGURATIONS[name])
                found = model.forecast(frame_of({**good, kind: y}), 5, level=[80])
                assert np.isfinite(found.iloc[:, 2:].to_numpy()).all(), "not finite"
                assert kind in set(model.report_["unique_id"]), "no line in report_"
    for kind in ("no values", "all the same", "one value"):
        with cases(f"{kind}, errors='raise'"):
            df = frame_of({**good, kind: bad[kind]})
            refused(lambda d=df: RBFDiffNet("D", preset="fast", errors="raise").fit(d), kind)


@promise(
    "Whatever a panel holds, every series gets finite forecasts on the right dates",
    "forecaster.md",
    "random panels: short, empty, closed, repeated, infinite, of any scale, in all settings",
)
def odd_panels(cases: Cases) -> None:
    cases.fuzz("odd panels", 80)


@promise(
    "Their models explain, backtest, save and load as any others",
    "forecaster.md",
    "random panels as above: sums of explanations, two windows, a file",
)
def models_of_odd_panels(cases: Cases) -> None:
    cases.fuzz("models of odd panels", 40)


@promise(
    "Intervals have a width unless nothing ever changed",
    "intervals.md",
    "series of two and three values, and with a gap at the end; a constant one",
)
def widths(cases: Cases) -> None:
    cases.tests("test_hardness.py::test_intervals_have_a_width_unless_nothing_ever_changed")


@promise(
    "A frame that is given is never changed",
    "reliability.md",
    "a frame with gaps, repeats and inputs through six calls, compared before and after",
)
def frames_are_not_changed(cases: Cases) -> None:
    df = make_panel("ab", n=50, columns=("price", "offer"))
    df.loc[[3, 60], "y"] = np.nan
    df = pd.concat([df, df.tail(1)], ignore_index=True)
    ahead = make_panel("ab", n=3, columns=("price", "offer"), start="2023-02-20").drop(columns="y")
    newer = make_panel("ab", n=2, columns=("price", "offer"), start="2023-02-20")
    for name in ("stack", *NETWORKS):
        before = [frame.copy(deep=True) for frame in (df, ahead, newer)]
        model = RBFDiffNet("D", **CONFIGURATIONS[name]).fit(df)
        calls = {
            "predict": lambda m=model: m.predict(3, X_df=ahead, level=[80]),
            "explain": lambda m=model: m.explain(3, X_df=ahead),
            "cross_validation": lambda m=model: m.cross_validation(df, 3),
            "forecast": lambda m=model: m.forecast(df, 3, X_df=ahead),
            "detect_anomalies": lambda m=model: m.detect_anomalies(df),
            "update": lambda m=model: m.update(newer),
        }
        for call, work in calls.items():
            with cases(f"{call}, {name}"):
                work()
                for old, now in zip(before, (df, ahead, newer), strict=True):
                    pd.testing.assert_frame_equal(old, now, check_exact=True)


@promise(
    "Estimators of scikit-learn take any parameters and rows, or refuse them by name",
    "api/regressors.md",
    "random parameters, data and series",
)
def estimators(cases: Cases) -> None:
    cases.fuzz("regressor parameters", 120)
    cases.fuzz("regressor data", 150)
    cases.fuzz("regressor series", 40)

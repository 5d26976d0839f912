"""What fuzzing found: inputs that were misread, or refused in words of another library."""

import datetime as dt
import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fuzzing.anything import ODD
from fuzzing.claims import attempt, on_purpose
from panels import QUICK, make_panel, to_polars
from rbfdiffnet import Event, RBFDiffNet, RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.evaluation.metrics import path_crps, rmsse, rmsse_score, wrmsse
from rbfdiffnet.report import write_report
from rbfdiffnet.report.plots import text_plot
from rbfdiffnet.series.recursion import forecast_recursive
from rbfdiffnet.series.transforms import Difference, Rescale, fit_transforms
from rbfdiffnet.series.windows import lag_windows


def refused(message, call):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    assert on_purpose(caught.value)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (RBFNetworkRegressor, "normalize", np.empty(0)),
        (RBFNetworkRegressor, "normalize", "yes"),
        (RBFDiffNetRegressor, "fit_intercept", pd.Series([True, False])),
        (RBFNetworkRegressor, "width_factor", 1e154),
        (RBFNetworkRegressor, "width_factor", 1e-300),
        (RBFDiffNetRegressor, "metric", [True, 1e300]),
        (RBFDiffNetRegressor, "order", 10**6),
        (RBFDiffNetRegressor, "n_starts", 10**9),
    ],
)
def test_flags_and_numbers_that_are_too_large_are_named(kind, name, value):
    X = np.random.default_rng(0).normal(size=(30, 2))
    refused(f"{name} must be", lambda: kind(**{name: value}).fit(X, X[:, 0]))


@pytest.mark.parametrize(
    "function", [int, len, dict, lambda *_, **__: ["a"]], ids=["int", "len", "dict", "text"]
)
@pytest.mark.parametrize("name", ["centers", "width", "loss"])
def test_functions_that_take_or_return_other_things_are_named(name, function):
    X = np.random.default_rng(0).normal(size=(30, 2))
    refused(name, lambda: RBFDiffNetRegressor(**{name: function}).fit(X, X[:, 0]))


SERIES, WAVE = make_panel("a", n=30), np.sin(np.arange(40.0))
#: Arguments of methods, and further ones.
METHODS = {
    "predict": ({"h": 2}, "X_df level new_df quantiles totals"),
    "simulate": ({"h": 2, "n_paths": 2}, "seed X_df joint"),
    "explain": ({"h": 2}, "X_df ids"),
    "make_future_frame": ({"h": 2}, ""),
    "equation": ({}, "ids"),
    "cross_validation": (
        {"df": SERIES, "h": 2},
        "n_windows step_size level refit quantiles alone",
    ),
    "detect_anomalies": ({"df": SERIES}, "level last ids"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "name"),
    [
        (method, name)
        for method, (given, more) in METHODS.items()
        for name in [*given, *more.split()]
    ],
)
def test_odd_arguments_of_methods_are_refused_in_our_words(fitted, method, name):
    for value in ODD:
        given = {**METHODS[method][0], name: value}
        attempt(lambda given=given: getattr(fitted, method)(**given))


@pytest.mark.slow
@pytest.mark.parametrize("name", inspect.signature(RBFDiffNet).parameters)
def test_odd_settings_are_refused_in_our_words(name):
    for value in ODD:
        given = {"freq": "D", "preset": "instant", name: value}
        attempt(lambda given=given: RBFDiffNet(**given).forecast(SERIES, 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s", "n_lags", "delay", "times"])
def test_odd_arguments_of_regressors_are_refused_in_our_words(name):
    for value in ODD:
        given = {"s": WAVE, "n_lags": 2, name: value}
        attempt(lambda given=given: RBFDiffNetRegressor(n_centers=4).fit_series(**given))


@pytest.fixture(scope="module")
def fitted():
    return RBFDiffNet("D", **QUICK).fit(make_panel("ab", n=40))


def test_ids_that_are_no_text_are_refused():
    df = make_panel("ab", n=30)
    df["unique_id"] = pd.Series([f"{name}\ud800" for name in df["unique_id"]], dtype=object)
    refused("is no valid text", lambda: RBFDiffNet("D", **QUICK).fit(df))


@pytest.mark.parametrize("other", [True, 1.0, np.True_])
def test_ids_that_are_equal_but_not_the_same_are_no_single_series(other):
    df = make_panel("ab", n=30)
    df["unique_id"] = pd.Series([1] * 30 + [other] * 30, dtype=object)
    refused("holds 1 and, in row 30, .*(True|1.0)", lambda: RBFDiffNet("D", **QUICK).fit(df))
    df["unique_id"] = pd.Series([2, np.int64(2)] * 30, dtype=object)
    assert RBFDiffNet("D", **QUICK).fit(df[:30]).fitted_panel.panel.n_series == 1


def test_rows_of_a_series_called_true_are_not_those_of_series_1():
    df = make_panel("a", n=30)
    model = RBFDiffNet("D", **QUICK).fit(df.assign(unique_id=1, price=df["y"]))
    future = model.make_future_frame(2).assign(price=1.0)
    refused("'True' on", lambda: model.predict(2, X_df=future.assign(unique_id=True)))
    assert len(model.predict(2, X_df=future.astype({"unique_id": float}))) == 2


def _durations(unit):
    hours = pd.Series(np.arange(30.0) % 7 + 1)
    return pd.to_timedelta(hours, "h").dt.as_unit(unit)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "object", "polars"])
def test_durations_are_no_numbers(unit):
    spans = _durations("ns" if unit in ("object", "polars") else unit)
    df = make_panel("a", n=30)
    past = df.assign(price=np.arange(30.0) % 7)
    model = RBFDiffNet("D", **QUICK).fit(past)
    future = model.make_future_frame(2)
    if unit == "object":
        spans = spans.astype(object)
    frames = [df.assign(y=spans), df.assign(price=spans), future.assign(price=spans[:2])]
    if unit == "polars":
        frames = [pl.from_pandas(frame) for frame in frames]
        model = RBFDiffNet("D", **QUICK).fit(pl.from_pandas(past))
    remedy = r"holds durations, .* with df\['{}'\]\.dt\.total_seconds\(\)"
    refused(remedy.format("y"), lambda: RBFDiffNet("D", **QUICK).fit(frames[0]))
    refused(remedy.format("price"), lambda: RBFDiffNet("D", **QUICK).fit(frames[1]))
    refused(remedy.format("price"), lambda: model.predict(2, X_df=frames[2]))


@pytest.mark.parametrize("dtype", ["object", "string[python]", "string"])
def test_ids_that_pandas_cannot_tell_apart_are_no_single_series(dtype):
    df = make_panel("ab", n=30)
    df["unique_id"] = pd.Series(["a"] * 30 + ["a\x00"] * 30, dtype=dtype)
    if pd.factorize(df["unique_id"])[0].max() == 0:
        refused("cannot be told from other ids", lambda: RBFDiffNet("D", **QUICK).fit(df))
    else:
        assert len(RBFDiffNet("D", **QUICK).forecast(df, 1)) == 2


def test_ids_that_would_change_in_a_file_are_not_saved(tmp_path):
    model = RBFDiffNet("D", **QUICK).fit(make_panel(["a\x00"], n=30))
    refused("cannot be saved", lambda: model.save(tmp_path / "model.npz"))


def test_ids_that_are_lists_are_refused():
    df = make_panel("a", n=9)
    df["unique_id"] = [[1]] * 9
    refused("must hold names of series", lambda: RBFDiffNet("D", **QUICK).fit(df))
    polars = pl.DataFrame({name: df[name].to_list() for name in df})
    refused("must hold names of series", lambda: RBFDiffNet("D", **QUICK).fit(polars))


def test_forecasts_do_not_leave_the_dates_that_can_be_written(fitted):
    refused("beyond 2262", lambda: fitted.predict(100_000))
    refused("beyond 2262", lambda: fitted.make_future_frame(100_000))
    for freq in ("MS", "B", "h"):
        df = make_panel("a", n=20, start="2258-01-04", freq=freq)
        model = RBFDiffNet(freq, **QUICK)
        refused("beyond 2262", lambda model=model, df=df: model.forecast(df, 90_000))
        assert model.forecast(df, 5)["ds"].is_monotonic_increasing


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_whole_numbers_as_dates_never_turn_around(library):
    def frame(steps):
        return library({"unique_id": ["a"] * len(steps), "ds": steps, "y": np.arange(len(steps))})

    model = RBFDiffNet(1, **QUICK)
    small = frame(np.arange(100, 120, dtype=np.int8))
    assert model.forecast(small, 8)["ds"].max() == 127
    refused("beyond 127", lambda: model.forecast(small, 9))
    for steps in (
        np.arange(20, dtype=np.uint64) + np.uint64(2**63),
        2**63 - 20 + np.arange(20),
        np.array([-(2**63), 2**62]),
    ):
        refused("between -2", lambda steps=steps: model.forecast(frame(steps), 1))


def test_columns_with_the_same_name_are_named():
    df = make_panel("a", n=9)
    refused("Two columns are called 'y'", lambda: RBFDiffNet("D").fit(df[[*df.columns, "y"]]))


def test_numbers_that_are_no_real_ones_are_refused():
    df = make_panel("a", n=9)
    refused("must hold numbers", lambda: RBFDiffNet("D").fit(df.assign(y=df["y"] + 1j)))
    huge = pd.Series([10**400] * 9, dtype=object)
    refused("beyond 1e308", lambda: RBFDiffNet("D").fit(df.assign(y=huge)))


def test_lazy_frames_are_refused_without_a_warning():
    df = pl.from_pandas(make_panel("a", n=9)).lazy()
    refused("collect", lambda: RBFDiffNet("D", **QUICK).fit(df))


#: Values that each of these parameters took to heart, or stumbled over.
WRONG = {
    **{name: [True, pd.NA, b"a", np.array([1, 2])] for name in ("preset", "scope", "strategy")},
    **{name: [None, pd.NA, np.array([1, 2])] for name in ("errors", "device", "id_col")},
    **{name: [True, pd.NA, 1.5, 10**400] for name in ("season_length", "n_jobs")},
    "lower": ["0", pd.NA, 10**400, np.array([0.0])],
    "noise": [True, np.timedelta64(1, "D"), np.array([0.1])],
    "outliers": [pd.NA, 1, "yes", np.array([True, False])],
    "lags": [0, True, 10**12, np.array(3), [1, None], b"a", {}],
    "transforms": [True, 3, [None], [Difference], b"mean", pd.DataFrame({"a": [1]}), [np.empty(0)]],
    "events": [None, 3, ["2024-01-01"], Event("a", ["2024-01-01"])],
    "calendar": [True, 3, [None], [["month"]]],
    "holidays": [True, 3, ["US"]],
    "past_exog": [None, 3, [1]],
    "regressor": [
        RBFDiffNetRegressor,
        "network",
        3,
        RBFDiffNetRegressor(random_state=np.random.RandomState(0)),
    ],
    "freq": [True, 0, np.array(["D"]), [], object()],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_every_parameter_is_named_when_it_is_wrong(name, value):
    words = {"transforms": "transform", "calendar": "[Cc]alendar", "freq": "freq"}

    def call():
        RBFDiffNet(**{"freq": "D", **QUICK, name: value}).fit(make_panel("a", n=9))

    refused(words.get(name, name), call)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("predict", {"h": True}, "h must be a positive integer"),
        ("predict", {"h": 10**12}, "h must be a positive integer below 1,000,000,000"),
        ("predict", {"h": 1, "level": ["a"]}, "level must hold percentages"),
        ("predict", {"h": 1, "level": pd.NA}, "level must be a list"),
        ("predict", {"h": 1, "X_df": 3}, "data frame is needed"),
        ("explain", {"ids": 3}, "ids must be a list of series"),
        ("equation", {"ids": True}, "ids must be a list of series"),
        ("plot", {"history": 0}, "history must be a positive integer"),
        ("update", {"df": make_panel("a", n=3), "refit": np.array([1, 2])}, "refit must be"),
    ],
)
def test_methods_say_which_argument_is_wrong(fitted, method, arguments, message):
    refused(message, lambda: getattr(fitted, method)(**arguments))


def test_small_kinds_of_integers_count_like_others(fitted):
    df = make_panel("ab", n=40)
    assert fitted.predict(np.uint8(200)).equals(fitted.predict(200))
    small = {"n_windows": np.uint8(20), "step_size": np.uint8(1)}
    found = fitted.cross_validation(df, np.int8(2), **small)
    assert found.equals(fitted.cross_validation(df, 2, n_windows=20, step_size=1))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("centers", b"D"),
        ("centers", pd.NA),
        ("metric", [None]),
        ("metric", np.array(["2024-01-01"], dtype="M8[D]")),
        ("alpha", np.timedelta64(1, "D")),
        ("alpha", 10**400),
        ("random_state", "seed"),
    ],
)
def test_parameters_of_regressors_are_named(parameter, value):
    X, y = np.random.default_rng(0).normal(size=(2, 30, 1))
    refused(parameter, lambda: RBFDiffNetRegressor(**{parameter: value}).fit(X, y.ravel()))


def test_rows_beyond_all_bounds_are_refused_and_tiny_ones_fitted(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    refused("y holds .*rescale", lambda: RBFDiffNetRegressor().fit(X, np.sign(y) * 1.7e308))
    refused("X holds .*rescale", lambda: RBFDiffNetRegressor().fit(np.sign(X) * 1.7e308, y))
    model = RBFDiffNetRegressor().fit(X, y)
    for wrong in (pd.DataFrame({"w": ["a"] * 30}), ["a"] * 30, {}):
        refused("sample_weight", lambda w=wrong: model.fit(X, y, sample_weight=w))
    refused("X holds .*rescale", lambda: model.predict(np.sign(X) * 1.7e308))
    for small in (1e-200, 5e-324):
        assert np.isfinite(RBFDiffNetRegressor().fit(X * small, y * small).predict(X * small)).all()
    weighted = RBFDiffNetRegressor().fit(X, y, sample_weight=np.full(30, 5e-324))
    np.testing.assert_array_equal(weighted.predict(X), model.predict(X))
    heavy = RBFDiffNetRegressor().fit(np.sign(X), y, sample_weight=np.full(30, 1.7e308))
    assert np.isfinite(heavy.predict(X)).all()


def test_one_enormous_target_leaves_the_others_fitted(rng):
    X = rng.normal(size=(40, 1))
    y = np.sin(X.ravel())
    y[3] = 1e149
    assert np.isfinite(RBFDiffNetRegressor().fit(X, y).predict(X)).all()


@pytest.mark.parametrize("scope", ["local", "global", "auto"])
def test_values_at_the_limit_of_numbers_count_as_missing(scope, rng):
    df = make_panel("ab", n=30)
    df.loc[:29, "y"] = rng.choice([-1.7e308, 1.7e308], 30)
    model = RBFDiffNet("D", scope=scope)
    found = model.forecast(df, 3, level=[80])
    assert np.isfinite(found[["RBFDiffNet", "RBFDiffNet-lo-80", "RBFDiffNet-hi-80"]]).all(axis=None)
    assert "30 huge 'y' values" in model.report_["problem"].iloc[0]


def test_series_and_quantiles_must_be_numbers(rng):
    s = np.sin(np.arange(120.0)) + 0.1 * rng.normal(size=120)
    for wrong in ("", ["a"], s + 1j, s.astype("M8[D]"), {}):
        refused("must hold numbers", lambda wrong=wrong: RBFDiffNetRegressor().fit_series(wrong, 2))
    for wrong in (np.empty(0), pd.Series([1, 2]), "all"):
        refused("n_lags must be", lambda wrong=wrong: RBFDiffNetRegressor().fit_series(s, wrong))
    model = RBFDiffNetRegressor().fit_series(s, 2)
    refused("quantiles must hold numbers", lambda: model.forecast(2, quantiles=["a"]))
    refused("must hold numbers", lambda: model.forecast(2, history=""))
    for scale in (1e-300, 1e140):
        model = RBFDiffNetRegressor(noise="auto").fit_series(s * scale, 2)
        assert "out of range" in model.noise_reason_
        assert np.isfinite(model.forecast(5)).all()


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("must hold numbers", lambda: lag_windows("", 1)),
        ("n_lags must be", lambda: lag_windows([1, 2], None)),
        ("must hold numbers", lambda: forecast_recursive(len, [1j], 1)),
        ("reach must be", lambda: forecast_recursive(len, [1.0], 1, reach="far")),
        ("lag must be", lambda: Difference(1.5)),
        ("scale must be", lambda: Rescale(0.0, "a")),
        ("axis of time", lambda: Difference().apply(3.0)),
        ("Unknown transform None", lambda: fit_transforms((None,), [1.0, 2.0])),
        ("finite and not empty", lambda: fit_transforms(("mean",), [])),
        ("finite", lambda: text_plot([1.0, np.nan], [1.0])),
        ("width must be", lambda: text_plot([1.0], [1.0], width=None)),
        ("name of an event", lambda: Event([], ["2024-01-01"])),
        ("lag counts days", lambda: Event("a", ["2024-01-01"], lag=None)),
        ("lead counts days", lambda: Event("a", ["2024-01-01"], lead=10**9)),
        ("is not a date", lambda: Event("a", [{}])),
        ("actual must hold numbers", lambda: rmsse_score("", [1.0], [1.0])),
    ],
)
def test_functions_say_what_is_wrong(message, call):
    refused(message, call)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_metrics_name_columns_and_frames(library):
    past = library({"unique_id": ["a"] * 3, "ds": [1, 2, 3], "y": [1.0, 2.0, 4.0]})
    test = library({"unique_id": ["a"], "ds": [4], "y": [4.0], "m": [5.0], "text": ["a"]})
    refused("models must be a list", lambda: rmsse(test, None, past))
    refused("models must be a list of at least one name", lambda: rmsse(test, [], past))
    refused("df has no column 'n'", lambda: rmsse(test, ["n"], past))
    refused("models must be a list of at least one name", lambda: rmsse(test, [None], past))
    refused("'text' of df must hold numbers", lambda: rmsse(test, ["text"], past))
    refused("train_df must be a", lambda: rmsse(test, ["m"], None))
    refused("weights must be a", lambda: wrmsse(test, ["m"], past, None))
    refused("weights must hold numbers", lambda: wrmsse(test, ["m"], past, {"a": "b"}))
    assert rmsse(test, "m", past).equals(rmsse(test, ["m"], past))


def test_reports_check_their_arguments(tmp_path):
    history = make_panel("a", n=30)
    forecasts = pd.DataFrame({"unique_id": "a", "ds": [dt.datetime(2023, 1, 31)], "M": [60.0]})
    path = tmp_path / "report.html"
    for season in (0, 1.5, "auto", pd.Series([7, 7])):
        refused(
            "season_length must be",
            lambda s=season: write_report(path, history, forecasts, season_length=s),
        )
    refused("data frame is needed", lambda: write_report(path, history, forecasts, backtest=True))
    assert not path.exists()


def test_small_integers_infinities_and_arrays_without_an_axis():
    assert text_plot([1.0, 2.0], [2.0], width=np.uint8(200)) == text_plot(
        [1.0, 2.0], [2.0], width=200
    )
    for place in range(3):
        given = [[1.0, 2.0], [1.0, 2.5], [1.0, 2.0, 4.0]]
        given[place] = [np.inf] * len(given[place])
        refused("rescale it", lambda given=given: rmsse_score(*given))
    refused("'fair'.* is not a date", lambda: Event("fair", np.array(3)))
    assert Event("fair", np.array("2024-05-01")) == Event("fair", ["2024-05-01"])
    refused("names must be a list", lambda: fit_transforms(3, [1.0, 2.0]))
    refused("height must be", lambda: text_plot([1.0], [2.0], height=10**30))
    refused("ascii_only must be", lambda: text_plot([1.0], [2.0], ascii_only=np.empty(0)))
    refused("history holds", lambda: text_plot([1.7e308, -1.7e308], [2.0]))
    refused("season_length must be", lambda: RBFDiffNet("D", season_length=np.array(3)))
    calendar = pd.DataFrame({"month": ["a"]})
    model = RBFDiffNet("D", calendar=calendar, **QUICK)  # a list of its columns
    assert len(model.forecast(make_panel("a", n=40), 2)) == 2


def test_names_that_no_file_can_have(fitted):
    refused("is no name of a file", lambda: fitted.save("\x00"))


def test_differences_of_infinities_are_no_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(Difference().apply([np.inf, np.inf])).all()
        assert np.isnan(Difference().invert([-np.inf], [np.inf])).all()


def test_reports_on_numbers_at_the_ends_of_what_floats_hold(tmp_path):
    history = make_panel("a", n=40)
    model, path = RBFDiffNet("D", preset="instant"), tmp_path / "report.html"
    forecasts, backtest = model.forecast(history, 2), model.cross_validation(history, 2)
    huge = backtest.assign(y=[-1.7e308, 1.7e308])
    refused("'y' of backtest", lambda: write_report(path, history, forecasts, backtest=huge))
    tiny = history.assign(y=history["y"] * 5e-324)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_report(path, tiny, forecasts, backtest=backtest)


@pytest.mark.parametrize("freq", [np.timedelta64(3, "D"), np.timedelta64(3, "ns"), True, 2.5])
def test_steps_of_time_of_other_kinds(freq):
    df = make_panel("a", n=30).assign(ds=range(30))
    refused("freq", lambda: RBFDiffNet(freq, **QUICK).fit(df))


@pytest.mark.parametrize("kind", [RBFDiffNetRegressor, RBFNetworkRegressor])
def test_targets_that_are_missing_in_words_are_refused(kind):
    with pytest.raises(ValueError, match="Input y contains NaN"):
        kind(2).fit([[0.5], [1.0]], ["1", "nan"])


@pytest.mark.parametrize(
    "ignored",
    [
        *({"lags": 14}, {"strategy": "direct"}, {"regressor": RBFDiffNetRegressor()}),
        {"transforms": [Difference(7)]},
    ],
    ids=str,
)
def test_what_the_default_would_ignore_is_refused(ignored):
    (name,) = ignored
    with pytest.raises(ValueError, match=f"{name} is for networks that are fitted to series"):
        RBFDiffNet("D", scope="auto", **ignored)
    assert RBFDiffNet("D", **ignored).options.chosen_scope == "local"


def test_what_only_groups_need_is_refused_without_them():
    with pytest.raises(ValueError, match="reconcile='mint' is for a hierarchy"):
        RBFDiffNet("D", reconcile="mint")


@pytest.mark.parametrize("name", ["unique_id", "ds", "cutoff", "y"])
@pytest.mark.parametrize("convert", [lambda df: df, to_polars])
def test_columns_that_are_no_forecasts_are_not_scored(name, convert):
    frame = pd.DataFrame({"unique_id": [1, 2], "ds": 4, "cutoff": 3, "y": 5.0, "M": 4.0})
    past = pd.DataFrame({"unique_id": [1, 1, 2, 2], "ds": [2, 3] * 2, "cutoff": 3})
    past["y"] = [1.0, 2.0] * 2
    frame, past = convert(frame), convert(past)
    calls = [lambda: rmsse(frame, [name], past), lambda: path_crps(frame, [name])]
    for call in [*calls, lambda: wrmsse(frame, [name], past, {1: 1.0, 2: 1.0})]:
        refused("which is no column of forecasts", call)
    assert rmsse(frame, ["M", "M"], past)["M"].to_list() == [1.0, 1.0]

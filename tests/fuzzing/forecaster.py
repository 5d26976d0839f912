"""The forecaster: parameters and arguments of any kind, before fit and after."""

import copy
import inspect
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fuzzing.anything import anything
from fuzzing.claims import Refused, attempt, columns_are_sound, forecast_is_sound
from fuzzing.trial import for_all
from panels import make_panel
from rbfdiffnet import Event, RBFDiffNet, RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.series.transforms import Difference

USUAL = [
    *("default", "fast", "paper", "local", "global", "recursive", "direct", "fallback", "raise"),
    *("cuda", "cpu", "US", "price", "unique_id", "ds", "y", "cutoff", "RBFDiffNet", "dayofweek"),
    *("D", "h", "MS", "1mo", 1, "W-SUN", "B", pd.offsets.BMonthEnd(), pd.Timedelta("1D")),
    *(["log1p"], ["adf", "mean"], ["mean", "log1p"], [Difference(2)], ["none such"], None),
    *(["dayofweek", "month"], ["price"], [Event("fair", ["2023-02-10"])], 0.0, 7, [1, 7], [7, 7]),
    *(RBFDiffNetRegressor(4), RBFNetworkRegressor(4), RBFDiffNetRegressor(-1), 60, 1e9),
]
values = st.one_of(anything, st.integers(0, len(USUAL) - 1).map(lambda k: USUAL[k]))
PARAMETERS = list(inspect.signature(RBFDiffNet).parameters)
#: Parameters in whose place another may be named: together they make no sense.
TOGETHER = {
    "preset": ["device", "noise"],
    "past_exog": ["column"],
    "static_exog": ["column"],
    "hierarchy": ["column"],
    **{name: ["olumn"] for name in ("id_col", "time_col", "target_col")},
    **{name: ["noise", "device", "scope", "strategy"] for name in ("scope", "device")},
    "errors": ["errors='fallback'"],
    "strategy": ["direct strategy", "noise", "device", "scope"],
    "transforms": ["transform"],
    "calendar": ["alendar"],
    "regressor": ["n_centers"],
}


@for_all(
    changed=st.dictionaries(st.sampled_from(PARAMETERS), values, min_size=1, max_size=2),
    quick=st.sampled_from([{"preset": "fast", "lags": 7}, {"scope": "local"}]),
    price=st.booleans(),
)
def parameters_of_any_kind(changed, quick, price):
    if price and isinstance(name := changed.get("static_exog"), str) and name == "price":
        price = False
    df = make_panel("ba", n=40, columns=("price",) if price else ())
    parameters = {"freq": "D", **quick, **changed}
    naming = [*changed, *(word for name in changed for word in TOGETHER.get(name, ()))]
    model = attempt(lambda: RBFDiffNet(**parameters), naming=naming)
    if isinstance(model, Refused):
        return
    future = make_panel("ba", n=2, columns=("price",), start="2023-02-10").drop(columns="y")
    future = future if price and "price" not in (*model.past_exog, *model.static_exog) else None
    naming += [] if future is None else ["X_df"]  # whose rows another step does not need
    forecast = attempt(
        lambda: model.forecast(df, 2, X_df=future, level=[80]), naming=naming, kinds=REFUSALS
    )
    if not isinstance(forecast, Refused):
        forecast_is_sound(forecast, df["unique_id"], 2, lower=model.lower)


REFUSALS = (ValueError, TypeError, ImportError)


@cache
def fitted(kind):
    """A fitted model and the frame it was fitted to."""
    columns = ("price", "offer") if kind == "inputs" else ()
    df = make_panel("bac", n=45, columns=columns)
    parameters = {
        "fast": {"preset": "fast", "lags": 7},
        "inputs": {"preset": "fast", "lags": 7},
        "global": {"scope": "global", "lags": 7},
        "direct": {"strategy": "direct", "preset": "fast", "lags": 7},
        "stack": {},
        "before fit": {"preset": "fast"},
    }[kind]
    model = RBFDiffNet("D", **parameters)
    return (model if kind == "before fit" else model.fit(df, h=3)), df


def future(df, h):
    """Rows after the end of a frame, with its inputs."""
    rows = make_panel("bac", n=h, columns=("price", "offer"), start="2023-02-15")
    return rows[["unique_id", "ds", *(c for c in df.columns[3:])]]


steps = st.one_of(st.integers(1, 4), anything)
level = st.one_of(st.none(), st.just([80, 95]), anything)
ids = st.one_of(st.none(), st.just(["a"]), st.just([]), st.just(["a", "a"]), anything)
CALLS = {
    "predict": st.fixed_dictionaries({"h": steps, "level": level, "X_df": st.just("future")}),
    "predict ": st.fixed_dictionaries({"h": steps, "new_df": st.one_of(st.just("df"), anything)}),
    "forecast": st.fixed_dictionaries({"df": st.just("df"), "h": steps, "level": level}),
    "cross_validation": st.fixed_dictionaries(
        {
            "df": st.one_of(st.just("df"), anything),
            "h": steps,
            "n_windows": st.one_of(st.integers(1, 4), anything),
            "step_size": st.one_of(st.none(), anything),
            "refit": st.one_of(st.sampled_from([True, False, 2, "weights"]), anything),
            "level": level,
        }
    ),
    "update": st.fixed_dictionaries(
        {
            "df": st.one_of(st.just("newer"), anything),
            "refit": st.one_of(st.sampled_from([True, False, "weights"]), anything),
        }
    ),
    "make_future_frame": st.fixed_dictionaries({"h": steps}),
    "explain": st.fixed_dictionaries({"h": steps, "ids": ids, "X_df": st.just("future")}),
    "equation": st.fixed_dictionaries({"ids": ids}),
    "plot_equation": st.fixed_dictionaries({"unique_id": st.one_of(st.just("a"), anything)}),
    "plot": st.fixed_dictionaries(
        {
            "h": steps,
            "level": level,
            "ids": ids,
            "X_df": st.just("future"),
            "history": st.one_of(st.just(10), anything),
        }
    ),
    "fit": st.fixed_dictionaries({"df": st.one_of(st.just("df"), anything), "h": steps}),
    "fitted_values": st.just({}),
    "report_": st.none(),
    "chosen_": st.none(),
    "noise_": st.none(),
    "weights_": st.none(),
    "save": st.fixed_dictionaries({"path": st.one_of(st.just("path"), anything)}),
    "load": st.fixed_dictionaries({"path": st.one_of(st.just("path"), anything)}),
}
#: Models that give forecasts within milliseconds come up more often.
KINDS = ["fast", "fast", "inputs", "global", "direct", "before fit", "stack"]


def wild(h):
    """Whether a number of steps would only keep the machine busy."""
    return isinstance(h, int | np.integer) and h > 400


@for_all(kind=st.sampled_from(KINDS), call=st.sampled_from(sorted(CALLS)), drawn=st.data())
def arguments_of_any_kind(kind, call, drawn):
    model, df = fitted(kind)
    model = copy.copy(model)
    arguments = drawn.draw(CALLS[call], label="arguments")
    name = call.strip()
    with tempfile.TemporaryDirectory() as folder:
        given_for = {
            "df": lambda: df,
            "newer": lambda: future(df, 2).assign(y=60.0),
            "future": lambda: (
                future(df, arguments["h"])
                if kind == "inputs" and type(arguments["h"]) is int and 0 < arguments["h"] < 9
                else None
            ),
            "path": lambda: Path(folder, "model.npz"),
        }
        filled = {
            key: given_for[value]() if isinstance(value, str) and value in given_for else value
            for key, value in (arguments or {}).items()
        }
        if isinstance(filled.get("path"), str):  # nothing is to be written elsewhere
            filled["path"] = f"{folder}/{filled['path'].replace('..', '')}"
        if any(wild(filled.get(key)) for key in ("h", "n_windows", "step_size", "path")):
            return
        found = attempt(
            (lambda: getattr(model, name))
            if arguments is None
            else (lambda: getattr(model, name)(**filled)),
            kinds=(AttributeError, RuntimeError)
            if arguments is None  # an attribute that this model has not, or not yet
            else (ValueError, TypeError, RuntimeError, OSError),
        )
    if isinstance(found, Refused):
        return
    h = int(filled.get("h") or 0)
    if name in ("predict", "forecast"):
        forecast_is_sound(found, df["unique_id"], h)
    elif name == "cross_validation":
        columns_are_sound(found)
        assert len(found) == 3 * h * int(filled["n_windows"]) or len(found) < len(df) * 3
    elif name == "make_future_frame":
        assert len(found) == 3 * h
    elif name == "update" and kind != "inputs":
        forecast_is_sound(found.predict(2), df["unique_id"], 2)


@st.composite
def newer_rows(draw):
    """Rows that continue the series of a model, or do not quite."""
    df = make_panel("bac", n=4, columns=("price", "offer"), start="2023-02-15", seed=3)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    for change in draw(st.lists(st.sampled_from(sorted(CHANGES)), max_size=3, unique=True)):
        df = CHANGES[change](df, rng)
    return df


def _moved(days):
    return lambda df, _: df.assign(ds=df["ds"] + pd.Timedelta(days=days)) if dated(df) else df


def dated(df):
    return df["ds"].dtype.kind == "M"


def _zoned(df, _):
    return df.assign(ds=df["ds"].dt.tz_localize("Europe/Berlin")) if dated(df) else df


CHANGES = {
    "earlier": _moved(-2),
    "long before": _moved(-400),
    "gap": _moved(5),
    "long after": _moved(4000),
    "far away": _moved(60_000),
    "half a day later": _moved(0.5),
    "fewer": lambda df, _: df[df["unique_id"] != "b"],
    "none": lambda df, _: df.head(0),
    "another": lambda df, _: df.replace({"unique_id": {"b": "new"}}),
    "number ids": lambda df, _: df.assign(unique_id=df["unique_id"].map({"b": 1, "a": 2, "c": 3})),
    "missing ids": lambda df, _: df.assign(unique_id=df["unique_id"].replace("b", None)),
    "shuffled": lambda df, rng: df.iloc[rng.permutation(len(df))],
    "twice": lambda df, _: pd.concat([df, df]),
    "no y": lambda df, _: df.drop(columns="y", errors="ignore"),
    "text y": lambda df, _: df.assign(y="a"),
    "infinite y": lambda df, _: df.assign(y=np.inf),
    "huge y": lambda df, _: df.assign(y=1e300),
    "missing y": lambda df, _: df.assign(y=np.nan),
    "no offer": lambda df, _: df.drop(columns="offer", errors="ignore"),
    "number offer": lambda df, _: df.assign(offer=1.0),
    "text price": lambda df, _: df.assign(price="a"),
    "missing price": lambda df, _: df.assign(price=np.nan),
    "infinite price": lambda df, _: df.assign(price=np.inf),
    "more": lambda df, _: df.assign(more=1),
    "zoned": _zoned,
    "text ds": lambda df, _: df.assign(ds=df["ds"].astype(str)),
    "number ds": lambda df, _: df.assign(ds=range(len(df))),
    "seconds": lambda df, _: df.assign(ds=df["ds"].dt.as_unit("s")) if dated(df) else df,
}


@for_all(
    kind=st.sampled_from(["inputs", "inputs", "fast", "global", "stack"]),
    rows=newer_rows(),
    refit=st.sampled_from([False, False, True, "weights"]),
    use=st.sampled_from(["update", "X_df", "new_df"]),
)
def rows_that_may_not_fit(kind, rows, refit, use):
    model, df = fitted(kind)
    model = copy.copy(model)
    if use == "X_df":
        found = attempt(lambda: model.predict(3, X_df=rows.drop(columns="y", errors="ignore")))
        if not isinstance(found, Refused):
            forecast_is_sound(found, df["unique_id"], 3)
        return
    if use == "new_df":
        found = attempt(lambda: model.predict(3, new_df=rows))
        if not isinstance(found, Refused):
            forecast_is_sound(found, rows["unique_id"], 3)
        return
    grown = attempt(lambda: model.update(rows, refit=refit))
    if isinstance(grown, Refused):
        return
    plan = grown.make_future_frame(2).assign(price=2.0, offer="none")
    plan = plan if kind == "inputs" else None
    names = [*df["unique_id"], *rows["unique_id"]]
    forecast_is_sound(attempt(lambda: grown.predict(2, X_df=plan)), names, 2)

"""Frames of any kind: odd data types, ids, dates, columns, and what is no frame at all."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

from fuzzing.anything import anything
from fuzzing.claims import Refused, attempt, forecast_is_sound
from fuzzing.trial import for_all
from panels import make_panel
from rbfdiffnet import RBFDiffNet

H = 3


def _typed(column, dtype):
    return lambda df, _: df.astype({column: dtype})


def _mapped(column, function):
    return lambda df, _: df.assign(**{column: [function(value) for value in df[column]]})


def _object(column, function=lambda value: value):
    def change(df, _):
        values = pd.Series([function(v) for v in df[column]], dtype=object, index=df.index)
        return df.assign(**{column: values})

    return change


def _some(column, value, share=0.2):
    def change(df, rng):
        values = df[column].astype(object)
        values[rng.random(len(df)) < share] = value
        return df.assign(**{column: values})

    return change


def _some_numbers(value, share=0.2):
    def change(df, rng):
        y = pd.to_numeric(df["y"]).astype(float)
        return df.assign(y=y.where(rng.random(len(df)) >= share, value))

    return change


def _renamed(names):
    return lambda df, _: df.rename(columns=names)


def _years(first):
    def change(df, _):
        days = np.datetime64(f"{first}-01-01", "s") + 86400 * df.groupby("unique_id").cumcount()
        return df.assign(ds=pd.Series(days.to_numpy().astype("M8[s]"), index=df.index))

    return change


TARGETS = {
    **{f"y {t}": _typed("y", t) for t in ("float16", "float32", "object", "complex", "Float64")},
    **{f"y {t}": _typed("y", t) for t in ("string", "category", "Sparse[float]", "longdouble")},
    "y int": lambda df, _: df.assign(y=df["y"].round().astype(int)),
    "y uint8": lambda df, _: df.assign(y=df["y"].round().astype("uint8")),
    "y Int64": lambda df, _: df.assign(y=df["y"].round().astype("Int64")),
    "y arrow": _typed("y", pd.ArrowDtype(pa.float64())),
    "y arrow decimal": lambda df, _: df.assign(
        y=pd.array([Decimal(f"{v:.2f}") for v in df["y"]], dtype=pd.ArrowDtype(pa.decimal128(9, 2)))
    ),
    "y arrow int": lambda df, _: df.assign(
        y=df["y"].round().astype(int).astype(pd.ArrowDtype(pa.int64()))
    ),
    "y decimal": _object("y", lambda v: Decimal(str(v))),
    "y decimal nan": _object("y", lambda v: Decimal("NaN") if v < 60 else Decimal(str(v))),
    "y fraction": _object("y", lambda v: Fraction(v)),
    "y bool": lambda df, _: df.assign(y=df["y"] > 60),
    "y boolean": lambda df, _: df.assign(y=(df["y"] > 60).astype("boolean")),
    "y text": _object("y", str),
    "y comma": _object("y", lambda v: str(v).replace(".", ",")),
    "y dates": _typed("y", "datetime64[ns]"),
    "y lists": _object("y", lambda v: [v]),
    "y none": _object("y", lambda _: None),
    "y some None": _some("y", None),
    "y some NA": _some("y", pd.NA),
    "y some text": _some("y", "closed"),
    "y some bool": _some("y", True),
    "y enormous ints": _object("y", lambda v: int(v) * 10**400),
    "y big ints": _object("y", lambda v: int(v) * 10**30),
    "y infinite": _some_numbers(np.inf),
    "y minus infinite": _some_numbers(-np.inf),
    "y limit": _some_numbers(1.7e308),
    "y both limits": lambda df, rng: df.assign(y=rng.choice([-1.7e308, 1.7e308], len(df))),
    "y subnormal": lambda df, _: df.assign(y=pd.to_numeric(df["y"]) * 5e-324),
    "y minus zero": lambda df, _: df.assign(y=-0.0),
    "y missing": _some_numbers(np.nan, 0.7),
}
IDS = {
    **{f"id {t}": _typed("unique_id", t) for t in ("category", "string", "object", "bytes")},
    "id arrow": _typed("unique_id", pd.ArrowDtype(pa.string())),
    "id arrow dictionary": _typed(
        "unique_id", pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    ),
    "id numbers": _mapped("unique_id", lambda v: ord(v) * 10**15),
    "id uint64": lambda df, _: df.assign(
        unique_id=np.array([2**64 - ord(v) for v in df["unique_id"]], dtype=np.uint64)
    ),
    "id Int64": lambda df, _: df.assign(unique_id=df["unique_id"].map(ord).astype("Int64")),
    "id floats": _mapped("unique_id", lambda v: ord(v) / 10),
    "id nan floats": _mapped("unique_id", lambda v: np.nan if v == "a" else 1.5),
    "id infinite": _mapped("unique_id", lambda v: np.inf if v == "a" else 1.5),
    "id bool": _mapped("unique_id", lambda v: v == "a"),
    "id missing": _some("unique_id", None),
    "id NA": lambda df, _: df.assign(
        unique_id=df["unique_id"].astype("string").where(df["unique_id"] != "a", pd.NA)
    ),
    "id mixed": _object("unique_id", lambda v: 7 if v == "a" else v),
    "id look alike": _object("unique_id", lambda v: 7 if v == "a" else "7"),
    "id spaces": _mapped("unique_id", lambda v: " " if v == "a" else ""),
    "id unicode": _mapped("unique_id", lambda v: f"{v}\u202e\x00\n😀ß"),
    "id surrogate": _object("unique_id", lambda v: f"{v}\ud800"),
    "id zeros": _object("unique_id", lambda v: "a" if v == "a" else "a\x00"),
    "id long": _mapped("unique_id", lambda v: v[:1] * 20_000),
    "id tuples": _object("unique_id", lambda v: (v, 1)),
    "id lists": _object("unique_id", lambda v: [v]),
    "id dates": _mapped("unique_id", lambda v: pd.Timestamp(2024, 1, ord(v) - 90)),
    "id periods": _mapped("unique_id", lambda v: pd.Period(year=ord(v), freq="Y")),
    "id decimals": _object("unique_id", lambda v: Decimal(ord(v))),
    "id bytes objects": _object("unique_id", lambda v: v.encode()),
    "id nan word": _mapped("unique_id", lambda v: "nan" if v == "a" else "None"),
    "id one each": lambda df, _: df.assign(unique_id=[f"s{k}" for k in range(len(df))]),
    "id unused categories": lambda df, _: df.assign(
        unique_id=pd.Categorical(df["unique_id"], categories=list("zyabx"), ordered=True)
    ),
}
DATES = {
    **{f"ds {u}": _typed("ds", f"datetime64[{u}]") for u in ("s", "ms", "us")},
    "ds text": _typed("ds", str),
    "ds category": _typed("ds", "category"),
    "ds arrow": _typed("ds", pd.ArrowDtype(pa.timestamp("us"))),
    "ds arrow zoned": lambda df, _: df.assign(
        ds=df["ds"].dt.tz_localize("UTC").astype(pd.ArrowDtype(pa.timestamp("us", "Asia/Tokyo")))
    ),
    "ds arrow days": lambda df, _: df.assign(ds=df["ds"].dt.date).astype(
        {"ds": pd.ArrowDtype(pa.date32())}
    ),
    "ds zoned": lambda df, _: df.assign(ds=df["ds"].dt.tz_localize("Asia/Tokyo")),
    "ds fixed offset": lambda df, _: df.assign(
        ds=df["ds"].dt.tz_localize(dt.timezone(dt.timedelta(hours=5, minutes=30)))
    ),
    "ds summer": lambda df, _: df.assign(
        ds=(df["ds"] + pd.Timedelta("70D")).dt.tz_localize("America/New_York")
    ),
    "ds date objects": lambda df, _: df.assign(ds=df["ds"].dt.date),
    "ds datetime objects": _object("ds", lambda v: v.to_pydatetime()),
    "ds stamps": _object("ds"),
    "ds mixed zones": _object(
        "ds", lambda v: v.tz_localize("UTC") if v.day % 2 else v.tz_localize("Asia/Tokyo")
    ),
    "ds mixed": _object("ds", lambda v: v if v.day % 2 else str(v)),
    "ds periods": lambda df, _: df.assign(ds=df["ds"].dt.to_period("D")),
    "ds timedelta": lambda df, _: df.assign(ds=df["ds"] - pd.Timestamp("2023-01-01")),
    "ds missing": lambda df, rng: df.assign(ds=df["ds"].where(rng.random(len(df)) > 0.1)),
    "ds all missing": lambda df, _: df.assign(ds=pd.NaT),
    "ds none": lambda df, _: df.assign(ds=None),
    "ds year 1": _years("0001"),
    "ds year 1500": _years("1500"),
    "ds year 1678": _years("1678"),
    "ds year 2261": _years("2261"),
    "ds year 3000": _years("3000"),
    "ds year 9999": _years("9998"),
    "ds end of time": lambda df, _: df.assign(ds=pd.Timestamp("2261-12-31")),
    "ds numbers": lambda df, _: df.assign(ds=df.groupby("unique_id").cumcount()),
    "ds int8": lambda df, _: df.assign(ds=df.groupby("unique_id").cumcount().astype("int8")),
    "ds uint64": lambda df, _: df.assign(
        ds=df.groupby("unique_id").cumcount().astype("uint64") + np.uint64(2**63)
    ),
    "ds Int64": lambda df, _: df.assign(ds=df.groupby("unique_id").cumcount().astype("Int64")),
    "ds Int64 missing": lambda df, _: df.assign(
        ds=df.groupby("unique_id").cumcount().astype("Int64").replace(5, pd.NA)
    ),
    "ds near the limit": lambda df, _: df.assign(
        ds=2**63 - 41 + df.groupby("unique_id").cumcount()
    ),
    "ds far apart": lambda df, _: df.assign(
        ds=np.where(df.groupby("unique_id").cumcount() == 0, -(2**63), 2**62)
    ),
    "ds floats": lambda df, _: df.assign(ds=df.groupby("unique_id").cumcount() + 0.5),
    "ds whole floats": lambda df, _: df.assign(ds=df.groupby("unique_id").cumcount() * 1.0),
    "ds bool": lambda df, _: df.assign(ds=True),
    "ds jitter": lambda df, rng: df.assign(
        ds=df["ds"] + pd.to_timedelta(rng.integers(0, 86400, len(df)), unit="s")
    ),
    "ds weekdays": lambda df, _: df[df["ds"].dt.dayofweek < 5],
    "ds one": lambda df, _: df.assign(ds=pd.Timestamp("2023-01-01")),
}
SHAPES = {
    "nothing": lambda df, _: df,
    "empty": lambda df, _: df.head(0),
    "one row": lambda df, _: df.head(1),
    "no columns": lambda df, _: df[[]],
    **{f"no {c}": lambda df, _, c=c: df.drop(columns=c) for c in ("unique_id", "ds", "y")},
    **{f"two {c}": lambda df, _, c=c: df[[*df.columns, c]] for c in ("unique_id", "ds", "y")},
    "column levels": lambda df, _: pd.concat({"top": df}, axis=1),
    "number columns": lambda df, _: df.set_axis(range(len(df.columns)), axis=1),
    "index": lambda df, _: df.set_index("unique_id"),
    "two indexes": lambda df, _: df.set_index(["unique_id", "ds"]),
    "same index": lambda df, _: df.set_index("ds", drop=False),
    "index names": lambda df, _: df.set_index(pd.Index(range(len(df)), name="unique_id")),
    "index repeated": lambda df, _: df.set_index(np.zeros(len(df), dtype=int)),
    "index missing": lambda df, _: df.set_index(pd.Index([np.nan] * len(df))),
    "shuffled": lambda df, rng: df.iloc[rng.permutation(len(df))],
    "repeated": lambda df, _: pd.concat([df, df]),
    "in turn": lambda df, _: df.iloc[::-1],
    "with input": lambda df, rng: df.assign(extra=rng.normal(size=len(df))),
    "with ours": lambda df, _: df.assign(RBFDiffNet=1.0),
    "with interval": lambda df, _: df.assign(**{"RBFDiffNet-lo-80": 1.0}),
    "with cutoff": lambda df, _: df.assign(cutoff=1.0),
    "with odd name": lambda df, _: df.assign(**{"": 1.0}),
    "with number name": lambda df, _: df.assign(**{"x": 1.0}).rename(columns={"x": 5}),
    "with missing name": lambda df, _: df.assign(**{"x": 1.0}).rename(columns={"x": None}),
    "with tuple name": lambda df, _: df.assign(**{"x": 1.0}).rename(columns={"x": ("a", 1)}),
    "with date name": lambda df, _: df.assign(x=1.0).rename(columns={"x": dt.date(2024, 1, 1)}),
    "with lists": lambda df, _: df.assign(extra=[[1]] * len(df)),
    "with dates": lambda df, _: df.assign(extra=pd.Timestamp("2024-01-01")),
    "with nothing": lambda df, _: df.assign(extra=None),
    "with flags": lambda df, _: df.assign(extra=df["y"].astype(str) > "6"),
    "with category": lambda df, _: df.assign(extra=pd.Categorical(["a"] * len(df))),
    "with infinite": lambda df, _: df.assign(extra=np.inf),
    "with huge": lambda df, rng: df.assign(extra=rng.normal(size=len(df)) * 1e200),
    "with mixed": lambda df, _: df.assign(extra=["a", 1] * (len(df) // 2) + ["a"] * (len(df) % 2)),
    "with complex": lambda df, _: df.assign(extra=1j),
    "with timedelta": lambda df, _: df.assign(extra=pd.Timedelta("1D")),
    "same array twice": lambda df, _: df.assign(extra=df["unique_id"]),
}
LIBRARIES = {
    "pandas": lambda df: df,
    "polars": lambda df: pl.from_pandas(df.reset_index(drop=True)),
    "arrow": lambda df: pa.Table.from_pandas(df),
    "lazy": lambda df: pl.from_pandas(df.reset_index(drop=True)).lazy(),
    "dict": lambda df: {name: df[name].to_list() for name in df},
    "records": lambda df: df.to_dict("records"),
    "array": lambda df: df.to_numpy(),
    "series": lambda df: df.iloc[:, 0],
    "columns": lambda df: df.columns,
}
libraries = st.one_of(st.sampled_from(["pandas", "polars"]), st.sampled_from(sorted(LIBRARIES)))


@for_all(
    shape=st.one_of(st.just("nothing"), st.sampled_from(sorted(SHAPES))),
    changes=st.lists(st.sampled_from(sorted({**TARGETS, **IDS, **DATES})), max_size=2),
    library=libraries,
    parameters=st.sampled_from(
        [{"preset": "fast", "lags": 3}, {"preset": "fast", "errors": "raise"}, {"scope": "global"}]
    ),
    seed=st.integers(0, 99),
    instead=st.one_of(st.none(), st.none(), st.none(), anything),
)
def frames_of_any_kind(shape, changes, library, parameters, seed, instead):
    df = make_panel("ba", n=30) if instead is None else instead
    if isinstance(df, pd.DataFrame) and instead is None:
        df = _changed(df, [*changes, shape], library, seed)
        if df is None:
            return
    numbered = any(c.startswith(("ds n", "ds i", "ds u", "ds I", "ds far")) for c in changes)
    model = RBFDiffNet(1 if numbered else "D", **parameters)
    h = H
    inputs = shape.startswith("with") or shape == "same array twice"
    found = attempt(lambda: model.fit(df))
    if isinstance(found, Refused):
        return
    if inputs:
        plan = attempt(lambda: model.make_future_frame(h))
        attempt(lambda: model.predict(h, X_df=plan))  # it lacks the inputs
        return
    forecast = attempt(lambda: model.predict(h, level=[80, 95]))
    if isinstance(forecast, Refused):
        assert "2262" in forecast.message or "last" in forecast.message, forecast
        return
    assert type(forecast) is type(df)
    forecast_is_sound(forecast, df["unique_id"].to_list(), h)
    assert not forecast["ds"].isnull().any() if library == "pandas" else True
    _dates_follow(df, forecast)
    model.report_  # noqa: B018


def _changed(df, changes, library, seed):
    """The frame with changes, or None where a library has no such thing."""
    rng = np.random.default_rng(seed)
    every = {**TARGETS, **IDS, **DATES, **SHAPES}
    try:
        for change in changes:
            df = every[change](df, rng)
        return LIBRARIES[library](df)
    except (Exception, pl.exceptions.PanicException):  # changes that do not go together
        return None


def _dates_follow(df, forecast):
    """Dates of forecasts lie after those of their series, and ascend."""
    last = {}
    for name, date in zip(df["unique_id"].to_list(), df["ds"].to_list(), strict=True):
        last[name] = max(date, last.get(name, date))
    for name, date in zip(forecast["unique_id"].to_list(), forecast["ds"].to_list(), strict=True):
        assert date > last[name], (name, date)
        last[name] = date

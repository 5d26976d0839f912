"""Seeded panels and configurations of the forecaster, shared by the tests."""

import numpy as np
import pandas as pd
import polars as pl

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.scopes import METHODS
from rbfdiffnet.panel.calendar import Event
from rbfdiffnet.series.series import SeriesPanel

NAME = "RBFDiffNet"
QUICK = {"preset": "fast", "lags": 7}
LEVELS = [f"{NAME}{end}" for end in ("", "-lo-80", "-hi-80", "-lo-95", "-hi-95")]
EVENTS = [Event("fair", ["2023-02-10", "2023-03-21", "2023-05-05", "2023-06-04"], lead=1, lag=1)]

LOCAL = {"scope": "local"}

#: Parameters of a forecaster with networks and the further columns of the frame, by name.
CONFIGURATIONS = {
    "local": (LOCAL, ()),
    "fast": ({"preset": "fast"}, ()),
    "paper": ({"preset": "paper"}, ()),
    "global": ({"scope": "global"}, ()),
    "direct": ({"strategy": "direct"}, ()),
    "global direct": ({"scope": "global", "strategy": "direct", "lags": 7}, ()),
    "log1p": ({"transforms": ["log1p"]}, ()),
    "differences": ({"transforms": ["seasonal", "difference", "standardize"]}, ()),
    "adf": ({"transforms": ["adf", "mean"], "lags": [1, 2, 7]}, ()),
    "lower": ({"lower": 48.0, "preset": "fast"}, ()),
    "calendar": ({**LOCAL, "calendar": "auto"}, ()),
    "events": ({**LOCAL, "events": EVENTS, "calendar": ["dayofweek"]}, ()),
    "inputs": (LOCAL, ("price", "offer")),
    "log1p inputs": ({"transforms": ["log1p", "difference"], "lower": 40.0}, ("price", "offer")),
    "past": ({**LOCAL, "past_exog": ["visitors"]}, ("visitors", "price")),
    "everything": (
        {
            "scope": "global",
            "calendar": "auto",
            "events": EVENTS,
            "past_exog": ["visitors"],
            "static_exog": ["region", "size"],
            "lower": 0.0,
        },
        ("price", "offer", "visitors", "region", "size"),
    ),
}
#: One of each kind; the others consist of what these have.
KINDS = ["local", "fast", "global", "direct", "log1p inputs", "adf", "events", "past", "everything"]
#: The same with the stack.
STACKS = {
    "default": ({}, ()),
    "default inputs": ({"calendar": "auto", "lower": 45.0}, ("price", "offer")),
    "default past": ({"past_exog": ["visitors"]}, ("visitors", "price")),
}


def make_panel(ids="bac", n=150, columns=(), start="2023-01-01", freq="D", seed=0):
    """Series with a week, an offset each and, if asked for, further columns that matter."""
    rng = np.random.default_rng(seed)
    parts = []
    for k, name in enumerate(ids):
        price = rng.uniform(1.0, 3.0, n).round(2)
        offer = np.where(rng.random(n) < 0.1, "flyer", "none")
        visitors = rng.poisson(30, n)
        week = 8.0 * np.sin(2 * np.pi * np.arange(n) / 7 + k)
        y = 60.0 + 20.0 * k + week + rng.normal(size=n)
        y += ("price" in columns) * -4.0 * (price - 2.0)
        y += ("offer" in columns) * 15.0 * (offer == "flyer")
        everything = {
            "unique_id": name,
            "ds": pd.date_range(start, periods=n, freq=freq),
            "y": y,
            "price": price,
            "offer": offer,
            "visitors": visitors,
            "region": "north" if k % 2 else "south",
            "size": 10.5 + k,
        }
        keep = ["unique_id", "ds", "y", *columns]
        parts.append(pd.DataFrame({key: everything[key] for key in keep}))
    return pd.concat(parts, ignore_index=True)


def make_stores(n=90, seed=0, freq="D"):
    """Two series in each of five stores of two states, with a week; ids begin with the kind."""
    stores = [("CA", "CA_1"), ("CA", "CA_2"), ("TX", "TX_1"), ("TX", "TX_2"), ("TX", "TX_3")]
    names = [f"{kind}@{store}" for _, store in stores for kind in ("food", "toys")]
    df = make_panel(names, n, freq=freq, seed=seed)
    parts = df["unique_id"].str.split("@", expand=True)
    return df.assign(state=parts[1].str[:2], store=parts[1], kind=parts[0])


def fill_future(frame, model, columns, seed=1):
    """Values of the columns known in the future for a frame of ids and dates, or None."""
    rng = np.random.default_rng(seed)
    known = [c for c in columns if c not in (*model.past_exog, *model.static_exog)]
    if not known:
        return None
    values = {
        "price": rng.uniform(1.0, 3.0, len(frame)).round(2),
        "offer": np.where(rng.random(len(frame)) < 0.3, "flyer", "none"),
    }
    return frame.assign(**{name: values[name] for name in known})


def future_of(model, h, columns):
    """X_df for a fitted model, or None if it needs none."""
    return fill_future(model.make_future_frame(h), model, columns)


def to_polars(df):
    """The same frame in polars."""
    return pl.DataFrame(
        {
            name: pl.Series(df[name].to_list(), dtype=pl.String)
            if not pd.api.types.is_numeric_dtype(df[name])
            and not pd.api.types.is_datetime64_any_dtype(df[name])
            else pl.Series(df[name].to_numpy())
            for name in df.columns
        }
    )


def every_series(df, keep):
    """The rows of each series that a slice of its steps keeps."""
    parts = [group.iloc[keep] for _, group in df.groupby("unique_id", sort=False)]
    return pd.concat(parts, ignore_index=True)


def last_part(df, h, columns, model):
    """The last h rows of each series as X_df."""
    known = [c for c in columns if c not in (*model.past_exog, *model.static_exog)]
    return every_series(df, slice(-h, None))[["unique_id", "ds", *known]] if known else None


def forecast(df, h=5, X_df=None, level=None, freq="D", **parameters):
    """Forecasts of a new model."""
    return RBFDiffNet(freq, **parameters).forecast(df, h, X_df, level)


def fit_panel(panel, plan, *, scope, calibrate=False, n_jobs=1):
    """Fit single series by the method of a scope."""
    method = METHODS[scope]
    return method.fit(SeriesPanel.of(panel), plan, calibrate=calibrate, n_jobs=n_jobs)

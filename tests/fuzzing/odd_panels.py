"""Panels of odd series: short, empty, constant, closed, repeated, infinite, of any scale."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st

from fuzzing.trial import for_all
from rbfdiffnet import RBFDiffNet

KINDS = ["integer", "daily", "monthly", "hourly", "zoned"]
FREQ = {"integer": 3, "daily": "D", "monthly": "MS", "hourly": "h", "zoned": "D"}
START = {"daily": "2023-01-30", "monthly": "1980-05-01", "hourly": "2024-03-30 05:00"}


def shapes(rng, n):
    """Series of n values, by name."""
    t, noise = np.arange(n), rng.normal(size=n)
    return {
        "noise": noise,
        "walk": 100.0 + np.cumsum(noise),
        "season": 20.0 + 5.0 * np.sin(t * 2 * np.pi / 7) + noise,
        "periodic": np.array([1.0, 5.0, 2.0])[t % 3],
        "trend": 1000.0 - 3.0 * t,
        "growth": np.exp(t / 10.0),
        "counts": rng.poisson(0.3, n).astype(float),
        "zeros": np.zeros(n),
        "constant": np.full(n, 0.1),
        "level shift": np.where(t < n // 2, 1.0, 50.0),
        "tiny": 1e-200 * noise,
        "huge": 1e200 * noise,
        "almost constant": 1e8 + 1e-8 * noise,
    }


one_series = st.fixed_dictionaries(
    {
        "shape": st.sampled_from(sorted(shapes(np.random.default_rng(0), 0))),
        # Long series, and long panels, are slow and seldom odd in other ways.
        "n": st.one_of(*(st.integers(0, most) for most in (4, 12, 30, 60, 60, 300))),
        "missing": st.sampled_from([0.0, 0.0, 0.1, 0.9, 1.0]),
        "dropped": st.sampled_from([0.0, 0.0, 0.1, 0.8]),
        "repeated": st.sampled_from([0.0, 0.0, 0.2]),
        "spikes": st.sampled_from([0.0, 0.0, 0.02, 0.3]),
        "infinite": st.sampled_from([0.0, 0.0, 0.05]),
        "closed_at_the_end": st.sampled_from([0, 0, 1, 9]),
    }
)

for_any = {
    "preset": st.sampled_from([*["default", "fast"] * 3, "paper"]),
    "calendar": st.sampled_from([None, None, "auto"]),
    "lower": st.sampled_from([None, None, 0.0]),
    "outliers": st.sampled_from([None, False]),
}
for_stack = {
    "scope": st.just("auto"),
    "transforms": st.sampled_from(["auto", "auto", None, ["log1p"]]),
}
for_networks = {
    "scope": st.sampled_from(["local", "global"]),
    "strategy": st.sampled_from(["recursive", "recursive", "direct"]),
    "transforms": st.sampled_from(
        ["auto", "auto", None, ["log1p"], ["adf", "standardize"], ["seasonal", "difference"]]
    ),
    "lags": st.sampled_from(["auto", "auto", 3, [1, 7], 40]),
}
options = st.one_of(
    st.fixed_dictionaries(for_any | for_stack),
    st.fixed_dictionaries(for_any | for_networks),
    st.fixed_dictionaries(for_any | for_networks),
)


def dates_of(kind, n):
    if kind == "integer":
        return pd.Series(np.arange(n) * 3 - 50)
    if kind == "zoned":
        return pd.Series(pd.date_range("2024-02-20", periods=n, freq="D", tz="Europe/Berlin"))
    return pd.Series(pd.date_range(START[kind], periods=n, freq=FREQ[kind]))


def dates_after(kind, last, h):
    if kind == "integer":
        return [last + 3 * (k + 1) for k in range(h)]
    return list(pd.date_range(last, periods=h + 1, freq=FREQ[kind])[1:])


def make_series(name, kind, facts, rng):
    n = facts["n"]
    y = shapes(rng, n)[facts["shape"]]
    y[rng.random(n) < facts["spikes"]] = 1e9
    infinite = rng.random(n) < facts["infinite"]
    y[infinite] = rng.choice([np.inf, -np.inf], n)[infinite]
    y[max(n - facts["closed_at_the_end"], 0) :] = 0.0
    y[rng.random(n) < facts["missing"]] = np.nan
    df = pd.DataFrame({"unique_id": name, "ds": dates_of(kind, n), "y": y})
    again = df[rng.random(n) < facts["repeated"]]
    df = df[rng.random(n) >= facts["dropped"]]
    return pd.concat([df, again, again.assign(y=again["y"] + 1.0)])


def make_panel(kind, series, ids, seed):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    names = [7, 3, 5, 1] if ids == "number" else "bacd"
    parts = [make_series(n, kind, facts, rng) for n, facts in zip(names, series, strict=False)]
    nothing = pd.DataFrame({"unique_id": "a", "ds": dates_of(kind, 1), "y": 0.0}).head(0)
    df = pd.concat(parts or [nothing], ignore_index=True)
    df = df.iloc[rng.permutation(len(df))].reset_index(drop=True)
    if ids == "category":
        df["unique_id"] = pd.Categorical(df["unique_id"], categories=list("zdcba"))
    elif ids == "number":
        df["unique_id"] = df["unique_id"].astype("int64" if len(df) else object)
    return df


def check(df, kind, forecast, h, lower, levels):
    names = list(dict.fromkeys(df["unique_id"]))
    assert forecast["unique_id"].to_list() == [name for name in names for _ in range(h)]
    expected = [
        date
        for name in names
        for date in dates_after(kind, df.loc[df["unique_id"] == name, "ds"].max(), h)
    ]
    assert forecast["ds"].to_list() == expected
    values = forecast["RBFDiffNet"].to_numpy()
    bands = [values, *(forecast[c].to_numpy() for c in forecast.columns[3:])]
    assert len(bands) == 1 + 2 * len(levels)
    assert np.isfinite(bands).all()
    assert lower is None or np.min(bands, initial=lower) >= lower
    inner_low = inner_high = values
    for level in levels:
        low, high = (forecast[f"RBFDiffNet-{side}-{level}"].to_numpy() for side in ("lo", "hi"))
        assert (low <= inner_low).all()
        assert (high >= inner_high).all()
        inner_low, inner_high = low, high


def to_polars(df, kind, ids):
    if not len(df):
        time = pl.Int64 if kind == "integer" else pl.Datetime
        return pl.DataFrame(schema={"unique_id": pl.String, "ds": time, "y": pl.Float64})
    names = pl.Series(df["unique_id"].to_list())
    return pl.DataFrame(
        {
            "unique_id": names.cast(pl.Categorical) if ids == "category" else names,
            "ds": df["ds"].to_list(),
            "y": df["y"].to_numpy(),
        }
    )


DRAWN = {
    "series": st.lists(one_series, max_size=3),
    "ids": st.sampled_from(["text", "number", "category"]),
    "parameters": options,
    "h": st.sampled_from([1, 3, 3, 14, 14, 60]),
    "polars": st.booleans(),
    "seed": st.integers(0, 10**6),
}


def forecasts_are_sound(kind, series, ids, parameters, h, polars, seed):
    df = make_panel(kind, series, ids, seed)
    if df.empty:  # refused
        return
    if kind == "integer":
        parameters = {**parameters, "calendar": None}
    frame = to_polars(df, kind, ids) if polars else df
    model = RBFDiffNet(FREQ[kind], **parameters)
    plain = model.forecast(frame, h)
    with_levels = model.forecast(frame, h, level=[80, 95])
    assert type(plain) is type(frame)
    check(df, kind, plain, h, parameters["lower"], [])
    check(df, kind, with_levels, h, parameters["lower"], [80, 95])
    np.testing.assert_array_equal(
        plain["RBFDiffNet"].to_numpy(), with_levels["RBFDiffNet"].to_numpy()
    )


def fitted_models_are_sound(path, kind, series, ids, parameters, h, polars, seed):
    df = make_panel(kind, series, ids, seed)
    if df.empty:  # refused
        return
    if kind == "integer":
        parameters = {**parameters, "calendar": None}
    frame = to_polars(df, kind, ids) if polars else df
    model = RBFDiffNet(FREQ[kind], **parameters).fit(frame, h)
    forecast = model.predict(h, level=[80])
    values = forecast["RBFDiffNet"].to_numpy()
    terms = model.explain(h)
    keys = pl.DataFrame({"id": map(str, terms["unique_id"]), "ds": map(str, terms["ds"])})
    total = (
        keys.with_columns(part=terms["contribution"].to_numpy())
        .group_by("id", "ds", maintain_order=True)
        .agg(sum=pl.col("part").sum(), size=pl.col("part").abs().sum())
    )
    # Terms may be much larger than their sum, which then has their rounding errors.
    error = np.abs(total["sum"].to_numpy() - values)
    assert (error <= 1e-9 * np.maximum(np.abs(values), 1e-5 * total["size"].to_numpy())).all()
    if parameters["scope"] != "auto":
        assert np.isfinite(model.fitted_values()["RBFDiffNet"].to_numpy()).all()
    assert np.isfinite(model.equation()["coefficient"].to_numpy()).all()
    windows = model.cross_validation(frame, h, n_windows=2, refit=seed % 2 == 0)
    assert np.isfinite(windows["RBFDiffNet"].to_numpy()).all()
    model.save(path)
    again = RBFDiffNet.load(path).predict(h, level=[80])
    assert again.equals(forecast)


@for_all(kind=st.sampled_from(KINDS), **DRAWN)
def forecasts_of_odd_panels(**drawn):
    forecasts_are_sound(**drawn)


@for_all(kind=st.sampled_from(KINDS), **DRAWN)
def models_of_odd_panels(**drawn):
    with tempfile.TemporaryDirectory() as folder:
        fitted_models_are_sound(Path(folder, "model.npz"), **drawn)

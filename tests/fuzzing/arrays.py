"""Windows, transforms, recursion, text plots, metrics and events, given anything."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fuzzing.anything import anything
from fuzzing.claims import Refused, attempt
from fuzzing.regressors import mostly_floats, mostly_nothing, turned
from fuzzing.trial import for_all
from panels import make_panel, to_polars
from rbfdiffnet import Event
from rbfdiffnet.evaluation.metrics import (
    ensemble_crps,
    evaluate_quantiles,
    path_crps,
    revisions,
    rmsse,
    rmsse_score,
    summarize_revisions,
    winkler_score,
    wrmsse,
)
from rbfdiffnet.report.plots import text_plot
from rbfdiffnet.series.recursion import forecast_recursive
from rbfdiffnet.series.transforms import (
    TRANSFORMS,
    Compose,
    Difference,
    Log,
    Log1p,
    RemoveMean,
    Rescale,
    fit_transforms,
)
from rbfdiffnet.series.windows import lag_windows

#: Differences and sums of these overflow.
TOO_LARGE = ("at the limit", "enormous", "infinite")
STEPS = [Difference(), Difference(3), Log1p(), Log(), RemoveMean(), Rescale(2.0, 3.0), Compose()]


@st.composite
def series(draw):
    """A series of any kind, or something else."""
    n = draw(st.sampled_from([0, 1, 2, 5, 40]))
    values = np.sin(np.arange(float(n))) + 2.0
    spoilt, kind = draw(mostly_nothing), draw(mostly_floats)
    if n == 0 or draw(st.integers(0, 5)) == 5:
        return draw(anything)
    return turned(values, "nothing" if spoilt in TOO_LARGE else spoilt, kind)


def is_finite(s):
    try:
        values = np.asarray(s, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    # Sums and differences of values beyond this overflow.
    return bool(values.size and np.isfinite(values).all() and np.abs(values).max() < 1e306)


@for_all(
    call=st.sampled_from(["windows", "fit transforms", "transform", "recursion", "text plot"]),
    s=series(),
    number=st.one_of(st.integers(1, 5), anything),
    names=st.lists(st.one_of(st.sampled_from(TRANSFORMS), anything), max_size=3),
    step=st.sampled_from(STEPS),
    reach=st.one_of(st.just(10.0), anything),
)
def series_of_any_kind(call, s, number, names, step, reach):
    if isinstance(number, int | np.integer) and number > 1000:
        return
    if call == "windows":
        found = attempt(lambda: lag_windows(s, number))
        if not isinstance(found, Refused):
            X, y = found
            assert X.shape == (len(y), number)
            assert np.isfinite(X).all()
            assert np.isfinite(y).all()
    elif call == "fit transforms":
        found = attempt(lambda: fit_transforms(tuple(names), s, number))
        if not isinstance(found, Refused) and is_finite(s):
            assert isinstance(found, Compose)
    elif call == "transform":
        _comes_back(step, s)
    elif call == "recursion":
        found = attempt(
            lambda: forecast_recursive(lambda X: 2.0 * X[:, -1], s, number, n_lags=1, reach=reach)
        )
        if not isinstance(found, Refused):
            assert found.shape[-1] == number
            assert np.isfinite(found).all()
    else:
        found = attempt(lambda: text_plot(s, s, width=number))
        assert isinstance(found, Refused | str)


def _comes_back(step, s):
    """A transform and its inverse give back the end of a series."""
    z = attempt(lambda: step.apply(s))
    if isinstance(z, Refused):
        return
    values = np.asarray(s, dtype=np.float64)
    if values.ndim != 1 or len(z) < 2 or not is_finite(s):
        return
    h = min(2, len(z) - 1)
    back = attempt(lambda: step.invert(z[-h:], values[:-h] if step.lost else values))
    size = np.abs(values).max()
    if np.all(values >= 0.0) and 1e-300 < size < 1e300:
        np.testing.assert_allclose(back, values[-h:], rtol=1e-6, atol=1e-6 * max(size, 1.0))


@for_all(
    s=st.tuples(series(), series(), series()),
    frame=st.sampled_from(["score", "pandas", "polars"]),
    changes=st.lists(st.sampled_from(["nan", "inf", "no id", "no y", "text", "other", "none"])),
    models=st.one_of(st.just(["model"]), st.just(["model", "other"]), st.just([]), anything),
    weights=st.one_of(st.just({"a": 1.0, "b": 2.0}), st.just({"a": -1.0}), anything),
)
def scores_of_any_kind(s, frame, changes, models, weights):
    if frame == "score":
        found = attempt(lambda: rmsse_score(*s))
        assert isinstance(found, Refused | float)
        return
    df = make_panel("ab", n=12)
    past = df.groupby("unique_id").head(9)
    test = df.groupby("unique_id").tail(3).assign(model=60.0)
    for change in changes:
        test = {
            "nan": lambda t: t.assign(model=np.nan),
            "inf": lambda t: t.assign(model=np.inf),
            "no id": lambda t: t.drop(columns="unique_id", errors="ignore"),
            "no y": lambda t: t.drop(columns="y", errors="ignore"),
            "text": lambda t: t.assign(model="a"),
            "other": lambda t: t.assign(unique_id="c"),
            "none": lambda t: t.head(0),
        }[change](test)
    if frame == "polars":
        test, past = to_polars(test), to_polars(past)
    for call in (lambda: rmsse(test, models, past), lambda: wrmsse(test, models, past, weights)):
        found = attempt(call)
        if not isinstance(found, Refused):
            assert type(found) is type(test)


@for_all(
    s=st.tuples(series(), series()),
    polars=st.booleans(),
    spoiled=st.dictionaries(
        st.sampled_from(["unique_id", "ds", "cutoff", "y", "M", "M-lo-80", "M-hi-80", "M-q-25"]),
        st.sampled_from(["gone", "nan", "inf", "text", "constant", "huge", "missing"]),
        max_size=3,
    ),
    n=st.sampled_from([0, 1, 5, 18]),
    models=st.one_of(st.none(), st.just(["M"]), anything),
    by=st.one_of(st.none(), st.sampled_from(["horizon", "unique_id", "cutoff"]), anything),
    freq=st.one_of(st.none(), st.just(1), anything),
)
def distributions_of_any_kind(s, polars, spoiled, n, models, by, freq):
    attempt(lambda: ensemble_crps(*s))
    row = np.arange(n)
    frame = pd.DataFrame(
        {"unique_id": np.array(["a", "b"])[row % 2], "ds": 5 + row // 6, "cutoff": 4 - row // 2 % 3}
    )
    frame = frame.assign(y=5.0, M=4.0, **{"M-lo-80": 3.0, "M-hi-80": 6.0, "M-q-25": 3.5})
    for name, what in spoiled.items():
        values = {"nan": np.nan, "inf": np.inf, "text": "a", "constant": 7, "huge": 1e308}
        if what == "gone":
            frame = frame.drop(columns=name)
        elif what == "missing":
            frame = frame.assign(**{name: frame[name].where(row % 3 > 0, None)})
        else:
            frame = frame.assign(**{name: values[what]})
    frame = to_polars(frame) if polars else frame
    for call in (
        lambda: evaluate_quantiles(frame, models, by, freq=freq),
        lambda: revisions(frame, models),
        lambda: summarize_revisions(frame, models, freq=freq),
        lambda: winkler_score(frame, models, 80),
        lambda: path_crps(frame, models),
    ):
        found = attempt(call)
        if not isinstance(found, Refused):
            assert type(found) is type(frame)


@for_all(
    name=st.one_of(st.just("fair"), anything),
    dates=st.one_of(st.just(["2024-05-01"]), st.just([pd.Timestamp("2024-05-01")]), anything),
    lead=st.one_of(st.integers(0, 2), anything),
    lag=st.one_of(st.integers(0, 2), anything),
)
def events_of_any_kind(name, dates, lead, lag):
    event = attempt(lambda: Event(name, dates, lead, lag))
    if not isinstance(event, Refused):
        assert len(event.names) == int(event.lead) + int(event.lag) + 1
        hash(event)

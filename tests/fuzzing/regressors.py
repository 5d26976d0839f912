"""The scikit-learn regressors: parameters, rows, weights and series of any kind."""

from decimal import Decimal

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fuzzing.anything import ODD, anything
from fuzzing.claims import Refused, attempt
from fuzzing.trial import for_all
from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.network.basis import BASES
from rbfdiffnet.network.centers import CENTERS
from rbfdiffnet.network.widths import WIDTH_RULES

CLASSES = {cls.__name__: cls for cls in (RBFDiffNetRegressor, RBFNetworkRegressor)}
#: Values that make sense for some parameter, beside those that make none.
USUAL = [
    *(*CENTERS, *WIDTH_RULES, *BASES),
    *("learned", "standard", "common", "varpro", "als", "bfgs", "squared", "huber", "absolute"),
    *("quantile", "ridge", "lasso", "auto", (0.1, 0.2), 0.5, 1e-6, 5, [[0.0, 0.5], [1.0, 1.0]]),
    *(np.random.RandomState(0), [1.0, 0.0], 1e12, 1e-12),
]
values = st.one_of(anything, st.integers(0, len(USUAL) - 1).map(lambda k: USUAL[k]))


def data(n=24, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


@st.composite
def changes(draw, names):
    """One parameter of any kind, or two."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    return {name: draw(values) for name in chosen}


@for_all(name=st.sampled_from(sorted(CLASSES)), drawn=st.data())
def parameters_of_any_kind(name, drawn):
    cls = CLASSES[name]
    names = sorted(cls().get_params())
    changed = drawn.draw(changes(names), label="parameters")
    usual = {"max_iter": 20} if "max_iter" in names else {}
    X, y = data()
    model = attempt(
        lambda: cls(**{**usual, **changed}).fit(X, y),
        naming=[*changed, "rows must be consecutive windows"],
    )
    if not isinstance(model, Refused):
        found = attempt(lambda: model.predict(X[:5]))
        assert found.shape == (5,)
        assert np.isfinite(found).all()


#: What a column of numbers may be turned into.
KINDS = {
    "floats": lambda a: a,
    "float16": lambda a: a.astype(np.float16),
    "float32": lambda a: a.astype(np.float32),
    "longdouble": lambda a: a.astype(np.longdouble),
    "integers": lambda a: np.rint(3 * a).astype(np.int64),
    "small": lambda a: np.rint(3 * a).astype(np.int8),
    "flags": lambda a: a > 0,
    "objects": lambda a: a.astype(object),
    "decimals": lambda a: np.vectorize(lambda v: Decimal(str(v)), otypes=[object])(a),
    "text": lambda a: a.astype(str),
    "complex": lambda a: a + 1j,
    "dates": lambda a: np.rint(a).astype("M8[D]"),
    "lists": lambda a: a.tolist(),
    "frame": lambda a: pd.DataFrame(a),
    "named": lambda a: pd.DataFrame(a).rename(columns=str),
    "nullable": lambda a: pd.DataFrame(a).astype("Float64"),
    "missing": lambda a: pd.DataFrame(a).astype("Float64").mask(pd.DataFrame(a) > 1.0),
    "turned": lambda a: np.asfortranarray(a)[::-1],
    "locked": lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),
    "masked": lambda a: np.ma.masked_greater(a, 1.0),
    "cube": lambda a: a.reshape(-1, 1, 1),
    "flat": lambda a: a.ravel(),
    "column": lambda a: a.reshape(-1, 1),
    "scalar": lambda a: a.sum(),
    "empty": lambda a: a[:0],
    "one": lambda a: a[:1],
    "two": lambda a: a[:2],
    "two outputs": lambda a: np.stack([a.ravel(), -a.ravel()], axis=1),
}
SPOILT = {
    "nothing": lambda a: a,
    "nan": lambda a: _put(a, np.nan),
    "infinite": lambda a: _put(a, np.inf),
    "enormous": lambda a: _put(a, 1e300),
    "spike": lambda a: _put(a, 1e12),
    "subnormal": lambda a: a * 5e-324,
    "tiny": lambda a: a * 1e-200,
    "huge": lambda a: a * 1e150,
    "at the limit": lambda a: np.clip(a, -2.0, 2.0) * 8e307,
    "shifted": lambda a: a + 1e9,
    "constant": lambda a: np.full_like(a, 2.5),
    "zero": lambda a: np.zeros_like(a),
    "almost constant": lambda a: 1.0 + 1e-15 * a,
    "two values": lambda a: np.sign(a),
    "sorted": lambda a: np.sort(a, axis=0),
}


def turned(a, spoilt, kind):
    """An array after two changes, whatever comes of numbers that do not fit."""
    with np.errstate(all="ignore"):
        return KINDS[kind](SPOILT[spoilt](a))


def _put(a, value):
    a = a.copy()
    a.flat[a.size // 2] = value
    return a


def mostly(usual, other):
    """Five of six times the one, otherwise the other."""
    return st.integers(0, 5).flatmap(lambda k: other if k == 5 else usual)


mostly_floats = st.one_of(st.just("floats"), st.sampled_from(sorted(KINDS)))
mostly_nothing = st.one_of(st.just("nothing"), st.sampled_from(sorted(SPOILT)))


@for_all(
    name=st.sampled_from(sorted(CLASSES)),
    kinds=st.tuples(mostly_floats, mostly_floats),
    spoilt=st.tuples(mostly_nothing, mostly_nothing),
    weights=st.sampled_from(["none", *sorted(KINDS), *(f"spoilt {s}" for s in sorted(SPOILT))]),
    n=st.sampled_from([1, 2, 3, 8, 24, 60]),
    seed=st.integers(0, 5),
    options=st.sampled_from([{}, {}, {"penalty": "lasso"}, {"width_factor": 1.0, "alpha": 0.1}]),
    odd=st.one_of(st.none(), st.none(), st.sampled_from(range(len(ODD)))),
)
def rows_of_any_kind(name, kinds, spoilt, weights, n, seed, options, odd):
    plain, target = data(n, seed)
    X, y = turned(plain, spoilt[0], kinds[0]), turned(target, spoilt[1], kinds[1])
    weight = np.abs(target)
    if weights.startswith("spoilt"):
        weight = turned(weight, weights[7:], "floats")
    elif weights != "none":
        weight = turned(weight, "nothing", weights)
    else:
        weight = None if odd is None else ODD[odd]
    model = attempt(lambda: CLASSES[name](**options).fit(X, y, sample_weight=weight))
    if isinstance(model, Refused):
        return
    found = attempt(lambda: model.predict(X))
    shape = np.shape(y)
    assert found.shape == shape
    assert np.isfinite(found).all()
    attempt(lambda: model.predict(ODD[0 if odd is None else odd]))


@for_all(
    kind=mostly_floats,
    spoilt=mostly_nothing,
    n=st.sampled_from([0, 1, 5, 30, 120]),
    n_lags=mostly(st.sampled_from([1, 2, 4, "auto", "auto"]), anything),
    noise=st.sampled_from([None, None, "auto", 0.1, 0, -1.0]),
    shape=st.sampled_from(["one", "one", "sensors", "trajectories"]),
    delay=mostly(st.sampled_from([None, None, 1, 3]), anything),
    times=mostly(st.sampled_from([None, None, *SPOILT]), st.one_of(mostly_floats, anything)),
    h=mostly(st.integers(1, 20), anything.filter(lambda h: not isinstance(h, int))),
    history=mostly(st.one_of(st.none(), mostly_floats), anything),
    far=mostly_nothing,
    quantiles=mostly(st.sampled_from([None, [0.1, 0.9]]), anything),
)
def series_of_any_kind(
    kind, spoilt, n, n_lags, noise, shape, delay, times, h, history, far, quantiles
):
    rng = np.random.default_rng(n)
    plain = np.sin(np.arange(n)) + 0.1 * rng.normal(size=n)
    s = turned(plain, spoilt if n else "nothing", kind)
    if shape == "sensors":
        s = np.stack([s, s], axis=-1)
    elif shape == "trajectories":
        s = [s, s]
    at = np.arange(n) + 0.1 * rng.random(n)
    if isinstance(times, str) and n and times in SPOILT:
        at = np.sort(turned(at, times, "floats"))
    else:
        at = turned(at, "nothing", times) if _named(times) else times
    model = attempt(lambda: RBFDiffNetRegressor(noise=noise).fit_series(s, n_lags, delay, at))
    if isinstance(model, Refused):
        return
    past = turned(plain, far, history) if _named(history) else history
    if shape == "sensors" and isinstance(past, np.ndarray):
        past = np.stack([past, past], axis=-1)
    found = attempt(lambda: model.forecast(h, history=past, quantiles=quantiles))
    if not isinstance(found, Refused):
        assert found.shape[0] == h
        assert np.isfinite(found).all()


def _named(kind):
    return isinstance(kind, str) and kind in KINDS

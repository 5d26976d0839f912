"""Write down what the package forecasts, so that no number changes unnoticed.

``python tests/golden/make.py`` writes the files of numbers beside it anew, ``... NAME`` only one of
them. `tests/test_golden.py` compares. A row of numbers may be off by the tolerance of its case,
relative to the largest of its numbers: they are not the same bits with other versions of NumPy,
SciPy and their linear algebra library, nor on other processors.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from rbfdiffnet import RBFDiffNet, RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.datasets import (
    daily_demand,
    henon_map,
    load_air_passengers,
    load_nile,
    load_sunspots,
    logistic_map,
    mackey_glass,
)
from rbfdiffnet.series.windows import lag_windows

FOLDER = Path(__file__).parent
COMMAND = "python tests/golden/make.py"
H = 6

# With another NumPy, SciPy and OpenBLAS most numbers differ by less than 1e-9. The paper's trainer,
# BFGS, ends where the gradient is small, and that leaves 1e-5 open.
CLOSED, SEARCHED = 1e-6, 1e-4

Rows = dict[str, list[float]]


@dataclass(frozen=True)
class Case:
    """Numbers, how far they may be off, and whether they take long."""

    rows: Callable[[], Rows]
    tolerance: float = CLOSED
    slow: bool = False


# Forecasters --------------------------------------------------------------------------------------


SETS: dict[str, tuple[object, Callable[[], pd.DataFrame]]] = {
    "air": ("MS", load_air_passengers),
    "nile": ("YS", load_nile),
    "sunspots": ("YS", load_sunspots),
    "demand": ("D", lambda: daily_demand(3, 150)),
}


def future(model: RBFDiffNet, h: int) -> pd.DataFrame | None:
    """The plan for the next days, where the series have one."""
    frame = model.make_future_frame(h)
    if "item_001" not in set(frame["unique_id"]):
        return None
    return frame.assign(promotion=np.arange(len(frame)) % 4 == 1)


def fitted(name: str, **parameters: object) -> RBFDiffNet:
    freq, load = SETS[name]
    return RBFDiffNet(freq, **parameters).fit(load(), H)


def of_frame(frame: pd.DataFrame, keys: list[str], values: list[str]) -> Rows:
    """A row of numbers for each of the series, or whatever the keys tell apart, and each column."""
    groups = frame.fillna(dict.fromkeys(keys, "")).groupby(keys, sort=False)
    return {
        ", ".join(map(str, (*key, value))): group[value].tolist()
        for key, group in groups
        for value in values
    }


def predict(name: str, **parameters: object) -> Rows:
    model = fitted(name, **parameters)
    frame = model.predict(H, future(model, H), level=[80])
    return of_frame(frame, ["unique_id"], list(frame.columns[2:]))


def explain(name: str, **parameters: object) -> Rows:
    model = fitted(name, **parameters)
    terms = model.explain(2, future(model, 2))
    return of_frame(terms, ["unique_id", "part", "term"], ["contribution"])


def weights(name: str) -> Rows:
    model = fitted(name)
    model.predict(H, future(model, H))
    return {key: [float(value)] for key, value in model.weights_.items()}


def cross_validation(name: str, **parameters: object) -> Rows:
    freq, load = SETS[name]
    folds = RBFDiffNet(freq, **parameters).cross_validation(load(), 3, n_windows=2, level=[80])
    return of_frame(folds, ["unique_id", "cutoff"], list(folds.columns[4:]))


def update(name: str, **parameters: object) -> Rows:
    freq, load = SETS[name]
    df = load()
    newest = df.groupby("unique_id").cumcount(ascending=False) < 10
    model = RBFDiffNet(freq, **parameters).fit(df[~newest])
    frame = model.update(df[newest], refit="weights").predict(H, future(model, H), level=[80])
    return of_frame(frame, ["unique_id"], list(frame.columns[2:]))


FORECASTS = {
    f"{scope}, {preset}, {name}": Case(
        partial(predict, name, scope=scope, preset=preset),
        SEARCHED if preset == "paper" else CLOSED,
        slow=(scope, preset) == ("global", "best"),
    )
    for scope in ("auto", "local", "global")
    for preset in ("default", "fast", "paper", "best")
    for name in ("air", "nile", "demand")
}

FORECASTERS = {
    "sunspots": Case(partial(predict, "sunspots", scope="local")),
    "direct": Case(partial(predict, "sunspots", strategy="direct")),
    "global direct": Case(partial(predict, "demand", scope="global", strategy="direct")),
    "logarithms, differences": Case(
        partial(predict, "air", transforms=["log1p", "seasonal", "difference"])
    ),
    "calendar": Case(partial(predict, "demand", scope="local", calendar="auto", lower=0)),
    "paper regressor": Case(
        partial(predict, "nile", regressor=RBFDiffNetRegressor.paper()), SEARCHED
    ),
    "plain network": Case(partial(predict, "nile", regressor=RBFNetworkRegressor())),
    "noise": Case(partial(predict, "sunspots", noise="auto", lags=4)),
    "folds": Case(partial(cross_validation, "nile", scope="local")),
    "update of weights": Case(partial(update, "demand", scope="global")),
    "explained by networks": Case(partial(explain, "nile", scope="local")),
    "explained by a global network": Case(partial(explain, "demand", scope="global", lags=7)),
    "explained by a stack": Case(partial(explain, "demand")),
    "weights of a stack": Case(partial(weights, "demand")),
}


# Regressors ---------------------------------------------------------------------------------------


def regress(regressor: RBFDiffNetRegressor | RBFNetworkRegressor) -> Rows:
    """Predictions on the Hénon map, and the penalties chosen."""
    X, y = lag_windows(henon_map(260) + 0.05 * np.random.default_rng(0).normal(size=260), 3)
    regressor.fit(X[:200], y[:200])
    return {
        "prediction": regressor.predict(X[200:220]).tolist(),
        "alpha": np.ravel(regressor.alpha_).tolist(),
    }


def regress_series(clean: np.ndarray, noise: float, n_lags: int, h: int) -> Rows:
    """The clean series behind noise."""
    noisy = clean + noise * np.random.default_rng(0).normal(size=clean.size)
    regressor = RBFDiffNetRegressor(noise="auto").fit_series(noisy, n_lags)
    latent = regressor.latent_[-20:]
    rows = {
        "noise": [float(regressor.noise_std_)],
        "latent": latent.tolist(),
        "prediction": regressor.predict(lag_windows(latent, n_lags)[0]).tolist(),
    }
    if h:
        quantiles = regressor.forecast(h, quantiles=[0.1, 0.5, 0.9]).T
        rows |= {
            f"quantile {k}": row for k, row in zip((10, 50, 90), quantiles.tolist(), strict=True)
        }
    return rows


REGRESSORS = {
    name: Case(
        partial(regress, regressor),
        SEARCHED if regressor.get_params().get("solver") == "bfgs" else CLOSED,
    )
    for name, regressor in {
        "default": RBFDiffNetRegressor(),
        "second order": RBFDiffNetRegressor(order=2),
        "paper": RBFDiffNetRegressor.paper(),
        "paper, second order": RBFDiffNetRegressor.paper(order=2),
        "alternating": RBFDiffNetRegressor(solver="als"),
        "lasso": RBFDiffNetRegressor(penalty="lasso"),
        "quantile": RBFDiffNetRegressor(loss="quantile", quantile=0.9),
        "map of centers": RBFDiffNetRegressor(centers="som"),
        "forward selection": RBFDiffNetRegressor(centers="forward"),
        "plain": RBFNetworkRegressor(),
        "plain, normalized": RBFNetworkRegressor(normalize=True),
    }.items()
}
# The filter of a chaotic map follows orbits that part, however close they were: forecasts there
# agree as two draws do, so they are not written down. The map and the clean series are.
REGRESSORS["noise"] = Case(partial(regress_series, mackey_glass(300), 0.05, 4, H))
REGRESSORS["noise, chaotic"] = Case(partial(regress_series, logistic_map(300), 0.04, 2, 0))


# Files --------------------------------------------------------------------------------------------

#: Cases by the name of their file.
FILES = {"forecasts": FORECASTS, "forecasters": FORECASTERS, "regressors": REGRESSORS}


def read(name: str) -> dict[str, Rows]:
    """What is written down."""
    known: dict[str, Rows] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return known


def write(name: str, found: dict[str, Rows]) -> None:
    """Write a file: a line for each row of numbers, every digit of them."""
    cases = []
    for case, rows in found.items():
        lines = [f"    {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items()]
        cases.append(f"  {json.dumps(case)}: {{\n" + ",\n".join(lines) + "\n  }")
    text = "{\n" + ",\n".join(cases) + "\n}\n"
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def differences(name: str, case: str, found: Rows) -> list[str]:
    """What is off by more than the tolerance, and by how much."""
    expected, tolerance = read(name).get(case), FILES[name][case].tolerance
    if expected is None:
        return [f"{case!r} is not in {name}.json"]
    if list(found) != list(expected):
        wrong = ", ".join(sorted(set(found) ^ set(expected))) or "their order"
        return [f"{case!r} has other rows than {name}.json: {wrong}"]
    off = {row: deviation(found[row], expected[row]) for row in expected}
    return [
        f"{case!r}, {row}: off by {by:.1e}, more than {tolerance:.0e}\n"
        f"  was {expected[row]}\n  is  {found[row]}"
        for row, by in off.items()
        if not by <= tolerance
    ]


def deviation(found: list[float], expected: list[float]) -> float:
    """Largest difference, in parts of the largest number that is expected."""
    if len(found) != len(expected):
        return np.inf
    scale = float(np.max(np.abs(expected), initial=0.0))
    largest = float(np.max(np.abs(np.subtract(found, expected)), initial=0.0))
    return largest / scale if scale else largest


def main(names: list[str]) -> None:
    for name in names or FILES:
        write(name, {case: made.rows() for case, made in FILES[name].items()})
        print(f"{FOLDER / name}.json: {len(FILES[name])} cases")


if __name__ == "__main__":
    main(sys.argv[1:])

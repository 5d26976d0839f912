"""Intervals, quantiles and paths."""

import numpy as np
import pandas as pd

from attack_parts.registry import SETTINGS, Cases, Group
from panels import NAME, make_panel
from rbfdiffnet import RBFDiffNet

GROUP = Group("intervals", "Intervals, quantiles and paths")
promise = GROUP.promise
EVERY = {**SETTINGS, "instant": {"preset": "instant"}}


@promise(
    "Intervals of exchangeable errors hold as many values as they say",
    "intervals.md",
    "150 series of independent noise, 7 steps: 77 to 84 % in 80 %, 93 to 97.5 % in 95 %",
)
def coverage_of_noise(cases: Cases) -> None:
    y = np.random.default_rng(0).normal(size=(150, 107))
    df = _frame(y)
    for name, parameters in EVERY.items():
        folds = RBFDiffNet(1, **parameters).cross_validation(df, 7, level=[80, 95])
        for level, least, most in ((80, 0.77, 0.84), (95, 0.93, 0.975)):
            with cases(f"{level} %, {name}"):
                low, high = folds[f"{NAME}-lo-{level}"], folds[f"{NAME}-hi-{level}"]
                share = folds["y"].between(low, high).mean()
                assert least <= share <= most, f"{share:.1%} inside"


@promise(
    "Levels beside each other do not depend on which others are asked for",
    "intervals.md",
    "80 % alone and among others, quantiles beside levels, in five settings",
)
def levels_asked_for(cases: Cases) -> None:
    df = make_panel("abc", n=60)
    for name, parameters in EVERY.items():
        model = RBFDiffNet("D", **parameters).fit(df)
        alone = model.predict(5, level=[80])
        for level, quantiles in (([50, 80, 95], None), ([80], [0.3, 0.7]), ([95, 80], [0.1])):
            with cases(f"{level}, {quantiles}, {name}"):
                found = model.predict(5, level=level, quantiles=quantiles)[list(alone)]
                pd.testing.assert_frame_equal(found, alone, check_exact=True)


@promise(
    "The first steps do not depend on how far one asks",
    "accuracy.md",
    "5 steps alone and as the first of 30, in four settings",
)
def first_steps(cases: Cases) -> None:
    df = make_panel("abc", n=80)
    for name in ("default", "instant", "fast", "local"):
        with cases(name):
            model = RBFDiffNet("D", **EVERY[name]).fit(df)
            near, far = (model.predict(h)[NAME].to_numpy().reshape(3, h)[:, :5] for h in (5, 30))
            np.testing.assert_allclose(near, far, rtol=1e-9)


@promise(
    "The same seed gives the same paths, whatever the order of the series",
    "distributions.md",
    "series in three orders, in five settings; another seed gives others",
)
def paths(cases: Cases) -> None:
    df = make_panel("abc", n=60)
    for name, parameters in EVERY.items():
        model = RBFDiffNet("D", **parameters).fit(df)
        expected = _paths(model, 1)
        with cases(f"another seed, {name}"):
            assert not np.array_equal(_paths(model, 2), expected)
        for order in ("cba", "bca"):
            with cases(f"{order}, {name}"):
                mixed = pd.concat([df[df["unique_id"] == i] for i in order])
                other = RBFDiffNet("D", **parameters).fit(mixed)
                np.testing.assert_array_equal(_paths(other, 1), expected)


def _paths(model: RBFDiffNet, seed: int) -> np.ndarray:
    found = model.simulate(6, n_paths=20, seed=seed)
    return found.sort_values(["unique_id", "sample_id", "ds"], kind="stable")[NAME].to_numpy()


@promise(
    "On each day paths have the quantiles of `predict`",
    "distributions.md",
    "shares of 4,000 paths below five quantiles, in five settings: within 4 points",
)
def paths_have_the_quantiles(cases: Cases) -> None:
    df, shares = make_panel("ab", n=240), [0.1, 0.25, 0.5, 0.75, 0.9]
    for name, parameters in EVERY.items():
        model = RBFDiffNet("D", **parameters).fit(df)
        quantiles = model.predict(4, level=None, quantiles=shares)
        drawn = model.simulate(4, n_paths=4000, seed=cases.seed % 1000)
        values = drawn.pivot_table(index="sample_id", columns=["unique_id", "ds"], values=NAME)
        values = values[list(zip(quantiles["unique_id"], quantiles["ds"], strict=True))].to_numpy()
        for share in shares:
            with cases(f"{share:g}, {name}"):
                below = (values <= quantiles[f"{NAME}-q-{100 * share:g}"].to_numpy()).mean(axis=0)
                worst = np.abs(below - share).max()
                assert worst < 0.04, f"{worst:.3f} away"


@promise(
    "Random metrics and distributions are scored, or refused in words",
    "distributions.md",
    "random arrays, frames and events",
)
def scores(cases: Cases) -> None:
    for target in ("arrays", "metrics", "distributions", "events"):
        cases.fuzz(target, 150)


def _frame(y: np.ndarray) -> pd.DataFrame:
    """Long frame of rows (n, T), which are series."""
    n, T = y.shape
    ids = np.repeat([f"s{i:03d}" for i in range(n)], T)
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(np.arange(T), n), "y": y.ravel()})

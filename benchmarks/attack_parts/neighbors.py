"""What bad series in a panel do to good ones."""

import numpy as np
import pandas as pd

from attack_parts.registry import Cases, Group
from hard_series import CONFIGURATIONS, forecasts_of, frame_of, hard_series, panel_of
from panels import NAME
from rbfdiffnet import RBFDiffNet

GROUP = Group("neighbors", "Good series beside bad ones")
promise = GROUP.promise
LOCAL = ("local", "fast")
POOLED = ("stack", "global")


def good_ones(n_series: int = 9, n: int = 84, seed: int = 0) -> dict[str, np.ndarray]:
    """50, a week of 10, and noise of 3: an ideal interval of 95 % is 11.8 wide."""
    rng, t = np.random.default_rng(seed), np.arange(n)
    return {
        f"g{i}": 50 + 10 * np.sin(2 * np.pi * (t + i) / 7) + rng.normal(0, 3, n)
        for i in range(n_series)
    }


def ordinary_ones(n: int = 84) -> dict[str, np.ndarray]:
    """Four like the good ones, two walks and two trends."""
    rng, t = np.random.default_rng(7), np.arange(n)
    walks = {f"walk {i}": 50 + np.cumsum(rng.normal(0, 3, n)) for i in range(2)}
    trends = {f"trend {i}": 50 + (1 - 2 * i) * t / 4 + rng.normal(0, 3, n) for i in range(2)}
    return {**good_ones(4, seed=7), **walks, **trends}


def bad_ones(n: int = 84) -> dict[str, np.ndarray]:
    """Series that stop, jump and grow, beside the hard ones."""
    rng, t = np.random.default_rng(1), np.arange(n)
    hard = hard_series(n)
    names = ("spike", "spike at the end", "large", "subnormal", "one sale", "extremes", "all sizes")
    return {
        "discontinued": np.where(t < n - 14, rng.poisson(1000, n), 0.0),
        "level times 20": np.where(t < n - 14, 1.0, 20.0) * rng.poisson(100, n),
        "growth of 1.4 a day": 1.4**t,
        "periodic": hard["periodic"],
        **{name: hard[name] for name in names},
    }


@promise(
    "With networks of their own, good series have the same bits beside any bad series",
    "forecaster.md",
    "two good series beside each of 11 bad ones, and beside all of them",
)
def neighbors_of_networks(cases: Cases) -> None:
    good, bad = panel_of(2, n=70), bad_ones(70)
    for name in LOCAL:
        expected = forecasts_of(good, 7, **CONFIGURATIONS[name])[:, :, 0]
        for kind in (*bad, "all"):
            with cases(f"{kind}, {name}"):
                others = bad if kind == "all" else {kind: bad[kind]}
                found = forecasts_of({**good, **others}, 7, only=good, **CONFIGURATIONS[name])
                np.testing.assert_array_equal(found[:, :, 0], expected)


@promise(
    "Where series learn from each other, a bad one moves the others no farther than an ordinary "
    "one (a week, a walk, a trend)",
    "forecaster.md",
    "mean change of nine good series beside each of 11 bad ones: at most the largest beside "
    "eight ordinary ones",
)
def neighbors_in_pools(cases: Cases) -> None:
    good, ordinary = good_ones(), ordinary_ones()
    spread = np.array([[np.std(y)] for y in good.values()])

    for name in POOLED:
        alone = forecasts_of(good, 7, **CONFIGURATIONS[name])[:, :, 0]

        def moves(kind: str, y: np.ndarray, name=name, alone=alone) -> float:
            both = {**good, kind: y}
            found = forecasts_of(both, 7, only=good, **CONFIGURATIONS[name])[:, :, 0]
            return float(np.abs((found - alone) / spread).mean())

        usual = max(moves("other", y) for y in ordinary.values())
        for kind, y in bad_ones().items():
            with cases(f"{kind}, {name}"):
                moved = moves(kind, y)
                assert moved <= usual, f"{moved:.4f} standard deviations, usual are {usual:.4f}"


@promise(
    "A bad series changes the 95 % widths of the others by less than 15 %",
    "intervals.md",
    "nine good series beside one that is discontinued, jumps or grows, in three settings",
)
def widths_beside_bad_series(cases: Cases) -> None:
    good, bad = good_ones(), bad_ones()
    for name in ("stack", "fast", "global"):
        width = _mean_width(good, good, name)
        for kind in ("discontinued", "level times 20", "growth of 1.4 a day"):
            with cases(f"{kind}, {name}"):
                beside = _mean_width({**good, kind: bad[kind]}, good, name)
                ratio = beside / width
                assert 1 / 1.15 < ratio < 1.15, f"{width:.1f} becomes {beside:.1f}"


def _mean_width(series: dict, only: dict, name: str) -> float:
    found = forecasts_of(series, 14, only=only, **CONFIGURATIONS[name])
    return float((found[:, :, 4] - found[:, :, 3]).mean())


@promise(
    "Walks beside noise are covered about as often as promised",
    "intervals.md",
    "100 random walks of 40 values among 700 series of noise, 12 steps: at least 70 % in 80 %",
)
def walks_beside_noise(cases: Cases) -> None:
    rng, inside = np.random.default_rng(3), []
    for _ in range(4):
        walks = rng.normal(size=(25, 52)).cumsum(axis=1)
        noise = rng.normal(size=(175, 52))
        every = np.concatenate([walks, noise])
        df = pd.DataFrame(
            {
                "unique_id": np.repeat([f"s{i:03d}" for i in range(200)], 40),
                "ds": np.tile(np.arange(40), 200),
                "y": every[:, :40].ravel(),
            }
        )
        found = RBFDiffNet(1).forecast(df, 12, level=[80])
        low, high = (found[f"{NAME}-{end}-80"].to_numpy().reshape(200, 12) for end in ("lo", "hi"))
        inside.append(((every[:, 40:] >= low) & (every[:, 40:] <= high)).mean(axis=1))
    shares = np.array(inside)
    for kind, part in (("walks", shares[:, :25]), ("noise", shares[:, 25:])):
        with cases(kind):
            assert 0.7 <= part.mean() <= 0.92, f"{part.mean():.0%} inside"


@promise(
    "A typo in one series' input hardly moves the others",
    "inputs.md",
    "one price of 1e6 in one of six series, in three settings: less than 0.05 deviations",
)
def typos_in_inputs(cases: Cases) -> None:
    panel = panel_of(6, n=70)
    df = frame_of(panel).assign(price=np.random.default_rng(0).uniform(1.0, 3.0, 420))
    spread = np.array([[np.std(y)] for y in panel.values()])[1:]
    for name in ("stack", "fast", "global"):
        with cases(name):
            found = []
            for price in (df["price"], df["price"].mask(df.index == 30, 1e6)):
                model = RBFDiffNet("D", **CONFIGURATIONS[name]).fit(df.assign(price=price))
                plan = model.make_future_frame(7).assign(price=2.0)
                found.append(model.predict(7, X_df=plan)[NAME].to_numpy().reshape(6, 7)[1:])
            moved = np.abs((found[1] - found[0]) / spread).mean()
            assert moved < 0.05, f"others moved by {moved:.3f} standard deviations"


@promise(
    "A series with a single value does not ruin the others of its groups",
    "forecaster.md",
    "a value of 5000 in a hierarchy of four series of 50, reconciled in three ways",
)
def single_values_in_groups(cases: Cases) -> None:
    cases.tests(
        "forecaster/test_forecaster_hierarchy.py::"
        "test_a_series_with_a_single_value_does_not_ruin_the_others_of_its_group"
    )

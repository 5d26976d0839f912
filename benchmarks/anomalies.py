"""How well anomalies are found: ``python benchmarks/anomalies.py``.

Sixteen families of simulated series, of 120 and of 400 months. First, shares of clean values that
are taken for anomalies at the levels 95 and 99: in panels of 200 series, and of single series, each
for itself. Then precision and recall at the level 99 in panels of 100 series of 400 values: for
spikes of 4 and of 6 standard deviations of the noise in 1 % of the values, and for one new level in
each series, 5 standard deviations away, which is found if one of its first three values is. Beside
are two simple rules: how many standard deviations a value is from the mean of the last 24, and how
far its change over a year is from the median change, in units of the median absolute deviation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from shared_parts.threads import one_thread

one_thread()  # before NumPy is imported

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

SEASON = 12
LEVELS = (95, 99)
FIRST = 24  # step from which on anomalies are put in


class Simulated:
    """A series: values, standard deviations of its noise, where new levels begin, (T,) each."""

    def __init__(self, values: Any, noise: Any, new_level: Any = None) -> None:
        self.values = values
        self.noise = np.broadcast_to(noise, values.shape)
        self.new_level = np.zeros(values.shape, dtype=bool) if new_level is None else new_level


def ar(rng: Any, T: int) -> Simulated:
    share, noise = rng.uniform(0.3, 0.9), rng.normal(size=T + 50)
    y = np.zeros(T + 50)
    for t in range(1, T + 50):
        y[t] = share * y[t - 1] + noise[t]
    return Simulated(20.0 + y[50:], 1.0)


def random_walk(rng: Any, T: int) -> Simulated:
    return Simulated(100.0 + np.cumsum(rng.normal(size=T)), 1.0)


def season(rng: Any, T: int) -> Any:
    return np.sin(2.0 * np.pi * (np.arange(T) / SEASON + rng.uniform()))


def trend_season(rng: Any, T: int) -> Simulated:
    trend = rng.uniform(-0.1, 0.1) * np.arange(T)
    return Simulated(50.0 + trend + 5.0 * season(rng, T) + rng.normal(size=T), 1.0)


def multiplicative(rng: Any, T: int) -> Simulated:
    growth = np.exp(rng.uniform(-0.002, 0.004) * np.arange(T))
    level = 100.0 * growth * (1.0 + 0.3 * season(rng, T))
    return Simulated(level * np.exp(0.05 * rng.normal(size=T)), 0.05 * level)


def poisson(rng: Any, T: int) -> Simulated:
    rate = np.exp(rng.uniform(np.log(2.0), np.log(30.0))) * (1.0 + 0.3 * season(rng, T))
    return Simulated(rng.poisson(rate).astype(np.float64), np.sqrt(rate))


def intermittent(rng: Any, T: int) -> Simulated:
    chance, size = rng.uniform(0.15, 0.4), rng.uniform(1.0, 6.0)
    demand = (rng.uniform(size=T) < chance) * (1.0 + rng.poisson(size, T))
    variance = chance * (size + (1.0 + size) ** 2) - (chance * (1.0 + size)) ** 2
    return Simulated(demand, np.sqrt(variance))


def student(rng: Any, T: int) -> Simulated:
    return Simulated(30.0 + 3.0 * season(rng, T) + rng.standard_t(3, T), np.sqrt(3.0))


def garch(rng: Any, T: int) -> Simulated:
    y, variance = np.zeros(T + 100), 1.0
    for t in range(T + 100):
        y[t] = np.sqrt(variance) * rng.normal()
        variance = 0.05 + 0.15 * y[t] ** 2 + 0.8 * variance
    return Simulated(10.0 + y[100:], 1.0)


def level_shifts(rng: Any, T: int) -> Simulated:
    begins = rng.uniform(size=T) < 1.0 / 150.0
    jumps = begins * rng.choice([-1.0, 1.0], T) * rng.uniform(5.0, 10.0, T)
    return Simulated(50.0 + np.cumsum(jumps) + rng.normal(size=T), 1.0, begins)


def mixed_lengths(rng: Any, T: int) -> Simulated:
    others = list(FAMILIES.values())[:8]  # those before new levels
    return others[rng.integers(len(others))](rng, int(rng.integers(T // 3, T + 1)))


def exponential(rng: Any, T: int) -> Simulated:
    return Simulated(rng.exponential(1.0, T), 1.0)


def lognormal(rng: Any, T: int) -> Simulated:
    return Simulated(rng.lognormal(size=T), np.sqrt((np.e - 1.0) * np.e))


def gamma(rng: Any, T: int) -> Simulated:
    return Simulated(rng.gamma(2.0, 5.0, T), np.sqrt(50.0))


def rare_counts(rng: Any, T: int) -> Simulated:
    return Simulated(rng.poisson(0.2, T).astype(np.float64), np.sqrt(0.2))


def low_counts(rng: Any, T: int) -> Simulated:
    return Simulated(rng.poisson(1.0, T).astype(np.float64), 1.0)


def negative_binomial(rng: Any, T: int) -> Simulated:
    rate = 4.0 * rng.gamma(2.0, 0.5, T)  # the mean 4, the variance 4 + 4^2 / 2
    return Simulated(rng.poisson(rate).astype(np.float64), np.sqrt(12.0))


FAMILIES: dict[str, Callable[[Any, int], Simulated]] = {
    "AR(1)": ar,
    "random walk": random_walk,
    "trend + season": trend_season,
    "multiplicative": multiplicative,
    "Poisson counts": poisson,
    "intermittent": intermittent,
    "Student-t(3)": student,
    "GARCH": garch,
    "level shifts": level_shifts,
    "mixed lengths": mixed_lengths,
    "exponential": exponential,
    "lognormal": lognormal,
    "gamma(2)": gamma,
    "Poisson(0.2)": rare_counts,
    "Poisson(1)": low_counts,
    "negative binomial": negative_binomial,
}


def simulate(name: str, n: int, T: int, seed: int = 0) -> list[Simulated]:
    """Return n series of a family."""
    number = list(FAMILIES).index(name)
    return [FAMILIES[name](np.random.default_rng([seed, number, T, i]), T) for i in range(n)]


def inject(series: Sequence[Simulated], kind: str, size: float) -> list[tuple[Any, Any]]:
    """Return values with anomalies of so many standard deviations, and where these are."""
    found = []
    for i, own in enumerate(series):
        rng, y = np.random.default_rng([7, i]), own.values.copy()
        is_count = bool((y == np.round(y)).all())
        spiked = kind == "spikes"
        n = max(y.size // 100, 1) if spiked else 1
        at = rng.choice(np.arange(FIRST, y.size - (not spiked) * FIRST // 2), n, replace=False)
        signs = 1.0 if is_count else rng.choice([-1.0, 1.0], n)
        change = np.zeros(y.size)
        change[at] = signs * size * own.noise[at]
        y += change if spiked else np.cumsum(change)
        truth = np.zeros(y.size, dtype=bool)
        truth[at] = True
        found.append((np.round(y) if is_count else y, truth))
    return found


# Ways to find anomalies: where each value of the series is one, None where it was not judged ----


def score(series: Sequence[Any]) -> list[Any]:
    """Return our scores of all values, which are the same at every level."""
    from rbfdiffnet import RBFDiffNet

    frames = [
        pd.DataFrame({"unique_id": i, "ds": np.arange(y.size), "y": y})
        for i, y in enumerate(series)
    ]
    model = RBFDiffNet(freq=1, season_length=[SEASON])
    found = model.detect_anomalies(pd.concat(frames))
    scores = [np.full(y.size, np.nan) for y in series]
    for i, own in found.groupby("unique_id"):
        scores[i][own["ds"].to_numpy()] = own["score"]
    return scores


def flag(scores: Sequence[Any], level: float) -> list[Any]:
    return [np.where(np.isnan(own), np.nan, np.abs(own) > limit_of(level)) for own in scores]


def ours(series: Sequence[Any], level: float) -> list[Any]:
    return flag(score(series), level)


def limit_of(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 200.0))


def rolling(series: Sequence[Any], level: float) -> list[Any]:
    flags = []
    for y in series:
        past = pd.Series(y).shift().rolling(FIRST)
        away = np.abs(y - past.mean().to_numpy())
        spread = past.std().to_numpy()
        flags.append(np.where(np.isnan(spread), np.nan, away > limit_of(level) * spread))
    return flags


def seasonal(series: Sequence[Any], level: float) -> list[Any]:
    flags = []
    for y in series:
        change = y[SEASON:] - y[:-SEASON]
        away = np.abs(change - np.median(change))
        is_far = away > limit_of(level) * 1.4826 * np.median(away)
        flags.append(np.concatenate([np.full(SEASON, np.nan), is_far]))
    return flags


METHODS = {"RBFDiffNet": ours, "rolling z": rolling, "seasonal MAD": seasonal}


def alarm_rate(flags: Sequence[Any], series: Sequence[Simulated]) -> float:
    """Return the share of judged values that are no new level but taken for anomalies."""
    judged = [own[~s.new_level] for own, s in zip(flags, series, strict=True)]
    return float(np.nanmean(np.concatenate(judged)))


def rate(flags: Sequence[Any], truths: Sequence[Any], reach: int) -> tuple[float, float]:
    """Return precision and recall; a true anomaly is found within so many values."""
    hits = true = false = 0
    for found, truth in zip(flags, truths, strict=True):
        flagged = np.nan_to_num(found) > 0.0
        near = np.zeros(truth.size, dtype=bool)
        for step in np.flatnonzero(truth).tolist():
            near[step : step + reach] = True
            hits += bool(flagged[step : step + reach].any())
            true += 1
        false += int((flagged & ~near).sum())
    return hits / max(hits + false, 1), hits / true


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--lengths", nargs="+", type=int, default=[120, 400])
    parser.add_argument("--panel", type=int, default=200, help="series of a panel")
    parser.add_argument("--alone", type=int, default=50, help="single series")
    parser.add_argument("--injected", type=int, default=100, help="series with anomalies")
    options = parser.parse_args(arguments)

    print("| family | length | panel 95 | panel 99 | alone 95 | alone 99 |")
    print("|---|---|---|---|---|---|")
    for length in options.lengths:
        for name in options.families:
            series = simulate(name, options.panel, length)
            panel, some = score([own.values for own in series]), series[: options.alone]
            alone = [score([own.values])[0] for own in some]
            cells = [alarm_rate(flag(panel, level), series) for level in LEVELS]
            cells += [alarm_rate(flag(alone, level), some) for level in LEVELS]
            row = " | ".join(f"{100.0 * cell:.2f} %" for cell in cells)
            print(f"| {name} | {length} | {row} |", flush=True)

    kinds = {"spikes, 4": ("spikes", 4.0, 1), "spikes, 6": ("spikes", 6.0, 1)}
    kinds["new level, 5"] = ("level", 5.0, 3)
    print("\n| family | anomalies | " + " | ".join(METHODS) + " |")
    print("|---|---|" + "---|" * len(METHODS))
    for name in options.families:
        series = simulate(name, options.injected, options.lengths[-1], seed=1)
        for label, (kind, size, reach) in kinds.items():
            values, truths = zip(*inject(series, kind, size), strict=True)
            truths = [truth | own.new_level for truth, own in zip(truths, series, strict=True)]
            cells = [rate(method(values, 99), truths, reach) for method in METHODS.values()]
            row = " | ".join(f"{100 * p:.0f} / {100 * r:.0f}" for p, r in cells)
            print(f"| {name} | {label} | {row} |", flush=True)


if __name__ == "__main__":
    main()

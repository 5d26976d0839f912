"""Ours among the published rows of leaderboards: ``python benchmarks/leaderboards.py``.

For every data set that is at hand and on a leaderboard: first the leaderboard's seasonal naive,
computed anew. Only where it comes out to the last published digit, forecasts of ours are scored the
same way and shown among the published rows. Nothing is tuned: presets, and the season that is usual
for the frequency; where the leaderboard scores with a season of 1, also that one.

Scores are those of the nine quantiles .1 to .9. With the quantile loss CRPS = 2/9 sum pinball:
MASE is the mean of |y - median| / scale, SQL that of CRPS / scale, WQL the sum of CRPS by that of
|y|; over all series, windows and steps. The scale is the mean |y_t - y_{t-season}| of all that
precedes the window; series whose scale is 0 are left out of MASE and SQL.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared_parts.threads import one_thread

one_thread()  # before NumPy is imported

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from scipy.special import ndtri  # noqa: E402

from accuracy_parts.data import folder, published  # noqa: E402
from accuracy_parts.errors import naive_scale  # noqa: E402
from rbfdiffnet import RBFDiffNet  # noqa: E402
from rbfdiffnet.evaluation.losses import quantile_crps  # noqa: E402

QUANTILES = np.arange(1, 10) / 10.0
COLUMNS = [f"RBFDiffNet-q-{10 * k}" for k in range(1, 10)]
PRESETS = ("default", "instant")


@dataclass(frozen=True)
class Board:
    """A leaderboard: its second score, and how its seasonal naive has quantiles.

    ``spread`` tells whether they are normal ones; otherwise all are the point forecast. Figures
    have so many ``digits`` after the point.
    """

    loss: str
    spread: bool
    digits: int


@dataclass(frozen=True)
class Task:
    """A row of a leaderboard, and what is needed to score it: ``season`` is that of the scale."""

    board: str
    row: str
    data: str
    season: int
    horizon: int
    n_windows: int = 1
    freq: str = "D"
    start: str = "2000-01-01"

    @property
    def seasons(self) -> tuple[int | None, ...]:
        """Seasons of our forecasts; None is the usual one of the frequency."""
        return (None,) if self.season > 1 else (None, self.season)


BOARDS = {
    "GIFT-Eval": Board("WQL", spread=True, digits=6),
    "fev-bench": Board("SQL", spread=True, digits=5),
    "Chronos": Board("WQL", spread=False, digits=5),
}
TASKS = (
    Task("GIFT-Eval", "hospital/M/short", "hospital", 12, 12, 1, "MS"),
    Task("fev-bench", "hospital", "hospital", 12, 12, 4, "MS"),
    Task("Chronos", "monash_hospital", "hospital", 12, 12, 1, "MS"),
    Task("GIFT-Eval", "us_births/D/short", "us_births", 1, 30, 20, "D", "1969-01-01"),
    Task("GIFT-Eval", "us_births/W/short", "us_births", 1, 8, 14, "W-TUE", "1969-01-01"),
    Task("GIFT-Eval", "us_births/M/short", "us_births", 12, 12, 2, "MS", "1969-01-01"),
    Task("GIFT-Eval", "covid_deaths/D/short", "covid_deaths", 1, 30, 1, "D", "2020-01-22"),
    Task("Chronos", "monash_covid_deaths", "covid_deaths", 1, 30, 1, "D", "2020-01-22"),
    Task("Chronos", "monash_m1_yearly", "m1_yearly", 1, 6),
    Task("Chronos", "monash_m1_quarterly", "m1_quarterly", 4, 8),
    Task("Chronos", "monash_m1_monthly", "m1_monthly", 12, 18),
    Task("Chronos", "exchange_rate", "exchange_rate", 5, 30),
    Task("Chronos", "ETTh", "etth", 24, 24),
    Task("GIFT-Eval", "electricity/W/short", "electricity_weekly", 1, 8, 2),
)


# Series, their windows, and forecasts of these ------------------------------------------------


def read_series(suite: Path, task: Task) -> dict[str, np.ndarray]:
    """The values of every series from its first to its last: days, or sums of weeks or months."""
    window = published(suite, task.data)
    df = pd.concat([window.train, window.test]).sort_values(["unique_id", "ds"])
    series = {str(name): own["y"].to_numpy() for name, own in df.groupby("unique_id", sort=False)}
    if task.data != "us_births":
        return series
    ((name, days),) = series.items()
    if task.freq == "W-TUE":  # seven days each from the first one on; the last four are left over
        days = days[: days.size // 7 * 7].reshape(-1, 7).sum(axis=1)
    if task.freq == "MS":
        dates = pd.date_range(task.start, periods=days.size)
        days = pd.Series(days, dates).resample("MS").sum().to_numpy()
    return {name: days}


def split(y: np.ndarray, task: Task, window: int) -> tuple[np.ndarray, np.ndarray]:
    """What precedes a window, and the window."""
    end = y.size - (task.n_windows - 1 - window) * task.horizon
    return y[: end - task.horizon], y[end - task.horizon : end]


def seasonal_naive(past: np.ndarray, task: Task) -> np.ndarray:
    """Quantiles of every step, (h, 9): the last season, with normal errors that add up."""
    ahead, season = np.arange(task.horizon), task.season
    points = past[past.size - season + ahead % season, None]
    if not BOARDS[task.board].spread:
        return np.repeat(points, QUANTILES.size, axis=1)
    spread = np.sqrt(np.mean((past[season:] - past[:-season]) ** 2) * (ahead // season + 1.0))
    return points + spread[:, None] * ndtri(QUANTILES)


def forecast_naive(series: dict[str, np.ndarray], task: Task) -> np.ndarray:
    """Quantiles of the seasonal naive, (windows, series, h, 9)."""
    return np.array(
        [
            [seasonal_naive(split(y, task, window)[0], task) for y in series.values()]
            for window in range(task.n_windows)
        ]
    )


def forecast(
    series: dict[str, np.ndarray], task: Task, preset: str, season: int | None
) -> np.ndarray:
    """Our quantiles, (windows, series, h, 9)."""
    df = pd.concat(
        pd.DataFrame(
            {
                "unique_id": name,
                "ds": pd.date_range(task.start, periods=y.size, freq=task.freq),
                "y": y,
            }
        )
        for name, y in series.items()
    )
    model = RBFDiffNet(task.freq, season_length=season, preset=preset)
    found = model.cross_validation(
        df, task.horizon, n_windows=task.n_windows, step_size=task.horizon, quantiles=QUANTILES
    )
    found["place"] = found["unique_id"].map({name: i for i, name in enumerate(series)})
    own = found.sort_values(["place", "cutoff", "ds"])[COLUMNS].to_numpy()
    return own.reshape(len(series), task.n_windows, task.horizon, -1).swapaxes(0, 1)


def score(series: dict[str, np.ndarray], task: Task, quantiles: np.ndarray) -> tuple[float, float]:
    """MASE and the leaderboard's other score of quantiles (windows, series, h, 9)."""
    parts = [[split(y, task, window) for y in series.values()] for window in range(task.n_windows)]
    y = np.array([[ahead for _, ahead in row] for row in parts])
    scale = np.array([[naive_scale(past, task.season) for past, _ in row] for row in parts])
    losses = quantile_crps(y, quantiles, QUANTILES)
    scaled, scale = scale > 0.0, scale[..., None]
    mase = np.abs(y - quantiles[..., 4])[scaled] / scale[scaled]
    if BOARDS[task.board].loss == "WQL":
        return float(mase.mean()), float(losses.sum() / np.abs(y).sum())
    return float(mase.mean()), float((losses[scaled] / scale[scaled]).mean())


# Published rows ----------------------------------------------------------------------------------


def read_board(boards: Path, task: Task) -> pd.DataFrame:
    """Published rows: ``model, kind, leak, MASE, loss``; the last is the board's other score."""
    if task.board == "GIFT-Eval":
        rows = pd.read_csv(boards / "gift_eval_long.csv.gz").query("dataset == @task.row")
        names = {"m": "model", "type": "kind", "WQL": "loss"}
        return rows.rename(columns=names)[["model", "kind", "leak", "MASE", "loss"]]
    file = {"fev-bench": "fev_bench", "Chronos": "chronos_zeroshot"}[task.board]
    scores = {"MASE": "MASE", "loss": BOARDS[task.board].loss}
    found = {
        name: pd.read_csv(boards / f"{file}_{score}.csv", index_col=0).loc[task.row]
        for name, score in scores.items()
    }
    return pd.DataFrame(found).rename_axis("model").reset_index().assign(kind="", leak="")


def published_naive(rows: pd.DataFrame) -> tuple[float, float]:
    """The two figures of the seasonal naive."""
    named = rows["model"].str.lower().str.replace(" ", "_") == "seasonal_naive"
    ((mase, loss),) = rows.loc[named, ["MASE", "loss"]].to_numpy()
    return float(mase), float(loss)


def comes_out(task: Task, here: Sequence[float], there: Sequence[float]) -> bool:
    """Whether both figures are the same to the last digit that is published."""
    unit = 10.0 ** -BOARDS[task.board].digits
    return bool(np.all(np.abs(np.subtract(here, there)) <= 0.51 * unit))


def make_table(rows: pd.DataFrame, task: Task) -> pd.DataFrame:
    """The rows to show, by MASE, with places among the published ones.

    Of GIFT-Eval's these are ours, the best ten by either score, and the classical ones.
    """
    rows = rows.sort_values("MASE", kind="stable", ignore_index=True)
    loss, is_ours = BOARDS[task.board].loss, rows["kind"] == "ours"
    places = {
        name: np.array([1 + int((rows.loc[~is_ours, name] < own).sum()) for own in rows[name]])
        for name in ("MASE", "loss")
    }
    table = pd.DataFrame(
        {
            "place": places["MASE"],
            "model": rows["model"].where(~is_ours, "**" + rows["model"] + "**"),
            "kind": rows["kind"],
            "leakage": rows["leak"],
            "MASE": rows["MASE"].map("{:.4f}".format),
            loss: rows["loss"].map("{:.4f}".format),
            f"place by {loss}": places["loss"],
        }
    )
    if task.board != "GIFT-Eval":
        return table.drop(columns=["kind", "leakage"])
    is_best = np.minimum(places["MASE"], places["loss"]) <= 10
    return table[is_best | rows["kind"].isin(["statistical", "ours"])]


def score_ours(series: dict[str, np.ndarray], task: Task, presets: Sequence[str]) -> pd.DataFrame:
    """Our rows, like those of `read_board`."""
    rows = []
    for preset in presets:
        for season in task.seasons:
            name = f"RBFDiffNet, {preset}" + (f", season {season}" if season else "")
            found = score(series, task, forecast(series, task, preset, season))
            rows.append((name, "ours", "chosen on it", *found))
    return pd.DataFrame(rows, columns=["model", "kind", "leak", "MASE", "loss"])


def print_task(task: Task, suite: Path, boards: Path, presets: Sequence[str]) -> None:
    """Print both seasonal naives and, where they are the same, the table."""
    rows, series = read_board(boards, task), read_series(suite, task)
    here, there = score(series, task, forecast_naive(series, task)), published_naive(rows)
    figures = [f"{figure:.{BOARDS[task.board].digits}f}" for figure in (*there, *here)]
    print(f"### {task.board}, {task.row}\n")
    print(f"series {len(series)}, horizon {task.horizon}, windows {task.n_windows}", end=", ")
    print(f"season of the scale {task.season}, published rows {len(rows)}")
    print("seasonal naive, published: {}, {}; here: {}, {}\n".format(*figures), flush=True)
    if not comes_out(task, here, there):
        print("It does not come out: no row of ours.\n")
        return
    every = pd.concat([rows, score_ours(series, task, presets)], ignore_index=True)
    table = make_table(every, task)
    for row in (table.columns, ["---"] * table.shape[1], *table.to_numpy()):
        print("| " + " | ".join(map(str, row)) + " |")
    print(flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = list(dict.fromkeys(task.data for task in TASKS))
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="D")
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=list(PRESETS))
    parser.add_argument("--suite", type=Path, help="folder with the archive's series")
    parser.add_argument("--leaderboards", type=Path, help="folder with the published figures")
    options = parser.parse_args(arguments)
    suite = folder(options.suite, "suite")
    boards = folder(options.leaderboards, "leaderboards")
    for task in TASKS:
        if task.data in options.only:
            print_task(task, suite, boards, options.presets)


if __name__ == "__main__":
    main()

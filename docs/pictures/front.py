"""What the package is for, in three pictures: noise, forecasts with intervals, reasons."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter, DayLocator

from rbfdiffnet import Event, RBFDiffNet, RBFDiffNetRegressor
from rbfdiffnet.datasets import daily_demand, henon_map
from style import BLUE, GRAY, INK, RED, save

ITEM, DAY = "item_003", "2023-12-30"


def noise(ax: Axes) -> None:
    clean = henon_map(800)
    noisy = clean + 0.1 * np.random.default_rng(0).normal(size=800)
    latent = RBFDiffNetRegressor(noise="auto").fit_series(noisy, n_lags=2).latent_
    shown = slice(0, 350)
    ax.scatter(
        noisy[:-1][shown], noisy[1:][shown], s=4, color=GRAY, alpha=0.55, lw=0, rasterized=True
    )
    ax.scatter(latent[:-1][shown], latent[1:][shown], s=4, color=RED, lw=0, rasterized=True)
    ax.set(title="Noise, taken out", xlabel="$s_t$", ylabel="$s_{t+1}$")
    ax.text(0.03, 0.05, "observed", color=GRAY, fontsize=8.5, transform=ax.transAxes)
    ax.text(0.03, 0.13, "learned", color=RED, fontsize=8.5, transform=ax.transAxes)


def forecast(ax: Axes, reasons: Axes) -> None:
    df = daily_demand()
    cutoff = df["ds"].max() - pd.Timedelta(days=28)
    past, held = df[df["ds"] <= cutoff], df[df["ds"] > cutoff]
    closed = Event("closed", ["2022-01-01", "2022-12-25", "2023-01-01", "2023-12-25"])
    model = RBFDiffNet(
        freq="D", scope="local", calendar=["dayofweek"], events=[closed], lower=0
    ).fit(past)
    known = held[["unique_id", "ds", "promotion"]]
    ahead = model.predict(28, X_df=known, level=[80, 95])
    item = ahead[ahead["unique_id"] == ITEM]
    before = past[past["unique_id"] == ITEM].tail(28)
    for level, alpha in ((95, 0.1), (80, 0.15)):
        low, high = item[f"RBFDiffNet-lo-{level}"], item[f"RBFDiffNet-hi-{level}"]
        ax.fill_between(item["ds"], low, high, color=RED, alpha=alpha, lw=0)
    ax.plot(before["ds"], before["y"], color=GRAY, lw=1.1)
    actual = held[held["unique_id"] == ITEM]
    ax.plot(actual["ds"], actual["y"], color=INK, lw=1.1)
    ax.plot(item["ds"], item["RBFDiffNet"], color=RED)
    ax.set_title("Forecasts, 80 and 95 %")
    ax.xaxis.set_major_locator(DayLocator((1, 15)))
    ax.xaxis.set_major_formatter(DateFormatter("%b %d"))

    terms = model.explain(28, X_df=known, ids=[ITEM])
    day = terms[terms["ds"] == DAY]
    groups = day["part"].where(day["part"] != "effect", day["term"].str.split("=").str[0])
    names = {
        **dict.fromkeys(("history", "level", "bias", "linear", "exemplar"), "its past"),
        **dict.fromkeys(("dayofweek", "closed"), "calendar"),
    }
    shares = day["contribution"].groupby(groups.replace(names)).sum()
    order = ["its past", "calendar", "promotion"]
    shares = shares.reindex(order)
    starts = shares.cumsum().shift(fill_value=0.0)
    colors = [GRAY, *(BLUE if value >= 0 else RED for value in shares[1:])]
    reasons.barh(order, shares, left=starts, color=colors)
    reasons.axvline(shares.sum(), color=INK, lw=0.9, ls=":")
    reasons.invert_yaxis()
    reasons.set_title(f"Reasons for {shares.sum():.0f}")


def main() -> None:
    figure, axes = plt.subplots(1, 3, figsize=(8.8, 3.0), width_ratios=[1.0, 1.35, 1.1])
    noise(axes[0])
    forecast(axes[1], axes[2])
    save(figure, "front.svg")


if __name__ == "__main__":
    main()

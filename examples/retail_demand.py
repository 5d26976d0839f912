"""Retail demand: six items, their weekdays, promotions and closures, four weeks ahead.

Run ``python examples/retail_demand.py picture.png``; it takes some seconds.
"""

import sys

import matplotlib.pyplot as plt
import pandas as pd

from rbfdiffnet import Event, RBFDiffNet
from rbfdiffnet.datasets import daily_demand
from rbfdiffnet.evaluation.metrics import mae

# Two years of daily sales. The last four weeks are held back; promotions are planned, so known.
df = daily_demand()
cutoff = df["ds"].max() - pd.Timedelta(days=28)
past, held = df[df["ds"] <= cutoff], df[df["ds"] > cutoff]
plan = held[["unique_id", "ds", "promotion"]]

closed = Event("closed", ["2022-01-01", "2022-12-25", "2023-01-01", "2023-12-25"])
model = RBFDiffNet(freq="D", calendar=["dayofweek"], events=[closed], lower=0).fit(past)
forecast = model.predict(28, X_df=plan, level=[80])

# Seasonal naive, the forecast to beat: the last week, again and again.
week = past.groupby("unique_id").tail(7)[["unique_id", "ds", "y"]]
weeks = [week.assign(ds=week["ds"] + pd.Timedelta(days=7 * k)) for k in range(1, 5)]
naive = pd.concat(weeks).rename(columns={"y": "naive"})

compared = held.merge(forecast, on=["unique_id", "ds"]).merge(naive, on=["unique_id", "ds"])
errors = mae(compared, models=["RBFDiffNet", "naive"])
print(errors.round(1).to_string(index=False))
print(model.report_.to_string(index=False))

figure, axes = plt.subplots(3, 2, figsize=(9, 6), layout="constrained", sharex=True)
for ax, (name, item) in zip(axes.flat, compared.groupby("unique_id"), strict=True):
    before = past[past["unique_id"] == name].tail(42)
    ax.fill_between(
        item["ds"],
        item["RBFDiffNet-lo-80"],
        item["RBFDiffNet-hi-80"],
        color="#c8553d",
        alpha=0.15,
        lw=0,
        label="80 %",
    )
    ax.plot(before["ds"], before["y"], color="#8a8f98", lw=1, label="known")
    ax.plot(item["ds"], item["y"], color="#2b2d33", lw=1, label="held back")
    ax.plot(item["ds"], item["RBFDiffNet"], color="#c8553d", label="forecast")
    ax.set_title(name, loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="x", rotation=30, labelsize=8)
axes[2, 1].legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
axes[2, 1].set_ylim(top=260)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "retail_demand.png", dpi=110)

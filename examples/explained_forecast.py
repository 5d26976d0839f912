"""Why this forecast? Sunspots of the next year, split into lags and exemplars.

Run ``python examples/explained_forecast.py picture.png``; it takes a second.
"""

import sys

import matplotlib.pyplot as plt
from matplotlib.dates import YearLocator

from rbfdiffnet import RBFDiffNet, RBFDiffNetRegressor
from rbfdiffnet.datasets import load_sunspots

df = load_sunspots().assign(unique_id="sun")
# Few and narrow basis functions: each window is like one or two of them, which is easy to read.
network = RBFDiffNetRegressor(12, width_factor=1.0, metric="standard", loss="squared")
model = RBFDiffNet(freq="YS", lags=9, lower=0, regressor=network).fit(df)
forecast = model.predict(1, level=[80])
terms = model.explain(1)
print(forecast.to_string(index=False))
print(f"sum of the contributions: {terms['contribution'].sum():.2f}")

# Exemplars are typical windows of nine years; each knows the years in which the most alike end.
exemplars = terms[terms["part"] == "exemplar"]
closest = exemplars.nlargest(3, "activation")
print(closest[["term", "activation", "contribution", "nearest"]].to_string(index=False))

bars = {"level": terms.loc[terms["part"] == "level", "contribution"].sum()}
for row in terms[terms["part"] == "linear"].itertuples():
    bars[row.term] = row.contribution
bars["exemplars"] = exemplars["contribution"].sum()
bars["the rest"] = terms["contribution"].sum() - sum(bars.values())
names, values = list(bars), list(bars.values())
starts = [sum(values[:k]) for k in range(len(values))]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(df["ds"].tail(45), df["y"].tail(45), color="#2b2d33", lw=1.2)
point, low, high = forecast.iloc[0, 2:5]
# The interval lies around the forecast of a second model, so the dot is not in its middle.
left.errorbar(
    forecast["ds"], [point], [[point - low], [high - point]], fmt="o", color="#c8553d", capsize=3
)
left.xaxis.set_major_locator(YearLocator(10))
left.set_ylabel("sunspots")
left.set_title("The year to come, and its 80 % interval", loc="left", fontsize=10)
colors = ["#8a8f98", *("#1f5a94" if value >= 0 else "#c8553d" for value in values[1:])]
right.barh(names, values, left=starts, color=colors)
right.axvline(point, color="#2b2d33", lw=1, ls=":")
right.text(point - 1, 6, "forecast", fontsize=8, ha="right", va="center")
right.invert_yaxis()
right.set_xlabel("sunspots: blue adds, red takes away")
right.set_title(f"{point:.1f}, and where it comes from", loc="left", fontsize=10)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "explained_forecast.png", dpi=110)

"""A noisy sensor on a chaotic system: find the clean signal, forecast it, know when to stop.

Run ``python examples/noisy_sensor.py picture.png``; it takes some seconds.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.datasets import mackey_glass

# 900 readings of a delayed feedback loop; the sensor adds noise, and fails for a while.
clean = mackey_glass(940, step=6.0)
readings = clean[:900] + 0.06 * np.random.default_rng(1).normal(size=900)
readings[700:712] = np.nan

model = RBFDiffNetRegressor(noise="auto").fit_series(readings, n_lags=4)
forecast = model.forecast(40)
low, high = model.forecast(40, quantiles=[0.1, 0.9]).T

seen = np.isfinite(readings)
left = np.std((model.latent_ - clean[:900])[seen])
print(f"noise: {model.noise_std_:.3f} found, 0.060 added")
print(f"of it left in the learned signal: {left / 0.06:.0%}")
print(f"error of 40 steps: {np.abs(forecast - clean[900:]).mean():.3f}")
print(f"error of the mean: {np.abs(np.nanmean(readings) - clean[900:]).mean():.3f}")

figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 5), layout="constrained")
time = np.arange(670, 760)
top.plot(time, readings[time], "o", ms=3, color="#8a8f98", label="readings")
top.plot(time, clean[time], "--", lw=1, color="#2b2d33", label="clean")
top.plot(time, model.latent_[time], lw=1.6, color="#c8553d", label="learned")
top.axvspan(699.5, 711.5, color="#d9a33b", alpha=0.2, lw=0)
top.text(705.5, 1.6, "no readings", ha="center", fontsize=8)
top.set_title("The signal behind the readings", loc="left", fontsize=10)
ahead = np.arange(900, 940)
bottom.plot(np.arange(860, 900), readings[860:], "o", ms=3, color="#8a8f98", label="readings")
bottom.plot(np.arange(860, 940), clean[860:], "--", lw=1, color="#2b2d33", label="clean")
bottom.plot(ahead, forecast, lw=1.6, color="#c8553d", label="forecast")
bottom.fill_between(ahead, low, high, color="#c8553d", alpha=0.15, lw=0, label="10 to 90 %")
bottom.set_title("Forty steps ahead: certainty is lost as chaos has it", loc="left", fontsize=10)
for ax in (top, bottom):
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_ylim(0.1, 1.75)
    ax.set_ylabel("signal")
top.legend(frameon=False, fontsize=8, ncols=3, loc="upper left")
bottom.legend(frameon=False, fontsize=8, ncols=4, loc="upper left")
bottom.set_xlabel("step")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "noisy_sensor.png", dpi=110)

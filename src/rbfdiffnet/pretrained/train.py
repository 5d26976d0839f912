r"""Train the pretrained network: ``python -m rbfdiffnet.pretrained.train --out DIR``.

Every step draws new series (`pretrained.simulate`) and minimizes the pinball loss of all quantiles,
in units of each series,

.. math:: \frac{1}{\sqrt{\overline{|y|} + 1/2}} \sum_q w_q \max(q (y - f_q), (q - 1) (y - f_q)),

in which the median counts three times, plus a small squared error of the mean. A bonus for gates
that differ, in the first third, keeps the centers from falling together. The weights that are
written are averages over the last thousand steps or so.

Files in DIR: ``weights.npz``, which `pretrained.network.read_weights` reads, ``checkpoint.pt``,
from which the same command goes on after an interruption with the same result, and ``log.csv``.
A simulated series stands for every center (`pretrained.exemplars`); ``--exemplars`` chooses them
anew for weights that are there.

Training needs the extra ``[gpu]``, and takes a quarter of an hour on a card.
``--evaluate FILE --season 12 --horizon 18`` prints errors of weights on series of one's own, a
table with the columns unique_id, ds and y, whose last values are held back.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rbfdiffnet.pretrained.exemplars import add_exemplars
from rbfdiffnet.pretrained.inputs import SeriesInputs
from rbfdiffnet.pretrained.network import (
    GATINGS,
    KNOTS,
    MEDIAN,
    PROBABILITIES,
    SPACING,
    forecast,
    mix,
    read_weights,
    respond,
)
from rbfdiffnet.pretrained.simulate import simulate
from rbfdiffnet.support.arrays import Array, Arrays

#: Networks to compare: which gates they have, whether a forecaster around a center is linear, and
#: how fast the weights of centers learn, which each sees less often than the other weights.
NETWORKS = {
    "differential": ("normalized", True, 10.0),
    "n-rbfn": ("normalized", False, 10.0),
    "u-rbfn": ("unnormalized", False, 10.0),
    "linear": ("normalized", True, 10.0),  # one center
    "mlp": ("hidden", True, 1.0),
}
_STEPS_A_SERIES = 16
_ROUNDING = 1e-6  # of the mean size: a unit of series in single precision
_FARTHEST = 150.0  # units from the last value: series that go farther are left out


@dataclass(frozen=True)
class Settings:
    """How a network is trained."""

    steps: int = 40_000
    seed: int = 0
    network: str = "differential"
    centers: int = 320
    width: int = 256
    blocks: int = 3
    dimensions: int = 32
    rate: float = 2e-3
    #: Series, past and future steps of the parts of a batch.
    batches: tuple[tuple[int, int, int], ...] = (
        (4608, 224, 64),
        (2048, 896, 192),
        (896, 2048, 512),
    )
    checkpoint_every: int = 1_000

    @classmethod
    def small(cls) -> Settings:
        """Return settings that take a minute on a processor, to try the whole loop."""
        batches = ((192, 96, 24), (32, 400, 48))
        return cls(150, centers=16, width=32, blocks=1, batches=batches, checkpoint_every=50)


class Source:
    """Batches of simulated rows: inputs, steps ahead and targets; CUDA graphs on a card."""

    def __init__(self, settings: Settings, device: str) -> None:
        self.settings, self.device = settings, device
        self.is_fresh = torch.ones((), dtype=torch.bool, device=device)
        self.knots = torch.log(torch.tensor(KNOTS, dtype=torch.float, device=device))
        self.graphs: tuple[Any, ...] = ()
        if device != "cpu":
            self._capture()

    def next(self, fresh: bool) -> tuple[Any, ...]:
        """Return a batch of new series, or of shorter pasts of the same ones."""
        self.is_fresh.fill_(fresh)
        jobs = [graph.replay for graph in self.graphs] or [self._simulate, self._prepare]
        for job in jobs if fresh else jobs[1:]:
            job()
        return self.rows

    def _capture(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._simulate()
                self._prepare()
        torch.cuda.current_stream().wait_stream(stream)
        self.graphs = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graphs[0]):
            self._simulate()
        with torch.cuda.graph(self.graphs[1], pool=self.graphs[0].pool()):
            self._prepare()

    def _simulate(self) -> None:
        self.parts = [simulate(*size, self.device) for size in self.settings.batches]

    def _prepare(self) -> None:
        pairs = zip(self.settings.batches, self.parts, strict=True)
        rows = [self._make_rows(size, part) for size, part in pairs]
        self.rows = tuple(torch.cat(column) for column in zip(*rows, strict=True))

    def _make_rows(self, size: tuple[int, int, int], part: Any) -> tuple[Any, ...]:
        n_series, n_past, n_ahead = size
        m = part.season
        share = torch.where(self.is_fresh, 1.0, 0.4 + 0.6 * self._uniform(n_series))
        lengths = (part.lengths * share).long().clamp(min=1)
        longer = torch.where(lengths > part.longer, part.longer, 0)
        finite = part.y.isfinite().all(1)
        y = torch.where(finite[:, None], part.y, 0.0).double()
        # Steps ahead, evenly spread up to a horizon that suits the season.
        usual = torch.where(longer > 0, 1.1 * longer, 2.0 * m)
        usual = torch.where(m <= 12, 2.5 * m + 6.0, usual)
        usual = torch.where(m == 1, 24.0, usual).clamp(6.0, n_ahead)
        farthest = 6.0 * (usual / 6.0) ** self._uniform(n_series)
        place = torch.arange(_STEPS_A_SERIES, device=self.device)[None]
        place = (place + self._uniform(n_series, _STEPS_A_SERIES)) / _STEPS_A_SERIES
        steps = (place * farthest[:, None]).long().clamp(0, n_ahead - 1) + 1
        inputs = SeriesInputs(y[:, :n_past], lengths, m, longer)
        level = inputs.level()
        gates, phase = inputs.gates(level), inputs.phase(steps)
        target = torch.gather(y, 1, n_past - 1 + steps) - inputs.base[:, None]
        target = target / inputs.unit[:, None]
        good = (
            finite
            & (inputs.unit > _ROUNDING * inputs.size)
            & inputs.varies
            & (target.abs().amax(1) < _FARTHEST)
        )
        good = good & gates.isfinite().all(1) & level.isfinite().all(1)
        rows = [
            torch.where(good.reshape(-1, *[1] * (part.ndim - 1)), part, 0.0).float()
            for part in (gates, level, phase, target)
        ]
        return *rows, self._between(steps), good.float()

    def _between(self, steps: Any) -> Any:
        """Return the weights (B, k, knots) that lead from the knots to steps."""
        x, n = torch.log(steps.float()), len(KNOTS)
        upper = torch.searchsorted(self.knots, x).clamp(1, n - 1)
        low, high = self.knots[upper - 1], self.knots[upper]
        share = ((x - low) / (high - low)).clamp(0.0, 1.0)[..., None]
        at = torch.arange(n, device=self.device)
        upper = upper[..., None]
        return share * (at == upper) + (1.0 - share) * (at == upper - 1)

    def _uniform(self, *shape: int) -> Any:
        return torch.rand(*shape, device=self.device)


def start_weights(settings: Settings, rows: tuple[Any, ...], device: str) -> dict[str, Any]:
    """Return the weights that training begins with, by the names of the file."""
    gates, level, phase = rows[:3]
    width, dims, knots = settings.width, settings.dimensions, len(KNOTS)
    n = {"linear": 1, "mlp": width}.get(settings.network, settings.centers)

    def dense(n_out: int, n_in: int) -> tuple[Any, Any]:
        bound = 1.0 / math.sqrt(n_in)
        return tuple(
            bound * (2.0 * torch.rand(*shape, device=device) - 1.0)
            for shape in ((n_out, n_in), (n_out,))
        )

    def zeros(*shape: int) -> Any:
        return torch.zeros(*shape, device=device)

    w: dict[str, Any] = {}
    w["input_weight"], w["input_bias"] = dense(width, gates.shape[1])
    for block in range(settings.blocks):
        name = f"block{block}_"
        w[name + "scale"], w[name + "shift"] = zeros(width) + 1.0, zeros(width)
        w[name + "up_weight"], w[name + "up_bias"] = dense(2 * width, width)
        w[name + "down_weight"], w[name + "down_bias"] = dense(width, 2 * width)
    w["metric_weight"], w["metric_bias"] = dense(dims, width)
    w["centers"] = torch.randn(n, dims, device=device)
    w["log_rates"], w["heights"] = zeros(n), zeros(n)
    w["common_level_weights"] = zeros(knots, level.shape[1])
    w["common_phase_weights"] = zeros(knots, phase.shape[2])
    for name, size in zip(BY_CENTER, (level.shape[1], phase.shape[2], dims), strict=True):
        w[name] = zeros(n, knots, size)
    w["offsets"], w["spreads"] = zeros(n, knots), zeros(n, knots, len(PROBABILITIES))
    learned = NETWORKS[settings.network][1]
    return {k: v.requires_grad_(learned or k not in BY_CENTER) for k, v in w.items()}


#: Weights of the linear forecaster around every center: the differential part.
BY_CENTER = ("level_weights", "phase_weights", "place_weights")


def find_loss(
    weights: dict[str, Any], rows: tuple[Any, ...], gating: str, fixed: tuple[Any, ...]
) -> tuple[Any, Any, Any]:
    """Return the loss of quantiles, that of means, and the gates."""
    gates, level, phase, target, between, counts = rows
    probabilities, importance, spacing = fixed
    mixture = mix(gates, weights, len(KNOTS), gating)
    quantiles, mean = respond(mixture, level, phase, between, spacing)
    away = target[..., None] - quantiles
    pinball = torch.maximum(probabilities * away, (probabilities - 1.0) * away) @ importance
    size = (target.abs().mean(1) + 0.5).clamp(max=8.0).sqrt()
    total = counts.sum()
    loss = (pinball.mean(1) / size * counts).sum() / total
    width = quantiles[..., MEDIAN + 4] - quantiles[..., MEDIAN - 4]
    unit = width.detach().mean(1, keepdim=True) + 0.3
    huber = torch.nn.functional.huber_loss(mean / unit, target / unit, reduction="none", delta=5.0)
    return loss, 0.05 * (huber.mean(1) * counts).sum() / total, mixture.gates


class Training:
    """The state of a training: weights, their averages, the optimizer, and the number of steps."""

    def __init__(self, settings: Settings, device: str) -> None:
        self.settings, self.device, self.done = settings, device, 0
        torch.manual_seed(settings.seed)
        self.source = Source(settings, device)
        self.weights = start_weights(settings, self.source.next(True), device)
        self.average = {name: w.detach().clone() for name, w in self.weights.items()}
        slow = [w for name, w in self.weights.items() if name not in _FAST]
        fast = [self.weights[name] for name in _FAST]
        groups = [
            {"params": slow, "speed": 1.0},
            {"params": fast, "speed": NETWORKS[settings.network][2]},
        ]
        self.optimizer = torch.optim.AdamW(
            groups, lr=settings.rate, weight_decay=1e-3, betas=(0.9, 0.98), fused=device != "cpu"
        )
        p = torch.tensor(PROBABILITIES, dtype=torch.float, device=device)
        importance = torch.where(torch.arange(p.numel(), device=device) == MEDIAN, 3.0, 1.0)
        spacing = torch.tensor(SPACING, dtype=torch.float, device=device)
        self.fixed = p, importance / importance.sum(), spacing

    def step(self) -> Any:
        """Take a step, and return the loss of the quantiles."""
        s = self.settings
        if self.done % s.checkpoint_every == 0:  # so that a run that goes on draws the same
            torch.manual_seed(s.seed + 1 + self.done)
        passed = self.done / s.steps
        rate = s.rate * min(1.0, self.done / 300) * (0.5 + 0.5 * math.cos(math.pi * passed) + 0.005)
        for group in self.optimizer.param_groups:
            group["lr"] = group["speed"] * rate
        gating = NETWORKS[s.network][0]
        rows = self.source.next(self.done % 2 == 0 or self.done % s.checkpoint_every == 0)
        loss, of_mean, gates = find_loss(self.weights, rows, gating, self.fixed)
        total = loss + of_mean
        if gating == "normalized":
            used = gates.mean(0)
            bonus = (used * torch.log(used * used.numel() + 1e-6)).sum()
            total = total + 0.01 * max(0.0, 1.0 - 3.0 * passed) * bonus
        self.optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), 1.0)
        self.optimizer.step()
        self.done += 1
        keep = min(0.999, self.done / (self.done + 50))
        with torch.no_grad():
            own = [self.weights[name] for name in self.average]
            torch._foreach_lerp_(list(self.average.values()), own, 1.0 - keep)
        return loss.detach()

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        state = self.weights, self.average, self.optimizer.state_dict(), self.done
        torch.save(state, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint."""
        weights, average, optimizer, self.done = torch.load(path, map_location=self.device)
        with torch.no_grad():
            for name, own in self.weights.items():
                own.copy_(weights[name])
                self.average[name].copy_(average[name])
        self.optimizer.load_state_dict(optimizer)

    def to_arrays(self) -> dict[str, Any]:
        """Return the averages of the weights as they are written."""
        arrays = {name: w.cpu().numpy().astype(np.float16) for name, w in self.average.items()}
        gating = GATINGS.index(NETWORKS[self.settings.network][0])
        return {**arrays, "gating": np.array(gating)} if gating else arrays


_FAST = (*BY_CENTER, "offsets", "spreads")  # weights of centers, which learn from few rows


def train(settings: Settings, out: Path, device: str) -> Path:
    """Train a network, or go on with one, and return the file of its weights."""
    out.mkdir(parents=True, exist_ok=True)
    training, checkpoint, log = Training(settings, device), out / "checkpoint.pt", out / "log.csv"
    if checkpoint.exists():
        training.load(checkpoint)
        print(f"goes on at step {training.done:,} of {settings.steps:,}", flush=True)
    else:
        log.write_text("step,seconds,loss\n")
    started, losses = time.monotonic(), []
    while training.done < settings.steps:
        losses.append(training.step())
        if training.done % settings.checkpoint_every == 0 or training.done == settings.steps:
            seconds, loss = time.monotonic() - started, float(torch.stack(losses).mean())
            print(f"step {training.done:,}: loss {loss:.4f}, {seconds:.0f} s", flush=True)
            with log.open("a") as file:
                file.write(f"{training.done},{seconds:.1f},{loss:.6f}\n")
            losses = []
            training.save(checkpoint)
    weights = out / "weights.npz"
    np.savez_compressed(weights, **training.to_arrays())
    if NETWORKS[settings.network][0] == "normalized":
        add_exemplars(weights, settings.seed)
    return weights


def evaluate(weights: Arrays, series: Sequence[Array], h: int, season: int) -> dict[str, float]:
    """Return errors of the last h values of series, and of the last season repeated.

    MASE, the mean absolute error in units of the mean seasonal change before; and the share of
    values within intervals of 80 %.
    """
    past, actual = [y[:-h] for y in series], np.stack([y[-h:] for y in series])
    found = forecast(past, h, season, weights=weights)
    lag = [season if y.size > season else 1 for y in past]
    unit = np.array([np.abs(y[k:] - y[:-k]).mean() for y, k in zip(past, lag, strict=True)])
    naive = np.stack([y[y.size + np.arange(h) % k - k] for y, k in zip(past, lag, strict=True)])
    low, high = (found.quantiles[:, :, PROBABILITIES.index(p)] for p in (0.1, 0.9))
    use = unit > 0.0

    def mase(values: Array) -> float:
        return float((np.abs(values - actual).mean(axis=1)[use] / unit[use]).mean())

    inside = (actual >= low) & (actual <= high)
    return {
        "MASE": mase(found.median),
        "MASE of the last season": mase(naive),
        "within 80 %": float(inside.mean()),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, or evaluate weights."""
    summary = str(__doc__).partition("\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--out", type=Path, required=True, help="folder of weights, log and state")
    parser.add_argument("--steps", type=int, help="steps of training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--network", choices=NETWORKS, default="differential")
    parser.add_argument("--small", action="store_true", help="a minute on a processor")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--evaluate", type=Path, help="CSV or Parquet file of series")
    parser.add_argument("--exemplars", action="store_true", help="only find exemplars of weights")
    parser.add_argument("--season", type=int, default=1)
    parser.add_argument("--horizon", type=int, default=12)
    options = parser.parse_args(arguments)
    settings = Settings.small() if options.small else Settings()
    settings = replace(settings, seed=options.seed, network=options.network)
    settings = replace(settings, steps=options.steps or settings.steps)
    torch.set_float32_matmul_precision("high")
    if options.exemplars:
        add_exemplars(options.out / "weights.npz", options.seed)
        return
    if options.evaluate is None:
        print(train(settings, options.out, options.device))
        return
    import pandas as pd

    read = pd.read_parquet if options.evaluate.suffix == ".parquet" else pd.read_csv
    frame = read(options.evaluate).sort_values(["unique_id", "ds"]).dropna(subset="y")
    series = [y.to_numpy(dtype=float) for _, y in frame.groupby("unique_id")["y"]]
    long = [y for y in series if y.size > options.horizon + 1]
    weights = read_weights(options.out / "weights.npz")
    for name, value in evaluate(weights, long, options.horizon, options.season).items():
        print(f"{name}: {value:.3f}")


if __name__ == "__main__":
    main()

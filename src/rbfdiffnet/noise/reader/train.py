r"""Train the reader: ``python -m rbfdiffnet.noise.reader.train --out DIR``.

Every step cuts windows out of the series of `simulate`, samples them 5 to 40 times a period, adds
noise, and leaves out values. After each value the network is to tell the clean values around it:
some before it, and those ahead. The loss is the pinball loss of its quantiles, in standard
deviations of the observed series; that of the values it has seen is divided by the noise.

``weights.npz`` in DIR is what `network.read_weights` reads; its matrices are whole numbers from
-127 to 127, with a scale for each row. ``--start`` goes on from ``weights.pt`` of an earlier
training, with other systems. The weights of the package come from two trainings of seven minutes
each on a card, which the clock ended: about ``--steps 24500``, and, from there on, about
``--seed 1 --steps 27000 --rate 0.012``.

Training needs the extra ``[gpu]``.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rbfdiffnet.noise.reader.network import (
    AHEAD,
    BEFORE,
    HEAD,
    PROBABILITIES,
    SEEN,
    WINDOW,
    rotations,
)
from rbfdiffnet.noise.reader.simulate import Dice, Records, simulate
from rbfdiffnet.support.arrays import Arrays

_FIRST = 24  # token from which on the loss counts
_PER_PERIOD = (5.0, 40.0)
_LONGEST_STEP = 18.0  # recorded steps between two samples
_MAP_END = 990.0  # of the recorded steps of maps


class Reader(nn.Module):
    """The network, as `network` describes it."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.heads = width // HEAD
        shapes = dict.fromkeys(("query", "key", "value", "mix"), (width, width))
        shapes |= {"rise": (width, 3 * width), "fall": (3 * width, width)}
        self.embed = nn.Linear(2 * WINDOW, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict({name: nn.Linear(*shape, bias=False) for name, shape in shapes.items()})
            for _ in range(layers)
        )
        self.beta = nn.Parameter(torch.full((layers, self.heads), math.log(6.0)))
        self.out = nn.Linear(width, (BEFORE + AHEAD) * len(PROBABILITIES))
        for layer in self.layers:
            nn.init.zeros_(layer["mix"].weight)
            nn.init.zeros_(layer["fall"].weight)
        for name, values in zip(("cos", "sin"), rotations(), strict=True):
            self.register_buffer(name, torch.tensor(values).float(), persistent=False)

    def place(self, x: Tensor) -> Tensor:
        """Bring vectors (B, heads, N, HEAD) to length one, and turn them with time."""
        a, b = F.normalize(x, dim=-1).chunk(2, dim=-1)
        cos, sin = (v[: x.shape[-2]].to(a.dtype) for v in (self.cos, self.sin))
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)

    def forward(self, features: Tensor) -> Tensor:
        """Features (B, N, f) to quantiles (B, N, BEFORE + AHEAD, q)."""
        x = self.embed(features)
        B, N, width = x.shape
        for layer, beta in zip(self.layers, self.beta, strict=True):
            y = F.rms_norm(x, (width,))
            query, key, value = (
                layer[name](y).view(B, N, self.heads, HEAD).transpose(1, 2)
                for name in ("query", "key", "value")
            )
            query, key = self.place(query), self.place(key)
            query = query * (2.0 * beta.exp()).to(query.dtype)[:, None, None]
            key, value = key.to(query.dtype), value.to(query.dtype)
            y = F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=1.0)
            x = x + layer["mix"](y.transpose(1, 2).reshape(B, N, width))
            x = x + layer["fall"](F.relu(layer["rise"](F.rms_norm(x, (width,)))) ** 2)
        raw = self.out(F.rms_norm(x, (width,))).float().view(B, N, BEFORE + AHEAD, -1)
        low, middle, high = raw.unbind(-1)
        return torch.stack([middle - F.softplus(low), middle, middle + F.softplus(high)], dim=-1)


def make_features(x: Tensor, known: Tensor) -> Tensor:
    """Return what tokens know: the latest values and which of them are known, (B, N, 2 WINDOW).

    ``x`` (B, N) is standardized and 0 where not ``known`` (B, N).
    """
    windows = [F.pad(v, (WINDOW - 1, 0)).unfold(1, WINDOW, 1) for v in (x, known)]
    return torch.cat(windows, dim=-1)


def draw(records: Records, n: int, dice: Dice) -> tuple[Tensor, ...]:
    """Return observed values (n, SEEN), which are known, clean ones, and noise (n, 1).

    They are standardized. Clean values (n, SEEN + AHEAD) go on after the observed ones.
    """
    device = records.values.device
    N, size = SEEN + AHEAD, records.values.shape[1]
    at = dice.whole(0, len(records.values), n)
    low, high = (math.log(v) for v in _PER_PERIOD)
    per_period = torch.exp(low + (high - low) * dice.uniform(n))
    step = (4.0 * records.quarter[at] / per_period).clamp(0.25, _LONGEST_STEP)
    is_map = records.is_map[at]
    step = torch.where(is_map, 1.0, step)
    last = torch.where(is_map, _MAP_END, size - 4.0)
    start = 2.0 + dice.uniform(n) * (last - 2.0 - step * (N - 1)).clamp(min=0.0)
    start = torch.where(is_map, start.floor(), start)
    place = start[:, None] + step[:, None] * torch.arange(N, device=device)
    whole = place.floor()
    f = place - whole
    around = (whole.long()[:, :, None] + torch.arange(-1, 3, device=device)).clamp(0, size - 1)
    y = records.values[at[:, None, None], around].float()
    weights = torch.stack(
        [
            -f * (f - 1) * (f - 2) / 6,
            (f + 1) * (f - 1) * (f - 2) / 2,
            -(f + 1) * f * (f - 2) / 2,
            (f + 1) * f * (f - 1) / 6,
        ],
        dim=-1,
    )
    clean = (y * weights).sum(dim=-1) * torch.where(dice.uniform(n, 1) < 0.5, -1.0, 1.0)
    scale = clean[:, :SEEN].std(dim=1, keepdim=True).clamp(min=1e-2)
    noise = torch.exp(math.log(0.01) + math.log(50.0) * dice.uniform(n, 1)) * (
        dice.uniform(n, 1) < 0.85
    )
    x = clean + noise * scale * dice.normal(n, N)
    gaps = (dice.uniform(n, N) < 0.3 * dice.uniform(n, 1)) & (dice.uniform(n, 1) < 0.1)
    x, known = x[:, :SEEN], ~gaps[:, :SEEN]
    count = known.sum(1, keepdim=True)
    mean = (x * known).sum(1, keepdim=True) / count
    scale = (((x - mean) ** 2 * known).sum(1, keepdim=True) / count).sqrt().clamp(min=1e-2)
    x, clean = (x - mean) / scale, ((clean - mean) / scale).clamp(-10.0, 10.0)
    return torch.where(known, x, 0.0), known.float(), clean, noise


def losses(found: Tensor, clean: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss of values ahead and of those seen."""
    levels = torch.tensor(PROBABILITIES, device=found.device)
    targets = F.pad(clean, (BEFORE - 1, 0)).unfold(1, BEFORE + AHEAD, 1)  # (B, SEEN, ...)
    away = (targets[..., None] - found)[:, _FIRST:]
    pinball = torch.maximum(levels * away, (levels - 1.0) * away).mean(dim=-1)
    seen = pinball[:, :, :BEFORE] / (noise + 0.05)[:, :, None]
    return pinball[:, :, BEFORE:].mean(), seen.mean()


class Muon:
    """Steps along the orthogonal part of the momentum of each matrix (Jordan et al., 2024)."""

    def __init__(self, groups: list[list[Tensor]], rate: float) -> None:
        self.groups, self.rate = groups, rate
        self.momenta = [torch.zeros((len(g), *g[0].shape), device=g[0].device) for g in groups]

    def step(self, share: float) -> None:
        """Take a step, with a share of the full rate."""
        for group, momentum in zip(self.groups, self.momenta, strict=True):
            gradient = torch.stack([p.grad for p in group]).detach()
            momentum.lerp_(gradient, 0.05)
            x = torch.lerp(gradient, momentum, 0.95).bfloat16()
            rows, columns = x.shape[1:]
            x = x.mT if rows > columns else x
            x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
            for _ in range(5):
                square = x @ x.mT
                x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
            x = x.mT if rows > columns else x
            x = x.float() * max(1.0, rows / columns) ** 0.5
            for p, own in zip(group, x, strict=True):
                p.data.mul_(1.0 - 0.01 * self.rate * share).add_(own, alpha=-self.rate * share)


def pack(state: dict[str, Tensor]) -> Arrays:
    """Return weights as whole numbers with a scale for each row; vectors in single precision."""
    arrays = {}
    for name, value in state.items():
        w = value.float().cpu().numpy()
        if w.ndim < 2 or w.size < 4096:
            arrays[name] = w.astype(np.float32)
            continue
        scale = np.abs(w).max(axis=1, keepdims=True) / 127.0
        arrays[name] = np.round(w / np.maximum(scale, 1e-12)).astype(np.int8)
        arrays[name + ".scale"] = scale.astype(np.float32)
    return arrays


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=24_500)
    parser.add_argument("--seconds", type=float, default=math.inf, help="at most, of training")
    parser.add_argument(
        "--start", type=Path, help="weights.pt of an earlier training to go on from"
    )
    parser.add_argument("--systems", type=float, default=1.0, help="how many, for the usual number")
    parser.add_argument("--batch", type=int, default=768)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    began = time.time()
    records = simulate(options.seed, device, options.systems)
    order = torch.randperm(len(records.values), device=device)
    held = min(512, len(order) // 10)
    test, records = records.take(order[:held]), records.take(order[held:])
    print(f"{len(records.values)} series in {time.time() - began:.0f} s", flush=True)
    dice = Dice.of(options.seed + 1, device)
    net = Reader(options.width, options.layers).to(device)
    if options.start:
        net.load_state_dict(torch.load(options.start, map_location=device))
    mean = {k: v.detach().clone() for k, v in net.state_dict().items()}
    names = ("query", "key", "value", "mix")
    groups = [[layer[name].weight for layer in net.layers for name in names]]
    groups += [[layer[name].weight for layer in net.layers] for name in ("rise", "fall")]
    muon = Muon(groups, options.rate)
    others = [net.embed.weight, net.embed.bias, net.out.weight, net.out.bias, net.beta]
    adam = torch.optim.AdamW(others, lr=2e-3, betas=(0.9, 0.98), weight_decay=0.0)

    def loss_of(x: Tensor, known: Tensor, clean: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(device, torch.bfloat16):
            found = net(make_features(x, known))
        return losses(found, clean, noise)

    fast = torch.compile(loss_of) if device == "cuda" else loss_of
    part = min(256, options.batch)
    trial = draw(test, 8 * part, Dice.of(7, device))
    began, step, sums = time.time(), 0, torch.zeros(2, device=device)
    while (share := max(step / options.steps, (time.time() - began) / options.seconds)) < 1.0:
        rate = min(1.0, (step + 1) / 300, 2.0 * (1.0 - share))
        ahead, seen = fast(*draw(records, options.batch, dice))
        (ahead + 0.25 * seen).backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for group in adam.param_groups:
            group["lr"] = 2e-3 * rate
        adam.step()
        muon.step(rate)
        net.zero_grad(set_to_none=True)
        step += 1
        sums += torch.stack([ahead.detach(), seen.detach()])
        with torch.no_grad():
            keep = min(0.998, step / (step + 10))
            torch._foreach_lerp_(list(mean.values()), list(net.state_dict().values()), 1.0 - keep)
        if step % 500 == 0:
            ahead, seen = (sums / 500).tolist()
            print(f"{time.time() - began:5.0f} s {step} steps {ahead:.4f} {seen:.4f}", flush=True)
            sums.zero_()
    net.load_state_dict(mean)
    with torch.no_grad():
        held_out = [loss_of(*(v[k : k + part] for v in trial)) for k in range(0, 8 * part, part)]
    print("held out", *(f"{float(torch.stack(v).mean()):.4f}" for v in zip(*held_out, strict=True)))
    options.out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.out / "weights.npz", **pack(net.state_dict()))  # type: ignore[arg-type]
    torch.save(net.state_dict(), options.out / "weights.pt")


if __name__ == "__main__":
    main()

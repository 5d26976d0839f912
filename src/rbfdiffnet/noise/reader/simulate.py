r"""Random systems that wander without repeating themselves: what the reader is trained on.

No system is taken from a list, though some forms are well known. Differential equations,
equations with delays, and maps are drawn at random;
those whose solutions stay bounded and keep moving are kept. Three quarters are chaotic: two
solutions that begin close to each other do not stay so. The kinds:

- *sparse*: three or four variables, the change of each a sum of a few random terms (1, x, products,
  cubes, sines, sizes, hyperbolic tangents). Few such systems are chaotic, so many are drawn, and
  those that are found are drawn again with changed weights.
- *turbulent*: :math:`\dot x = (S + \sum_k x_k A_k) x - D x + F` with skew matrices S and A, so that
  only friction D and force F change the energy.
- *nets*: :math:`\dot x = r \circ (W \tanh(x + b) - x)`.
- *driven*: two coupled oscillators with random springs and friction, and a periodic force.
- *delayed*: :math:`\dot x(t) = \gamma (f(x(t - 1)) - x(t))`.
- *maps*: the sparse systems again, as maps.
- *tori*: bent sums of a few sines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

_PERIOD = 56  # recorded steps of a period, about
_STEPS, _DISCARDED = 4_096, 1_024
_MAP_STEPS = 1_000
_PILOT = 3_000
_LARGEST = 1e3
_CLOSE, _FAR = 1e-5, 3e-2  # distance of two solutions before and after, of chaotic systems
_OBSERVED = 2  # quantities of each system
_ORDERLY = 0.25  # share of systems that are not chaotic


@dataclass(frozen=True)
class Records:
    """Series (n, T) of many systems, standardized, and their quarters of a period (n,) in steps.

    ``is_map`` (n,) tells which are maps, whose values cannot be interpolated.
    """

    values: Tensor
    quarter: Tensor
    is_map: Tensor

    def take(self, at: Tensor) -> Records:
        """Return some of the series."""
        return Records(self.values[at], self.quarter[at], self.is_map[at])


@dataclass(frozen=True)
class Dice:
    """Random numbers of one seed."""

    generator: Any

    @classmethod
    def of(cls, seed: int, device: str) -> Dice:
        """Begin with a seed."""
        return cls(torch.Generator(device).manual_seed(seed))

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of PyTorch's functions."""
        return {"generator": self.generator, "device": self.generator.device}

    def uniform(self, *shape: int) -> Tensor:
        """Draw between 0 and 1."""
        return torch.rand(shape, **self.options)

    def normal(self, *shape: int) -> Tensor:
        """Draw from a standard normal distribution."""
        return torch.randn(shape, **self.options)

    def whole(self, low: int, high: int, *shape: int) -> Tensor:
        """Draw whole numbers below high."""
        return torch.randint(low, high, shape, **self.options)


def find_quarters(s: Tensor) -> Tensor:
    """Return the first lags at which the autocorrelations of series (n, T) are not positive."""
    size = s.shape[1]
    z = s - s.mean(dim=1, keepdim=True)
    power = torch.fft.rfft(z, 2 * size).abs() ** 2
    below = torch.fft.irfft(power)[:, : size // 2] <= 0.0
    return torch.where(below.any(dim=1), below.float().argmax(dim=1), size // 2)


def run(step: Callable[[Tensor, Tensor], Tensor], x: Tensor, steps: int, every: int = 1) -> Tensor:
    """Return the states after every so many steps, shape (steps / every, n, d).

    ``step`` takes the state (n, d) and the number of the step, and returns the next state. On a
    card its kernels are recorded once and played again.
    """
    kept = torch.empty((steps // every, *x.shape), device=x.device, dtype=torch.float32)
    x, k = x.clone(), torch.zeros(1, device=x.device, dtype=torch.int64)
    start = x.clone()

    def advance() -> None:
        for _ in range(every):
            ahead = torch.nan_to_num(step(x, k), 2 * _LARGEST, 2 * _LARGEST, -2 * _LARGEST)
            x.copy_(ahead.clamp(-2 * _LARGEST, 2 * _LARGEST))
            k.add_(1)
        kept.index_copy_(0, (k // every - 1).clamp(max=len(kept) - 1), x[None])

    play = advance
    if x.device.type == "cuda":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            advance()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            advance()
        x.copy_(start)
        k.zero_()
        play = graph.replay
    for _ in range(len(kept)):
        play()
    return kept


def keeps_moving(path: Tensor) -> Tensor:
    """Tell which paths (T, n, d) stay bounded and keep moving."""
    half = path[len(path) // 2 :]
    early, late = half.chunk(2)[0].std(dim=0), half.chunk(2)[-1].std(dim=0)
    steady = (late > 0.3 * early) & (late < 3.0 * early) & (late > 1e-3)
    return (half.abs().amax(dim=(0, 2)) < _LARGEST) & steady.any(dim=1)


def _is_chaotic(first: Tensor, second: Tensor, last: int) -> Tensor:
    """Tell which paths (T, n, d) left those that began close to them."""
    apart = (first - second)[-last:].abs().mean(dim=0) / first.std(dim=0).clamp(min=1e-9)
    return apart.amax(dim=1) > _FAR


def _beside(x: Tensor) -> Tensor:
    """Return states close to others (n, d)."""
    return x + _CLOSE * x.abs().amax(dim=1, keepdim=True)


def _observe(path: Tensor, dice: Dice) -> Tensor:
    """Return a few variables, or mixtures of them, of paths (T, n, d): (n, _OBSERVED, T)."""
    z = (path - path.mean(dim=0)) / path.std(dim=0).clamp(min=1e-9)
    n, d = z.shape[1:]
    one = torch.nn.functional.one_hot(dice.whole(0, d, n, _OBSERVED), d).float()
    mixed = dice.normal(n, _OBSERVED, d)
    pick = dice.uniform(n, _OBSERVED, 1) < 0.8
    return torch.einsum("tnd,nod->not", z, torch.where(pick, one, mixed))


@dataclass(frozen=True)
class Found:
    """What was seen (n, o, T) of systems, which of them keep moving, and which are chaotic (n,)."""

    seen: Tensor
    good: Tensor
    chaotic: Tensor


@dataclass(frozen=True)
class Systems:
    """Many differential equations: ``change`` (n, d) of a state (n, d) at a time (n,).

    It takes their ``parameters``, too, each with n along its first axis. ``unit`` is the step of
    time of a pilot run.
    """

    change: Callable[..., Tensor]
    parameters: tuple[Tensor, ...]
    start: Tensor
    unit: float

    def __len__(self) -> int:
        return len(self.start)

    def take(self, at: Tensor | slice) -> Systems:
        """Return some of the systems."""
        return replace(self, parameters=tuple(p[at] for p in self.parameters), start=self.start[at])

    def join(self, other: Systems) -> Systems:
        """Return these and others of their kind."""
        pairs = zip(self.parameters, other.parameters, strict=True)
        start = torch.cat([self.start, other.start])
        return replace(self, parameters=tuple(torch.cat(pair) for pair in pairs), start=start)

    def change_weights(self, times: int, dice: Dice) -> Systems:
        """Return each system several times, its parameters changed a little."""
        more = self.take(torch.arange(len(self), device=self.start.device).repeat_interleave(times))
        changed = tuple(p * torch.exp(0.15 * dice.normal(*p.shape)) for p in more.parameters)
        return replace(more, parameters=changed)

    def stepper(self, dt: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Return a step of Runge and Kutta's method of order four, for `run`."""
        half = 0.5 * dt[:, None]

        def step(x: Tensor, k: Tensor) -> Tensor:
            t = k * dt
            k1 = self.change(x, t, *self.parameters)
            k2 = self.change(x + half * k1, t + 0.5 * dt, *self.parameters)
            k3 = self.change(x + half * k2, t + 0.5 * dt, *self.parameters)
            k4 = self.change(x + dt[:, None] * k3, t + dt, *self.parameters)
            return x + dt[:, None] / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

        return step

    def pilot(self, every: int = 2) -> tuple[Systems, Tensor]:
        """Return the systems worth a longer run, begun where they are, and their steps of time."""
        dt = torch.full((len(self),), self.unit, device=self.start.device)
        path = run(self.stepper(dt), self.start, _PILOT, every)
        good = torch.nonzero(keeps_moving(path))[:, 0]
        half = path[len(path) // 2 :, good]
        widest = half.std(dim=0).argmax(dim=1)
        main = half.gather(2, widest[None, :, None].expand(len(half), -1, 1))[:, :, 0].T
        quarter = find_quarters(main)
        fine = (quarter >= 3) & (quarter < len(half) // 8)
        found = replace(self.take(good[fine]), start=path[-1, good[fine]])
        return found, 4.0 * quarter[fine] * every * self.unit / _PERIOD

    def record(self, dt: Tensor, dice: Dice) -> Found:
        """Follow the systems, and twins that begin close to them."""
        n = len(self)
        x = run(self.stepper(dt), self.start, _DISCARDED, _DISCARDED // 8)[-1]
        both = replace(self.join(self), start=torch.cat([x, _beside(x)]))
        later = both.stepper(torch.cat([dt, dt]))
        path = run(lambda y, k: later(y, k + _DISCARDED), both.start, _STEPS)
        first, second = path[:, :n], path[:, n:]
        chaotic = _is_chaotic(first, second, _STEPS // 8)
        return Found(_observe(first, dice), keeps_moving(first), chaotic)


def _terms(x: Tensor) -> Tensor:
    """Return all terms of sparse systems, shape (n, m)."""
    products = [x[:, i : i + 1] * x[:, i:] for i in range(x.shape[1])]
    others = (x**3, torch.sin(x), x.abs(), torch.tanh(x))
    return torch.cat([torch.ones_like(x[:, :1]), x, *products, *others], dim=1)


def _change_sparse(x: Tensor, _: Tensor, weights: Tensor) -> Tensor:
    return (_terms(x)[:, :, None] * weights).sum(dim=1)


def draw_sparse(n: int, d: int, dice: Dice) -> Systems:
    """Draw systems with one to four terms in each equation."""
    m = _terms(torch.zeros((1, d))).shape[1]
    linear, products = slice(1, 1 + d), slice(1 + d, 1 + d + d * (d + 1) // 2)
    chance = torch.ones(m, device=dice.generator.device)
    chance[linear], chance[products], chance[products.stop :] = 4.0, 2.0, 0.3
    score = dice.uniform(n, m, d).log() / chance[:, None]
    count = dice.whole(1, 5, n, 1, d)
    rank = score.argsort(dim=1, descending=True).argsort(dim=1)
    size = torch.exp(0.8 * dice.normal(n, m, d))
    sign = dice.whole(0, 2, n, m, d) * 2 - 1
    weights = torch.where(rank < count, size * sign, 0.0)
    return Systems(_change_sparse, (weights,), 0.5 * dice.normal(n, d), 0.03)


def _change_turbulent(
    x: Tensor, _: Tensor, skew: Tensor, tensor: Tensor, friction: Tensor, force: Tensor
) -> Tensor:
    matrix = skew + (x[:, :, None, None] * tensor).sum(dim=1)
    return (matrix * x[:, None]).sum(dim=2) - friction * x + force


def draw_turbulent(n: int, d: int, dice: Dice) -> Systems:
    """Draw systems in which waves exchange energy."""
    raw = dice.normal(n, d, d, d)
    raw = raw * (dice.uniform(n, d, d, d) < 0.3 + 0.5 * dice.uniform(n, 1, 1, 1))
    tensor = raw - raw.transpose(2, 3)
    raw = dice.normal(n, d, d) * 3.0 * dice.uniform(n, 1, 1)
    skew = raw - raw.transpose(1, 2)
    friction = torch.exp(0.7 * dice.normal(n, d))
    force = dice.normal(n, d) * torch.exp(2.5 * dice.uniform(n, 1)) * (dice.uniform(n, d) < 0.7)
    parameters = (skew, tensor, friction, force)
    return Systems(_change_turbulent, parameters, dice.normal(n, d), 0.01)


def _change_nets(x: Tensor, _: Tensor, w: Tensor, b: Tensor, rate: Tensor) -> Tensor:
    return rate * ((w * torch.tanh(x + b)[:, None]).sum(dim=2) - x)


def draw_nets(n: int, d: int, dice: Dice) -> Systems:
    """Draw networks of units that excite and calm each other."""
    gain = 1.5 + 4.0 * dice.uniform(n, 1, 1)
    w = gain * dice.normal(n, d, d) / math.sqrt(d)
    rate = torch.exp(0.5 * dice.normal(n, d))
    return Systems(_change_nets, (w, 0.5 * dice.normal(n, d), rate), dice.normal(n, d), 0.05)


def _change_driven(x: Tensor, t: Tensor, p: Tensor) -> Tensor:
    u, v, y, z = x.unbind(1)
    a, b, c, g, mu, f, om, k, a2, b2, g2, mu2, swing, om2, f0 = p.unbind(1)
    force = f * torch.cos(om * t) + swing * u * torch.cos(om2 * t) + f0
    pull = k * (y - u)
    dv = -g * v - mu * (u * u - 1.0) * v - a * u - b * u**3 - c * torch.sin(u) + force + pull
    dz = -g2 * z - mu2 * (y * y - 1.0) * z - a2 * y - b2 * y**3 - pull
    return torch.stack([v, dv, z, dz], dim=1)


def draw_driven(n: int, dice: Dice) -> Systems:
    """Draw two oscillators; some are not coupled, or not driven."""

    def on(share: float) -> Tensor:
        return (dice.uniform(n) < share).float()

    p = [
        dice.normal(n),
        1.5 * dice.uniform(n) + 0.1,
        2.0 * dice.normal(n) * on(0.3),
        0.4 * dice.uniform(n),
        3.0 * dice.uniform(n) * on(0.4),
        torch.exp(0.8 * dice.normal(n)) * on(0.85),
        torch.exp(0.5 * dice.normal(n)),
        0.7 * dice.normal(n) * on(0.5),
        dice.normal(n),
        1.5 * dice.uniform(n) + 0.1,
        0.4 * dice.uniform(n),
        3.0 * dice.uniform(n) * on(0.4),
        dice.normal(n) * on(0.2),
        torch.exp(0.5 * dice.normal(n)),
        0.5 * dice.normal(n) * on(0.3),
    ]
    return Systems(_change_driven, (torch.stack(p, dim=1),), dice.normal(n, 4), 0.03)


def record_delayed(n: int, dice: Dice) -> Found:
    """Solve equations with a delay by Heun's method; a delay has 60 steps."""
    delay, every = 60, 3
    gamma, beta = torch.exp(3.0 * dice.uniform(n) - 0.5), dice.uniform(n)
    kind, power = dice.whole(0, 4, n), 4.0 + 10.0 * dice.uniform(n)
    gain, phase = 1.2 + 3.0 * dice.uniform(n), 6.28 * dice.uniform(n)

    def feed(x: Tensor) -> Tensor:
        hump = gain * x / (1.0 + (x.abs() * (1.0 + beta)) ** power)
        wave = gain * torch.sin(2.0 * x + phase)
        bump = gain * (torch.exp(-((x - beta) ** 2) * 3.0) * 2.0 - 0.5)
        fold = gain * (x - x**3 * 0.5).clamp(-3.0, 3.0)
        late = torch.where(kind == 2, bump, fold)
        return gamma * torch.where(kind == 0, hump, torch.where(kind == 1, wave, late))

    ring = dice.normal(n, delay).cumsum(dim=1) / 8.0 + 0.5
    twin = ring.clone()
    paths: tuple[list[Tensor], list[Tensor]] = ([], [])
    for k in range(every * (_STEPS + _DISCARDED)):
        at, after = k % delay, (k + 1) % delay
        for own in (ring, twin):
            x = own[:, at - 1]
            slope = feed(own[:, at]) - gamma * x
            ahead = x + slope / delay
            own[:, at] = x + 0.5 / delay * (slope + feed(own[:, after]) - gamma * ahead)
        if k == every * _DISCARDED:
            twin = ring + _CLOSE
        if k >= every * _DISCARDED and k % every == 0:
            for kept, own in zip(paths, (ring, twin), strict=True):
                kept.append(own[:, at].clone())
    path, other = (torch.nan_to_num(torch.stack(p)[:, :, None], 2 * _LARGEST) for p in paths)
    z = (path - path.mean(dim=0)) / path.std(dim=0).clamp(min=1e-9)
    return Found(z.permute(1, 2, 0), keeps_moving(path), _is_chaotic(path, other, _STEPS // 8))


def record_maps(n: int, d: int, dice: Dice) -> Found:
    """Iterate sparse systems as maps."""

    def iterate(systems: Systems, start: Tensor, steps: int) -> Tensor:
        return run(lambda x, k: systems.change(x, k, *systems.parameters), start, steps)

    systems = draw_sparse(n, d, dice)
    path = iterate(systems, systems.start, 200)
    good = torch.nonzero(keeps_moving(path))[:, 0]
    systems = replace(systems.take(good), start=path[-1, good]).change_weights(3, dice)
    path = iterate(systems, systems.start, 200 + _MAP_STEPS)[200:]
    twins = iterate(systems, _beside(path[-1]), 200)
    chaotic = _is_chaotic(iterate(systems, path[-1], 200), twins, 50)
    return Found(_observe(path, dice), keeps_moving(path), chaotic)


def record_tori(n: int, dice: Dice) -> Found:
    """Return bent sums of sines; they count as chaotic, so that all are kept."""
    t = torch.arange(_STEPS, device=dice.generator.device) / _PERIOD
    frequency = torch.exp(1.2 * (dice.uniform(n, 4, 1) - 0.6))
    frequency[:, 0] = 1.0
    size = dice.uniform(n, 4, 1) ** 2 * (dice.uniform(n, 4, 1) < 0.6)
    size[:, 0] = 1.0
    s = (size * torch.sin(2.0 * math.pi * (frequency * t + dice.uniform(n, 4, 1)))).sum(dim=1)
    bend = 2.0 * dice.uniform(n, 1) - 1.0
    s = s + bend * s**2 * (dice.uniform(n, 1) < 0.5)
    every = torch.ones(n, dtype=torch.bool, device=s.device)
    return Found(s[:, None], every, every)


def _standardize(s: Tensor) -> Tensor:
    return (s - s.mean(dim=1, keepdim=True)) / s.std(dim=1, keepdim=True).clamp(min=1e-9)


def _bend(s: Tensor, dice: Dice) -> Tensor:
    """Observe some standardized series (n, T) through a bent scale."""
    pick = dice.uniform(len(s), 1)
    grown = torch.exp(s.clamp(max=4.0))
    bent = torch.where(pick < 0.06, grown, torch.where(pick < 0.1, torch.tanh(1.5 * s), s))
    return torch.where((pick >= 0.1) & (pick < 0.13), s.abs(), bent)


def choose(found: Found, dice: Dice, *, is_map: bool = False) -> Records:
    """Return the series that are fit to learn from, those that are not chaotic a quarter."""
    wild = torch.nonzero(found.good & found.chaotic)[:, 0]
    tame = torch.nonzero(found.good & ~found.chaotic)[:, 0]
    tame = tame[: max(int(_ORDERLY / (1.0 - _ORDERLY) * len(wild)), 1)]
    s = _standardize(found.seen[torch.cat([wild, tame])].flatten(0, 1))
    s = _standardize(_bend(s, dice))
    quarter = find_quarters(s)
    fine = torch.isfinite(s).all(dim=1) & (s.abs().amax(dim=1) < 12.0)
    if not is_map:
        steps = (s[:, 1:] - s[:, :-1]).abs().amax(dim=1)
        fine &= (quarter >= 4) & (quarter <= 64) & (steps < 1.5)  # with no unresolved spikes
    s = torch.nn.functional.pad(s, (0, _STEPS - s.shape[1]), mode="replicate")
    return Records(s[fine].half(), quarter[fine], torch.full_like(quarter[fine] > 0, is_map))


def simulate(seed: int, device: str, scale: float = 1.0) -> Records:
    """Draw systems of all kinds, and return their series; ``scale`` says how many of them."""
    dice = Dice.of(seed, device)
    most = int(20_000 * scale)
    kept: list[Records] = []

    def count(n: int) -> int:
        return max(int(n * scale), 1)

    def follow(systems: Systems, most: int) -> Systems:
        systems, dt = systems.pilot()
        systems, dt = systems.take(slice(most)), dt[:most]
        if len(systems):
            found = systems.record(dt, dice)
            kept.append(choose(found, dice))
            systems = systems.take(torch.nonzero(found.good & found.chaotic)[:, 0])
        return systems

    for d, rounds in ((3, 8), (4, 3)):
        wild = follow(draw_sparse(count(300_000), d, dice), count(300_000))
        for _ in range(rounds - 1):
            wild = wild.join(follow(draw_sparse(count(300_000), d, dice), count(300_000)))
        follow(wild.change_weights(4, dice), most)
    for d in (3, 4, 5, 6, 8):
        follow(draw_turbulent(count(80_000), d, dice), most)
    for d in (12, 20):
        follow(draw_nets(count(30_000), d, dice), most // 2)
    for _ in range(2):
        follow(draw_driven(count(60_000), dice), most)
    kept.append(choose(record_delayed(count(12_000), dice), dice))
    for d in (1, 2, 3):
        kept.append(choose(record_maps(count(60_000), d, dice), dice, is_map=True))
    kept.append(choose(record_tori(count(6_000), dice), dice))
    return Records(
        torch.cat([one.values for one in kept]),
        torch.cat([one.quarter for one in kept]),
        torch.cat([one.is_map for one in kept]),
    )

r"""Simulated series, from which alone the pretrained network learns.

A series is a sum of parts, each of which many series lack, observed in one of six ways:

.. math:: z_t = \ell_t + e_t + p_t + r_t + c_t + g_t + s_t + o_t, \qquad
    y_t \in \{a + z_t, \; e^{b z_t}, \; \lfloor k e^{b z_t} \rceil, \;
    \text{Poisson}(e^{b z_t}), \; (a + z_t)_+, \; \textstyle\sum_{u \le t} e^{b z_u}\}

=====  ==============  ============================================================================
part   function        what it is
=====  ==============  ============================================================================
ℓ      `make_level`    a random walk with drift and a damped slope that wanders, jumps and bends; or
                       a level that returns to its mean
e      `make_errors`   noise with heavy tails, volatility that changes, AR(1) and MA(1) terms
p      `make_slow`     noise with a long memory: the sum of three AR(1) series of different speed
r      `make_smooth`   a smooth random function (random Fourier features)
c      `make_cycles`   a sine, and a stochastic cycle whose phase and size wander
g      `make_growth`   growth that saturates: a logistic curve
s      `make_seasons`  a season that drifts and grows (smooth, rough, spiky, bumps or steps), and a
                       longer one: kinds of days, or a year with holidays
o      -               outliers
=====  ==============  ============================================================================

All amplitudes are log-uniform and independent of each other. They are amplitudes per year for three
quarters of the series and per step for the others, where a "year" is the season, or the longer one.
No real series is used anywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

#: Share of each season among short and among long series; 0 stands for any from 2 to 60 steps.
SHORT = {1: 0.27, 4: 0.18, 12: 0.29, 7: 0.1, 24: 0.03, 52: 0.07, 5: 0.02, 0: 0.04}
LONG = {1: 0.08, 4: 0.02, 12: 0.08, 7: 0.29, 24: 0.28, 52: 0.06, 5: 0.05, 48: 0.08, 0: 0.06}
#: Share of the ways to observe a series, in the order above.
WAYS = (0.33, 0.39, 0.11, 0.13, 0.02, 0.02)
_LONG_SERIES = 300  # steps, from which on the second table of seasons holds
_PER_STEP = 0.25  # share of series with amplitudes per step
_TINY = 0.06  # share of series of at most 15 values
_WRONG_SEASON = 0.06  # share of series for which another season is told
_HAS_RESTS = 0.5  # share of series with two seasons in which some turns have another profile
_UP = 0.7  # share of slopes that rise
_LONGEST_PROFILE = 400


@dataclass(frozen=True)
class Simulated:
    """Series `y` (B, n_past + n_ahead), of whose past the last `lengths` (B,) values are shown."""

    y: Any
    lengths: Any
    season: Any
    longer: Any


class Draw:
    """Random numbers of a batch of series on a device."""

    def __init__(self, n_series: int, n_steps: int, device: str) -> None:
        self.rows, self.steps, self.device = n_series, n_steps, device

    def uniform(self, *shape: int) -> Any:
        """Numbers between 0 and 1: one for each series, or of some shape behind the series."""
        return torch.rand(self.rows, *(shape or (1,)), device=self.device)

    def normal(self, *shape: int) -> Any:
        """Standard normal numbers."""
        return torch.randn(self.rows, *(shape or (1,)), device=self.device)

    def size(self, low: float, high: float, *shape: int) -> Any:
        """Log-uniform numbers between powers of ten."""
        return 10.0 ** (low + (high - low) * self.uniform(*shape))

    def some(self, share: float, *shape: int) -> Any:
        """1 for a share of the series, 0 for the others."""
        return (self.uniform(*shape) < share).float()

    def noise(self) -> Any:
        """A standard normal number for each step."""
        return self.normal(self.steps)

    def sign(self, up: float) -> Any:
        """1 for a share of the series, -1 for the others."""
        return 2.0 * self.some(up) - 1.0

    def constant(self, value: float) -> Any:
        """The same number for each series."""
        return torch.full((self.rows, 1), value, device=self.device)


def recur(shocks: list[Any], rates: list[Any]) -> Any:
    """Return x with x_t = a x_{t-1} + e_t for pairs of shocks (B, T) and rates (B, 1).

    Sums over 1, 2, 4, ... steps are doubled, so there is no loop over the steps.
    """
    x, a = torch.cat(shocks), torch.cat(rates)
    step = 1
    while step < x.shape[1]:
        x[:, step:] += a * x[:, :-step]
        a, step = a * a, 2 * step
    return x.split(len(shocks[0]))


@dataclass(frozen=True)
class Frame:
    """What all parts of a batch share; numbers of series have shape (B, 1)."""

    draw: Draw
    n_past: int
    season: Any
    longer: Any  # steps of the longer season, whether the series has one or not
    turns: Any  # seasons in a longer season
    has_longer: Any
    lengths: Any
    start: Any  # position of the first value that is shown
    age: Any  # (B, T): 0 at the start, 1 at the end of the past
    rate: Any  # years in a step
    damp: Any  # factor of amplitudes of walks
    t: Any  # (1, T)


def simulate(n_series: int, n_past: int, n_ahead: int, device: str = "cpu") -> Simulated:
    """Draw a batch of series; the random state is torch's."""
    draw = Draw(n_series, n_past + n_ahead, device)
    frame = make_frame(draw, n_past)
    level, spread = make_level(frame)
    noise, size = make_errors(frame, spread)
    z = level + noise + make_slow(frame) + make_smooth(frame) + make_cycles(frame)
    z = z + make_growth(frame) + make_seasons(frame)
    z = z + 5.0 * size * draw.noise() * (draw.uniform(draw.steps) < 0.02 * draw.some(0.15)).float()
    mixed = draw.uniform() < 0.12 * (frame.season == 1).float()
    z = torch.where(mixed, z + z.roll(1, 0) * draw.uniform(), z)
    return _tell(frame, observe(frame, z))


def make_frame(draw: Draw, n_past: int) -> Frame:
    """Draw seasons, lengths and the length of a year."""
    m = draw_season(draw, SHORT if draw.steps < _LONG_SERIES else LONG)
    turns = torch.where(m == 7, 52, torch.where((m == 24) | (m == 48), 7, 4))
    turns = torch.where(m == 5, 52, torch.where(m <= 4, 13, turns))
    turns = torch.where(draw.uniform() < 0.1, (2 + 10 * draw.uniform()).long(), turns)
    longer = m * turns
    fewest = torch.where(m > 1, 1.2 * m, 6.0).clamp(max=0.9 * n_past)
    lengths = (fewest * (n_past / fewest) ** draw.uniform()).long()
    tiny = (1 + 14 * draw.uniform()).long()
    lengths = torch.where(draw.uniform() < _TINY, tiny, lengths).clamp(1, n_past)
    start = n_past - lengths
    t = torch.arange(draw.steps, device=draw.device).float()[None]
    free = torch.where(draw.uniform() < 0.6, longer, m * draw.size(0.0, 1.0))
    year = torch.where((m <= 4) | (m == 12) | (m == 52), 1.0 * m, free)
    year = torch.where(m == 1, draw.size(0.0, 1.2), year)
    per_step = draw.uniform() < _PER_STEP
    usual = (m <= 4) | (m == 12) | (m == 52)
    return Frame(
        draw,
        n_past,
        m,
        longer,
        turns,
        has_longer=(1.2 * longer <= n_past) & ~usual,
        lengths=lengths,
        start=start,
        age=((t - start) / lengths).clamp(min=-1.0),
        rate=torch.where(per_step, 1.0, 1.0 / year.clamp(min=1.0)),
        damp=torch.where(per_step, 0.5, 1.0),
        t=t,
    )


def draw_season(draw: Draw, shares: dict[int, float]) -> Any:
    """Draw a season by its share."""
    place, below = draw.uniform(), 0.0
    m = torch.full_like(place, 12, dtype=torch.long)
    for season, share in shares.items():
        m = torch.where((place >= below) & (place < below + share), season, m)
        below += share
    return torch.where(m == 0, (2 * 30 ** draw.uniform()).long(), m)


def make_level(f: Frame) -> tuple[Any, Any]:
    r"""Return a level, and how its noise and that of the errors swells and shrinks.

    .. math:: \ell_t = \ell_{t-1} + d + b_t + \sigma_\ell v_t \varepsilon_t + J_t, \qquad
        b_t = \varphi b_{t-1} + \sigma_b \varepsilon'_t + B_t

    with rare jumps J and bends B. Some levels return to their mean instead, without a slope.
    """
    d, rate, damp = f.draw, f.rate, f.damp
    walk = d.size(-2.3, 0.2) * d.some(0.8) * rate.sqrt() * damp
    wander = d.size(-2.7, -0.2) * d.some(0.5) * rate**1.5 * damp**2
    slope = d.sign(_UP) * d.size(-2.3, 0.3) * d.some(0.8) * rate * damp**2
    stays = d.some(0.6)
    keep = torch.where(d.uniform() < 0.5, 1.0, 0.3 + 0.7 * d.uniform()) ** rate
    jumps = d.noise() * (d.uniform(d.steps) < 0.15 * rate * d.some(0.2)).float()
    bends = d.noise() * (d.uniform(d.steps) < 0.2 * rate * d.some(0.35)).float()
    jumps, bends = jumps * d.size(-1.0, 0.2), bends * d.size(-2.0, 0.2) * rate
    shocks = wander * d.noise() + bends
    shocks[:, :1] += slope * (1.0 - stays)
    (calm,) = recur([0.25 * d.noise()], [1.0 - 0.06 * rate.clamp(max=0.5)])
    spread = torch.exp(d.some(0.2) * d.size(-1.0, 0.1) * calm.clamp(-4.0, 4.0))
    leaps = 1.0 + 4.0 * d.some(0.3) * d.some(0.05, d.steps)
    steps = walk * d.noise() * leaps * spread + jumps
    pull = (1.0 - 0.9 * d.size(-2.0, 0.0)) ** rate.clamp(max=1.0)
    slopes, returning = recur([shocks, steps], [keep, pull])
    level = torch.cumsum(steps + slopes + slope * stays, 1)
    return torch.where(d.uniform() < 0.15, returning, level), spread


def make_errors(f: Frame, spread: Any) -> tuple[Any, Any]:
    r"""Return errors, and their size.

    .. math:: e_t = \rho e_{t-1} + \sigma v_t (\varepsilon_t + \theta \varepsilon_{t-1})
    """
    d = f.draw
    size = d.size(-2.3, 0.0) * d.some(0.92)
    heavy = (-torch.log(d.uniform(d.steps) + 1e-9)).clamp(min=0.02).rsqrt() - 1.0
    shocks = d.noise() * (1.0 + d.some(0.3) * heavy).clamp(max=10.0) * spread
    before = torch.cat([0.0 * shocks[:, :1], shocks[:, :-1]], 1)
    shocks = shocks + d.some(0.2) * (1.4 * d.uniform() - 0.7) * before
    rho = torch.where(d.uniform() < 0.6, 0.0, 1.65 * d.uniform() - 0.7).clamp(-0.7, 0.95)
    (errors,) = recur([shocks], [rho])
    return size * errors * (1.0 - rho**2).clamp(min=0.05).sqrt(), size


def make_slow(f: Frame) -> Any:
    """Return noise with a long memory: three AR(1) series, each of variance 1/2 or so."""
    d, speeds = f.draw, (0.5, 0.1, 0.02)
    parts = recur([d.noise() for _ in speeds], [d.constant(1.0 - speed) for speed in speeds])
    total = sum(math.sqrt(speed) * part for speed, part in zip(speeds, parts, strict=True))
    return total * d.some(0.12) * d.size(-1.7, 0.0)


def make_smooth(f: Frame) -> Any:
    r"""Return :math:`\sum_k \cos(w_k t + \phi_k)` with normal frequencies: a smooth function."""
    d, n = f.draw, 10
    scale = d.size(-0.3, 1.3) / f.rate
    w, phase = d.normal(n, 1) / scale[:, :, None], 2.0 * math.pi * d.uniform(n, 1)
    waves = math.sqrt(2.0 / n) * torch.cos(w * f.t[:, None] + phase).sum(1)
    return waves * d.some(0.4) * d.size(-1.7, 0.3)


def make_cycles(f: Frame) -> Any:
    """Return a sine, and an AR(2) series with complex roots, or its exponential."""
    d = f.draw
    period = (d.size(0.0, 1.1) / f.rate).clamp(min=3.0)
    sine = torch.sin(2.0 * math.pi * (f.t / period + d.uniform()))
    radius = 1.0 - d.size(-2.7, -0.5)
    pole = radius * torch.exp(2j * math.pi / d.size(0.5, 1.6))
    (cycle,) = recur([torch.complex(d.noise(), d.noise())], [pole])
    wave = cycle.real * (1.0 - radius**2).sqrt()
    wave = torch.where(d.uniform() < 0.5, wave, torch.exp(wave.clamp(-3.0, 2.0)))
    return sine * d.some(0.1) * d.size(-1.5, 0.2) + wave * d.some(0.1) * d.size(-1.0, 0.4)


def make_growth(f: Frame) -> Any:
    """Return a logistic curve, which rises or falls in the course of the series."""
    d = f.draw
    curve = torch.sigmoid((f.age - (1.4 * d.uniform() - 0.1)) * d.size(0.3, 1.4))
    return curve * d.sign(0.75) * d.some(0.08) * d.size(-0.5, 0.9)


def make_seasons(f: Frame) -> Any:
    r"""Return a season and a longer one.

    .. math:: s_t = \bigl(P_{t \bmod m} + a_t Q_{t \bmod m}\bigr) (1 + g a_t) \, w_t \, (1 + k L_t)
        + L_t

    where P and Q are profiles, a is the age of the series, g growth, w a factor that wanders, and L
    the longer season, which makes days of different kinds.
    """
    d, m, age = f.draw, f.season, f.age
    length = _LONGEST_PROFILE if d.steps >= _LONG_SERIES else 64
    within = ((f.t.long() + (400 * d.uniform()).long()) % m).clamp(max=length - 1)
    season = torch.gather(make_profile(d, m, length), 1, within)
    drift = torch.gather(make_profile(d, m, length), 1, within)
    season = season + drift * age.clamp(min=-0.5) * d.some(0.4) * d.uniform()
    has_longer, few = f.has_longer.float() * d.some(0.8), (f.turns <= 12).float()
    turn = ((f.t.long() // m) % f.turns).clamp(max=_LONGEST_PROFILE - 1)
    kinds = torch.gather(make_profile(d, f.turns, _LONGEST_PROFILE), 1, turn)
    first, count = (f.turns * d.uniform()).long(), 1 + (0.35 * f.turns * d.uniform()).long()
    rests = ((turn - first) % f.turns < count).float() * few * has_longer
    rests = rests * d.some(_HAS_RESTS) * d.uniform()
    season = season + rests * (torch.gather(make_profile(d, m, length), 1, within) - season)
    grown = 1.0 + 0.5 * d.some(0.3) * d.normal() * age
    (beat,) = recur([d.noise()], [1.0 - 0.3 / m])
    wander = torch.exp(0.3 * d.some(0.25) * d.uniform() * beat * (0.6 / m).sqrt())
    season = season * grown * wander * d.size(-2.0, 0.3) * (m > 1) * d.some(0.87)
    longer = few * kinds + (1.0 - few) * make_year(f)
    longer = longer * has_longer * d.size(-1.7, 0.3)
    return season * (1.0 + 0.5 * few * has_longer * d.some(0.6) * kinds * d.uniform()) + longer


def make_profile(d: Draw, m: Any, length: int) -> Any:
    """Return profiles (B, length) of a season of m steps, of mean 0 and variance 1."""
    place = torch.arange(length, device=d.device)[None] % m
    x = place / m
    order = torch.arange(1, 7, device=d.device)[None, :, None]
    height = d.normal(6, 1) * torch.exp(-(order - 1) * d.size(-1.3, 0.3, 1, 1))
    wave = torch.cos(2.0 * math.pi * (order * x[:, None] + d.uniform(6, 1)))
    smooth = (height * wave).sum(1)
    rough = torch.gather(d.normal(length), 1, place)
    rare = torch.gather((d.uniform(length) < 0.35 * d.uniform()).float(), 1, place)
    spiky = rare * (rough + d.some(0.5) * rough.abs())
    height = d.normal(3, 1).abs() * (2.0 * d.some(0.8, 3, 1) - 1.0)
    turn = torch.cos(2.0 * math.pi * (x[:, None] - d.uniform(3, 1))) - 1.0
    bumps = (height * torch.exp(d.size(0.2, 1.7, 3, 1) * turn)).sum(1)
    width = 0.1 + 0.6 * d.uniform()
    away = ((x - d.uniform()) % 1.0 - width / 2.0).abs()
    away = torch.minimum(away, 1.0 - away)
    steps = torch.sigmoid(4.0 * d.size(0.5, 2.0) * (width / 2.0 - away))
    kind, is_short = d.uniform(), m <= 7
    found = smooth
    for part, short, long in (
        (rough, 0.3, 0.45),
        (spiky, 0.75, 0.65),
        (bumps, 0.9, 0.75),
        (steps, 0.95, 0.9),
    ):
        found = torch.where(kind >= torch.where(is_short, short, long), part, found)
    found = found + 0.3 * rough * d.some(0.3) * d.uniform()
    once = (torch.arange(length, device=d.device)[None] < m).float()
    count = once.sum(1, keepdim=True)
    found = found - (found * once).sum(1, keepdim=True) / count
    spread = ((found * found * once).sum(1, keepdim=True) / count).sqrt()
    return found / spread.clamp(min=0.05)


def make_year(f: Frame) -> Any:
    """Return a longer season of many turns: three harmonics, and a holiday."""
    d = f.draw
    order = torch.arange(1, 4, device=d.device)[None, :, None]
    x = (f.t % f.longer) / f.longer
    height = d.normal(3, 1) * torch.exp(-(order - 1) * d.size(-0.7, 0.4, 1, 1))
    smooth = (height * torch.cos(2.0 * math.pi * (order * x[:, None] + d.uniform(3, 1)))).sum(1)
    away = (f.t.long() % f.longer - (364 * d.uniform()).long()).abs()
    holiday = torch.exp(-((away / d.size(-0.3, 1.2)) ** 2))
    return smooth + 2.0 * holiday * d.some(0.4) * d.normal()


def observe(f: Frame, z: Any) -> Any:
    """Return values made of the sum of all parts, in one of six ways."""
    d = f.draw
    shown = (f.t[:, : f.n_past] >= f.start).float()
    count = shown.sum(1, keepdim=True)
    z = z - torch.gather(z, 1, f.start)
    past = z[:, : f.n_past]
    mean = (past * shown).sum(1, keepdim=True) / count
    size = (((past - mean) ** 2 * shown).sum(1, keepdim=True) / count).sqrt()
    plain = z + d.size(-0.5, 1.5) * torch.where(d.uniform() < 0.8, size, d.normal())
    power = torch.minimum(d.size(-1.0, 0.1), d.size(-0.3, 0.4) / size.clamp(min=1e-3))
    growing = torch.exp((power * z).clamp(-9.0, 9.0))
    rounded = torch.round(growing * d.size(0.0, 4.0))
    rate = torch.exp((0.5 * d.uniform() * (z - mean)).clamp(-3.0, 3.0)) * d.size(-1.3, 2.2)
    varied = d.some(0.5) * d.size(-1.0, 0.3)
    rate = rate * torch.exp(varied * d.noise() - varied**2 / 2.0)
    (awake,) = recur([d.noise()], [d.constant(0.95)])
    asleep = (d.uniform() < 0.2) & (0.31 * awake <= d.normal())
    counts = torch.poisson(torch.where(asleep, 0.0, rate.clamp(max=1e5)))
    total = torch.cumsum(growing * (f.t >= f.start), 1) / f.lengths
    way, below, y = d.uniform(), 0.0, plain
    for part, share in zip(
        (plain, growing, rounded, counts, plain.clamp(min=0.0), total), WAYS, strict=True
    ):
        y = torch.where(way >= below, part, y)
        below += share
    return y


def _tell(f: Frame, y: Any) -> Simulated:
    """Add what the network is told of the seasons: sometimes another season than the true one."""
    d, m = f.draw, f.season
    known = f.has_longer & (f.lengths > 1.05 * f.longer) & (d.uniform() < 0.95)
    longer = torch.where(known, f.longer, 0)
    other = m.roll(1, 0)
    wrong = (d.uniform() < _WRONG_SEASON) & (other > 1) & (m > 1) & (other != m)
    found = (d.uniform() < 0.7) & (f.lengths > 2 * m)
    longer = torch.where(wrong, torch.where(found, m, 0), longer)
    told = torch.where(wrong, other, m)
    return Simulated(y, f.lengths[:, 0], told[:, 0], longer[:, 0])

r"""Exemplars: every center of the network, shown by the simulated series that lies nearest to it.

.. math:: j \mapsto \arg\max_i g_j(x_i)

over many simulated series i, each of which serves one center only. Kept are its last values, the
values that followed, and a few facts of its latest seasons, from which its name is made. They lie
in the file of the weights, in arrays whose names begin with "exemplar".
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rbfdiffnet.pretrained.inputs import SeriesInputs
from rbfdiffnet.pretrained.network import find_gates, open_weights, read_weights
from rbfdiffnet.support.arrays import Array, Arrays

#: Values of an exemplar that are kept, before and after its origin.
PAST, AHEAD = 48, 24
_SERIES_A_CENTER = 128
#: Share of the series, how many are drawn at once, and their steps.
_BLOCKS = ((0.75, 2048, 224, 64), (0.25, 512, 896, 192))
_FEWEST_VALUES = 6  # that anything is said about
_LEAST_BLOCK = 8  # steps over which the level is a mean, or the seasons that are at least as long


@dataclass(frozen=True)
class Facts:
    """What is said about a series: numbers of its last three seasons, or of its last values.

    `trend` is the correlation with time. Values are a level (the mean of whole seasons around), the
    mean of each phase, and the rest. `season_share` is the share of the phases in the variance
    around the level, `level_share` that of the level in the variance of all, and `noise_share` that
    of half the squared steps of the rest, or of the rest if that is less.
    """

    season: float
    length: float
    trend: float = 0.0
    season_share: float = 0.0
    noise_share: float = 0.0
    level_share: float = 0.0
    zeros: float = 0.0
    is_whole: float = 0.0

    def words(self) -> str:
        """Return a few words, each of which one of the numbers decides."""
        m, found = int(self.season), []
        if self.length < _FEWEST_VALUES:
            return "1 value" if self.length == 1 else f"{self.length:.0f} values"
        if abs(self.trend) > 0.7:
            found.append("rising" if self.trend > 0.0 else "falling")
        else:
            still = self.level_share < 0.3 and abs(self.trend) < 0.4
            found.append("level" if still else "wandering")
        if m == 1:
            found.append("no season")
        else:
            kinds = ((0.6, "strong season"), (0.3, "season"), (-1.0, "no clear season"))
            kind = next(name for least, name in kinds if self.season_share > least)
            found.append(f"{kind} of {m}")
        if self.noise_share > 0.4 or self.noise_share < 0.03:
            found.append("noisy" if self.noise_share > 0.4 else "smooth")
        if self.zeros > 0.3:
            found.append("often zero")
        elif self.is_whole:
            found.append("whole numbers")
        return ", ".join(found)


@dataclass(frozen=True)
class Exemplar:
    """The series of a center: `values` (PAST + AHEAD,) from 0 to 1, NaN before its beginning."""

    number: int
    values: Array
    facts: Facts

    @property
    def name(self) -> str:
        """Its number, counted from 1, and what it looks like."""
        return f"exemplar {self.number}: {self.facts.words()}"


@cache
def load_exemplars() -> tuple[Exemplar, ...]:
    """Read the exemplars that come with the package, one for every center."""
    return read_exemplars(open_weights())


def read_exemplars(file: Any) -> tuple[Exemplar, ...]:
    """Read exemplars from a file of `pretrained.train`."""
    with np.load(file, allow_pickle=False) as archive:
        values, facts = (archive[n].astype(float) for n in ("exemplars", "exemplar_facts"))
    pairs = zip(values, facts, strict=True)
    return tuple(Exemplar(i + 1, own, Facts(*row.tolist())) for i, (own, row) in enumerate(pairs))


def add_exemplars(path: Path, seed: int = 0) -> None:
    """Find the exemplars of weights in a file, and write them into it."""
    with np.load(path, allow_pickle=False) as archive:
        kept = {name: archive[name] for name in archive.files if not name.startswith("exemplar")}
    arrays: dict[str, Any] = {**kept, **find_exemplars(read_weights(path), seed)}
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **arrays)
    part.replace(path)


def find_exemplars(weights: Arrays, seed: int = 0) -> Arrays:
    """Return the arrays of the exemplars of all centers.

    Series are always drawn on the processor, so the same seed and weights give the same ones.
    """
    import torch

    from rbfdiffnet.pretrained.simulate import simulate

    torch.manual_seed(seed)
    n_centers = len(weights["centers"])
    gates, pictures, facts = [], [], []
    for share, most, n_past, n_ahead in _BLOCKS:
        left = int(share * _SERIES_A_CENTER * n_centers)
        while left > 0:
            drawn = simulate(min(left, most), n_past, n_ahead)
            left -= most
            y, lengths, m, longer = (
                part.numpy()
                for part in (drawn.y.double(), drawn.lengths, drawn.season, drawn.longer)
            )
            with np.errstate(all="ignore"):
                inputs = SeriesInputs(y[:, :n_past], lengths, m, longer)
                own, _ = find_gates(inputs.gates(inputs.level()), weights)
            known = np.arange(n_past - PAST, n_past + AHEAD) >= n_past - lengths[:, None]
            picture = np.where(known, y[:, n_past - PAST : n_past + AHEAD], np.nan)
            good = inputs.varies & _is_clear(picture) & np.isfinite(own).all(axis=1)
            gates.append(np.where(good[:, None], own, 0.0).astype(np.float32))
            pictures.append(picture)
            facts += [
                (y[i, n_past - n : n_past], int(season))
                for i, (n, season) in enumerate(zip(lengths, m, strict=True))
            ]
    chosen = _assign(np.concatenate(gates))
    shown = np.concatenate(pictures)[chosen]
    low, high = np.nanmin(shown, axis=1), np.nanmax(shown, axis=1)
    shown = (shown - low[:, None]) / np.where(high > low, high - low, 1.0)[:, None]
    said = np.array([astuple(find_facts(*facts[i])) for i in chosen])
    return {"exemplars": shown.astype(np.float16), "exemplar_facts": said.astype(np.float16)}


def _is_clear(picture: Array) -> Any:
    """Tell which series are finite and do not leave the range of their past too far."""
    with np.errstate(all="ignore"):
        low, high = (find(picture[:, :PAST], axis=1) for find in (np.nanmin, np.nanmax))
        span = np.nanmax(picture, axis=1) - np.nanmin(picture, axis=1)
        tiny = np.isfinite(picture[:, :PAST]).sum(axis=1) < _FEWEST_VALUES
        return np.isfinite(picture[:, PAST:]).all(axis=1) & ((span < 2.5 * (high - low)) | tiny)


def _assign(gates: Array) -> list[int]:
    """Return the series of every center; centers with the largest gates choose first."""
    chosen, free = np.empty(gates.shape[1], dtype=np.int64), np.ones(len(gates), dtype=bool)
    for center in np.argsort(-gates.max(axis=0), kind="stable"):
        best = int(np.argmax(np.where(free, gates[:, center], -1.0)))
        chosen[center], free[best] = best, False
    return chosen.tolist()


def find_facts(y: Array, m: int) -> Facts:
    """Return the facts of a series with a season of m steps."""
    y = y[-max(PAST, 3 * m) :]
    n = y.size
    if n < _FEWEST_VALUES or y.min() == y.max():
        return Facts(m, n)
    block = -(-_LEAST_BLOCK // m) * m
    seasonal = m > 1 and 2 * block <= n
    block = block if seasonal else min(_LEAST_BLOCK, n // 2)
    level = np.convolve(y, np.full(block, 1.0 / block), mode="valid")
    core = y[block // 2 :][: level.size]
    away, phase = core - level, np.arange(level.size) % m
    variance, around = max(float(core.var()), 1e-300), float(away.var())
    rest, degrees = away, 1.0
    if seasonal and level.size > m:
        means = np.bincount(phase, away) / np.bincount(phase)
        rest = away - means[phase]
        degrees = level.size / (level.size - m)  # noise has means that differ, too
    left = min(degrees * float(rest.var()), around)
    rough = degrees * float(np.diff(rest).var()) / 2.0  # as much as the variance, if it is noise
    return Facts(
        season=m,
        length=n,
        trend=float(np.corrcoef(np.arange(n), y)[0, 1]),
        season_share=1.0 - left / around if around > 0.0 else 0.0,
        noise_share=min(rough / variance, left / variance, 1.0),
        level_share=min(float(level.var()) / variance, 1.0),
        zeros=float((y == 0.0).mean()),
        is_whole=float((y == np.round(y)).all()),
    )

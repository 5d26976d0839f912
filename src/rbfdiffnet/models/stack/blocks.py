"""Which steps ahead share weights of the members, and from where the members are compared.

Steps are taken in blocks. A block ends twice as far ahead as the one before, and has windows of its
own at the ends of the series. What is asked for beyond a block changes nothing in it: the forecast
of a day does not depend on how far beyond that day one asks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbfdiffnet.support.arrays import Ints

_FEWEST_STEPS = 8  # of the first block, in whole seasons
_LONGEST_SEASON = 48  # of longer ones, a quarter is enough
_MOST_STEPS = 128  # of a block that is learned at once, or as many as the first block has
_WINDOWS = 2
_MORE_WINDOWS, _LATER_WINDOWS = 5, 3  # for a few series: of the first block, and of the others
_FEW_SERIES = 5
_ENOUGH_ERRORS = 100  # to tell members apart
_FEW_SEASONS = 2.5  # the last of which is repeated


@dataclass(frozen=True)
class Block:
    """Steps ahead, those after `first` and up to `last`, that share weights.

    They are found from windows of `last` steps that begin at `distances` from the ends.
    """

    first: int
    last: int
    distances: tuple[int, ...]


def split_steps(h: int, season: int, origins: Ints) -> list[Block]:
    """Split h steps into blocks, for series with so many steps before their origins.

    Where series are too short for the windows of a block, its steps belong to the block before.
    """
    usual = _usual(origins)
    first, last = 0, max(min(_first_block(season), usual // 3), 1)
    blocks: list[Block] = []
    while first < h and (not blocks or usual >= 2 * last):
        n_windows = _n_windows(origins.size, last, usual, later=bool(blocks))
        blocks.append(Block(first, last, tuple(last * k for k in range(1, n_windows + 1))))
        first, last = last, 2 * last
    return blocks


def cover_steps(h: int, season: int) -> list[tuple[int, int]]:
    """Return the beginnings and ends of blocks that h steps lie in, whatever the series.

    Their ends double, but no block is too long to be learned at once.
    """
    first, last = 0, _first_block(season)
    found = [(first, last)]
    while last < h:
        first, last = last, last + min(last, max(_MOST_STEPS, _first_block(season)))
        found.append((first, last))
    return found


def has_one_or_two_seasons(origins: Ints, last: int, season: int) -> bool:
    """Whether the usual series has few seasons, one of them before the last steps held back."""
    return season > 1 and season + last <= _usual(origins) < _FEW_SEASONS * season


def _first_block(season: int) -> int:
    if season > _LONGEST_SEASON:
        return season // 4
    return -(-_FEWEST_STEPS // season) * season


def _n_windows(n_series: int, steps: int, usual: int, *, later: bool) -> int:
    """How many windows of so many steps serve to compare members.

    More of them where series are few or the steps are, as far as half of the usual series.
    """
    enough = max(-(-_ENOUGH_ERRORS // max(n_series * steps, 1)), _WINDOWS)
    most = _MORE_WINDOWS if n_series < _FEW_SERIES else min(enough, _MORE_WINDOWS)
    if later:
        most = min(most, _LATER_WINDOWS)
    return min(most, max(usual // (2 * steps), 1))


def _usual(origins: Ints) -> int:
    return int(np.median(origins)) if origins.size else 0

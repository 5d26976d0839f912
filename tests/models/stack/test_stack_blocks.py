"""Blocks of steps that share weights, and the windows they come from."""

import numpy as np
import pytest

from rbfdiffnet.models.stack.blocks import Block, cover_steps, split_steps


@pytest.mark.parametrize(
    ("season", "first"), [(1, 8), (4, 8), (5, 10), (7, 14), (12, 12), (24, 24), (52, 13), (365, 91)]
)
def test_the_first_block_has_whole_seasons_or_a_quarter_of_a_long_one(season, first):
    (block,) = split_steps(3, season, np.full(50, 2_000))
    assert block == Block(0, first, (first, 2 * first))


def test_blocks_double_and_do_not_depend_on_what_is_asked_beyond_them():
    origins = np.full(50, 400)
    blocks = split_steps(90, 12, origins)
    assert blocks == [
        Block(0, 12, (12, 24)),
        Block(12, 24, (24, 48)),
        Block(24, 48, (48, 96)),
        Block(48, 96, (96, 192)),
    ]
    for h in range(1, 91):
        assert split_steps(h, 12, origins) == blocks[: sum(block.first < h for block in blocks)]


def test_windows_reach_no_farther_than_half_of_the_usual_series():
    assert split_steps(60, 12, np.full(50, 70)) == [Block(0, 12, (12, 24)), Block(12, 24, (24,))]
    assert split_steps(60, 12, np.full(50, 20)) == [Block(0, 6, (6,))]
    assert split_steps(5, 12, np.zeros(0, dtype=np.int64)) == [Block(0, 1, (1,))]


def test_few_series_have_more_windows_in_the_first_block():
    blocks = split_steps(20, 12, np.full(2, 400))
    assert blocks == [Block(0, 12, (12, 24, 36, 48, 60)), Block(12, 24, (24, 48, 72))]


def test_blocks_that_are_learned_cover_the_steps_and_do_not_depend_on_what_is_asked_beyond():
    blocks = cover_steps(1_000, 24)
    assert blocks[:4] == [(0, 24), (24, 48), (48, 96), (96, 192)]
    assert blocks[-1][1] >= 1_000
    assert max(last - first for first, last in blocks) == 128
    for h in range(1, 1_001):
        assert cover_steps(h, 24) == blocks[: sum(first < h for first, _ in blocks)]
    assert cover_steps(1_000, 2_000)[:2] == [(0, 500), (500, 1_000)]

"""Windows of a lesson are put together from those of its blocks of steps."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from rbfdiffnet.models.stack.blocks import Block
from rbfdiffnet.models.stack.lesson import StackLesson


def test_windows_that_begin_together_are_one():
    """Windows begin 2 and 4 steps before the end; of the second block those of 4 and 8."""
    blocks = [Block(0, 2, (2, 4)), Block(2, 4, (4, 8)), Block(4, 8, (8, 16))]
    nothing = {"plan": None, "names": (), "windows": {}, "n_steps": {}, "weights": []}
    nothing |= {"of_median": [], "tested": [], "usable": [], "sparse": np.zeros(1, dtype=bool)}
    scores = np.array([[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]]])
    lesson = StackLesson(h=6, blocks=blocks, scores=scores[..., None], **nothing)
    expected = [[[-1.0, -2.0, 3.0, 4.0], [1.0, 2.0, np.nan, np.nan]]]
    assert_array_equal(lesson.whole_windows(), expected)


def test_a_value_that_stands_for_many_has_one_of_their_scores_whatever_others_do(rng):
    nothing = {"plan": None, "names": (), "windows": {}, "n_steps": {}, "weights": []}
    nothing |= {"of_median": [], "tested": [], "sparse": np.zeros(3, dtype=bool)}
    scores, usable = rng.normal(size=(3, 2, 200, 9)), list(rng.normal(size=(3, 5)))

    def draw(some):
        own = {"usable": [usable[i] for i in some], "scores": scores[some]}
        return StackLesson(h=200, blocks=[Block(0, 200, (200, 400))], **own, **nothing)

    found = draw([0, 1, 2]).whole_windows()[:, ::-1]
    taken = found[..., None] == scores
    assert (taken.sum(axis=3) == 1).all()
    counts = taken.sum(axis=(0, 1, 2))
    assert (abs(counts - 1200 / 9) < 50).all()  # each as often, 12 the standard deviation
    assert_array_equal(draw([2, 0]).whole_windows()[:, ::-1], found[[2, 0]])

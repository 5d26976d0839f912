"""The additive terms that an explanation splits a forecast into."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

FALLBACK = "the last season, or the last value"


class Terms:
    """Rows of an explanation, collected term by term; every number has shape (h,)."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(
        self,
        part: str,
        term: str,
        contribution: Array,
        value: Any = np.nan,
        weight: Any = np.nan,
        activation: Any = np.nan,
        nearest: str = "",
    ) -> None:
        """Add a term."""
        self.rows.append(
            {
                "part": part,
                "term": term,
                "value": np.broadcast_to(value, contribution.shape),
                "weight": np.broadcast_to(weight, contribution.shape),
                "activation": np.broadcast_to(activation, contribution.shape),
                "contribution": contribution,
                "nearest": nearest,
            }
        )

    def add_rest(self, part: str, term: str, total: Array) -> None:
        """Add what the terms lack to a total, if that is more than rounding."""
        left = total - np.sum([row["contribution"] for row in self.rows], axis=0)
        if np.any(np.abs(left) > 1e-10 * np.abs(total)):
            self.add(part, term, left)

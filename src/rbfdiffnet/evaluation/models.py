"""Which columns of a frame are forecasts of which model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Model", "read_models"]

_END = re.compile(r"(?P<model>.+)-(?P<side>lo|hi)-(?P<level>\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Model:
    """The columns of a model: its forecasts, and its intervals by their levels.

    Examples
    --------
    >>> from rbfdiffnet.evaluation import Model
    >>> Model("ETS", ("80", "95")).ends("80")
    ('ETS-lo-80', 'ETS-hi-80')
    """

    name: str
    levels: tuple[str, ...] = ()

    def ends(self, level: str) -> tuple[str, str]:
        """Return the columns of the lower and the upper end of an interval."""
        return f"{self.name}-lo-{level}", f"{self.name}-hi-{level}"


def read_models(columns: Iterable[str], what: str) -> list[Model]:
    """Tell models and their intervals from the names of columns.

    Raises
    ------
    ValueError
        If an interval lacks its other end or its model, or if there is no model.

    Examples
    --------
    >>> from rbfdiffnet.evaluation import read_models
    >>> read_models(["A", "A-lo-95", "A-hi-95", "A-lo-80", "A-hi-80", "B"], "forecasts")
    [Model(name='A', levels=('80', '95')), Model(name='B', levels=())]
    """
    names = list(columns)
    levels: dict[str, set[str]] = {}
    for name in names:
        match = _END.fullmatch(name)
        if match is None:
            levels.setdefault(name, set())
            continue
        model, side, level = match["model"], match["side"], match["level"]
        needed = f"{model}-{'hi' if side == 'lo' else 'lo'}-{level}"
        for other in (needed, model):
            if other not in names:
                raise ValueError(
                    f"Column {name!r} of {what} needs a column {other!r}; add it, or drop {name!r}."
                )
        levels.setdefault(model, set()).add(level)
    if not levels:
        raise ValueError(f"{what} has no column with forecasts; add one for each model.")
    return [Model(name, tuple(sorted(found, key=float))) for name, found in levels.items()]

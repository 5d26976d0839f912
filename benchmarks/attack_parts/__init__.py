"""Promises and attacks on them, a module for each group; `PROMISES` has all, in order."""

from attack_parts import (
    agreement,
    commands,
    dates,
    ids,
    inputs,
    intervals,
    models,
    neighbors,
    sharing,
    tables,
    values,
)
from attack_parts.registry import Promise

PROMISES: list[Promise] = [
    promise
    for module in (
        *(values, dates, ids, inputs, neighbors, intervals),
        *(agreement, sharing, models, tables, commands),
    )
    for promise in module.GROUP.promises
]

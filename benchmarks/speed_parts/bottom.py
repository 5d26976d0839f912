"""All 30,490 item-by-store series of M5, 28 days, on two threads."""

from __future__ import annotations

from argparse import Namespace

from speed_parts.data import H
from speed_parts.timing import Table, in_child, on_cores


def run(options: Namespace) -> list[Table]:
    with on_cores(options.cores):
        row = in_child(
            "bottom",
            m5=None if options.m5 is None else str(options.m5),
            n_series=200 if options.quick else None,
        )
    about = row.pop("about")
    title = (
        f"bottom: {about}, {H} days ahead, preset fast, n_jobs=2 on {len(options.cores)} core(s), "
        "a process of its own; the peaks are MB since its start, imports_mb those of importing"
    )
    return [Table("bottom", title, [row])]

"""A step of time in words."""

from __future__ import annotations

from rbfdiffnet.panel.frequency import DAY, Frequency

__all__ = ["describe_frequency"]

# Months in a step: (adverb, unit in the plural).
_MONTHS = {12: ("yearly", "years"), 3: ("quarterly", "quarters"), 1: ("monthly", "months")}
# Nanoseconds in a step.
_TICKS = {
    7 * DAY: ("weekly", "weeks"),
    DAY: ("daily", "days"),
    DAY // 24: ("hourly", "hours"),
    DAY // 1440: ("every minute", "minutes"),
    DAY // 86400: ("every second", "seconds"),
}


def describe_frequency(frequency: Frequency) -> str:
    """Say a frequency in words, with its alias.

    Parameters
    ----------
    frequency : Frequency

    Returns
    -------
    str

    Examples
    --------
    >>> from rbfdiffnet.readers.frequency import describe_frequency
    >>> from rbfdiffnet.panel.frequency import Frequency
    >>> [describe_frequency(Frequency.parse(freq)) for freq in ("MS", "15min", 1)]
    ['monthly (MS)', 'every 15 minutes (15min)', 'whole-number steps']
    """
    if frequency.kind == "integer":
        return "whole-number steps" + (f" of {frequency.n}" if frequency.n > 1 else "")
    if frequency.alias == "B":
        return "on business days (B)"
    table = {"month": _MONTHS, "tick": _TICKS}.get(frequency.kind, {})
    for size, (adverb, units) in table.items():
        count = frequency.n // size
        if frequency.n % size == 0:
            words = adverb if count == 1 else f"every {count} {units}"
            return f"{words} ({frequency.alias})"
    return frequency.alias

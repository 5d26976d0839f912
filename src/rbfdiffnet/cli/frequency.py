"""Which step a column of dates takes, what it is called, and how long its season is."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

from rbfdiffnet.cli.errors import CommandError
from rbfdiffnet.cli.text import format_dates

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["describe_frequency", "infer_frequency", "regular_step", "season_of"]

# Pandas offset class: (adverb, unit in the plural, steps in a season).
_STEPS = {
    "Year": ("yearly", "years", 1),
    "Quarter": ("quarterly", "quarters", 4),
    "Month": ("monthly", "months", 12),
    "Week": ("weekly", "weeks", 52),
    "BusinessDay": ("on business days", "business days", 5),
    "Day": ("daily", "days", 7),
    "Hour": ("hourly", "hours", 24),
    "Minute": ("every minute", "minutes", 60),
    "Second": ("every second", "seconds", 60),
}
# A day of half-hours is a better season than two steps an hour.
_MINUTES_A_DAY_FROM = 10


def infer_frequency(dates: pd.DatetimeIndex, where: str) -> str:
    """Return the pandas offset alias of evenly spaced dates.

    Parameters
    ----------
    dates : DatetimeIndex
        Sorted dates without duplicates.
    where : str
        Name of the file or column, for error messages.

    Returns
    -------
    str
        The alias, such as ``"MS"``.

    Raises
    ------
    CommandError
        If there are fewer than three dates, if dates are missing, or if no even spacing is found.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.frequency import infer_frequency
    >>> infer_frequency(pd.DatetimeIndex(["2024-01-01", "2024-02-01", "2024-03-01"]), "a.csv")
    'MS'
    """
    import pandas as pd

    if len(dates) < 3:
        raise CommandError(
            f"{where}: only {len(dates)} dates; give at least 3, so that their spacing is known"
        )
    frequency = regular_step(dates)
    if frequency is not None:
        return frequency

    # Some dates are missing or out of step: take the spacing most stretches agree on.
    length = min(8, max(3, len(dates) // 3))
    starts = range(0, len(dates) - length + 1, max(1, len(dates) // 100))
    found = Counter(regular_step(dates[start : start + length]) for start in starts)
    del found[None]
    if not found:
        raise CommandError(
            f"{where}: the dates are not evenly spaced "
            f"({', '.join(format_dates(dates[:3]))}, ...); bring them to a regular step first"
        )
    frequency = str(found.most_common(1)[0][0])
    expected = pd.date_range(dates[0], dates[-1], freq=frequency)
    missing = expected.difference(dates)
    stray = dates.difference(expected)
    step = describe_frequency(frequency)
    if len(stray):
        raise CommandError(
            f"{where}: the dates come {step}, but {format_dates(stray)[0]} is out of step"
            f"{_and_more(len(stray))}; correct or remove it"
        )
    raise CommandError(
        f"{where}: the dates come {step}, but {format_dates(missing)[0]} is missing"
        f"{_and_more(len(missing))}; add a line with a value for each missing date"
    )


def regular_step(dates: pd.DatetimeIndex) -> str | None:
    """Return the pandas offset alias of three or more dates, None if they are not regular.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.frequency import regular_step
    >>> regular_step(pd.DatetimeIndex(["2024-01-01", "2024-01-03", "2024-01-04"])) is None
    True
    """
    import pandas as pd

    with warnings.catch_warnings():
        # Pandas is changing the result from a string to an offset; both are understood here.
        warnings.simplefilter("ignore")
        found: Any = pd.infer_freq(dates)
    return None if found is None else str(getattr(found, "freqstr", found))


def describe_frequency(frequency: str) -> str:
    """Say a frequency in words, with its alias.

    Examples
    --------
    >>> from rbfdiffnet.cli.frequency import describe_frequency
    >>> describe_frequency("MS"), describe_frequency("15min")
    ('monthly (MS)', 'every 15 minutes (15min)')
    """
    _, n, (adverb, units, _) = _parse(frequency)
    words = adverb if n == 1 else f"every {n} {units}"
    return f"{words} ({frequency})" if words else frequency


def season_of(frequency: str) -> int:
    """Return the usual number of steps in a season, 1 where there is none.

    Examples
    --------
    >>> from rbfdiffnet.cli.frequency import season_of
    >>> [season_of(frequency) for frequency in ("YS", "QS", "MS", "W", "D", "30min")]
    [1, 4, 12, 52, 7, 48]
    """
    name, n, (_, _, steps) = _parse(frequency)
    if name == "Minute" and n >= _MINUTES_A_DAY_FROM:
        steps = 24 * 60
    return steps // n if steps % n == 0 else 1


def _parse(frequency: str) -> tuple[str, int, tuple[str, str, int]]:
    """Split an alias into the name of its step, its multiple, and the row of the table."""
    from pandas.tseries.frequencies import to_offset

    offset = to_offset(frequency)
    kind = type(offset).__name__
    name = kind if kind in _STEPS else kind.removeprefix("B").removeprefix("usiness")
    name = name.removesuffix("Begin").removesuffix("End")
    return name, offset.n, _STEPS.get(name, ("", "steps", 1))


def _and_more(count: int) -> str:
    return "" if count == 1 else f" (and {count - 1} more)"

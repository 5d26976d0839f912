import pandas as pd
import pytest

from rbfdiffnet.cli.errors import CommandError
from rbfdiffnet.cli.frequency import describe_frequency, infer_frequency, season_of

STEPS = [
    ("YS", "yearly", 1),
    ("QS", "quarterly", 4),
    ("MS", "monthly", 12),
    ("2MS", "every 2 months", 6),
    ("W-WED", "weekly", 52),
    ("D", "daily", 7),
    ("2D", "every 2 days", 1),
    ("B", "on business days", 5),
    ("h", "hourly", 24),
    ("15min", "every 15 minutes", 96),
    ("min", "every minute", 60),
]


@pytest.mark.parametrize(("alias", "words", "season"), STEPS)
def test_regular_dates_are_recognized_with_and_without_a_gap(alias, words, season):
    dates = pd.date_range("2020-01-01", periods=40, freq=alias)
    found = infer_frequency(dates, "here")
    assert pd.date_range(dates[0], periods=40, freq=found).equals(dates)
    assert describe_frequency(found) == f"{words} ({found})"
    assert season_of(found) == season
    with pytest.raises(CommandError, match=f"^here: .*{words} .* is missing;") as caught:
        infer_frequency(dates.delete(17), "here")
    assert str(dates[17].date()) in str(caught.value)


@pytest.mark.parametrize("alias", ["ME", "BME", "QE", "YE"])
def test_ends_of_periods_have_the_season_of_their_starts(alias):
    start = alias.removeprefix("B").replace("E", "S")
    assert season_of(alias) == season_of(start)


def test_unknown_step_has_no_season():
    assert season_of("WOM-2MON") == 1
    assert describe_frequency("WOM-2MON") == "WOM-2MON"


def test_time_zones_are_kept_across_a_change_of_the_clock():
    dates = pd.date_range("2024-03-25", periods=300, freq="h", tz="Europe/Berlin")
    assert infer_frequency(dates, "here") == "h"

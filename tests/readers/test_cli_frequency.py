import pytest

from rbfdiffnet.panel.frequency import Frequency
from rbfdiffnet.readers.read import describe_frequency


@pytest.mark.parametrize(
    ("alias", "words"),
    [
        ("YS", "yearly (YS)"),
        ("QE", "quarterly (QE)"),
        ("MS", "monthly (MS)"),
        ("1mo", "monthly (1mo)"),
        ("2MS", "every 2 months (2MS)"),
        ("W-WED", "weekly (W-WED)"),
        ("D", "daily (D)"),
        ("2D", "every 2 days (2D)"),
        ("B", "on business days (B)"),
        ("h", "hourly (h)"),
        ("15min", "every 15 minutes (15min)"),
        ("min", "every minute (min)"),
        ("WOM-2MON", "WOM-2MON"),
        (1, "whole-number steps"),
        (2, "whole-number steps of 2"),
    ],
)
def test_steps_in_words(alias, words):
    assert describe_frequency(Frequency.parse(alias)) == words

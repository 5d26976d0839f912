"""A few cases of every target of the fuzzing package; ``fuzzing/run.py`` tries thousands."""

import pytest

from fuzzing.targets import NAMES, shares, target
from fuzzing.trial import try_cases

#: Odd panels have tests of their own, in test_forecaster_robustness.py.
CASES = shares(200, [name for name in NAMES if "odd panels" not in name])


@pytest.mark.parametrize("name", CASES)
def test_any_input_is_used_or_refused(name):
    found = try_cases(target(name), CASES[name])
    if found.error is not None:
        raise found.error


def test_no_case_begins_after_the_time_is_up():
    claim = target("events")
    assert try_cases(claim, 50, until=0.0).cases == 0
    found = try_cases(claim, 50)
    assert found.cases >= 50
    assert "dates" in found.longest_case

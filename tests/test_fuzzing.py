"""A few cases of every target of the fuzzing package; ``fuzzing/run.py`` tries thousands."""

import pytest

from fuzzing.targets import NAMES, shares, target
from fuzzing.trial import try_cases

#: Odd panels have tests of their own, in test_forecaster_robustness.py.
CASES = shares(200, [name for name in NAMES if "odd panels" not in name])


@pytest.mark.parametrize("name", CASES)
def test_any_input_is_used_or_refused(name):
    _, _, error = try_cases(target(name), CASES[name])
    if error is not None:
        raise error

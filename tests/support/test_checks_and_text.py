"""Checks of arguments, numbers and tables as text, and what is said of runaway forecasts."""

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet.support import checks, text
from rbfdiffnet.support.stability import describe_runaway, forecast_bounds


def test_numbers_are_finite_and_neither_flags_nor_text():
    values = (2.5, 3, True, "2", float("nan"), 10**400, np.timedelta64(1))
    assert list(map(checks.is_number, values)) == [True, True, *[False] * 5]


def test_bounds_do_not_overflow_small_types():
    checks.check_number("width", np.float32(2.0), above=0.0, below=1e100)
    checks.check_number("width", np.float16(2.0), at_least=-1e30)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            lambda: checks.check_number("quantile", 2.0, above=0.0, below=1.0),
            "quantile must be a number above 0 and below 1; got 2.0",
        ),
        (lambda: checks.check_count("h", 0), "h must be a positive integer; got 0."),
        (
            lambda: checks.as_names("models", ["a", None]),
            "models must be a list of at least one name; got",
        ),
        (lambda: checks.check_flag("normalize", 1), "normalize must be True or False; got 1"),
        (
            lambda: checks.check_choice("scope", "all", ("local", "global")),
            "scope must be one of local, global; got 'all'",
        ),
        (lambda: checks.as_floats("centers", ["a"]), "centers must hold numbers: could not"),
        (lambda: checks.as_floats("centers", [1j]), "centers must hold numbers: complex128"),
        (lambda: checks.check_size("X", np.array([1e305])), r"X holds 1e\+305; values must lie"),
        (lambda: checks.as_list("events", None), "events must be a list; got None."),
        (lambda: checks.as_list("events", "ab"), "events must be a list; got 'ab'."),
    ],
)
def test_errors_name_the_parameter(check, message):
    with pytest.raises(ValueError, match=message):
        check()


def test_text():
    numbers = map(text.format_number, (1234567.8, 31.4159, 0.000123456, 0.0))
    assert list(numbers) == ["1,234,568", "31.42", "0.0001235", "0"]
    frame = pd.DataFrame({"ds": pd.to_datetime(["2024-01-01"]), "y": [3.5]})
    assert text.format_frame(frame) == "ds              y\n2024-01-01  3.500"
    whole = pd.DataFrame({"y": [12000.0, float("nan"), 7.0]})
    assert text.format_frame(whole).split() == ["y", "12,000", "-", "7"]
    assert text.one_line("shop\n1") == "shop 1"
    assert text.printable("shop\x1b[2J\n1") == "shop [2J\n1"


def test_runaway_forecasts_are_described():
    low, high = forecast_bounds(1.0, 2.0)
    assert (low, high) == (-2.0, 5.0)
    said = describe_runaway(np.array([3.0, 4.5, 5.0]), low, high)
    assert said == (
        "forecasts leave the range of the series by more than twice its span from step 2 on"
    )
    quiet, held = np.array([3.0, 3.5, 3.0]), np.array([False, True, False])
    assert describe_runaway(quiet, low, high, held) == "the recursion reaches its bound at step 2"
    assert describe_runaway(quiet, low, high) == ""

"""What may become of any input: a sound result, or a refusal in words of our own."""

import dis
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import rbfdiffnet
from rbfdiffnet.support.checks import DataWarning

OURS = str(Path(rbfdiffnet.__file__).parent)
#: Modules whose checks of arrays and paths speak for ours.
CHECKERS = ("/sklearn/utils/", "/pathlib")
NAME = "RBFDiffNet"


class Refused:
    """What `attempt` returns instead of a result."""

    def __init__(self, error):
        self.message = str(error)

    def __repr__(self):
        return f"Refused({self.message!r})"


def attempt(call, *, naming=(), kinds=(ValueError, TypeError)):
    """Return the result of a call, or `Refused` where it refused its input as it should.

    A refusal is an error of these kinds, raised on purpose (by a raise statement of the package)
    with a message; one of ``naming`` must be in it. Warnings are errors.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        warnings.filterwarnings("ignore", message=".*feature names")  # of scikit-learn
        try:
            return call()
        except kinds as error:
            if not on_purpose(error):
                raise AssertionError(f"not refused on purpose: {error!r}") from error
            message = str(error)
            if len(message) < 10 or (naming and not any(name in message for name in naming)):
                raise AssertionError(f"does not say that {naming} is wrong: {error!r}") from error
            return Refused(error)


def on_purpose(error):
    """Tell whether an error comes from a raise statement of the package, or of its checkers."""
    if isinstance(error, OSError):  # it names the file
        return True
    trace, checked = error.__traceback__, False
    while True:
        code = trace.tb_frame.f_code
        ours = code.co_filename.startswith(OURS)
        checked = not ours and (checked or any(part in code.co_filename for part in CHECKERS))
        if trace.tb_next is None:
            break
        trace = trace.tb_next
    return checked or (ours and dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS")


def columns_are_sound(frame, *, lower=None):
    """Forecasts are finite, and intervals hold them and each other."""
    names = [c for c in frame.columns if str(c).startswith(NAME)]
    assert names[0] == NAME
    values = {name: np.asarray(frame[name].to_numpy(), dtype=np.float64) for name in names}
    for name, column in values.items():
        assert np.isfinite(column).all(), name
        assert lower is None or (column >= lower).all(), name
    low = high = values[NAME]
    for name in names[1:]:
        if "-lo-" in name:
            assert (values[name] <= low).all(), name
            low = values[name]
        else:
            assert (values[name] >= high).all(), name
            high = values[name]


def forecast_is_sound(frame, ids, h, *, lower=None):
    """Every series has h rows, in the order of first appearance, and `columns_are_sound`."""
    found = list(frame["unique_id"].to_list())
    assert found == [name for name in dict.fromkeys(ids) for _ in range(h)], found
    columns_are_sound(frame, lower=lower)

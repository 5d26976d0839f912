"""Series, frames and forecasters with scope="auto", shared by the tests of the stack."""

import numpy as np
import pandas as pd

from panels import LEVELS
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.stack.members import (
    Task,
    forecast_pretrained,
    learn_members,
    look_ahead_from_rows,
)
from rbfdiffnet.models.stack.rows import RowTable
from rbfdiffnet.network.train import Settings
from rbfdiffnet.series.series import Series
from rbfdiffnet.support.memo import Memo


def frame(series, freq="MS"):
    """A frame of monthly series by name."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "unique_id": name,
                    "ds": pd.date_range("2010-01-01", periods=len(y), freq=freq),
                    "y": np.asarray(y, dtype=float),
                }
            )
            for name, y in series.items()
        ],
        ignore_index=True,
    )


def walks(rng, lengths, m=12):
    return {
        f"s{k}": 80.0 + 5.0 * np.sin(2 * np.pi * np.arange(n) / m) + rng.normal(size=n).cumsum()
        for k, n in enumerate(lengths)
    }


def auto(freq="MS", **parameters):
    return RBFDiffNet(freq, scope="auto", **parameters)


def check(found, n, h):
    """Forecasts and intervals are there, finite and in order."""
    assert len(found) == n * h
    values = found[LEVELS].to_numpy()
    assert np.isfinite(values).all()
    ordered = values[:, [3, 1, 0, 2, 4]]
    assert (np.diff(ordered, axis=1) >= 0.0).all()


def arrays(series):
    """The panel that a model takes."""
    return [Series(y, np.zeros((y.size, 0)), np.zeros((y.size, 0))) for y in series]


def learn_from(histories, h, **options):
    """What members learn from series, and their forecasts of these."""
    ((pretrained, _),) = forecast_pretrained([histories], h)
    table = RowTable.learnable(histories, h)
    (earlier,) = look_ahead_from_rows([(histories, table)], Memo())
    (found,) = learn_members([Task(histories, h, table, pretrained, earlier)], **options)
    return found


PLAN = Plan(lambda _: Settings(5), clean=False)

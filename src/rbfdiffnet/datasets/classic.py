"""Classic public series, shipped with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load_air_passengers"]


def load_air_passengers() -> pd.DataFrame:
    """Load the monthly totals of international airline passengers, 1949 to 1960.

    A trend, a yearly season and swings that grow with the level: 144 values, in thousands.

    Returns
    -------
    DataFrame with columns ``unique_id``, ``ds`` and ``y``
        One row a month, 1949-01-01 to 1960-12-01.

    References
    ----------
    G. E. P. Box and G. M. Jenkins (1976), Time Series Analysis: Forecasting and Control,
    Holden-Day, Series G.

    Examples
    --------
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> load_air_passengers().tail(2)
              unique_id         ds      y
    142  air_passengers 1960-11-01  390.0
    143  air_passengers 1960-12-01  432.0
    """
    import pandas as pd

    source = files("rbfdiffnet.datasets") / "data" / "air_passengers.csv"
    with source.open(encoding="utf-8") as stream:
        frame = pd.read_csv(stream, parse_dates=["ds"], dtype={"y": "float64"})
    frame.insert(0, "unique_id", "air_passengers")
    return frame

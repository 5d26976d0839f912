"""Classic public series, shipped with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load_air_passengers", "load_nile", "load_sunspots"]


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
    return _load("air_passengers")


def load_nile() -> pd.DataFrame:
    """Load the yearly volume of the Nile at Aswan, 1871 to 1970.

    Noise around a level that falls once, about 1898: 100 values, in 100 million cubic meters.

    Returns
    -------
    DataFrame with columns ``unique_id``, ``ds`` and ``y``
        One row a year, 1871-01-01 to 1970-01-01.

    References
    ----------
    G. W. Cobb (1978), "The problem of the Nile: conditional solution to a changepoint problem",
    Biometrika 65, 243-251.

    Examples
    --------
    >>> from rbfdiffnet.datasets import load_nile
    >>> load_nile().tail(2)
       unique_id         ds      y
    98      nile 1969-01-01  714.0
    99      nile 1970-01-01  740.0
    """
    return _load("nile")


def load_sunspots() -> pd.DataFrame:
    """Load the yearly means of the daily sunspot number, 1700 to 2008.

    Cycles of about 11 years, which rise faster than they fall and differ in height: 309 values.
    These are Wolf's numbers, on the scale in use until the revision of 2015.

    Returns
    -------
    DataFrame with columns ``unique_id``, ``ds`` and ``y``
        One row a year, 1700-01-01 to 2008-01-01.

    References
    ----------
    World Data Center SILSO, Royal Observatory of Belgium, Brussels: International Sunspot Number,
    version 1, as distributed by the National Geophysical Data Center (NOAA).

    G. U. Yule (1927), "On a method of investigating periodicities in disturbed series, with
    special reference to Wolfer's sunspot numbers", Philosophical Transactions of the Royal
    Society A 226, 267-298.

    Examples
    --------
    >>> from rbfdiffnet.datasets import load_sunspots
    >>> load_sunspots().tail(2)
        unique_id         ds    y
    307  sunspots 2007-01-01  7.5
    308  sunspots 2008-01-01  2.9
    """
    return _load("sunspots")


def _load(name: str) -> pd.DataFrame:
    import pandas as pd

    source = files("rbfdiffnet.datasets") / "data" / f"{name}.csv"
    with source.open(encoding="utf-8") as stream:
        frame = pd.read_csv(stream, parse_dates=["ds"], dtype={"y": "float64"})
    frame.insert(0, "unique_id", name)
    return frame

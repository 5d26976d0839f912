"""Small data sets, generated or shipped, each with its formula or its source."""

from rbfdiffnet.datasets.chaotic import logistic_map
from rbfdiffnet.datasets.classic import load_air_passengers

__all__ = ["load_air_passengers", "logistic_map"]

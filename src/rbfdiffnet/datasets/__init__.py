"""Small data sets, generated or shipped, each with its formula or its source."""

from rbfdiffnet.datasets.chaotic import henon_map, logistic_map
from rbfdiffnet.datasets.classic import load_air_passengers, load_nile, load_sunspots
from rbfdiffnet.datasets.demand import daily_demand
from rbfdiffnet.datasets.flows import lorenz, mackey_glass

__all__ = [
    "daily_demand",
    "henon_map",
    "load_air_passengers",
    "load_nile",
    "load_sunspots",
    "logistic_map",
    "lorenz",
    "mackey_glass",
]

"""Small data sets, generated or shipped, each with its formula or its source.

To add a data set, write a function here that returns an array or a long frame. `m5` reads a public
competition that is not shipped. Nothing here imports another subpackage than `support`.
"""

from rbfdiffnet.datasets.chaotic import henon_map, logistic_map, lorenz, mackey_glass
from rbfdiffnet.datasets.classic import load_air_passengers, load_nile, load_sunspots
from rbfdiffnet.datasets.demand import daily_demand

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

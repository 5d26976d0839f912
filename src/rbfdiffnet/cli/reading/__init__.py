"""Tables of series: which columns hold what, in which layout, and what was assumed."""

from rbfdiffnet.cli.reading.data import Data, example_data, read_data
from rbfdiffnet.cli.reading.roles import Wanted

__all__ = ["Data", "Wanted", "example_data", "read_data"]

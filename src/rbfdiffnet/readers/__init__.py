"""Tables of series: which columns hold what, in which layout, and what was assumed."""

from rbfdiffnet.readers.data import Data, example_data, read_data
from rbfdiffnet.readers.roles import ColumnChoices

__all__ = ["ColumnChoices", "Data", "example_data", "read_data"]

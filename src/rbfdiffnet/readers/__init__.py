"""Tables as people write them become long frames of series, and all that was assumed is said.

The way: `files` (bytes; a CSV table has a `header`, `parquet` none), `table`, `columns` (which
column is what, with `dates` and `numbers`), `parts` (dates in several columns), `layouts` (series,
with `totals` and `repeats`), `read` (all of it). A new file format goes beside `parquet`, another
notation into `dates` or `numbers`. Nothing here imports the commands.
"""

from rbfdiffnet.readers.columns import ColumnChoices
from rbfdiffnet.readers.read import Data, example_data, read_data

__all__ = ["ColumnChoices", "Data", "example_data", "read_data"]

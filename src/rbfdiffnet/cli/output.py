"""Results as files and as JSON."""

from __future__ import annotations

import json
import math
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbfdiffnet.cli.errors import CommandError
from rbfdiffnet.cli.files import check_writable, replacing

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet.cli.reading import Data

__all__ = [
    *("check_outputs", "print_json", "rows_of", "write_frame", "write_plot"),
]

_TABLES = (".csv", ".csv.gz", ".parquet", ".pq")
_DRAWN = 4  # series in a plot


def check_outputs(
    out: str | None = None, plot: str | None = None, report: str | None = None
) -> None:
    """Find out before the work whether its results can be written.

    Examples
    --------
    >>> from rbfdiffnet.cli.output import check_outputs
    >>> check_outputs(out="forecast.xlsx")
    Traceback (most recent call last):
        ...
    rbfdiffnet.cli.errors.CommandError: --out: cannot write 'forecast.xlsx'; end its name in .csv...
    """
    for path in filter(None, (out, plot, report)):
        check_writable(path)
    if out and not out.lower().endswith(_TABLES):
        raise CommandError(
            f"--out: cannot write '{out}'; end its name in .csv, .csv.gz or .parquet"
        )
    if out and out.lower().endswith((".parquet", ".pq")):
        from rbfdiffnet.cli.reading.parquet import check_parquet

        check_parquet()
    if report and not report.lower().endswith((".html", ".htm")):
        raise CommandError(f"--report: cannot write '{report}'; end its name in .html")
    if report:
        _check_report()
    if plot:
        _check_plot(plot)


def write_frame(path: str, frame: pd.DataFrame) -> None:
    r"""Write a frame as CSV, gzipped CSV or Parquet, by the end of the name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.output import write_frame
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_frame(f"{folder}/a.csv", pd.DataFrame({"ds": [1], "y": [2.5]}))
    ...     pathlib.Path(folder, "a.csv").read_text()
    'ds,y\n1,2.5\n'
    """
    with replacing(path) as temporary:
        if path.lower().endswith((".parquet", ".pq")):
            from rbfdiffnet.cli.reading.parquet import write_parquet

            write_parquet(frame, temporary)
        else:
            frame.to_csv(temporary, index=False, lineterminator="\n")  # packed by its suffix, too


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as JSON has them: dates as text, nothing where none is known.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.output import rows_of
    >>> rows_of(pd.DataFrame({"ds": pd.to_datetime(["2024-01-31"]), "y": [None]}))
    [{'ds': '2024-01-31', 'y': None}]
    """
    import pandas as pd

    from rbfdiffnet.cli.text import format_dates

    columns: dict[str, list[Any]] = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind == "M":
            columns[str(name)] = format_dates(pd.DatetimeIndex(column))
        else:
            columns[str(name)] = [_plain(value) for value in column.tolist()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document.

    Examples
    --------
    >>> from rbfdiffnet.cli.output import print_json
    >>> print_json({"horizon": 2, "mase": float("nan")})
    {"horizon": 2, "mase": null}
    """
    print(json.dumps(_plain(document), ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_plot(path: str, data: Data, forecast: pd.DataFrame) -> None:
    """Draw the forecasts of the first series with matplotlib.

    Parameters
    ----------
    path : str
    data : Data
    forecast : DataFrame
        As `RBFDiffNet.forecast` returns it; the widest interval is drawn.
    """
    from rbfdiffnet.panel import Panel
    from rbfdiffnet.plots import plot_panel

    n = min(_DRAWN, data.series.n_series)
    history = data.series.part(0, n)
    panel = Panel.from_frame(history, freq=data.freq)
    names = [panel.name(i) for i in range(n)]
    rows = forecast[forecast["unique_id"].isin(names)]
    h = len(rows) // n
    columns = {name: rows[name].to_numpy().reshape(n, h) for name in forecast.columns[2:]}
    figure = plot_panel(panel, columns, h, history=max(3 * h, 120))
    with replacing(path) as temporary:
        figure.savefig(temporary)


def _check_report() -> None:
    try:
        import_module("rbfdiffnet.report")
    except ImportError as error:
        raise CommandError(f"--report: {error}") from error


def _check_plot(path: str) -> None:
    """Find out whether a plot can be drawn and in which format."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise CommandError("--plot needs matplotlib: pip install 'rbfdiffnet[plot]'") from None
    if Path(path).suffix.lower().lstrip(".") not in FigureCanvasBase.get_supported_filetypes():
        raise CommandError(f"--plot: cannot draw '{path}'; end its name in .png, .pdf or .svg")

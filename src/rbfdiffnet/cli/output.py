"""Results as files and as JSON."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rbfdiffnet.readers.errors import CommandError
from rbfdiffnet.support.files import check_writable, replace_file

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet.readers import Data

__all__ = [
    *("attempt", "check_outputs", "formulas", "print_json", "rows_of", "write_frame"),
    "write_plot",
]

_TABLES = (".csv", ".csv.gz", ".parquet", ".pq")
_DRAWN = 4  # series in a plot
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,]+$)")
_STEERING = re.compile(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_UNDATED: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


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
    rbfdiffnet.readers.errors.CommandError: --out: cannot write 'forecast.xlsx'; end its name in ...
    """
    for path in filter(None, (out, plot, report)):
        with _as_command_error(path):
            check_writable(path)
    if out and not out.lower().endswith(_TABLES):
        raise CommandError(
            f"--out: cannot write '{out}'; end its name in .csv, .csv.gz or .parquet"
        )
    if out and out.lower().endswith((".parquet", ".pq")):
        from rbfdiffnet.readers.parquet import check_parquet

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
    try:
        _write_table(path, frame)
    except CommandError as error:
        raise CommandError(f"{error}; {_rescued(path, frame)}") from error


def attempt(*writers: Callable[[], None]) -> list[str]:
    """Write several files, so that none is lost because another cannot be written.

    Returns
    -------
    list of str
        What went wrong.

    Examples
    --------
    >>> from rbfdiffnet.cli.output import attempt
    >>> attempt(lambda: None)
    []
    """
    problems = []
    for write in writers:
        try:
            write()
        except CommandError as error:
            problems.append(str(error))
    return problems


@contextmanager
def _as_command_error(path: str) -> Iterator[None]:
    """Turn the error of a file that cannot be written into one that the command reports."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"cannot write '{path}': {error.strerror or error}") from error


def formulas(frame: pd.DataFrame) -> str | None:
    """Warn of ids that a spreadsheet would take for formulas.

    Examples
    --------
    >>> import pandas as pd
    >>> from rbfdiffnet.cli.output import formulas
    >>> formulas(pd.DataFrame({"unique_id": ["a", "=1+1"]}))
    "ids such as '=1+1' look like formulas: in a spreadsheet, import their column as text"
    >>> formulas(pd.DataFrame({"unique_id": ["a", "-1"]}))
    """
    for name in map(str, frame["unique_id"].unique()):
        if _FORMULA.match(name):
            return f"ids such as '{name}' look like formulas: in a spreadsheet, import their " + (
                "column as text"
            )
    return None


def _rescued(path: str, frame: pd.DataFrame) -> str:
    """Write a table elsewhere, since it may have taken a night, and say where it is."""
    folder = tempfile.mkdtemp(prefix="rbfdiffnet-")
    place = os.path.join(folder, os.path.basename(path))
    try:
        _write_table(place, frame)
    except CommandError:
        shutil.rmtree(folder, ignore_errors=True)
        return "nor is there room elsewhere: make room and run the command again"
    return f"the results are in '{place}' instead"


def _write_table(path: str, frame: pd.DataFrame) -> None:
    with _as_command_error(path), replace_file(path) as temporary:
        if path.lower().endswith((".parquet", ".pq")):
            from rbfdiffnet.readers.parquet import write_parquet

            write_parquet(frame, str(temporary))
        elif path.lower().endswith(".gz"):  # without name and time: the same bytes every time
            with (
                open(temporary, "wb") as file,
                gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
            ):
                frame.to_csv(packed, index=False, lineterminator="\n", mode="wb")
        else:
            frame.to_csv(temporary, index=False, lineterminator="\n")


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

    from rbfdiffnet.support.text import format_dates

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
    text = json.dumps(_plain(document), ensure_ascii=False, allow_nan=False)
    # JSON escapes some of the signs that steer terminals, but not these.
    print(_STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def print_result(command: str, data: Data, **result: Any) -> None:
    """Print what a command found as one JSON document, after what was read.

    Examples
    --------
    >>> from rbfdiffnet.cli.output import print_result
    >>> from rbfdiffnet.readers import example_data
    >>> print_result("forecast", example_data(), horizon=2)
    {"command": "forecast", "source": "Reading the built-in ...", "notes": [], "horizon": 2}
    """
    head = {"command": command, "source": data.describe(), "notes": list(data.notes)}
    print_json({**head, **result})


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_plot(path: str, data: Data, forecast: pd.DataFrame) -> None:
    """Draw the forecasts of the first four series with matplotlib.

    Parameters
    ----------
    path : str
    data : Data
    forecast : DataFrame
        As `RBFDiffNet.forecast` returns it; the widest interval is drawn.
    """
    from matplotlib import rc_context

    from rbfdiffnet.panel.panel import Panel
    from rbfdiffnet.report.plots import plot_panel

    n = min(_DRAWN, data.series.n_series)
    history = data.series.part(0, n)
    panel = Panel.from_frame(history, freq=data.freq)
    names = [panel.name(i) for i in range(n)]
    rows = forecast[forecast["unique_id"].isin(names)]
    h = len(rows) // n
    columns = {name: rows[name].to_numpy().reshape(n, h) for name in forecast.columns[2:]}
    figure = plot_panel(panel, columns, h, history=max(3 * h, 120))
    undated = _UNDATED.get(Path(path).suffix.lower())
    salt = rc_context({"svg.hashsalt": "rbfdiffnet"})
    with _as_command_error(path), replace_file(path) as temporary, salt:
        figure.savefig(temporary, metadata=undated)


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

"""``rbfdiffnet forecast``: forecast one series from a CSV file."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING, Any

from rbfdiffnet.cli.arguments import positive, seed
from rbfdiffnet.cli.errors import CommandError

if TYPE_CHECKING:
    import pandas as pd

    from rbfdiffnet.cli.backtest import Backtest
    from rbfdiffnet.cli.series import Series
    from rbfdiffnet.cli.single import Forecast, OneStepModel

__all__ = ["add_parser", "run"]


def add_parser(commands: Any) -> None:
    """Declare the command and its arguments.

    Parameters
    ----------
    commands : object
        What ``ArgumentParser.add_subparsers`` returned.

    Examples
    --------
    >>> import argparse
    >>> from rbfdiffnet.cli.forecast import add_parser
    >>> parser = argparse.ArgumentParser()
    >>> add_parser(parser.add_subparsers())
    >>> parser.parse_args(["forecast", "sales.csv", "--horizon", "6"]).horizon
    6
    """
    parser = commands.add_parser(
        "forecast",
        help="forecast one series from a CSV file",
        description="Forecast one series from a CSV file with a column of dates and a column of "
        "values, and say how well the same method did on the latest known values.",
        epilog="Without FILE: the built-in monthly air passengers of 1949 to 1960.",
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="CSV file, or - for standard input")
    parser.add_argument(
        "--horizon", metavar="H", type=positive, required=True, help="steps to forecast"
    )
    parser.add_argument(
        "--season-length",
        metavar="M",
        type=positive,
        help="steps in a season (default: from the dates; 12 for months, 7 for days, ...)",
    )
    parser.add_argument(
        "--lags", metavar="L", type=positive, help="past values to forecast from (default: chosen)"
    )
    parser.add_argument("--time-col", metavar="C", help="column of dates (default: guessed)")
    parser.add_argument("--target-col", metavar="C", help="column of values (default: guessed)")
    parser.add_argument("--out", metavar="FILE.csv", help="write the forecast to a CSV file")
    parser.add_argument("--plot", metavar="FILE.png", help="write a plot (PNG, PDF or SVG)")
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="print the forecast only, as CSV, without the backtest; nothing if --out is given",
    )
    parser.add_argument(
        "--seed", metavar="N", type=seed, default=0, help="random seed (default: 0)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    r"""Carry out the command.

    Parameters
    ----------
    arguments : Namespace
        The parsed arguments.

    Raises
    ------
    CommandError
        If the file or an argument is at fault.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rbfdiffnet.cli import main
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.csv")
    ...     _ = file.write_text("day,sold\n2024-04-01,3\n2024-04-02,4\n2024-04-03,6\n")
    ...     main(["forecast", str(file), "--horizon", "2"])
    Reading ds from 'day', y from 'sold', daily (D), 3 values
    Forecasting with the last value, not with RBF-DiffNet: 3 values are too few, ...
    <BLANKLINE>
    date        forecast
    2024-04-04    6.0000
    2024-04-05    6.0000
    ...
    0
    """
    from rbfdiffnet.cli.backtest import backtest
    from rbfdiffnet.cli.files import check_writable
    from rbfdiffnet.cli.frequency import season_of
    from rbfdiffnet.cli.single import Settings, forecast_series

    for path in filter(None, (arguments.out, arguments.plot)):
        check_writable(path)
    if arguments.plot:
        _check_plot(arguments.plot)
    series = _read(arguments)
    season = arguments.season_length or season_of(series.frequency)
    h = arguments.horizon
    settings = Settings(lambda: _make_model(arguments.seed), season, arguments.lags)
    dates = _future(series, h)
    loud = not arguments.quiet
    if loud:
        print(series.describe())
    forecast = forecast_series(series.y, h, settings)
    if loud:
        _print_forecast(forecast, dates)
        if not forecast.is_fallback:
            _print_backtest(backtest(series.y, h, settings), series, h, season)
        print(f"\n{_chart(series, forecast)}")
    elif not arguments.out:
        print(_as_csv(forecast, dates), end="")
    if arguments.out:
        _write_csv(arguments.out, _as_csv(forecast, dates), loud)
    if arguments.plot:
        _write_plot(arguments.plot, series, forecast, dates, loud)


def _make_model(seed: int) -> OneStepModel:
    from rbfdiffnet import RBFDiffNetRegressor

    model: OneStepModel = RBFDiffNetRegressor(random_state=seed)
    return model


def _read(arguments: argparse.Namespace) -> Series:
    from rbfdiffnet.cli.series import Series, read_series

    if arguments.file is not None:
        return read_series(arguments.file, arguments.time_col, arguments.target_col)
    if arguments.time_col or arguments.target_col:
        raise CommandError("--time-col and --target-col name columns of a FILE; give one")
    import pandas as pd

    from rbfdiffnet.datasets import load_air_passengers

    frame = load_air_passengers()
    ds = pd.DatetimeIndex(frame["ds"])
    return Series(ds, frame["y"].to_numpy(), "MS", "the built-in air passengers (in thousands)")


def _future(series: Series, h: int) -> pd.DatetimeIndex:
    import pandas as pd

    try:
        dates = pd.date_range(series.ds[-1], periods=h + 1, freq=series.frequency)[1:]
    except (OverflowError, ValueError):  # beyond what pandas can hold
        dates = None
    if dates is None or dates[-1].year > 9999:
        raise CommandError(f"--horizon {h} leads beyond the year 9999; choose a smaller one")
    return dates


def _print_forecast(forecast: Forecast, dates: pd.DatetimeIndex) -> None:
    from rbfdiffnet.cli.text import format_dates, format_number, format_table

    if forecast.is_fallback:
        print(f"Forecasting with {forecast.method}, not with RBF-DiffNet: {forecast.note}.\n")
    else:
        print(f"Forecasting with {forecast.method}: {forecast.note}\n")
    values = [format_number(value, digits=5) for value in forecast.values.tolist()]
    rows = [("date", "forecast"), *zip(format_dates(dates), values, strict=True)]
    print(format_table(rows))


def _print_backtest(result: Backtest | None, series: Series, h: int, season: int) -> None:
    from rbfdiffnet.cli.text import format_dates, format_number, format_table

    if result is None:
        print(f"\nNo backtest: {len(series.y)} values are too few to hold {h} out.")
        return
    rival = "seasonal naive" if season > 1 else "the last value"
    dates = format_dates(series.ds)
    rows = [("window", "RBF-DiffNet", rival)] + [
        (f"{dates[start]} to {dates[start + h - 1]}", format_number(ours), format_number(theirs))
        for start, ours, theirs in zip(result.origins, result.model, result.naive, strict=True)
    ]
    print("\nBacktest: mean absolute error, each window forecast from the values before it")
    print(format_table(rows))
    print(result.verdict(rival))


def _chart(series: Series, forecast: Forecast) -> str:
    from rbfdiffnet.plots import text_plot

    width = min(shutil.get_terminal_size().columns, 100) - 14
    chart = text_plot(series.y, forecast.values, width=max(width, 20))
    try:
        chart.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        chart = text_plot(series.y, forecast.values, width=max(width, 20), ascii_only=True)
    return chart


def _as_csv(forecast: Forecast, dates: pd.DatetimeIndex) -> str:
    from rbfdiffnet.cli.text import format_dates

    pairs = zip(format_dates(dates), forecast.values.tolist(), strict=True)
    return "ds,forecast\n" + "".join(f"{label},{value!r}\n" for label, value in pairs)


def _write_csv(path: str, text: str, loud: bool) -> None:
    from rbfdiffnet.cli.files import replacing

    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as stream:
        stream.write(text)
    if loud:
        print(f"Wrote {path}")


def _check_plot(path: str) -> None:
    """Find out before the work whether a plot can be drawn and in which format."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise CommandError("--plot needs matplotlib: pip install 'rbfdiffnet[plot]'") from None
    known = FigureCanvasBase.get_supported_filetypes()
    suffix = path.rpartition(".")[2].lower()
    if suffix not in known:
        raise CommandError(f"--plot: cannot draw '{path}'; end its name in .png, .pdf or .svg")


def _write_plot(
    path: str, series: Series, forecast: Forecast, dates: pd.DatetimeIndex, loud: bool
) -> None:
    from rbfdiffnet.cli.files import replacing
    from rbfdiffnet.plots import plot_forecast

    figure = plot_forecast(series.ds, series.y, dates, forecast.values).get_figure(root=True)
    assert figure is not None  # the axes are new, so they have one
    with replacing(path) as temporary:
        figure.savefig(temporary)
    if loud:
        print(f"Wrote {path}")

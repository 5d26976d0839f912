import io
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge

import rbfdiffnet.cli.forecast as command
from rbfdiffnet import __version__
from rbfdiffnet.cli import main


@pytest.fixture
def linear(monkeypatch):
    """Replace the network by a quick linear model where the network is not the point."""
    monkeypatch.setattr(command, "_make_model", lambda _seed: Ridge(1e-3))


@pytest.fixture
def write(tmp_path):
    def write_lines(*lines):
        path = tmp_path / "sales.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    return write_lines


def months(n, start="2015-01-01"):
    t = np.arange(n)
    y = 100 + t + 20 * np.sin(2 * np.pi * t / 12)
    dates = pd.date_range(start, periods=n, freq="MS").strftime("%Y-%m-%d")
    return [f"{date},{value:.6f}" for date, value in zip(dates, y, strict=True)]


def run(capsys, *arguments):
    code = main(["forecast", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fails(capsys, *arguments):
    """Run a command that must fail in the one agreed way, and return its message."""
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert err.count("\n") == 1
    assert err.startswith("rbfdiffnet")
    assert "error: " in err
    return err


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rbfdiffnet {__version__}\n"
    assert main(["forecast", "--help"]) == 0
    assert "--season-length" in capsys.readouterr().out


def test_built_in_series_with_the_real_model(capsys):
    pytest.importorskip("rbfdiffnet.regressors")
    code, out, err = run(capsys, "--horizon", "6")
    assert (code, err) == (0, "")
    assert "monthly (MS), 144 values" in out
    assert "Forecasting with RBF-DiffNet: median of 6 networks, 15 lags" in out
    assert "1961-01-01" in out
    assert "1961-06-01" in out
    assert out.count(" to 19") == 3
    assert "RBF-DiffNet won" in out
    assert out.count("•") == 6


@pytest.mark.usefixtures("linear")
def test_reads_a_file_and_says_what_it_read(capsys, write):
    path = write("Month,Passengers", *months(60))
    code, out, err = run(capsys, path, "--horizon", "3")
    assert (code, err) == (0, "")
    first = out.splitlines()[0]
    assert first == "Reading ds from 'Month', y from 'Passengers', monthly (MS), 60 values"
    assert "2020-03-01" in out
    assert "RBF-DiffNet won" in out


def test_says_so_when_it_loses(capsys, monkeypatch):
    poor = DummyRegressor(strategy="constant", constant=-50.0)
    monkeypatch.setattr(command, "_make_model", lambda _seed: poor)
    code, out, _ = run(capsys, "--horizon", "3")
    assert code == 0
    assert "RBF-DiffNet lost" in out
    assert " % above that of seasonal naive" in out


@pytest.mark.usefixtures("linear")
def test_backtest_scores_both_methods_on_the_same_windows(capsys, write):
    lines = months(60)
    code, out, _ = run(capsys, write("ds,y", *lines), "--horizon", "12")
    assert code == 0
    rows = [line.split() for line in out.splitlines() if re.search(r" to 20..-", line)]
    y = np.array([float(line.split(",")[1]) for line in lines])
    naive = [np.abs(y[o : o + 12] - y[o - 12 : o]).mean() for o in (24, 36, 48)]
    assert [row[0] for row in rows] == ["2017-01-01", "2018-01-01", "2019-01-01"]
    assert [float(row[-1]) for row in rows] == pytest.approx(naive, rel=1e-3)


@pytest.mark.usefixtures("linear")
def test_quiet_prints_csv_only(capsys, write):
    code, out, err = run(capsys, write("ds,y", *months(60)), "--horizon", "2", "--quiet")
    assert (code, err) == (0, "")
    frame = pd.read_csv(io.StringIO(out))
    assert frame.columns.tolist() == ["ds", "forecast"]
    assert frame["ds"].tolist() == ["2020-01-01", "2020-02-01"]
    np.testing.assert_allclose(frame["forecast"], [160, 171], atol=1)


@pytest.mark.usefixtures("linear")
def test_out_and_plot_are_written_whole(capsys, write, tmp_path):
    out_path, plot_path = tmp_path / "forecast.csv", tmp_path / "forecast.png"
    out_path.write_text("old")
    code, out, _ = run(
        capsys,
        *(write("ds,y", *months(40)), "--horizon", "4"),
        *("--out", str(out_path), "--plot", str(plot_path)),
    )
    assert code == 0
    assert f"Wrote {out_path}" in out
    assert len(pd.read_csv(out_path)) == 4
    assert plot_path.read_bytes().startswith(b"\x89PNG")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("forecast.csv", "forecast.png", "sales.csv")
    ]


@pytest.mark.usefixtures("linear")
def test_failed_write_leaves_the_old_file(capsys, write, tmp_path, monkeypatch):
    out_path = tmp_path / "forecast.csv"
    out_path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    path = write("ds,y", *months(40))
    err = fails(capsys, path, "--horizon", "4", "--quiet", "--out", str(out_path))
    assert "No space left" in err
    assert out_path.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["forecast.csv", "sales.csv"]


@pytest.mark.usefixtures("linear")
def test_quiet_with_out_prints_nothing(capsys, write, tmp_path):
    path = write("ds,y", *months(40))
    arguments = (path, "--horizon", "1", "--quiet", "--out", str(tmp_path / "a.csv"))
    assert run(capsys, *arguments) == (0, "", "")


def test_seed_is_handed_to_the_model(capsys, monkeypatch):
    seeds = set()
    monkeypatch.setattr(command, "_make_model", lambda seed: seeds.add(seed) or Ridge())
    assert run(capsys, "--horizon", "1", "--quiet", "--seed", "7")[0] == 0
    assert seeds == {7}


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("t;id;when;Sold", "ds from 'when', y from 't'"),
        ("t;id;when;Sales", "ds from 'when', y from 'Sales'"),
        ("n;id;Date;y", "ds from 'Date', y from 'y'"),
        ("y;a;b;c", "ds from 'b', y from 'y'"),
    ],
)
@pytest.mark.usefixtures("linear")
def test_guesses_columns(capsys, write, header, expected):
    lines = [f"{i};A{i};{1 + i}.02.2024;{i * i}" for i in range(20)]
    code, out, _ = run(capsys, write(header, *lines), "--horizon", "1")
    assert code == 0
    assert f"Reading {expected}, daily (D), 20 values" in out


@pytest.mark.usefixtures("linear")
def test_named_columns_override_the_guess(capsys, write):
    path = write(
        "ds,y,other,z", *(f"{m},2020-01-{i + 1:02d},{i}" for i, m in enumerate(months(20)))
    )
    arguments = (path, "--horizon", "1", "--time-col", "other", "--target-col", "z")
    assert "ds from 'other', y from 'z', daily (D)" in run(capsys, *arguments)[1]


@pytest.mark.usefixtures("linear")
def test_rows_may_come_in_any_order(capsys, write):
    lines = months(40)
    forward = run(capsys, write("ds,y", *lines), "--horizon", "2", "--quiet")
    backward = run(capsys, write("ds,y", *lines[::-1]), "--horizon", "2", "--quiet")
    assert forward == backward


@pytest.mark.usefixtures("linear")
def test_day_first_dates_are_recognized(capsys, write):
    dates = pd.date_range("2015-01-01", periods=30, freq="MS").strftime("%d/%m/%Y")
    path = write("date,y", *(f"{date},{i % 5}" for i, date in enumerate(dates)))
    code, out, _ = run(capsys, path, "--horizon", "1")
    assert code == 0
    assert "monthly (MS)" in out
    assert "2017-07-01" in out


@pytest.mark.parametrize(
    "form", ["%Y%m", "%Y%m%d", "%b %Y", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S+00:00"]
)
@pytest.mark.usefixtures("linear")
def test_forms_of_dates(capsys, write, form):
    dates = pd.date_range("2015-01-01", periods=30, freq="MS").strftime(form)
    path = write("date,y", *(f"{date},{i % 5}" for i, date in enumerate(dates)))
    code, out, _ = run(capsys, path, "--horizon", "1")
    assert code == 0
    assert "monthly" in out
    assert "2017-07-01" in out


@pytest.mark.usefixtures("linear")
def test_years_and_quarters(capsys, write):
    path = write("year,y", *(f"{1990 + i},{i % 5}" for i in range(30)))
    assert "yearly" in run(capsys, path, "--horizon", "1")[1]
    path = write("date,y", *(f"{1990 + i // 4}Q{1 + i % 4},{i % 5}" for i in range(30)))
    assert "quarterly" in run(capsys, path, "--horizon", "1")[1]


@pytest.mark.usefixtures("linear")
def test_reads_standard_input(capsys, monkeypatch):
    text = "\n".join(["\ufeffds,y", "", *months(30)])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, out, _ = run(capsys, "-", "--horizon", "1")
    assert code == 0
    assert "ds from 'ds', y from 'y', monthly (MS), 30 values" in out


@pytest.mark.parametrize(
    ("n", "season", "method"), [(6, "4", "seasonal naive"), (6, "12", "the last value")]
)
def test_short_series_falls_back_and_says_so(capsys, write, n, season, method):
    path = write("ds,y", *months(n))
    code, out, _ = run(capsys, path, "--horizon", "2", "--season-length", season)
    assert code == 0
    assert f"Forecasting with {method}, not with RBF-DiffNet: 6 values are too few" in out
    assert "Backtest" not in out


def test_constant_series_falls_back_and_says_so(capsys, write):
    path = write("ds,y", *(line.split(",")[0] + ",7" for line in months(40)))
    code, out, _ = run(capsys, path, "--horizon", "2")
    assert code == 0
    assert "not with RBF-DiffNet: the series is constant" in out
    assert "Backtest" not in out
    assert run(capsys, path, "--horizon", "2", "--quiet")[1].splitlines()[1:] == [
        *("2018-05-01,7.0", "2018-06-01,7.0")
    ]


def test_too_many_lags_fall_back_and_say_so(capsys, write):
    code, out, _ = run(capsys, write("ds,y", *months(30)), "--horizon", "2", "--lags", "28")
    assert code == 0
    assert "30 values are too few, at least 34 are needed for 28 lags" in out


@pytest.mark.usefixtures("linear")
def test_no_room_for_a_backtest_is_said(capsys, write):
    code, out, _ = run(capsys, write("ds,y", *months(16)), "--horizon", "10")
    assert code == 0
    assert "No backtest: 16 values are too few to hold 10 out" in out


@pytest.mark.parametrize("horizon", ["0", "-3", "1.5", "many"])
def test_horizon_must_be_a_positive_whole_number(capsys, horizon):
    assert f"'{horizon}' is not a whole number" in fails(capsys, f"--horizon={horizon}")


@pytest.mark.parametrize("horizon", ["100000", "100000000"])
def test_horizon_beyond_the_calendar(capsys, horizon):
    assert "beyond the year 9999" in fails(capsys, "--horizon", horizon)


def test_missing_arguments(capsys):
    assert "--horizon" in fails(capsys)
    assert main([]) == 2


GOOD = months(30)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([""], "sales.csv is empty"),
        (["ds,y"], "header but no values"),
        (GOOD, "line 1 looks like data"),
        (["y,y", *GOOD], "two columns are called 'y'"),
        (["a,b", "x,1", "y,2", "z,3"], "no column of dates (columns: 'a', 'b')"),
        (["a,b", "1,1", "2,2", "3,3"], "no column of dates"),
        (["day,b", "1,1", "2,2", "3,3"], "no column of dates"),
        (["ds,a,b", "2024-01-01,x,u", "2024-01-02,y,v"], "no column of numbers beside 'ds'"),
        (["ds,y", *GOOD[:7], "2015-08-01,12a"], "line 9, column 'y': '12a' is not a number"),
        (["ds,y", *GOOD[:7], "2015-08-01,"], "line 9, column 'y': the value is missing"),
        (["ds,y", *GOOD[:7], "2015-08-01"], "line 9, column 'y': the value is missing"),
        (["ds,y", *GOOD[:7], "2015-08-01,NaN"], "line 9, column 'y': the value is missing"),
        (["ds,y", *GOOD[:7], "2015-08-01,inf"], "line 9, column 'y': 'inf' is too large"),
        (["ds,y", *GOOD[:7], "soon,3"], "line 9, column 'ds': 'soon' is not a date"),
        (["ds,y", *GOOD[:7], ",3"], "line 9, column 'ds': the date is missing"),
        (["ds,y", *GOOD, GOOD[4]], "2015-05-01 is on line 6 and on line 32"),
        (["ds,y", *GOOD[:7], *GOOD[8:]], "monthly (MS), but 2015-08-01 is missing"),
        (["ds,y", *GOOD[:7], *GOOD[9:]], "2015-08-01 is missing (and 1 more)"),
        (["ds,y", *GOOD, "2015-03-09,4"], "2015-03-09 is out of step"),
        (["ds,y", "2024-01-01,1", "2024-01-05,2", "2024-02-01,3"], "not evenly spaced"),
        (["ds,y", *GOOD[:2]], "only 2 dates"),
    ],
)
def test_bad_file_is_explained_in_one_line(capsys, write, lines, message):
    assert message in fails(capsys, write(*lines), "--horizon", "1")


def test_unreadable_files(capsys, tmp_path):
    assert "no file 'nowhere.csv'" in fails(capsys, "nowhere.csv", "--horizon", "1")
    assert "cannot read" in fails(capsys, str(tmp_path), "--horizon", "1")
    (tmp_path / "a.csv").write_bytes(b"ds,y\n2024-01-01,\xff\n")
    assert "not UTF-8" in fails(capsys, str(tmp_path / "a.csv"), "--horizon", "1")
    (tmp_path / "a.csv").write_text('ds,y\n"' + "x" * 200_000)
    assert "field larger than field limit" in fails(
        capsys, str(tmp_path / "a.csv"), "--horizon", "1"
    )


def test_wrong_column_names(capsys, write):
    path = write("ds,y", *GOOD)
    err = fails(capsys, path, "--horizon", "1", "--time-col", "when")
    assert "no column 'when' (--time-col); its columns: 'ds', 'y'" in err
    assert "--target-col" in fails(capsys, path, "--horizon", "1", "--target-col", "Y")
    assert "columns of a FILE" in fails(capsys, "--horizon", "1", "--time-col", "ds")


def test_targets_are_checked_before_the_work(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_read", lambda _: pytest.fail("worked first"))
    gone = str(tmp_path / "no" / "a.csv")
    assert "create it first" in fails(capsys, "--horizon", "1", "--out", gone)
    assert "it is a folder" in fails(capsys, "--horizon", "1", "--out", str(tmp_path))
    bad = str(tmp_path / "plot.xyz")
    assert ".png, .pdf or .svg" in fails(capsys, "--horizon", "1", "--plot", bad)
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    good = str(tmp_path / "plot.png")
    assert "rbfdiffnet[plot]" in fails(capsys, "--horizon", "1", "--plot", good)


@pytest.mark.usefixtures("linear")
def test_chart_falls_back_to_ascii(monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    assert main(["forecast", "--horizon", "3"]) == 0
    stdout.seek(0)
    chart = [line.partition("|")[2] for line in stdout.read().splitlines() if "|" in line]
    assert "".join(chart).count("o") == 3


def test_interrupt_ends_with_130(capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_read", interrupted)
    code, _, err = run(capsys, "--horizon", "1")
    assert (code, err) == (130, "rbfdiffnet: stopped\n")


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, **options
    )


def test_module_runs_as_a_program(write):
    done = python("-m", "rbfdiffnet", "forecast", write("ds,y", *months(8)), "--horizon", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "8 values are too few" in done.stdout
    done = python("-m", "rbfdiffnet", "forecast", "nowhere.csv", "--horizon", "1")
    assert done.returncode == 2
    assert done.stderr.startswith("rbfdiffnet: error: no file")


def test_closed_pipe_ends_quietly(write):
    script = (
        "import os, sys; os.close(1); r, w = os.pipe(); os.close(r); os.dup2(w, 1);"
        "from rbfdiffnet.cli import main;"
        f"sys.exit(main(['forecast', {write('ds,y', *months(8))!r}, '--horizon', '1']))"
    )
    done = python("-c", script)
    assert (done.returncode, done.stderr) == (141, "")


def test_seed_must_not_be_negative(capsys):
    assert "whole number from 0" in fails(capsys, "--horizon", "3", "--seed", "-1")


def test_rows_with_too_many_cells_are_not_cut_off(capsys, write):
    path = write("date,value", "2024-01-01,1,000.6", "2024-01-02,2")
    message = fails(capsys, path, "--horizon", "2")
    assert "line 2 has 3 cells" in message


def test_hours_over_a_change_of_clocks(capsys, write):
    local = pd.date_range("2024-03-30", periods=72, freq="h", tz="Europe/Berlin")
    lines = [f"{date.isoformat()},{10 + i % 24}" for i, date in enumerate(local)]
    code, out, _ = run(capsys, write("time,load", *lines), "--horizon", "3")
    assert code == 0
    assert "hourly" in out

import io
import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

from cli_files import days, fails, panel, run
from rbfdiffnet import RBFDiffNet, __version__
from rbfdiffnet.cli import main
from report_files import Report

LOCAL = ("--scope", "local")


@pytest.fixture
def long_file(tmp_path):
    path = tmp_path / "long.csv"
    panel().to_csv(path, index=False)
    return path


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rbfdiffnet {__version__}\n"
    for name in ("forecast", "evaluate", "explain"):
        assert main([name, "--help"]) == 0
        assert "--season-length" in capsys.readouterr().out


def test_built_in_series_with_the_default_model(capsys):
    code, out, err = run(capsys, "forecast", "--horizon", 6)
    assert (code, err) == (0, "")
    assert out.startswith("Reading the built-in air passengers (in thousands), 1 series, monthly")
    assert "1961-06-01" in out
    assert "Backtest: 3 windows, 1959-07-01 to 1960-12-01" in out
    assert "lower than by repeating the last season (SeasonalNaive). Expect a" in flat(out)
    assert out.count("•") == 6


def flat(text):
    return " ".join(text.split())


@pytest.mark.parametrize("width", [80, 100])
def test_the_first_run_fits_on_one_screen(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = run(capsys, "forecast", "--horizon", 12)
    assert code == 0
    reading, *lines = out.splitlines()
    assert max(map(len, lines)) <= width
    assert len(textwrap.wrap(reading, width)) + len(lines) <= 24 + (width < 100)
    assert out.count("•") == 12
    table = next(k for k, line in enumerate(lines) if line.startswith("1961-01-01"))
    assert "┤" in lines[table]  # the chart is beside the table


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_forecasts_are_those_of_the_forecaster(capsys, long_file, tmp_path, suffix):
    out = tmp_path / f"out.{suffix}"
    arguments = (long_file, "--horizon", 3, *LOCAL, "--level", 80, 95, "--lower", 15)
    assert run(capsys, "forecast", *arguments, "--quiet", "--out", out) == (0, "", "")
    found = pd.read_parquet(out) if suffix == "parquet" else pd.read_csv(out, parse_dates=["ds"])
    model = RBFDiffNet(freq="D", scope="local", lower=15)
    expected = model.forecast(panel(), 3, level=[80, 95])
    pd.testing.assert_frame_equal(
        found.astype({"unique_id": str}), expected, check_dtype=False, rtol=1e-9
    )


def test_parts_do_not_change_forecasts(capsys, long_file, monkeypatch):
    whole = run(capsys, "forecast", long_file, "--horizon", 3, *LOCAL, "--quiet")[1]
    monkeypatch.setattr("rbfdiffnet.cli.run._CHUNK", 2)
    parts = run(capsys, "forecast", long_file, "--horizon", 3, *LOCAL, "--quiet")[1]
    a, b = (pd.read_csv(io.StringIO(text)) for text in (whole, parts))
    pd.testing.assert_frame_equal(a, b, rtol=1e-9)


def test_inputs_reach_the_forecaster(capsys, tmp_path):
    frame = days(90).assign(promo=lambda f: (f.index % 4 == 0).astype(int))
    frame["y"] += 30 * frame["promo"]
    later = pd.DataFrame({"ds": pd.date_range("2024-03-31", periods=2), "promo": [1, 0]})
    pd.concat([frame, later]).to_csv(tmp_path / "a.csv", index=False)
    arguments = ("forecast", tmp_path / "a.csv", "--horizon", 2, *LOCAL, "--quiet")
    code, out, _ = run(capsys, *arguments, "--exog", "promo")
    assert code == 0
    first, second = pd.read_csv(io.StringIO(out))["RBFDiffNet"]
    assert first - second > 15


@pytest.fixture
def prices(tmp_path):
    """A file of series with prices, their frame, and future prices, whose errors are known."""
    frame = panel(n=90)
    frame["price"] = np.random.default_rng(0).normal(10.0, 2.0, len(frame))
    frame["y"] += 4.0 * frame["price"]
    frame.to_csv(tmp_path / "a.csv", index=False)
    later = pd.DataFrame({"ds": pd.date_range("2024-03-31", periods=3), "price": 10.0})
    plan = later.merge(frame[["unique_id"]].drop_duplicates(), how="cross")
    return tmp_path / "a.csv", frame, plan.assign(price_std=3.0)


@pytest.mark.parametrize("where", ["all of a plan", "columns of a plan", "the file"])
def test_uncertain_inputs_widen_intervals_as_in_python(capsys, tmp_path, prices, where):
    file, frame, plan = prices
    plan.to_csv(tmp_path / "plan.csv", index=False)
    inputs = {"all of a plan": ["price", tmp_path / "plan.csv"]}.get(where, ["price", "price_std"])
    if where == "columns of a plan":
        inputs.append(tmp_path / "plan.csv")
    if where == "the file":
        pd.concat([frame, plan]).to_csv(file, index=False)
    fast = ("--horizon", 3, "--preset", "instant", "--quiet", "--exog", *inputs)
    code, out, err = run(capsys, "forecast", file, *fast, "--level", 80)
    assert (code, err) == (0, "")
    model = RBFDiffNet("D", preset="instant").fit(frame)
    wanted = model.predict(3, X_df=plan, level=[80])
    found = pd.read_csv(io.StringIO(out), parse_dates=["ds"])
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-4)
    sure = model.predict(3, X_df=plan.drop(columns="price_std"), level=[80])
    assert (found["RBFDiffNet-hi-80"] > sure["RBFDiffNet-hi-80"] + 5).all()
    assert run(capsys, "explain", file, *fast, "--id", "s1")[0] == 0
    assert run(capsys, "evaluate", file, *fast, "--rival-seconds", 0)[0] == 0


def test_scenarios_are_refused_with_a_way_out(capsys, tmp_path, prices):
    file, _, plan = prices
    both = pd.concat([plan.assign(scenario=name) for name in ("low", "high")])
    both.to_csv(tmp_path / "plan.csv", index=False)
    given = ("--horizon", 3, "--exog", "price", tmp_path / "plan.csv")
    said = fails(capsys, "forecast", file, *given)
    assert "plan.csv: a column 'scenario' names several futures" in said
    assert "give each scenario a file of its own" in said


def test_inputs_known_only_afterwards_reach_the_forecaster(capsys, tmp_path):
    frame, path = panel(n=90), tmp_path / "a.csv"
    frame["orders"] = np.random.default_rng(0).poisson(20, len(frame)).astype(float)
    frame["y"] += frame.groupby("unique_id")["orders"].shift(2).fillna(20.0)
    frame.to_csv(path, index=False)
    arguments = (path, "--horizon", 2, "--past-exog", "orders", "--quiet")
    found = pd.read_csv(io.StringIO(run(capsys, "forecast", *arguments)[1]))
    expected = RBFDiffNet("D", past_exog=["orders"]).forecast(frame, 2)
    np.testing.assert_allclose(found["RBFDiffNet"], expected["RBFDiffNet"], rtol=1e-4)
    windows = tmp_path / "windows.csv"
    more = ("--windows", 1, "--rival-seconds", 0, "--out", windows)
    assert run(capsys, "evaluate", *arguments, *more)[0] == 0
    expected = RBFDiffNet("D", past_exog=["orders"]).cross_validation(frame, 2)
    np.testing.assert_allclose(pd.read_csv(windows)["RBFDiffNet"], expected["RBFDiffNet"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--past-exog", "price"], "--past-exog price: no such column in"),
        (["--past-exog", "ds"], "column 'ds' has the dates of the series; leave it out of --past"),
        (
            ["--past-exog", "p", "--exog", "p"],
            "column 'p' cannot be in both --exog and --past-exog",
        ),
        (
            ["--past-exog", "p", "--layout", "wide"],
            "--past-exog p: with --layout wide no column is",
        ),
        (["--past-exog", "p", "--preset", "instant"], "past_exog: the pretrained network learns"),
    ],
)
def test_inputs_known_only_afterwards_are_columns(capsys, tmp_path, arguments, message):
    days().assign(p=1.0).to_csv(tmp_path / "a.csv", index=False)
    assert message in fails(capsys, "forecast", tmp_path / "a.csv", "--horizon", 2, *arguments)


def test_json_is_the_only_thing_on_standard_output(capsys, long_file):
    code, out, err = run(capsys, "forecast", long_file, "--horizon", 2, *LOCAL, "--json")
    document = json.loads(out)
    assert code == 0
    assert err.startswith("Reading ds from 'ds', y from 'y', ids from 'unique_id', 3 series")
    assert len(document["forecast"]) == 6
    assert document["forecast"][0]["ds"] == "2024-03-01"
    assert document["n_series"] == 3
    code, out, err = run(capsys, "forecast", "--horizon", 2, *LOCAL, "--json", "--quiet")
    assert (code, err) == (0, "")
    assert json.loads(out)["verdicts"]


def test_documents_say_what_the_report_and_the_csv_say(capsys, long_file, tmp_path):
    out, page = tmp_path / "out.csv", tmp_path / "report.html"
    files = ("--out", out, "--report", page)
    command = ("forecast", long_file, "--horizon", 5, *LOCAL, "--level", 80)
    code, text, _ = run(capsys, *command, *files, "--json")
    assert code == 0
    document, facts, frame = json.loads(text), Report(page).facts, pd.read_csv(out)
    pd.testing.assert_frame_equal(pd.DataFrame(document["forecast"]), frame)
    plain = [
        said.replace("\xa0", " ") for said in (facts["verdict"]["lead"], *facts["verdict"]["more"])
    ]
    assert [document["verdict"]["lead"], *document["verdict"]["more"]] == plain
    assert document["expected_error"] == facts["verdict"]["expected_error"]
    for mine, drawn in zip(document["scores"], facts["scores"]["models"], strict=True):
        assert (mine["model"], mine["mae"]) == (
            drawn["name"],
            pytest.approx(drawn["MAE"], rel=1e-5),
        )
    mean_size = panel().groupby("unique_id").tail(15)["y"].abs().mean()
    expected = document["expected_error"]
    assert expected["absolute"] == document["scores"][0]["mae"]
    assert expected["percent"] == pytest.approx(100 * expected["absolute"] / mean_size)

    code, text, _ = run(capsys, *command, "--markdown", "--quiet")
    assert code == 0
    lines = text.splitlines()
    assert lines[0] == f"# Forecasts of {long_file.name}"
    assert " ".join(plain) in lines
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| s")]
    assert [row[:2] for row in rows] == frame[["unique_id", "ds"]].to_numpy().tolist()
    shown = [float(row[2]) for row in rows]
    assert shown == pytest.approx(frame["RBFDiffNet"].tolist(), rel=1e-3)


def test_a_document_without_a_backtest_says_so(capsys, tmp_path):
    days(9).to_csv(tmp_path / "a.csv", index=False)
    command = ("forecast", tmp_path / "a.csv", "--horizon", 5, "--quiet")
    document = json.loads(run(capsys, *command, "--json")[1])
    assert document["verdict"]["lead"].startswith("No backtest was made")
    assert (document["expected_error"], document["scores"]) == (None, [])
    assert "No backtest was made" in run(capsys, *command, "--markdown")[1]


def test_names_are_no_markup_in_markdown(capsys, tmp_path):
    names = ["a|b", "*c*", "<d>"]
    frame = panel().assign(
        unique_id=lambda f: f["unique_id"].map(dict(zip(["s0", "s1", "s2"], names, strict=True)))
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    code, out, _ = run(capsys, "forecast", tmp_path / "a.csv", "--horizon", 1, *LOCAL, "--markdown")
    assert code == 0
    for name in (r"| a\|b |", r"| \*c\* |", r"| \<d> |"):
        assert name in out
    assert "not allowed with" in fails(capsys, "forecast", "--horizon", 1, "--json", "--markdown")


def test_one_bad_series_does_not_cost_the_others(capsys, tmp_path):
    short = pd.DataFrame({"unique_id": "short", "ds": panel()["ds"][:3], "y": [1.0, 2.0, 3.0]})
    gap = panel().drop(index=[10, 11])
    frame = pd.concat([short, gap, gap.tail(1).assign(y=0.0)])
    frame.to_csv(tmp_path / "a.csv", index=False)
    path = tmp_path / "b.csv"
    data = tmp_path / "a.csv"
    code, out, err = run(capsys, "forecast", data, "--horizon", 2, *LOCAL, "--out", path)
    assert code == 0
    assert f"Wrote {path}" in out
    assert pd.read_csv(path)["RBFDiffNet"].notna().sum() == 8
    assert "series 'short': too short" in err
    assert "series 's0': 2 missing dates, first 2024-01-11" in err
    assert "1 row is averaged with others of the same series and date, on line 183 (" in out
    assert "repeated date" not in err
    assert run(capsys, "forecast", "--horizon", 1, "--quiet", *LOCAL)[2] == ""


def test_many_forecasts_ask_for_a_file(capsys, long_file):
    code, out, err = run(capsys, "forecast", long_file, "--horizon", 400, "--preset", "fast")
    assert code == 0
    assert "--out FILE keeps them all" in err
    assert "... and 1,188 more rows" in out


def test_out_and_plot_are_written_whole(capsys, long_file, tmp_path):
    out, plot = tmp_path / "forecast.csv", tmp_path / "forecast.png"
    out.write_text("old")
    arguments = ("forecast", long_file, "--horizon", 4, "--level", 80, *LOCAL)
    code, said, _ = run(capsys, *arguments, "--out", out, "--plot", plot)
    assert code == 0
    assert f"Wrote {out}\nWrote {plot}" in said
    assert len(pd.read_csv(out)) == 12
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir(tmp_path)) == ["forecast.csv", "forecast.png", "long.csv"]


def test_report_is_written(capsys, long_file, tmp_path):
    pytest.importorskip("rbfdiffnet.report")
    report = tmp_path / "report.html"
    arguments = ("forecast", long_file, "--horizon", 4, *LOCAL, "--quiet", "--report", report)
    assert run(capsys, *arguments)[0] == 0
    assert "<html" in report.read_text(encoding="utf-8")[:1000]
    arguments = ("evaluate", long_file, "--horizon", 4, *LOCAL, "--rival-seconds", 0)
    assert run(capsys, *arguments, "--report", report)[0] == 0


def test_targets_are_checked_before_the_work(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.cli.run.read_input", lambda *_: pytest.fail("worked first"))

    def message(*arguments):
        return fails(capsys, "forecast", "--horizon", 1, *arguments)

    assert "create its folder first" in message("--out", tmp_path / "no" / "a.csv")
    assert "it is a folder" in message("--out", tmp_path)
    assert ".csv, .csv.gz or .parquet" in message("--out", tmp_path / "a.xlsx")
    assert ".png, .pdf or .svg" in message("--plot", tmp_path / "plot.xyz")
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    assert "rbfdiffnet[plot]" in message("--plot", tmp_path / "plot.png")
    monkeypatch.setitem(sys.modules, "rbfdiffnet.report", None)
    assert "--report" in message("--report", tmp_path / "report.html")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--horizon", "0"), "'0' is not a whole number of at least 1"),
        (("--horizon", "many"), "'many' is not a whole number"),
        ((), "--horizon"),
        (("--horizon", "3", "--level", "800"), "not a percentage"),
        (("--horizon", "3", "--scope", "auto", "--lower", "inf"), "finite number"),
    ],
)
def test_wrong_arguments(capsys, arguments, message):
    assert message in fails(capsys, "forecast", *arguments)


def test_no_room_for_a_backtest_is_said(capsys):
    out = run(capsys, "forecast", "--horizon", 140, *LOCAL)[1]
    assert "No backtest: 144 values are too few to hold 140 out." in out


def test_chart_falls_back_to_ascii(monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    assert main(["forecast", "--horizon", "3", *LOCAL]) == 0
    stdout.seek(0)
    chart = [line.partition("|")[2] for line in stdout.read().splitlines() if "|" in line]
    assert "".join(chart).count("o") == 3


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "rbfdiffnet: stopped\n"),
        (MemoryError(), 1, "rbfdiffnet: error: out of memory; forecast fewer series at a time\n"),
        (ZeroDivisionError("oh"), 1, "rbfdiffnet: internal error: ZeroDivisionError: oh "),
    ],
)
def test_other_ends(capsys, monkeypatch, error, code, said):
    def end(*_):
        raise error

    monkeypatch.delenv("RBFDIFFNET_TRACEBACK", raising=False)
    monkeypatch.setattr("rbfdiffnet.cli.run.read_input", end)
    found, _, err = run(capsys, "forecast", "--horizon", 1)
    assert found == code
    assert err.startswith(said)
    if code == 1 and "internal" in said:
        monkeypatch.setenv("RBFDIFFNET_TRACEBACK", "1")
        with pytest.raises(ZeroDivisionError):
            main(["forecast", "--horizon", "1"])


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def test_module_runs_as_a_program(long_file):
    arguments = ("forecast", long_file, "--horizon", 1, *LOCAL)
    done = python("-m", "rbfdiffnet", *arguments)
    assert (done.returncode, done.stderr) == (0, "")  # no terminal, so no progress
    assert "3 series" in done.stdout
    done = python("-m", "rbfdiffnet", "forecast", "nowhere.csv", "--horizon", "1")
    assert done.returncode == 2
    assert done.stderr.startswith("rbfdiffnet: error: no file")


def test_closed_pipe_ends_quietly(long_file):
    script = (
        "import os, sys; os.close(1); r, w = os.pipe(); os.close(r); os.dup2(w, 1);"
        "from rbfdiffnet.cli import main;"
        f"sys.exit(main(['forecast', {str(long_file)!r}, '--horizon', '1', '--scope', 'local']))"
    )
    done = python("-c", script)
    assert (done.returncode, done.stderr) == (141, "")


WRITER = """
import sys, time
import rbfdiffnet.cli.output as output
from rbfdiffnet.cli import main
plain = output.write_frame
import pandas as pd
def slowly(self, path, **_):
    with open(path, "w") as stream:
        stream.write("unique_id,ds")
        stream.flush()
        print("writing", flush=True)
        time.sleep(60)
pd.DataFrame.to_csv = slowly
sys.exit(main(["forecast", "--horizon", "2", "--scope", "local", "--quiet", "--out", sys.argv[1]]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        *(pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGTERM, signal.SIGINT)),
    ],
)
def test_killed_half_way_nothing_is_half_written(capsys, tmp_path, number):
    out = tmp_path / "forecast.csv"
    out.write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    codes = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
    assert process.returncode == codes[number]
    assert out.read_text() == "old"
    left = sorted(os.listdir(tmp_path))
    if number == signal.SIGKILL:  # the next run removes what it could not
        assert len(left) == 2
        assert left[0].startswith(".rbfdiffnet-forecast.csv-")
        arguments = ("--horizon", 2, *LOCAL, "--quiet", "--out", out)
        assert run(capsys, "forecast", *arguments)[0] == 0
        assert len(pd.read_csv(out)) == 2
    assert os.listdir(tmp_path) == ["forecast.csv"]


def test_failed_write_leaves_the_old_file(capsys, tmp_path, monkeypatch):
    out = tmp_path / "forecast.csv"
    out.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    arguments = ("forecast", "--horizon", 4, *LOCAL, "--quiet", "--out", out)
    assert "No space left" in fails(capsys, *arguments)
    assert out.read_text() == "old"
    assert os.listdir(tmp_path) == ["forecast.csv"]


def test_temporaries_of_running_processes_stay(capsys, tmp_path):
    from rbfdiffnet.support.files import _prefix

    out = tmp_path / "forecast.csv"
    other = tmp_path / f"{_prefix(out)}{os.getppid()}.csv"
    other.write_text("someone writes here")
    arguments = ("forecast", "--horizon", 4, *LOCAL, "--quiet", "--out", out)
    assert run(capsys, *arguments)[0] == 0
    assert other.exists()

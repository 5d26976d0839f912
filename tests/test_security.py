"""Nothing that is read is executed, fills the memory, steers the terminal or opens a network."""

import ast
import gzip
import io
import json
import socket
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rbfdiffnet
from cli_files import days, fails, panel, run
from panels import make_panel
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.forecasting.saving import read_arrays, write_arrays
from rbfdiffnet.readers.files import read_table
from rbfdiffnet.support import files as whole_files
from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.text import quote_formula, unquote_formula

SOURCE = Path(rbfdiffnet.__file__).parent
LOCAL = ("--horizon", 2, "--scope", "local")
FORBIDDEN = {"pickle", "marshal", "shelve", "dill", "joblib", "subprocess", "yaml", "cloudpickle"}
FORBIDDEN |= {"urllib", "http", "requests", "ftplib", "ctypes", "runpy", "code", "pty"}


# What is never called -----------------------------------------------------------------------------


def uses(tree):
    """Names of modules imported and of functions called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield f"{node.func.id}()"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield f".{node.func.attr}()"
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            yield "" if ast.unparse(node.value) == "False" else "allow_pickle"


def test_nothing_in_the_source_executes_what_it_reads():
    calls = {"eval()", "exec()", "compile()", "__import__()", ".system()", ".popen()"}
    calls |= {".read_pickle()", "allow_pickle", ".urlopen()"}
    found = {}
    for file in SOURCE.rglob("*.py"):
        used = set(uses(ast.parse(file.read_text(encoding="utf-8")))) & (FORBIDDEN | calls)
        if used:
            found[file.relative_to(SOURCE).as_posix()] = used
    # Workers of a cluster exchange pickles with the program that started them, and read no files.
    assert found == {"adapters/clusters/cluster.py": {"cloudpickle"}}


# Models -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.npz"
    RBFDiffNet("D", preset="fast", lags=2).fit(make_panel("ab", n=30)).save(path)
    return read_arrays(path)[0]


def with_words(arrays, *keys, value):
    """The arrays of a model, with something else somewhere in its words."""
    words = inner = json.loads(arrays["json"].tobytes())
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    return {**arrays, "json": np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)}


POLARS = {"name": "unique_id", "library": "polars"}


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (["parameters", "regressor"], {"class": "os.system", "parameters": {"command": "id"}}),
        (["parameters", "regressor"], {"class": "__class__", "parameters": {}}),
        (["parameters", "regressor"], {"class": "RBFDiffNetRegressor", "parameters": {"x": 1}}),
        (["parameters", "transforms"], [{"step": "__import__", "name": "os"}]),
        (["parameters", "lags"], "many"),
        (["parameters", "lags"], float("nan")),
        (["parameters", "n_jobs"], {"a": 1}),
        (["parameters", "freq"], "1e999999D"),
        (["parameters", "freq"], [[]]),
        (["parameters", "__class__"], "os"),
        (["panel", "freq"], "99999999999999999999999D"),
        (["panel", "id"], {**POLARS, "dtype": "read_csv"}),
        (["panel", "id"], {**POLARS, "dtype": "show_versions"}),
        (["panel", "id"], {**POLARS, "dtype": "__name__"}),
        (["panel", "id", "dtype"], "os.system"),
        (["panel", "columns"], {"__init__": "x"}),
        (["windows", 0, "network"], {"__class__": 1}),
        (["models", 0, "windows"], 10**9),
        (["models"], 1),
        (["version"], []),
        (["block"], "x"),
        (["notes"], [{"series": 0, "problem": 1, "action": 2, "more": 3}]),
    ],
)
def test_odd_words_in_a_model_are_refused(saved, tmp_path, capsys, keys, value):
    if value and "library" in (value if isinstance(value, dict) else ()):
        pytest.importorskip("polars")
    path = tmp_path / "odd.npz"
    write_arrays(path, with_words(saved, *keys, value=value))
    with pytest.raises(ValueError, match=r"odd\.npz"):
        RBFDiffNet.load(path)
    assert capsys.readouterr().out == ""


def test_words_that_nest_deeply_or_have_huge_numbers_are_refused(saved, tmp_path):
    path = tmp_path / "odd.npz"
    for text in (b"[" * 10**6, b'{"format":' * 10**5, b"9" * 10**5, b'{"version":1e999}', b""):
        write_arrays(path, {**saved, "json": np.frombuffer(text, dtype=np.uint8)})
        with pytest.raises(ValueError, match=r"odd\.npz"):
            RBFDiffNet.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"panel/offsets": np.array([0, 2**50, 2**51])},
        {"panel/offsets": np.array([0, -1, 60])},
        {"panel/offsets": np.array([], dtype=np.int64)},
        {"panel/offsets": np.array([0.0, 30.0, np.nan])},
        {"panel/ids": np.array(["a"])},
        {"shape/centers": np.full((2, 2), 2**30, dtype=np.int32)},
        {"panel/y": np.zeros(3)},
    ],
    ids=str,
)
def test_sizes_that_do_not_agree_are_refused(saved, tmp_path, change):
    path = tmp_path / "odd.npz"
    write_arrays(path, {**saved, **change})
    with pytest.raises(ValueError, match=r"odd\.npz"):
        RBFDiffNet.load(path)


# Tables -------------------------------------------------------------------------------------------


def test_a_small_gzip_file_cannot_fill_the_memory(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(whole_files, "_ALWAYS", 2**20)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"ds,y\n" + b"2024-01-01,1\n" * 10**6))
    message = fails(capsys, "forecast", path, *LOCAL)
    assert "unpacks to more than 2," in message  # a hundred times its size
    assert "if you trust it, unpack it first" in message


@pytest.mark.parametrize("line", [bytes(100), b"2024-01-01,1\n"])
def test_packed_files_are_counted_before_they_are_kept(tmp_path, monkeypatch, line):
    monkeypatch.setattr(whole_files, "_ALWAYS", 10**7)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"ds,y\n" * any(line) + line * (10**8 // len(line)), 1))
    tracemalloc.start()
    try:
        with pytest.raises(CommandError, match=r"not text|unpacks to more than"):
            read_table(str(path))
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def pyarrow():
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:  # it wants a newer NumPy than the oldest that this package does
        pytest.skip(str(error))
    return pyarrow, parquet


def test_a_small_parquet_file_cannot_fill_the_memory(capsys, tmp_path):
    pa, parquet = pyarrow()
    path, rows = tmp_path / "a.parquet", 2**20
    table = pa.table({f"c{i}": pa.nulls(rows, pa.int64()) for i in range(4)})
    with parquet.ParquetWriter(path, table.schema) as file:
        for _ in range(40):
            file.write_table(table)
    assert path.stat().st_size < 2**20
    message = fails(capsys, "forecast", path, *LOCAL)
    assert "has 41,943,040 rows in" in message


def test_m5_downloads_unpack_within_bounds(tmp_path, monkeypatch):
    import zipfile

    from rbfdiffnet.datasets.m5 import load_m5_level8

    monkeypatch.setattr(whole_files, "_ALWAYS", 2**20)
    text = b"store_id,cat_id,d_1\n" + b"a,b,1\n" * 10**6
    path = tmp_path / "sales_train_evaluation.csv.gz"
    path.write_bytes(gzip.compress(text))
    with pytest.raises(ValueError, match=r"unpacks to more than|lacks|needs|column"):
        load_m5_level8(path)
    path = tmp_path / "m5.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("../../sales_train_evaluation.csv", text)
    with pytest.raises(ValueError, match=r"unpacks to more than|lacks|needs|column"):
        load_m5_level8(path)
    assert len(list(tmp_path.iterdir())) == 2


def test_extension_types_in_parquet_are_not_unpickled(capsys, tmp_path):
    pa, parquet = pyarrow()
    import pickle

    class Trap:
        def __reduce__(self):
            return (tmp_path / "executed").touch, ()

    frame = days(30)
    kinds = {b"ARROW:extension:name": b"arrow.py_extension_type"}
    kinds[b"ARROW:extension:metadata"] = pickle.dumps(Trap())
    fields = [pa.field("ds", pa.timestamp("us")), pa.field("y", pa.float64(), metadata=kinds)]
    told = json.dumps({"columns": [{"name": "y", "numpy_type": "os.system"}], "index_columns": []})
    schema = pa.schema(fields, metadata={b"pandas": told.encode()})
    table = pa.table([pa.array(frame["ds"]), pa.array(frame["y"])], schema=schema)
    parquet.write_table(table, tmp_path / "a.parquet")
    code, _, err = run(capsys, "forecast", tmp_path / "a.parquet", *LOCAL)
    assert code in (0, 2)
    assert "Traceback" not in err
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("scheme", ["http://127.0.0.1:9/a.csv", "s3://b/a.parquet", "file:///etc"])
def test_addresses_are_no_files(capsys, no_network, scheme):
    assert "no file" in fails(capsys, "forecast", scheme, *LOCAL)
    with pytest.raises(FileNotFoundError):
        RBFDiffNet.load(scheme)
    assert no_network == []


# The terminal and spreadsheets --------------------------------------------------------------------

ESCAPE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202e$x_{"


def hostile_file(folder):
    frame = pd.concat([panel(1, 40).assign(unique_id=name) for name in (ESCAPE, "=1+1")])
    short = frame.head(3).assign(unique_id=f"{ESCAPE} short")
    path = folder / "odd.csv"
    pd.concat([frame, short]).rename(columns={"y": "y\x1b[2J"}).to_csv(path, index=False)
    return path


def test_nothing_that_is_read_steers_the_terminal(capsys, tmp_path):
    path = hostile_file(tmp_path)
    commands = [
        ("forecast", path, *LOCAL, "--plot", tmp_path / "plot.png"),
        ("forecast", path, *LOCAL, "--json"),
        ("forecast", path, *LOCAL, "--report", tmp_path / "page.html"),
        ("evaluate", path, *LOCAL, "--rival-seconds", 0),
        ("explain", path, *LOCAL, "--id", ESCAPE),
        ("explain", path, *LOCAL, "--id", "nobody"),
        ("forecast", path, *LOCAL, "--id-col", "\x1b[2J"),
        ("forecast", f"{tmp_path}/\x1b[2J", *LOCAL),
        ("forecast", path, "--horizon", "\x1b[2J"),
    ]
    import warnings

    for command in commands:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")  # that no font has
            _, out, err = run(capsys, *command)
        odd = {sign for sign in out + err if not sign.isprintable()} - {"\n"}
        assert not odd, (command, odd)
        if "--json" in command:
            ids = {row["unique_id"] for row in json.loads(out)["forecast"]}
            assert ids == {ESCAPE, "=1+1", f"{ESCAPE} short"}


def test_the_terminal_gets_quiet_forecasts_without_escapes(capsys, tmp_path, monkeypatch):
    arguments = ("forecast", hostile_file(tmp_path), *LOCAL, "--quiet")
    assert ESCAPE in run(capsys, *arguments)[1]  # a program gets what it was

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    from rbfdiffnet.cli import main

    assert main(list(map(str, arguments))) == 0
    assert "\x1b" not in sys.stdout.getvalue()


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_ids_like_formulas_have_an_apostrophe_in_csv(capsys, tmp_path, name):
    out, command = tmp_path / name, ("forecast", hostile_file(tmp_path), *LOCAL)
    _, _, err = run(capsys, *command, "--out", out)
    assert "'=1+1' look like formulas: the file has an apostrophe before them; --raw-ids" in err
    ids = set(pd.read_csv(out)["unique_id"])
    assert "'=1+1" in ids
    assert "=1+1" not in ids
    assert not run(capsys, *command, "--out", out, "--quiet")[2]
    assert set(pd.read_csv(out)["unique_id"]) == ids
    assert "\n'=1+1," in run(capsys, *command, "--quiet")[1]
    _, _, err = run(capsys, *command, "--out", out, "--raw-ids")
    assert "'=1+1' look like formulas: in a spreadsheet, import their column as text" in err
    assert "=1+1" in set(pd.read_csv(out)["unique_id"])
    assert "\n=1+1," in run(capsys, *command, "--quiet", "--raw-ids")[1]


@pytest.mark.parametrize("command", ["evaluate", "anomalies"])
def test_ids_like_formulas_have_an_apostrophe_in_csv_of_other_commands(capsys, tmp_path, command):
    out, file = tmp_path / "out.csv", hostile_file(tmp_path)
    options = (*LOCAL, "--windows", 1, "--rival-seconds", 0) if command == "evaluate" else ()
    _, _, err = run(capsys, command, file, *options, "--out", out)
    assert "'=1+1' look like formulas" in err
    assert "'=1+1" in set(pd.read_csv(out)["unique_id"])


def test_ids_like_formulas_are_read_as_they_were(capsys, tmp_path):
    names = ["=1+1", "'=1+1", "@SUM(A1)", "+a", "-b", "-1", "'quoted'", "\t=x", "plain"]
    days = pd.date_range("2024-01-01", periods=20)
    df = pd.concat([pd.DataFrame({"unique_id": n, "ds": days, "y": range(20)}) for n in names])
    quoted = df.assign(unique_id=df["unique_id"].map(quote_formula))
    assert quoted["unique_id"].nunique() == len(names)
    assert not quoted["unique_id"].str.match(r"[=@+\t]|-b").any()
    assert quoted["unique_id"].map(unquote_formula).tolist() == df["unique_id"].tolist()
    quoted.to_csv(tmp_path / "in.csv", index=False)
    _, out, _ = run(capsys, "forecast", tmp_path / "in.csv", *LOCAL, "--json")
    found = {row["unique_id"] for row in json.loads(out)["forecast"]}
    assert found == set(names)


# The network --------------------------------------------------------------------------------------


@pytest.fixture
def no_network(monkeypatch):
    """Let every attempt to reach anyone fail, and list them."""
    tried = []

    def refuse(*arguments, **_):
        tried.append(arguments)
        raise AssertionError("it reached for the network")

    for name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "create_connection", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    return tried


def test_nothing_reaches_for_the_network(capsys, tmp_path, no_network):
    from rbfdiffnet.report import report_of

    df = make_panel("ab", n=60)
    model = RBFDiffNet("D", scope="local").fit(df)
    model.save(tmp_path / "model.npz")
    loaded = RBFDiffNet.load(tmp_path / "model.npz")
    report_of(loaded, tmp_path / "page.html", df, h=3)
    df.to_csv(tmp_path / "a.csv", index=False)
    for command in ("forecast", "evaluate", "explain"):
        more = {"forecast": ["--plot", tmp_path / "a.png"], "explain": ["--id", "a"]}.get(
            command, []
        )
        assert run(capsys, command, tmp_path / "a.csv", *LOCAL, *more)[0] == 0
    assert no_network == []


def test_long_settings_are_refused(tmp_path):
    path = tmp_path / "model.npz"
    text = b'{"format": [' + b"[]," * 6_000_000 + b"[]]}"
    write_arrays(path, {"json": np.frombuffer(text, dtype=np.uint8)})
    assert path.stat().st_size < 10**5
    with pytest.raises(ValueError, match="not a model"):
        RBFDiffNet.load(path)


@pytest.mark.parametrize("version", ["Infinity", "1e999", "NaN"])
def test_a_version_that_is_no_number_is_refused(tmp_path, version):
    path = tmp_path / "model.npz"
    text = f'{{"format": "rbfdiffnet-forecaster", "version": {version}}}'.encode()
    write_arrays(path, {"json": np.frombuffer(text, dtype=np.uint8)})
    with pytest.raises(ValueError, match="not a model"):
        RBFDiffNet.load(path)


def test_seasons_have_an_end():
    with pytest.raises(ValueError, match="season_length must be at most 1,000,000"):
        RBFDiffNet("D", season_length=30_000_000)

"""Tables that are read and written."""

import io
import tempfile
from pathlib import Path

import pandas as pd

from attack_parts.commands import FAST, command, write_panel
from attack_parts.registry import Cases, Group

GROUP = Group("tables", "Tables")
promise = GROUP.promise


@promise(
    "A damaged table is an error in words, or other numbers; never a crash",
    "SECURITY.md",
    "CSV and Parquet, cut off and with a bit flipped, at every eleventh place",
)
def damaged_tables(cases: Cases) -> None:
    from bits import check_data

    for suffix in (".csv", ".parquet"):
        with cases(suffix), tempfile.TemporaryDirectory() as folder:
            cases.add(check_data(Path(folder), suffix, 1, every=11)[0] - 1)


@promise(
    "Any bytes are read or refused in words",
    "command_line.md",
    "random edits of CSV, gzip, UTF-16 and Parquet files of three layouts, with random options",
)
def changed_bytes_of_tables(cases: Cases) -> None:
    cases.fuzz("data files, bytes", 400)


@promise(
    "A table is read as it was written",
    "command_line.md",
    "random names, dates, decimal marks, delimiters, encodings and layouts",
)
def tables_as_written(cases: Cases) -> None:
    cases.fuzz("data files, panels", 400)


@promise(
    "A small packed file cannot fill the memory",
    "SECURITY.md",
    "gzip, Parquet and zip files that unpack to a hundred times their size",
)
def packed_tables(cases: Cases) -> None:
    cases.tests(
        "test_security.py::test_a_small_gzip_file_cannot_fill_the_memory",
        "test_security.py::test_a_small_parquet_file_cannot_fill_the_memory",
        "test_security.py::test_m5_downloads_unpack_within_bounds",
    )


@promise(
    "No pickle in a Parquet file is read",
    "SECURITY.md",
    "an extension type with a trap",
)
def pickles_in_tables(cases: Cases) -> None:
    cases.tests("test_security.py::test_extension_types_in_parquet_are_not_unpickled")


@promise(
    "Ids that look like formulas do no harm in CSV files",
    "command_line.md",
    "ids that begin with = + - @ and control characters, with --out, --quiet and on the screen",
)
def formulas(cases: Cases) -> None:
    ids = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=2+1", "\r=3+1", "=cmd|' /C calc'!A0", "plain"]
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "in.csv"), Path(folder, "out.csv")
        write_panel(source, ids)
        for name, options in {
            "--out": ("--out", out),
            "--out --quiet": ("--out", out, "--quiet"),
            "--quiet": ("--quiet",),
        }.items():
            code, printed, err = command("forecast", source, "--horizon", 1, *FAST, *options)
            with cases(f"{name}, exit code"):
                assert code == 0, err
            text = out.read_text(encoding="utf-8") if "--out" in name else printed
            cells = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)["unique_id"]
            for cell in dict.fromkeys(cells):
                with cases(f"{name}, {cell!r}"):
                    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")), "a formula"


@promise(
    "Results are never written over a file that is read, nor over each other",
    "command_line.md",
    "--out and --report of the input itself, a link to it, a hard link, and of one file for both",
)
def results_over_inputs(cases: Cases) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.csv")
        write_panel(source, ["a", "b"])
        before = source.read_bytes()
        link, hard = Path(folder, "link.csv"), Path(folder, "hard.csv")
        link.symlink_to(source)
        hard.hardlink_to(source)
        page = Path(folder, "page.html")
        for name, options in {
            "itself": ("--out", source),
            "a link": ("--out", link),
            "a hard link": ("--out", hard),
            "another spelling": ("--out", f"{folder}/./in.csv"),
            "one for both": ("--out", page, "--report", page),
        }.items():
            with cases(name):
                code, _, err = command("forecast", source, "--horizon", 1, *FAST, *options)
                assert code == 2, (code, err)
                assert source.read_bytes() == before, "the input was changed"

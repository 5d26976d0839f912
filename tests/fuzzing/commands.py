"""The command line: any arguments and files end in results, or in one line on standard error."""

import contextlib
import io
import json
import math
import os
import tempfile
import warnings
from pathlib import Path

from hypothesis import strategies as st

from fuzzing.data_files import PIECES, as_csv, table
from fuzzing.mutations import edited, edits
from fuzzing.trial import for_all
from rbfdiffnet.cli import main

odd_text = st.one_of(
    st.text(max_size=5),
    st.sampled_from(
        ["", "-1", "0", "1", "2", "nan", "inf", "1e5", "D", "MS", "y", "ds", "80", "x"]
    ),
    st.sampled_from(["unique_id", "data.csv", "a", "b", "--", "-", "auto", "99999999999999999999"]),
)
#: Options and values that make sense.
OPTIONS = {
    "--layout": ["long", "wide", "rows"],
    "--id-col": ["unique_id", "none"],
    "--time-col": ["ds", "none"],
    "--target-col": ["y", "a"],
    "--exog": ["y"],
    "--past-exog": ["y"],
    "--freq": ["D", "W"],
    "--season-length": ["1", "7"],
    "--repeats": ["sum", "mean"],
    "--dates": ["dmy", "ymd"],
    "--decimal": [".", ","],
    "--level": ["80", "99"],
    "--scope": ["local", "global"],
    "--lower": ["0", "-5.5"],
    "--jobs": ["1", "2"],
    "--quiet": [None],
    "--json": [None],
    "--out": ["forecast.csv", "forecast.parquet"],
    "--windows": ["1", "2"],
    "--id": ["a", "b"],
    "--step": ["1", "2"],
    "--rival-seconds": ["0"],
}


@st.composite
def arguments(draw):
    """A command with options, most of which make sense."""
    words = []
    for option in draw(st.lists(st.sampled_from(sorted(OPTIONS)), max_size=4, unique=True)):
        value = draw(st.one_of(st.sampled_from(OPTIONS[option]), odd_text))
        words += [option] if value is None else [option, value]
    return words


@for_all(
    command=st.sampled_from(["forecast", "forecast", "forecast", "evaluate", "explain", "no such"]),
    file=st.sampled_from(["data.csv", "data.csv", "data.csv", "none such.csv", "", "."]),
    horizon=st.one_of(st.sampled_from(["1", "3"]), odd_text),
    options=arguments(),
    layout=st.sampled_from(["long", "wide", "rows"]),
    changes=st.one_of(st.just([]), edits),
)
def arguments_of_any_kind(command, file, horizon, options, layout, changes):
    words = [command, file, "--horizon", horizon, *options]
    if command in ("forecast", "evaluate"):
        words += ["--preset", "fast"]
    if command == "evaluate":
        words += ["--rival-seconds", "0"]
    if command == "explain" and "--id" not in options:
        words += ["--id", "a"]
    if horizon.strip().isdecimal() and int(horizon.strip()) > 1000:
        return
    text = as_csv(table(layout)).encode()
    code, out, err = _run(words, edited(text, changes, PIECES) if changes else text)
    assert "Traceback" not in err
    assert "internal error" not in err, err
    assert code in (0, 2), (code, err)
    if code == 2:
        assert not out or "Reading" in out or "usage" in out, out
        last = err.strip("\n").split("\n")[-1]
        assert last.startswith("rbfdiffnet"), err
        assert "error: " in last, err
        assert len(last) < 2000, err
    elif command == "forecast" and "--json" in options and "--help" not in options:
        _document_is_sound(json.loads(out, parse_constant=_no_number), int(horizon))


def _no_number(text):
    raise AssertionError(f"{text} is no JSON")


def _document_is_sound(document, h):
    forecasts = document["forecast"]
    values = [row["RBFDiffNet"] for row in forecasts]
    assert len(values) % h == 0
    assert values
    assert all(math.isfinite(value) for value in values)


def _run(words, data):
    """Run a command in a folder of its own, with the data in ``data.csv``."""
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "data.csv").write_bytes(data)
        os.chdir(folder)
        try:
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("error")
                code = main(words)
        finally:
            os.chdir(before)
    return code, out.getvalue(), err.getvalue()

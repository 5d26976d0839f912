"""Commands in nightly jobs: kinds of notes for programs, and exit codes that say what was found."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from cli_files import days, fails, panel, run
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.support import notes
from rbfdiffnet.support.notes import FALLBACK_KINDS, NO_MODEL, NOT_FINITE, Note

GUIDE = Path(__file__).parents[2] / "docs" / "nightly.md"
FAST = ("--horizon", 5, "--preset", "fast")


@pytest.fixture
def odd_file(tmp_path):
    """A series with an outlier, a constant one, and one of a single value."""
    spike = days(60).assign(unique_id="spike")
    spike.loc[30, "y"] = 1e4
    flat = days(60).assign(unique_id="flat", y=3.0)
    path = tmp_path / "odd.csv"
    frame = pd.concat([spike, flat, days(1).assign(unique_id="one")])
    frame.to_csv(path, index=False)
    return path


def test_json_has_a_version_and_kinds(capsys, odd_file):
    code, out, _ = run(capsys, "forecast", odd_file, *FAST, "--json", "--quiet")
    document = json.loads(out)
    assert (code, document["schema"]) == (0, 1)
    rows = {(row["unique_id"], row["kind"]): row for row in document["report"]}
    assert set(rows) == {("spike", "outlier"), ("flat", "no_model"), ("one", "no_model")}
    assert rows["flat", "no_model"]["problem"] == "all values are the same"
    assert rows["one", "no_model"]["problem"] == "one value only"


def test_kinds_are_words_without_names_of_columns():
    kinds = ("infinite 'my col' value", "off-grid date", NO_MODEL, NOT_FINITE)
    codes = [Note(0, kind, "").code for kind in kinds]
    assert codes == ["infinite_value", "off_grid_date", *FALLBACK_KINDS]


@pytest.mark.skipif(not GUIDE.exists(), reason="the tests run without the repository")
def test_the_guide_knows_every_kind():
    told = re.findall(
        r"`(\w+)`", "".join(re.findall(r"^\| `.*?\|", GUIDE.read_text("utf-8"), re.M))
    )
    kinds = [text for name, text in vars(notes).items() if name.isupper() and type(text) is str]
    known = {Note(0, kind, "").code for kind in kinds if not kind.startswith("forecast ")}
    assert set(told) == known | {"infinite_value", "huge_value", "ends_early"}


def test_kinds_leave_ids_of_that_name_alone():
    frame = days(60).assign(kind="a")
    model = RBFDiffNet("D", preset="fast", id_col="kind").fit(frame.drop(index=5))
    assert model.report_["kind"].tolist() == ["a"]
    with pytest.raises(ValueError, match="column 'kind' of its own"):
        _ = model.notes_


@pytest.mark.parametrize("command", ["forecast", "evaluate"])
def test_fallbacks_fail_if_asked_to(capsys, odd_file, tmp_path, command):
    out = tmp_path / "out.csv"
    given = (command, odd_file, *FAST, "--fail-on", "fallback", "--out", out)
    code, _, err = run(capsys, *given)
    assert code == 3
    assert "rbfdiffnet: failed: " in err.splitlines()[-1]
    assert "a fallback, such as '" in err.splitlines()[-1]
    assert len(pd.read_csv(out))  # the work was done


@pytest.mark.parametrize("command", ["forecast", "evaluate"])
def test_forecasts_that_a_rule_beats_fail_if_asked_to(capsys, tmp_path, command):
    panel(2).to_csv(tmp_path / "a.csv", index=False)
    given = (command, tmp_path / "a.csv", "--horizon", 5, "--preset", "instant", "--quiet")
    given += ("--fail-on", "fallback", "worse")
    assert run(capsys, *given)[0] == 0
    code, out, err = run(capsys, *given, "--upper", 1)
    assert code == 3
    assert err == ("rbfdiffnet: failed: a simple rule forecast the backtest better (--fail-on)\n")
    assert "s0" in out if command == "forecast" else "RBFDiffNet lost" in out


def test_errors_leave_standard_output_empty(capsys, tmp_path):
    code, out, err = run(capsys, "forecast", tmp_path / "none.csv", *FAST, "--json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "invalid choice" in fails(capsys, "forecast", "--horizon", 2, "--fail-on", "nothing")

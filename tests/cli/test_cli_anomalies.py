import json

import pandas as pd
import pytest

from cli_files import fails, run
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import load_air_passengers


@pytest.fixture
def file(tmp_path):
    df = load_air_passengers()
    df.loc[100, "y"] += 100.0
    df.to_csv(tmp_path / "air.csv", index=False)
    return tmp_path / "air.csv"


def test_anomalies_are_counted_shown_and_written(capsys, file, tmp_path):
    out_file = tmp_path / "anomalies.csv"
    code, out, _ = run(capsys, "anomalies", file, "--level", 99.9, "--out", out_file)
    assert code == 0
    assert "1 of 132 values lie outside of what was forecast; the largest:" in out
    assert "1957-05-01" in out
    written = pd.read_csv(out_file, parse_dates=["ds"])
    expected = RBFDiffNet("MS").detect_anomalies(pd.read_csv(file, parse_dates=["ds"]), 99.9)
    pd.testing.assert_frame_equal(written, expected, check_dtype=False)


def test_anomalies_as_json(capsys, file):
    code, out, _ = run(capsys, "anomalies", file, "--level", 99.9, "--last", 60, "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["judged"], len(document["anomalies"])) == (60, 1)
    assert document["anomalies"][0]["ds"].startswith("1957-05-01")


def test_nothing_unusual_is_said(capsys, file):
    code, out, _ = run(capsys, "anomalies", file, "--last", 3, "--quiet")
    assert (code, out) == (0, "0 of 3 values lie outside of what was forecast\n")


def test_wrong_levels_and_outputs_are_refused(capsys, file):
    assert "from 50 to 99.99" in fails(capsys, "anomalies", file, "--level", 20)
    assert "same file" in fails(capsys, "anomalies", file, "--out", file)

import json
import re

import pandas as pd
import pytest

from cli_files import fails, panel, run
from rbfdiffnet import RBFDiffNet


@pytest.fixture
def file(tmp_path):
    panel().to_csv(tmp_path / "long.csv", index=False)
    return tmp_path / "long.csv"


def test_contributions_add_up_to_the_forecast(capsys, file):
    arguments = ("explain", file, "--horizon", 3, "--id", "s1", "--step", 2)
    code, out, _ = run(capsys, *arguments, "--scope", "local", "--json", "--quiet")
    document = json.loads(out)
    assert code == 0
    total = sum(row["contribution"] for row in document["terms"])
    model = RBFDiffNet(freq="D", scope="local")
    expected = model.forecast(panel(), 3).query("unique_id == 's1'")["RBFDiffNet"].iloc[1]
    assert total == pytest.approx(expected, rel=1e-9)
    pd.testing.assert_frame_equal(
        pd.DataFrame(document["equation"]).drop(columns="unique_id"),
        model.fit(panel()).equation(["s1"]).drop(columns="unique_id"),
    )


def test_the_stack_has_members_and_weights_on_what_was_seen(capsys):
    code, out, err = run(capsys, "explain", "--horizon", 2)
    assert (code, err) == (0, "")
    assert "The forecast of 'air_passengers'" in out
    assert re.search(r"member +direct", out)
    assert re.search(r"level +lag 1 ", out)
    assert re.search(r"exemplar \d+: \w+", out)
    code, out, _ = run(capsys, "explain", "--horizon", 2, "--scope", "local")
    assert "nothing nonlinear to learn" in out


def test_exemplars_are_shown_where_they_matter(capsys, tmp_path):
    from rbfdiffnet.datasets import logistic_map

    frame = pd.DataFrame({"t": range(300), "y": logistic_map(300)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    code, out, _ = run(capsys, "explain", tmp_path / "a.csv", "--horizon", 1, "--scope", "local")
    assert code == 0
    assert "Learned operator on the basis functions: " in out
    assert "exemplar " in out
    assert "nearest" in out


def test_which_series(capsys, file):
    assert "Give --id; there are 's0', 's1', 's2'" in fails(capsys, "explain", file, "--horizon", 1)
    message = fails(capsys, "explain", file, "--horizon", 1, "--id", "x")
    assert "no series 'x'; there are" in message
    message = fails(capsys, "explain", file, "--horizon", 1, "--id", "s1", "--step", 2)
    assert "--step 2 is beyond --horizon 1" in message


def test_the_pretrained_network_is_explained_and_reported(capsys, file, tmp_path):
    instant = ("--horizon", 3, "--preset", "instant")
    code, out, err = run(capsys, "explain", file, "--id", "s1", *instant)
    assert (code, err) == (0, "")
    assert "The forecast of 's1'" in out
    assert "lag 1 " in out
    assert re.search(r"exemplar \d+: \w+", out)
    assert "other exemplars" in out
    code, out, _ = run(capsys, "explain", file, "--id", "s1", *instant, "--json", "--quiet")
    total = sum(row["contribution"] for row in json.loads(out)["terms"])
    expected = RBFDiffNet("D", preset="instant").forecast(panel(), 1).query("unique_id == 's1'")
    assert total == pytest.approx(expected["RBFDiffNet"].iloc[0], rel=1e-9)
    report = tmp_path / "report.html"
    code, _, err = run(capsys, "forecast", file, *instant, "--report", report, "--quiet")
    assert (code, err) == (0, "")
    assert "lag 1" in report.read_text(encoding="utf-8")

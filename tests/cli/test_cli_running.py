"""Commands on large panels: what is forecast does not depend on how the work is cut."""

import numpy as np
import pandas as pd
import pytest

from cli_files import run
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.cli import running


@pytest.mark.parametrize("level", [[], ["80"]])
def test_forecasts_do_not_depend_on_parts_or_order(tmp_path, capsys, monkeypatch, level):
    monkeypatch.setattr(running, "_PART", 5)
    rng = np.random.default_rng(0)
    dates = np.tile(pd.date_range("2024-01-01", periods=24), 13)
    df = pd.DataFrame({"unique_id": np.repeat([f"s{i:02d}" for i in range(13)], 24), "ds": dates})
    df["y"] = rng.poisson(20, len(df)).astype(float)
    levels = ["--level", *level] if level else []
    tables = []
    for number, frame in enumerate((df, df[::-1])):
        frame.to_csv(tmp_path / f"{number}.csv", index=False)
        out = tmp_path / f"out{number}.csv"
        command = ["forecast", tmp_path / f"{number}.csv", "--horizon", 3, "--preset", "fast"]
        assert run(capsys, *command, *levels, "--out", out)[0] == 0
        tables.append(pd.read_csv(out, parse_dates=["ds"]))
    in_order = [t.sort_values(["unique_id", "ds"], ignore_index=True) for t in tables]
    pd.testing.assert_frame_equal(*in_order, check_exact=True)
    expected = RBFDiffNet("D", preset="fast").forecast(df, 3, level=[80] if level else None)
    columns = list(expected.columns[2:])
    np.testing.assert_allclose(in_order[0][columns], expected[columns], rtol=1e-9)

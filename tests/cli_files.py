"""Files and calls that the tests of the command line share."""

import numpy as np
import pandas as pd

from rbfdiffnet.cli import main


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fails(capsys, *arguments):
    """Run a command that must fail in the one agreed way, and return its message."""
    code, out, err = run(capsys, *arguments)
    last = err.splitlines()[-1]
    assert code == 2, (out, err)
    assert last.startswith("rbfdiffnet")
    assert "error: " in last
    assert "Traceback" not in err
    return last


def days(n=60, k=0, start="2024-01-01"):
    """A week that repeats, with noise."""
    rng = np.random.default_rng(k)
    y = 20 + 5 * np.sin(2 * np.pi * (np.arange(n) + k) / 7) + rng.normal(size=n)
    return pd.DataFrame({"ds": pd.date_range(start, periods=n), "y": y.round(3)})


def panel(n_series=3, n=60):
    parts = [days(n, k).assign(unique_id=f"s{k}") for k in range(n_series)]
    return pd.concat(parts, ignore_index=True)[["unique_id", "ds", "y"]]

"""Ctrl-C and SIGTERM in every command, at any moment: it ends soon and says what was kept."""

import os
import random
import signal

import pandas as pd
from children import ended, forked
from writes import panel

from rbfdiffnet.cli import main

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def commands(folder):
    """Long runs of every command, and the file that each has to leave as it was."""
    data = folder / "history.csv"
    parts = [
        panel(seed, 400).replace({"unique_id": {"a": f"a{seed}", "b": f"b{seed}"}})
        for seed in range(100)
    ]
    pd.concat(parts).to_csv(data, index=False)
    common = [str(data), "--horizon", "14"]
    out, page = str(folder / "out.csv"), str(folder / "page.html")
    return {
        "forecast": ["forecast", *common, "--out", out, "--report", page],
        "forecast --jobs 2": ["forecast", *common, "--jobs", "2", "--scope", "local", "--out", out],
        "evaluate": ["evaluate", *common, "--rival-seconds", "0", "--out", out],
        "explain": ["explain", *common, "--id", "a0"],
        "reproduce": ["reproduce", "logistic", "--out", str(folder / "runs")],
        "reproduce --jobs 2": ["reproduce", "logistic", "--jobs", "2", "--out", str(folder / "r2")],
    }


def check_stopping(folder, stops, seed):
    """Stop every command so many times by each signal; return the seconds that each end took."""
    random_ = random.Random(seed)
    out, log = folder / "out.csv", folder / "log"
    took = {}
    for name, arguments in commands(folder).items():
        for kind, code in CODES.items():
            for _ in range(stops):
                out.write_text("old")
                process = forked(lambda arguments=arguments: main(arguments), log)
                found, seconds = ended(process, kind, random_.uniform(0.1, 1.5))
                said = log.read_text()
                if found == 0:  # it was done already
                    continue
                took.setdefault(name, []).append(seconds)
                assert found == code, (name, found, said)
                assert "Traceback" not in said, (name, said)
                assert said.count("rbfdiffnet: stopped") == 1, (name, said)
                last = said.splitlines()[-1]
                if str(out) in arguments:
                    assert f"'{out}' is as it was" in last or "is complete" in last, last
                    assert out.read_text() == "old" or "is complete" in last
                if name.startswith("reproduce"):
                    assert "the same command goes on from there" in last, last
                hidden = [file for file in os.listdir(folder) if file.startswith(".")]
                assert not hidden, (name, hidden)
    return took

"""kill -9 while a model, forecasts or a report are written: the old file is there, or the new."""

import io
import itertools
import os
import random
import shutil
import signal
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
from children import ended, forked

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.cli import main
from rbfdiffnet.cli.output import write_frame
from rbfdiffnet.report import write_report


def panel(seed, n=60):
    """Two series of days."""
    y = np.random.default_rng(seed).normal(9.0, 1.0, 2 * n)
    dates = pd.date_range("2024-01-01", periods=n)
    return pd.DataFrame({"unique_id": np.repeat(["a", "b"], n), "ds": [*dates, *dates], "y": y})


def writers(folder):
    """For each kind of file: its name, and what writes two versions of it."""
    histories = [panel(seed) for seed in (0, 1)]
    models = [RBFDiffNet("D", preset="fast", lags=3).fit(df) for df in histories]
    frames = [model.predict(200) for model in models]
    for k, df in enumerate(histories):
        df.to_csv(folder / f"history{k}.csv", index=False)

    def command(path, k, option):
        source = folder / f"history{k}.csv"
        arguments = ["forecast", source, "--horizon", 3, "--preset", "fast", "--quiet"]
        with redirect_stdout(io.StringIO()):
            return main([*map(str, arguments), option, str(path)])

    return {
        "save": ("model.npz", lambda path, k: models[k].save(path)),
        "csv": ("table.csv", lambda path, k: write_frame(str(path), frames[k])),
        "gz": ("table.csv.gz", lambda path, k: write_frame(str(path), frames[k])),
        "parquet": ("table.parquet", lambda path, k: write_frame(str(path), frames[k])),
        "report": ("page.html", lambda path, k: write_report(path, histories[k], frames[k])),
        "--out": ("out.csv", lambda path, k: command(path, k, "--out")),
        "--report": ("out.html", lambda path, k: command(path, k, "--report")),
    }


def check_writes(folder, kills, seed):
    """Kill writers so many times each; return how many moments there were, and left temporaries."""
    random_ = random.Random(seed)
    moments, left = 0, 0
    for kind, (name, write) in writers(folder).items():
        place = folder / f"{kind.strip('-')}-files"
        place.mkdir()
        path = place / name
        versions = []
        for k in (0, 1):
            write(path, k)
            versions.append(_content(path))
        whole = kind.startswith("--")
        for _ in range(kills):

            def work(path=path, write=write):
                for k in itertools.cycle((0, 1)):
                    write(path, k)

            process = forked(work, folder / "log")
            code, _ = ended(process, signal.SIGKILL, random_.uniform(0.0, 1.0 if whole else 0.1))
            assert code == -signal.SIGKILL, (folder / "log").read_text()
            assert _content(path) in versions, f"{path} is neither the old nor the new file"
            moments += 1
            left += len(os.listdir(place)) - 1
        if kind == "save":
            RBFDiffNet.load(path).predict(3)
        write(path, 0)
        assert os.listdir(place) == [name], "temporaries are left"
        shutil.rmtree(place)
    return moments, left


def _content(path):
    """The bytes of a file; of a packed one what is in it, which has the time in its header."""
    return pd.read_csv(path).to_csv() if path.suffix == ".gz" else path.read_bytes()

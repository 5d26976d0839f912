"""kill -9 while ``rbfdiffnet reproduce`` runs: it goes on, and what was finished stays."""

import functools
import json
import os
import random
import shutil
import signal

from children import ended, finished, forked

from rbfdiffnet.cli import main
from rbfdiffnet.experiments import logistic, results

LOG = "computed.txt"


def small(folder):
    """Make the experiment small, and keep a list of the parts that are computed."""
    real = logistic.run_cell

    def run_cell(*arguments):
        with open(folder / LOG, "a") as file:
            file.write(json.dumps(arguments) + "\n")
        return real(*arguments)

    logistic.run_cell = run_cell
    logistic.logistic_tasks = functools.partial(
        logistic.logistic_tasks, noise_levels=(0.0, 0.08), lags=(1, 2)
    )
    results.noise_evidence = lambda n_seeds: f"1. Not shown, of {n_seeds} seeds"
    logistic.LOGISTIC_MODELS.pop("RBF-DiffNet+")  # which takes seconds


def check_resuming(folder, kills, seed):
    """Kill runs so many times in all; return how many parts were kept through a kill."""
    small(folder)
    expected = _finish(folder)
    random_ = random.Random(seed)
    kept = done = 0
    while done < kills:
        known = {}
        for _ in range(random_.randint(1, 6)):
            (folder / LOG).unlink(missing_ok=True)
            process = forked(lambda: _run(folder), folder / "log")
            ended(process, signal.SIGKILL, random_.uniform(0.0, 0.5))
            done += 1
            _check_kept(folder, known)
            known = _records(folder)
            kept += len(known)
        (folder / LOG).unlink(missing_ok=True)
        assert _finish(folder) == expected
        _check_kept(folder, known)
        names = sorted(os.listdir(folder / "out"))
        wanted = ["logistic.csv", "logistic_evidence.jsonl", "logistic_runs.jsonl", "report.html"]
        assert names == wanted, names
        shutil.rmtree(folder / "out")
    return done, kept


def _run(folder):
    return main(["reproduce", "logistic", "--seeds", "1", "--out", str(folder / "out")])


def _finish(folder):
    """Run to the end and return the table."""
    assert finished(forked(lambda: _run(folder), folder / "log")) == 0
    return sorted((folder / "out" / "logistic.csv").read_text().splitlines())


def _records(folder):
    """The lines that are whole, by their keys."""
    path = folder / "out" / "logistic_runs.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return {json.loads(line)["key"]: line for line in lines if '"key"' in line}


def _check_kept(folder, known):
    """What was known is as it was, and was not computed again."""
    now = _records(folder)
    assert known.items() <= now.items()
    log = folder / LOG
    again = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    names = {(r["omega"], r["lag"], r["model"], r["seed"]) for r in map(json.loads, known.values())}
    assert not names & set(map(tuple, again)), "finished parts were computed again"

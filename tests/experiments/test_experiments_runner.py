import io
import json
import os

import numpy as np
import pytest

from rbfdiffnet.experiments.runner import Task, read_results, run_tasks


def count_call(folder, n, _array=None):
    with open(os.path.join(folder, "calls"), "a", encoding="utf-8") as file:
        file.write(f"{n}\n")
    return {"n": n}


def fail_at(folder, n, bad):
    if n == bad:
        raise KeyboardInterrupt
    return count_call(folder, n)


def calls(folder):
    return (folder / "calls").read_text().split()


def tasks_in(folder, n_tasks=6):
    return [Task(f"task {n}", "count", count_call, (str(folder), n)) for n in range(n_tasks)]


def run(tasks, folder, stream=None, belongs_to=None, **options):
    return list(
        run_tasks(
            tasks,
            folder / "runs.jsonl",
            belongs_to=belongs_to or {"version": "1"},
            stream=stream or io.StringIO(),
            **options,
        )
    )


def test_runs_everything_once_and_keeps_it(tmp_path):
    tasks = tasks_in(tmp_path)
    first = run(tasks, tmp_path)
    assert [record["n"] for record in first] == list(range(6))
    assert run(tasks, tmp_path) == first == read_results(tmp_path / "runs.jsonl")
    assert calls(tmp_path) == list("012345")


def test_resumes_after_an_interruption(tmp_path):
    broken = [Task(f"task {n}", "count", fail_at, (str(tmp_path), n, 3)) for n in range(6)]
    with pytest.raises(KeyboardInterrupt):
        run(broken, tmp_path)
    assert len(read_results(tmp_path / "runs.jsonl")) == 3
    said = io.StringIO()
    records = run(tasks_in(tmp_path), tmp_path, stream=said)
    assert sorted(record["n"] for record in records) == list(range(6))
    assert calls(tmp_path) == list("012345")
    assert "3 of 6 results are in" in said.getvalue()


def test_a_line_cut_off_is_run_again(tmp_path):
    tasks = tasks_in(tmp_path, 3)
    run(tasks, tmp_path)
    path = tmp_path / "runs.jsonl"
    path.write_text(path.read_text()[:-4])
    assert len(run(tasks, tmp_path)) == 3
    assert calls(tmp_path) == list("0122")
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_results_of_something_else_are_put_aside(tmp_path):
    tasks = tasks_in(tmp_path, 2)
    run(tasks, tmp_path)
    said = io.StringIO()
    run(tasks[:1], tmp_path, stream=said, belongs_to={"version": "2"})
    path = tmp_path / "runs.jsonl"
    assert said.getvalue().startswith(
        f"the results in {path} are of version 1, this run is of version 2: they are set aside as "
        "runs.jsonl.old1"
    )
    assert len(read_results(path)) == len(read_results(path, version="2")) == 1
    assert read_results(path, version="1") == []
    path_without_header = path.read_text().splitlines()[1] + "\n"
    path.write_text(path_without_header)
    run(tasks, tmp_path, stream=said)
    assert "are of unknown origin" in said.getvalue()
    assert calls(tmp_path) == list("01001")
    assert len(read_results(tmp_path / "runs.jsonl.old1")) == 2
    assert (tmp_path / "runs.jsonl.old2").read_text() == path_without_header


def test_processes_give_the_same(tmp_path):
    # Arrays among the arguments: tasks must not be compared.
    tasks = [
        Task(f"task {n}", "count", count_call, (str(tmp_path), n, np.arange(3))) for n in range(6)
    ]
    records = run(tasks, tmp_path, n_jobs=2)
    assert sorted(record["n"] for record in records) == list(range(6))
    assert sorted(calls(tmp_path)) == list("012345")


def test_results_come_as_they_are_ready(tmp_path):
    results = run_tasks(
        tasks_in(tmp_path), tmp_path / "runs.jsonl", belongs_to={}, stream=io.StringIO()
    )
    assert next(results)["n"] == 0
    assert calls(tmp_path) == ["0"]
    assert len(read_results(tmp_path / "runs.jsonl")) == 1


def test_progress(tmp_path):
    log = io.StringIO()
    run(tasks_in(tmp_path), tmp_path, stream=log)
    assert log.getvalue().splitlines()[-1] == "count  6 of 6 tasks  100 %  0 s left"
    log = io.StringIO()
    run(tasks_in(tmp_path / "none", 0), tmp_path, stream=log)
    assert log.getvalue() == ""

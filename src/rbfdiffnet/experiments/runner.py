"""Run many independent tasks, keep every result as soon as it is there, and resume.

Results go to a file of JSON lines: the first says what they belong to, every other one is a
result. A task whose key is in the file is not run again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import Any, TextIO

from rbfdiffnet.support.files import replace_file
from rbfdiffnet.support.progress import ProgressLine

Record = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A function to call with arguments, both of which can be sent to another process.

    The result, a dict of what JSON can hold, is kept under ``key``, which is unique. Tasks of one
    ``kind`` take about the same time.
    """

    key: str
    kind: str
    function: Callable[..., Record]
    arguments: tuple[Any, ...]


def run_tasks(
    tasks: Sequence[Task],
    path: Path,
    *,
    belongs_to: Record,
    n_jobs: int = 1,
    stream: TextIO | None = None,
) -> Iterator[Record]:
    """Yield the result of every task: first those known from before, then new ones as they end.

    Every task gets one thread, so times compare. ``path`` is the file of results, ``belongs_to``
    what they depend on besides the tasks, such as the version and the data. If the file belongs to
    something else, the stream says so, and the file is renamed to end in .old1, .old2, ...
    """
    stream = stream or sys.stderr
    known = _read_known(path, belongs_to, partial(print, file=stream, flush=True))
    done = [known[task.key] for task in tasks if task.key in known]
    todo = {task.key: task for task in tasks if task.key not in known}
    if done:
        print(f"{len(done)} of {len(tasks)} results are in {path} already", file=stream, flush=True)
    yield from done
    if not todo:
        return
    seconds_of: dict[str, list[float]] = {}
    with (
        path.open("a", encoding="utf-8") as file,
        ProgressLine(stream=stream, log_every=10.0) as progress,
        _call_all(list(todo.values()), n_jobs) as calls,
    ):
        for record, seconds in calls:
            file.write(json.dumps(record) + "\n")
            file.flush()
            kind = todo.pop(record["key"]).kind
            progress.clear()  # whoever gets the record may print
            yield record
            seconds_of.setdefault(kind, []).append(seconds)
            left = _estimate_seconds(seconds_of, [task.kind for task in todo.values()]) / n_jobs
            progress.update(kind, len(tasks) - len(todo), len(tasks), "tasks", left)


def read_results(path: Path, **belongs_to: Any) -> list[Record]:
    """Read the results in a file; none if there is no such file or if they belong elsewhere."""
    _, records = _read(path)
    owner = records[0].get("belongs_to", {}) if records else {}
    if not belongs_to.items() <= owner.items():
        return []
    return [record for record in records if "key" in record]


def _read(path: Path) -> tuple[list[str], list[Record]]:
    """Read the lines of the file, and those of them that are whole as records."""
    # Bytes that were never written become escapes that JSON does not know.
    text = path.read_text(encoding="ascii", errors="backslashreplace") if path.exists() else ""
    lines = text.split("\n")
    lines = lines if lines[-1] else lines[:-1]
    whole = lines if text.endswith("\n") else lines[:-1]
    return lines, [record for record in map(_parse, whole) if record is not None]


def _read_known(path: Path, belongs_to: Record, say: Callable[[str], None]) -> dict[str, Record]:
    """Read the results kept, leaving out a line that was cut off; begin the file if need be."""
    lines, records = _read(path)
    if records and records[0] == {"belongs_to": belongs_to}:
        if len(records) < len(lines):
            _write_records(path, records)
        return {record["key"]: record for record in records[1:]}
    if lines:
        names = (path.with_name(f"{path.name}.old{number}") for number in count(1))
        aside = next(name for name in names if not name.exists())
        path.replace(aside)
        owner = records[0].get("belongs_to", {}) if records else {}
        say(
            f"the results in {path} are of {_describe(owner)}, this run is of "
            f"{_describe(belongs_to)}: they are set aside as {aside.name}, and all is run anew"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_records(path, [{"belongs_to": belongs_to}])
    return {}


def _describe(owner: Record) -> str:
    return ", ".join(f"{key} {value}" for key, value in owner.items()) or "unknown origin"


def _parse(line: str) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    good = isinstance(record, dict) and bool({"key", "belongs_to"} & record.keys())
    return record if good else None


def _write_records(path: Path, records: list[Record]) -> None:
    text = "".join(json.dumps(record) + "\n" for record in records)
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _call(task: Task) -> tuple[Record, float]:
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    with threadpool_limits(1):
        result = task.function(*task.arguments)
    return {"key": task.key, **result}, time.perf_counter() - start


@contextmanager
def _call_all(tasks: list[Task], n_jobs: int) -> Iterator[Iterator[tuple[Record, float]]]:
    """Call the tasks, in this process or in several, and give the results as they come."""
    if n_jobs == 1:
        yield map(_call, tasks)
        return
    before = set(active_children())
    pool = ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn"), initializer=_start_worker)
    try:
        futures = [pool.submit(_call, task) for task in tasks]
        yield (future.result() for future in as_completed(futures))
    except BaseException:  # none of the results that are still to come is wanted
        for worker in set(active_children()) - before:
            worker.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_worker() -> None:
    """Leave Ctrl-C to the process that waits for the results, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _estimate_seconds(seconds_of: dict[str, list[float]], kinds: list[str]) -> float:
    """Estimate how long tasks of these kinds take, one after the other, from what others took."""
    means = {kind: sum(times) / len(times) for kind, times in seconds_of.items()}
    overall = sum(means.values()) / len(means)
    return sum(means.get(kind, overall) for kind in kinds)

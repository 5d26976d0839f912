"""Print the table of README.md from results on record: errors, seconds, size of installs.

``python benchmarks/readme.py`` reads ``benchmarks/results``: errors are those of accuracy.py,
seconds those of speed.py. ``--sizes`` first adds up the files of each package and of what it
needs, as they are installed here, and writes them down.
"""

from __future__ import annotations

import argparse
import csv
import math
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

RESULTS = Path(__file__).parent / "results"
ONE_SIDED = "taylor_elec"  # half-hourly demand: the others were not told of its week
JOBS = {"one": "1 series of 144 months", "months": "366 of 300 months", "days": "5,000 of 400 days"}

#: Label, name in the table of errors, name in the tables of seconds, packages to install.
METHODS = [
    ("**rbfdiffnet**", "ours, stack", "ours, default", ["rbfdiffnet"]),
    ("AutoETS", "AutoETS", "AutoETS", ["statsforecast"]),
    ("AutoTheta", "AutoTheta", "AutoTheta", ["statsforecast"]),
    ("AutoARIMA", "AutoARIMA", "AutoARIMA", ["statsforecast"]),
    ("LightGBM", "LightGBM", "LightGBM (mlforecast)", ["mlforecast", "lightgbm"]),
    ("last season, repeated", "seasonal naive", "SeasonalNaive", ["statsforecast"]),
]


def read(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def needed(package: str, found: set[str]) -> set[str]:
    """Add a package and all that it needs, by their names."""
    name = metadata.distribution(package).name
    if name not in found:
        found.add(name)
        for text in metadata.requires(package) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed(requirement.name, found)
    return found


def size_of(package: str) -> float:
    """Megabytes of the files of one package; of an editable one, of its source."""
    files = [file.locate() for file in metadata.files(package) or []]
    if package == "rbfdiffnet":
        import rbfdiffnet

        files = list(Path(rbfdiffnet.__file__).parent.rglob("*"))
    kept = (path for path in map(Path, files) if path.suffix != ".pyc" and path.is_file())
    return sum(path.stat().st_size for path in kept) / 1e6


def write_sizes() -> None:
    with (RESULTS / "installs.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["packages", "count", "megabytes"])
        for packages in dict.fromkeys(tuple(wanted) for *_, wanted in METHODS):
            found: set[str] = set()
            for package in packages:
                needed(package, found)
            writer.writerow([" + ".join(packages), len(found), round(sum(map(size_of, found)))])


def in_words(row: dict[str, str]) -> str:
    """Return seconds with two digits; a star where they were scaled up from some of the series."""
    time = float(row["seconds"])
    star = "*" if "scaled" in row["note"] else ""
    return (f"{time:,.0f} s" if time >= 10 else f"{time:#.2g} s") + star


def table() -> list[str]:
    """Return the lines of the table."""
    scores: dict[str, dict[str, float]] = {}
    for row in read("accuracy.csv"):
        if row["window"] == "published" and row["data"] != ONE_SIDED:
            scores.setdefault(row["method"], {})[row["data"]] = float(row["score"])
    ours = scores["ours, stack"]
    seconds = {
        job: {row["contender"]: in_words(row) for row in read(f"speed_peers_{job}.csv")}
        for job in JOBS
    }
    sizes = {row["packages"]: f"{row['megabytes']} MB" for row in read("installs.csv")}
    lines = [f"| | error | sets where it beats us | {' | '.join(JOBS.values())} | installed |"]
    lines.append("|---" * (len(JOBS) + 4) + "|")
    for label, score, contender, packages in METHODS:
        theirs = scores[score]
        ratios = [theirs[data] / ours[data] for data in theirs]
        error = math.exp(sum(map(math.log, ratios)) / len(ratios))
        won = f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)}"
        cells = [
            label,
            f"{error:.2f}",
            "" if theirs is ours else won,
            *(seconds[job].get(contender, "") for job in JOBS),
            sizes[" + ".join(packages)],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", action="store_true", help="measure the installs here")
    if parser.parse_args().sizes:
        write_sizes()
    print(*table(), sep="\n")


if __name__ == "__main__":
    main()

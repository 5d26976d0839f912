"""Print the oldest supported versions of other packages: the lower bounds of pyproject.toml."""

import tomllib
from pathlib import Path

EXTRAS = ("plot", "calendar", "fast", "parquet", "test")

project = tomllib.loads(Path(__file__).parent.with_name("pyproject.toml").read_text("utf-8"))[
    "project"
]
bounds = [*project["dependencies"]]
for extra in EXTRAS:
    bounds += project["optional-dependencies"][extra]
print(*(bound.replace(">=", "==") for bound in bounds if not bound.startswith("rbfdiffnet[")))

"""The pictures that the scripts in ``examples/`` draw, and what they print."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from style import HERE

SCRIPTS = ("retail_demand", "noisy_sensor", "explained_forecast")


def main() -> None:
    root = HERE.parent.parent
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "matplotlibrc"
        settings.write_text("svg.hashsalt: rbfdiffnet\nbackend: Agg\n")
        # With these the same picture gives the same file.
        fixed = {"MATPLOTLIBRC": str(settings), "SOURCE_DATE_EPOCH": "0"}
        for name in SCRIPTS:
            command = [sys.executable, f"examples/{name}.py", str(HERE / f"{name}.svg")]
            print("+", f"python examples/{name}.py")
            subprocess.run(command, cwd=root, env={**os.environ, **fixed}, check=True)


if __name__ == "__main__":
    main()

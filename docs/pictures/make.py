"""Draw all pictures of the site: ``python docs/pictures/make.py``, or some, by their names."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
LARGEST = 100_000  # bytes

sys.path.insert(0, str(HERE))
wanted = sys.argv[1:] or sorted(
    p.stem for p in HERE.glob("*.py") if p.stem not in ("make", "style")
)
for name in wanted:
    runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
for picture in sorted([*HERE.glob("*.svg"), *HERE.glob("*.png")]):
    size = picture.stat().st_size
    print(f"{picture.name:24} {size / 1000:6.1f} kB{'  too large' if size > LARGEST else ''}")

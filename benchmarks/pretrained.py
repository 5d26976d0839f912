"""The pretrained network beside others: ``python benchmarks/pretrained.py linear.npz mlp.npz``.

Each file has weights that ``python -m rbfdiffnet.pretrained.train --network NAME`` wrote; without
one, those in the package count. Printed are mean MASE of every network on the sets of the suite
(see `accuracy.py`), and the geometric mean of their ratios to the first file.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared_parts.threads import one_thread


def main(arguments: Sequence[str] | None = None) -> None:
    one_thread()  # before NumPy is imported
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("weights", nargs="*", type=Path)
    parser.add_argument("--suite", type=Path, help="folder with the suite's series")
    options = parser.parse_args(arguments)
    from functools import partial

    import numpy as np
    import pandas as pd

    from accuracy_parts.data import SUITE, data_sets, folder
    from accuracy_parts.runner import measure
    from rbfdiffnet.pretrained.network import load_weights, read_weights

    networks = {path.stem: read_weights(path) for path in options.weights}
    networks = networks or {"in the package": load_weights()}
    sets = data_sets(folder(options.suite, "suite"), Path())
    rows = {
        name: {
            label: measure(partial(medians, weights), sets[name], window)["score"]
            for label, weights in networks.items()
        }
        for name in SUITE
        for window in [sets[name].windows["published"]()]
    }
    table = pd.DataFrame(rows).T
    ratios = table.div(table.iloc[:, 0], axis=0)
    print(table.round(3).to_string())
    print("\ngeometric mean of the ratios to the first")
    print(np.exp(np.log(ratios).mean()).round(4).to_string())


def medians(weights: Any, train: Any, h: int, season: int, *_: Any) -> Any:
    """Forecasts of a frame whose dates are numbers."""
    import numpy as np
    import pandas as pd

    from rbfdiffnet.pretrained.network import forecast

    groups = train.groupby("unique_id")
    series = [y.to_numpy(dtype=float) for _, y in groups["y"]]
    found = forecast(series, h, season, weights=weights).median
    never_negative = np.array([[y.min() >= 0.0] for y in series])
    found = np.where(never_negative, np.maximum(found, 0.0), found)
    ends = groups["ds"].max()
    return pd.DataFrame(
        {
            "unique_id": np.repeat(ends.index.to_numpy(), h),
            "ds": (ends.to_numpy()[:, None] + np.arange(1, h + 1)).ravel(),
            "forecast": found.ravel(),
        }
    )


if __name__ == "__main__":
    main()

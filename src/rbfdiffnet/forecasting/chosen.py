"""What was chosen for each series: the frame behind ``RBFDiffNet.chosen_``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rbfdiffnet.series.transforms import Difference

if TYPE_CHECKING:
    from rbfdiffnet.models.series_model import SeriesModel
    from rbfdiffnet.models.stack.model import Mixture
    from rbfdiffnet.panel.panel import Panel

__all__ = ["chosen_networks", "chosen_weights"]


def chosen_networks(panel: Panel, models: Sequence[SeriesModel | None]) -> Any:
    """Return a row of settings for every series that has a network.

    Examples
    --------
    >>> from rbfdiffnet import RBFDiffNet
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> model = RBFDiffNet("MS", preset="fast").fit(load_air_passengers())
    >>> model.chosen_.iloc[0].to_dict()["differences"]
    '12'
    """
    own = {i: model for i, model in enumerate(models) if model is not None}
    networks = [model.windows.network for model in own.values()]
    return panel.make_table(
        np.array(list(own), dtype=np.int64),
        {
            "season_length": [model.preparation.season_length for model in own.values()],
            "logarithms": [model.preparation.log for model in own.values()],
            "differences": [_differences(model) for model in own.values()],
            "lags": [_ranges(model.windows.lags) for model in own.values()],
            "level": [model.windows.level for model in own.values()],
            "order": [network.order for network in networks],
            "n_centers": [len(network.centers) for network in networks],
        },
    )


def chosen_weights(panel: Panel, mixture: Mixture, season_length: int) -> Any:
    """Return a row of weights of the members for every series.

    Examples
    --------
    >>> from rbfdiffnet import RBFDiffNet
    >>> from rbfdiffnet.datasets import load_air_passengers
    >>> model = RBFDiffNet("MS").fit(load_air_passengers())
    >>> _ = model.predict(12)
    >>> list(model.chosen_)[:4]
    ['unique_id', 'season_length', 'direct', 'direct, log']
    """
    n = panel.n_series
    table = {"season_length": [season_length] * n}
    weights = {name: own.tolist() for name, own in mixture.weights.items()}
    return panel.make_table(np.arange(n), table | weights)


def _differences(model: SeriesModel) -> str:
    """Lags of the differences taken, such as ``12, 1``."""
    steps = model.preparation.steps.steps
    return ", ".join(str(step.lag) for step in steps if isinstance(step, Difference))


def _ranges(lags: Sequence[int]) -> str:
    """Lags in short, such as ``1-14, 28``.

    Examples
    --------
    >>> from rbfdiffnet.forecasting.chosen import _ranges
    >>> _ranges((1, 2, 3, 12))
    '1-3, 12'
    """
    breaks = [k for k in range(1, len(lags)) if lags[k] != lags[k - 1] + 1]
    runs = zip([0, *breaks], [*breaks, len(lags)], strict=True)
    ends = [(lags[first], lags[last - 1]) for first, last in runs]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ends)

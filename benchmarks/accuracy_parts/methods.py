"""Every method by name.

A method takes a training frame, how many steps to forecast, the season's length, the frequency, and
the inputs of the steps ahead or None. It returns a frame ``unique_id, ds, forecast``, in which
series may be missing that it cannot forecast.
"""

from __future__ import annotations

from functools import partial

from accuracy_parts import learners, single
from accuracy_parts.ablation import ABLATIONS
from accuracy_parts.ours import ours
from accuracy_parts.single import Method

RIVALS: dict[str, Method] = {
    "seasonal naive": single.seasonal_naive,
    "SES": partial(single.statistical, "SimpleExponentialSmoothingOptimized"),
    "CrostonOptimized": partial(single.statistical, "CrostonOptimized"),
    "AutoTheta": partial(single.statistical, "AutoTheta"),
    "AutoETS": partial(single.statistical, "AutoETS"),
    "linear regression": learners.linear_regression,
    "LightGBM": learners.lightgbm,
    "AutoARIMA": partial(single.statistical, "AutoARIMA"),
}
METHODS: dict[str, Method] = {
    **RIVALS,
    "ours, instant": partial(ours, preset="instant"),
    "ours": partial(ours, scope="local"),
    "ours, global": partial(ours, scope="global"),
    "ours, stack": partial(ours, scope="auto"),
    "ours, best": partial(ours, scope="auto", preset="best"),
    **ABLATIONS,
}

"""The paper's figures, drawn with matplotlib and returned as data URIs of SVG images."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rbfdiffnet.datasets import logistic_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COLORS = {
    "RBF-DiffNet": "#d1495b",
    "RBF-DiffNet+": "#7b2d8b",
    "u-RBFN": "#2e86ab",
    "n-RBFN": "#3a9d5d",
    "ARIMA": "#e3a008",
    "ARIMA-nonseasonal": "#b9770e",
    "MLP": "#6b7280",
    "LSTM": "#0f766e",
}
_ACTUAL = "#111827"


def draw_map() -> str:
    """Draw the first 200 values of the logistic map."""
    axes = _make_axes(9.0, 2.4)
    axes.plot(np.arange(1, 201), logistic_map(200), color=_ACTUAL, linewidth=0.8)
    axes.set_xlabel("t")
    axes.set_ylabel("s")
    return _image(axes)


def draw_predictions(actual: npt.ArrayLike, predictions: Mapping[str, npt.ArrayLike]) -> str:
    """Draw the test values of the logistic map and the predictions, a panel for each model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 1.1 * len(predictions) + 0.3), layout="constrained")
    panels = figure.subplots(len(predictions), sharex=True, sharey=True, squeeze=False)[:, 0]
    steps = np.arange(1, np.size(np.asarray(actual)) + 1)
    for axes, (model, values) in zip(panels, predictions.items(), strict=True):
        axes.plot(steps, np.asarray(actual), color=_ACTUAL, linewidth=0.7)
        axes.plot(steps, np.asarray(values), color=COLORS.get(model), linewidth=0.9)
        axes.set_ylabel(model, fontsize=7, color=COLORS.get(model))
        _style_axes(axes)
    panels[-1].set_xlabel("test value", fontsize=7)
    figure.supylabel("s", fontsize=7)
    return _image(panels[0])


def draw_forecasts(actual: npt.ArrayLike, forecasts: Mapping[str, npt.ArrayLike]) -> str:
    """Draw the test days of a series and every model's forecast."""
    axes = _make_axes(9.0, 2.6)
    days = np.arange(1, np.size(np.asarray(actual)) + 1)
    axes.plot(days, np.asarray(actual), color=_ACTUAL, linewidth=1.8, label="sales")
    for model, values in forecasts.items():
        axes.plot(days, np.asarray(values), color=COLORS.get(model), linewidth=1.0, label=model)
    axes.set_xlabel("test day", fontsize=7)
    axes.set_ylabel("unit sales", fontsize=7)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=7)
    return _image(axes)


def _make_axes(width: float, height: float) -> Axes:
    from matplotlib.figure import Figure

    axes = Figure(figsize=(width, height), layout="constrained").subplots()
    _style_axes(axes)
    return axes


def _style_axes(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    axes.tick_params(labelsize=7)


def _image(axes: Axes) -> str:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    stream, figure = io.BytesIO(), axes.figure
    assert isinstance(figure, Figure)  # the axes were made with one
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "rbfdiffnet"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode("ascii")

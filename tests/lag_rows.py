"""Lag matrices made step by step, to compare what other libraries do with the regressors."""

import numpy as np

from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor

#: Both regressors, small, by name.
REGRESSORS = {
    "RBFDiffNetRegressor": RBFDiffNetRegressor(n_centers=5),
    "RBFNetworkRegressor": RBFNetworkRegressor(n_centers=5, width_factor=4.0),
}


def lag_rows(y, lags, inputs=None, ahead=1, offset=0):
    """Rows of the given lags, after the inputs of the step, and the ``ahead`` values that follow.

    With an offset the inputs and the values are those of later steps.
    """
    X, targets = [], []
    for t in range(max(lags), len(y) - offset - ahead + 1):
        known = [] if inputs is None else list(inputs[t + offset])
        X.append([*known, *(y[t - lag] for lag in lags)])
        targets.append(y[t + offset : t + offset + ahead])
    return np.array(X), np.array(targets)


def roll_out(model, y, lags, h, inputs=None):
    """Forecast h steps, each from the values and forecasts before it."""
    path = list(y)
    for step in range(h):
        known = [] if inputs is None else list(inputs[step])
        row = [*known, *(path[-lag] for lag in lags)]
        path.append(model.predict(np.array([row])).item())
    return np.array(path[len(y) :])

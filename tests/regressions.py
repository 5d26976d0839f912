"""Regressors and how well they predict, shared by their tests."""

from rbfdiffnet import RBFDiffNetRegressor, RBFNetworkRegressor

VARIANTS = [
    RBFDiffNetRegressor(),
    RBFDiffNetRegressor.paper(order=2),
    RBFDiffNetRegressor(order=2, solver="als", centers="som", loss="absolute"),
    RBFDiffNetRegressor(solver="bfgs", centers="forward", width="nearest"),
    RBFNetworkRegressor(),
    RBFNetworkRegressor(normalize=True),
    RBFNetworkRegressor(penalty="lasso"),
]
QUICK = {"width_factor": 2.0, "metric": "standard", "alpha": 1e-3}


def r2(model, X, y, n=200):
    return model.fit(X[:n], y[:n]).score(X[n:], y[n:])

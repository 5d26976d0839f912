"""Series that follow a nonlinear rule of their own, such as chaotic ones, forecast by that rule.

Few series do, and learning the rule takes a while. So three looks follow one another, each longer
than the one before: does a nonlinear map continue the series better than a linear one
(`noise.nonlinear`); do a few quick maps come close to the pretrained network on the last part of
the series; and does what `noise.series_model` learns, which also takes out noise, stay clearly
closer there? Such a series is forecast by it alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.stack.windows import PreparedPanel
from rbfdiffnet.noise.cleaning import quarter_period
from rbfdiffnet.noise.committee import (
    horizon_of,
    mean_error,
    origins_of,
    quick_error,
    values_ahead,
)
from rbfdiffnet.noise.nonlinear import nonlinear_error
from rbfdiffnet.noise.series_model import MOST_VALUES, SeriesModel, learn_series, past_of
from rbfdiffnet.pretrained.network import forecast
from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.series.series import find_sparse
from rbfdiffnet.series.windows import cut_windows
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.parallel import parallel_map

OWN_MAP = "own map"

_NONLINEAR, _ANY = 0.8, 0.95  # error of nonlinear maps over that of linear ones; thorough plans
_HOPEFUL = 1.2  # error of quick maps over that of the pretrained network
_BETTER = 0.85  # the same of what is learned
_LOOKED_AT = 32  # series of a large panel
_ENOUGH = 0.25  # share of these that are nonlinear
_FEWEST_KNOWN = 0.8  # share of the values
_WEEK = 7
_FAILURES = (ArithmeticError, ValueError, np.linalg.LinAlgError)  # of a series, not of the panel
_LINEAR_LAGS = 16
_RIDGE = 1e-3


def seeks_maps(prepared: PreparedPanel, plan: Plan) -> bool:
    """Tell whether the series of a panel are to be looked at one by one.

    Series with a season are, if the plan is thorough, and those of a hierarchy never: forecasts
    that are made to add up would leave the rules. Of a large panel some series are looked at
    first, the same ones in whatever order they come.
    """
    if plan.adds_up or not prepared.ready:
        return False
    if plan.thorough:
        return True
    if plan.season_length > 1:
        return False
    if len(prepared.ready) <= _LOOKED_AT:
        return True
    some = list(prepared.ready)[:_LOOKED_AT]
    found = [_is_nonlinear(_values(prepared, i), plan) for i in some]
    return sum(found) >= _ENOUGH * len(some)


def find_own_maps(prepared: PreparedPanel, plan: Plan, n_jobs: int) -> dict[int, SeriesModel]:
    """Return what was learned of the series that follow a rule of their own, by position."""

    def find(i: int) -> SeriesModel | None:
        with np.errstate(all="ignore"):  # in this thread
            return _find(_values(prepared, i), plan)

    found = parallel_map(find, list(prepared.ready), n_jobs)
    return {i: own for i, own in zip(prepared.ready, found, strict=True) if own is not None}


def forecast_own(model: SeriesModel, h: int, probabilities: Sequence[float]) -> Array:
    """Return quantiles (h, P) of observations, which have noise; .5 is the forecast."""
    levels = np.array([0.5, *probabilities])
    middle, *quantiles = model.forecast(None, h, levels)[:, 0].T
    away = np.array(quantiles).reshape(-1, h).T - middle[:, None]
    noise = model.noise[0] * ndtri(np.clip(levels[1:], 1e-12, 1.0 - 1e-12))
    return np.asarray(middle[:, None] + np.sign(noise + away) * np.hypot(away, noise))


def _values(prepared: PreparedPanel, i: int) -> Array:
    """Return the latest values of a series without effects of inputs, NaN where missing."""
    series, ready = prepared.panel[i], prepared.ready[i]
    u = ready.preparation.without_effects(series.y, series.known_ahead)
    u = np.where(ready.is_outlier, np.nan, u)
    return u[np.argmax(np.isfinite(u)) :][-MOST_VALUES:]


def _is_nonlinear(u: Array, plan: Plan) -> bool:
    known = np.isfinite(u)
    if known.mean() < _FEWEST_KNOWN or find_sparse([u])[0]:
        return False
    season = plan.season_length
    seasons = [season, plan.longer_season or _WEEK * season] if season > 1 else []
    try:
        error = nonlinear_error(fill_missing(u), seasons)
    except _FAILURES:
        return False
    return error < (_ANY if plan.thorough else _NONLINEAR)


def _find(u: Array, plan: Plan) -> SeriesModel | None:
    """Return what was learned of a series (T,), or None where it has no rule, or cannot tell it.

    Its latest values must be known: what they are filled with says nothing of where it goes.
    """
    try:
        model = _learn_if_better(u, plan) if _is_nonlinear(u, plan) else None
    except _FAILURES:
        return None
    if model is None or not np.isfinite(u[-model.committee.reach :]).all():
        return None
    return model


def _learn_if_better(u: Array, plan: Plan) -> SeriesModel | None:
    filled = fill_missing(u)
    quarter = quarter_period(filled)
    rival = min(_pretrained_error(filled, u, quarter, plan), _linear_error(filled, u, quarter))
    s, origins = filled[:, None], origins_of(u.size, quarter)
    if quick_error(s, past_of(s, origins, quarter), origins, quarter) > _HOPEFUL * rival:
        return None
    model = learn_series(u[:, None])
    return model if model.error < _BETTER * rival else None


def _pretrained_error(filled: Array, u: Array, quarter: int, plan: Plan) -> float:
    """Return the error of the pretrained network where maps are compared."""
    origins, h = origins_of(u.size, quarter), horizon_of(u.size, quarter)
    pasts, season, longer = [filled[:o] for o in origins], plan.season_length, plan.longer_season
    paths = forecast(pasts, h, season, longer=longer, device="cpu", n_jobs=1).median
    return _error(paths, u, quarter)


def _linear_error(filled: Array, u: Array, quarter: int) -> float:
    """Return the error of a linear map of the latest values, which feeds its forecasts back."""
    origins, h = origins_of(u.size, quarter), horizon_of(u.size, quarter)
    shift, scale = float(filled.mean()), float(filled.std())
    z = (filled - shift) / scale
    rows = cut_windows(z[: origins[0]], _LINEAR_LAGS + 1)
    X, y = rows[:, :-1], rows[:, -1]
    gram = X.T @ X + _RIDGE * len(X) * np.eye(_LINEAR_LAGS)
    weights = np.linalg.solve(gram, X.T @ y)
    path = np.empty((origins.size, _LINEAR_LAGS + h))
    path[:, :_LINEAR_LAGS] = z[origins[:, None] - np.arange(_LINEAR_LAGS, 0, -1)]
    for k in range(h):
        ahead = path[:, k : k + _LINEAR_LAGS] @ weights
        path[:, k + _LINEAR_LAGS] = np.clip(ahead, z.min(), z.max())
    return _error(path[:, _LINEAR_LAGS:] * scale + shift, u, quarter)


def _error(paths: Array, u: Array, quarter: int) -> float:
    scale = float(np.nanstd(u))
    ahead = values_ahead(u[:, None], origins_of(u.size, quarter), paths.shape[1])
    return mean_error(paths[:, :, None] / scale, ahead / scale) * scale

"""Fit the models of a panel: a network for each series, or one for all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rbfdiffnet.models.fast_models import fit_models, is_quick
from rbfdiffnet.models.intervals import calibration_length
from rbfdiffnet.models.learning import Learning
from rbfdiffnet.models.panel_model import PanelModel
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.series_model import SeriesModel, fit_local
from rbfdiffnet.models.shared import adopt, fit_shared
from rbfdiffnet.series.effects import Effects
from rbfdiffnet.series.series import NUMERICAL, Series, UnfitError
from rbfdiffnet.support.threads import one_blas_thread, parallel_map

__all__ = ["adopt_series", "fit_panel"]


def fit_panel(
    panel: Sequence[Series], plan: Plan, *, scope: str, calibrate: bool, n_jobs: int = 1
) -> PanelModel:
    """Fit models to a panel.

    Parameters
    ----------
    panel : sequence of Series
    plan : Plan
    scope : {"local", "global"}
        One network for each series, or one for all.
    calibrate : bool
        Whether to fit the models that intervals need.
    n_jobs : int, default=1

    Returns
    -------
    PanelModel
        A series that cannot be fitted has no model, and a reason.
    """
    fit = _fit_shared if scope == "global" else _fit_each
    models, reasons, effects, learning = fit(panel, [plan] * max(len(panel), 1), n_jobs)
    lengths = [series.n_seen for series in panel]
    starts = np.array([n - calibration_length(n) for n in lengths], dtype=np.int64)
    calibrated: list[SeriesModel | None] = [None] * len(panel)
    fitted = [i for i, model in enumerate(models) if model is not None]
    if calibrate:
        early = [panel[i].until(int(starts[i])) for i in fitted]
        # The same lags and level, although less data might have led to others.
        plans = [model.like(plan) for model in models if model is not None]
        for i, model in zip(fitted, fit(early, plans or [plan], n_jobs)[0], strict=True):
            calibrated[i] = model
    return PanelModel(plan, tuple(models), tuple(calibrated), starts, effects, reasons, learning)


Fitted = tuple[list[SeriesModel | None], dict[int, str], Effects | None, Learning | None]


def _fit_each(panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int) -> Fitted:
    results: dict[int, SeriesModel | str] = {}
    quick = [i for i in range(len(panel)) if is_quick(plans[i], panel[i])]
    if quick:
        found = fit_models([panel[i] for i in quick], [plans[i] for i in quick], n_jobs)
        results |= dict(zip(quick, found, strict=True))
    others = [i for i in range(len(panel)) if i not in results]
    if others and plans[others[0]].device != "cpu":
        raise ValueError(
            f"device={plans[others[0]].device!r} takes no inputs, transforms, lags with gaps or "
            "direct strategy; leave them out, or use device='cpu'."
        )

    def fit(job: tuple[Series, Plan]) -> SeriesModel | str:
        try:
            with np.errstate(all="ignore"):
                return fit_local(*job)
        except UnfitError as error:
            return str(error)
        except NUMERICAL as error:
            return f"numerical failure ({error})"

    fits = parallel_map(fit, [(panel[i], plans[i]) for i in others], n_jobs)
    results |= dict(zip(others, fits, strict=True))
    return (*_split([results[i] for i in range(len(panel))]), None, None)


def _fit_shared(panel: Sequence[Series], plans: Sequence[Plan], n_jobs: int) -> Fitted:  # noqa: ARG001
    effects, learning = None, None
    results: Sequence[SeriesModel | str]
    try:
        with one_blas_thread(), np.errstate(all="ignore"):
            results, effects, learning = fit_shared(panel, plans[0])
    except UnfitError as error:
        results = [str(error)] * len(panel)
    except NUMERICAL as error:
        results = [f"numerical failure ({error})"] * len(panel)
    return (*_split(results), effects, learning)


def _split(
    results: Sequence[SeriesModel | str],
) -> tuple[list[SeriesModel | None], dict[int, str]]:
    """Separate models from the reasons why there is none."""
    models = [r if isinstance(r, SeriesModel) else None for r in results]
    return models, {i: r for i, r in enumerate(results) if isinstance(r, str)}


def adopt_series(model: PanelModel, panel: Sequence[Series]) -> PanelModel:
    """Return a model of new series by a shared network that was not trained on them."""
    shared = model.shared
    models: list[SeriesModel | None] = []
    calibrated: list[SeriesModel | None] = []
    reasons: dict[int, str] = {}
    other = next((c for c in model.calibrated if c is not None), None)
    starts = [s.n_seen - calibration_length(s.n_seen) for s in panel]
    for i, series in enumerate(panel):
        try:
            if shared is None:
                raise UnfitError("the model has no network")
            own = adopt(series, shared, model.plan, model.effects)
            models.append(own)
            calibrated.append(None if other is None else own.with_network_of(other))
        except UnfitError as error:
            models.append(None)
            calibrated.append(None)
            reasons[i] = str(error)
    return PanelModel(
        model.plan,
        tuple(models),
        tuple(calibrated),
        np.array(starts, dtype=np.int64),
        model.effects,
        reasons,
    )

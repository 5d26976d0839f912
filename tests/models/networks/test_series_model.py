from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from preparations import clean_series
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import henon_map
from rbfdiffnet.models.networks.forecast import forecast_many
from rbfdiffnet.models.networks.series_model import fit_local, prepare_for
from rbfdiffnet.models.networks.shared import adopt_series, fit_shared
from rbfdiffnet.models.networks.window_model import fit_windows, window_rows
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.train import Settings
from rbfdiffnet.series.effects import fit_effects
from rbfdiffnet.series.gaps import fill_missing
from rbfdiffnet.series.series import Series, UnfitError
from rbfdiffnet.series.transforms import Difference


def quick(_n_inputs):
    return Settings(6, width_factor=2.0, alpha=1e-4, alpha_linear=1e-4)


PLAN = Plan(quick, season_length=7)


def make(rng, n=200, *, scale=1.0, n_ahead=0, n_extra=0, gaps=0):
    t = np.arange(n)
    ahead = (rng.uniform(size=(n, n_ahead)) < 0.2).astype(float)
    y = 20.0 + 5.0 * np.sin(t * 2 * np.pi / 7) + rng.normal(size=n)
    y = scale * y * (1.0 + 0.3 * ahead.sum(axis=1))
    y[rng.choice(n, gaps, replace=False)] = np.nan
    return Series(y, ahead, rng.normal(size=(n, n_extra)))


def forecast(model, series, h):
    n = series.y.size
    window = model.base_windows(series, np.array([n]))
    (path,), rows = forecast_many([model], [window], [series.extra[-1:]], h)
    return path[0], rows[0]


@pytest.mark.parametrize("block", [1, 5])
@pytest.mark.parametrize("transforms", [(), ("difference", "standardize")])
def test_a_local_model_is_its_parts_put_together(block, transforms, rng):
    series = make(rng, n_extra=1, gaps=6)
    plan = replace(PLAN, lags=(1, 2, 7), block=block, transforms=transforms, level="mean")
    model = fit_local(series, plan)
    y = fill_missing(series.y, 7)
    steps = prepare_for(series, plan).preparation.steps
    z, known, lost = steps.apply(y), np.isfinite(series.y), steps.lost
    known = known[1:] & known[:-1] if transforms else known
    X, Y = window_rows(z, known, series.extra[lost:], lags=(1, 2, 7), level="mean", block=block)
    # Inputs other than lags keep their unit unless their spread is larger.
    metric = np.array([min(X[:, 0].std(), 1.0), 1.0, 1.0, 1.0])
    manual = fit_windows(X, Y, replace(quick(4), metric=metric), lags=(1, 2, 7), level="mean")
    expected, _ = manual.forecast(z[None], 8, series.extra[-1:])
    path, rows = forecast(model, series, 8)
    np.testing.assert_allclose(path, steps.invert(expected, y[None])[0], rtol=1e-9)
    assert len(rows) == -(-8 // block)
    assert model.history == 7 + lost


def test_exemplars_are_the_nearest_training_windows(rng):
    series = make(rng, scale=50.0)
    model = fit_local(series, replace(PLAN, lags=(1, 2, 7), level="mean"))
    windows = model.windows
    network = windows.network
    ends = np.arange(6, series.y.size - 1)
    rows = np.concatenate(
        [windows.inputs(series.y[None, : e + 1], np.zeros((1, 0)))[0] for e in ends]
    )
    Z = (rows - network.x_shift) / network.x_scale * network.metric
    for j, center in enumerate(network.centers):
        distance = ((Z - center) ** 2).sum(axis=1)
        np.testing.assert_array_equal(model.exemplars[j], ends[np.argsort(distance)[:3]])


def test_missing_targets_are_not_learned(rng):
    series = make(rng, gaps=30)
    wrong = fill_missing(series.y, 7)
    plan = replace(PLAN, lags=(1, 2, 7), clean=False)
    a = fit_local(series, plan)
    b = fit_local(Series(wrong, series.known_ahead, series.extra), plan)
    assert not np.allclose(forecast(a, series, 5)[0], forecast(b, series, 5)[0], rtol=1e-6)
    u, known = clean_series(a.preparation, series.y, series.known_ahead)
    X, Y = window_rows(u, known, series.extra, lags=(1, 2, 7), level="mean", block=1)
    assert len(X) == known[7:].sum()
    assert a.windows.largest * a.windows.unit == pytest.approx(np.abs(Y).max())


def test_windows_before_the_first_value_repeat_it(rng):
    series = make(rng)
    model = fit_local(series, replace(PLAN, lags=(1, 2, 3, 4)))
    windows = model.base_windows(series, np.array([1, 3, 10]))
    y = series.y
    expected = [[y[0]] * 4, [y[0], y[0], y[1], y[2]], y[6:10]]
    np.testing.assert_array_equal(windows, expected)


def test_series_that_share_a_network_are_forecast_like_each_alone(rng):
    panel = [make(rng, n, scale=s, n_ahead=1) for n, s in ((200, 1.0), (150, 100.0), (90, 0.01))]
    models, *_ = fit_shared(panel, PLAN)
    origins = np.array([50, 80])
    bases = [m.base_windows(s, origins) for m, s in zip(models, panel, strict=True)]
    extras = [s.extra[origins - 1] for s in panel]
    together, rows = forecast_many(models, bases, extras, 9)
    for i, model in enumerate(models):
        for b in range(2):
            one = slice(b, b + 1)
            (alone,), (own,) = forecast_many([model], [bases[i][one]], [extras[i][one]], 9)
            np.testing.assert_allclose(together[i][b], alone[0], rtol=1e-9)
            np.testing.assert_allclose([r[b] for r in rows[i]], [r[0] for r in own], atol=1e-9)


def test_a_shared_network_of_one_series_is_its_local_one(rng):
    series = make(rng, gaps=5)
    (shared,), effects, _ = fit_shared([series], PLAN)
    local = fit_local(series, replace(PLAN, transforms=("standardize",)))
    assert effects is None
    np.testing.assert_allclose(forecast(shared, series, 10)[0], forecast(local, series, 10)[0])
    np.testing.assert_array_equal(shared.exemplars, local.exemplars)


def test_scales_of_series_do_not_matter_to_a_shared_network(rng):
    panel = [make(rng) for _ in range(3)]
    other = [Series(1e6 * s.y, s.known_ahead, s.extra) for s in panel]
    a, *_ = fit_shared(panel, PLAN)
    b, *_ = fit_shared([panel[0], other[1], panel[2]], PLAN)
    assert a[0].windows is a[1].windows
    np.testing.assert_allclose(
        1e6 * forecast(a[1], panel[1], 7)[0], forecast(b[1], other[1], 7)[0], rtol=1e-5
    )


def test_shared_effects_are_fitted_to_all_series_that_are_never_negative(rng):
    panel = [make(rng, scale=s, n_ahead=1, gaps=4) for s in (1.0, 1000.0)]
    _, effects, _ = fit_shared(panel, PLAN)
    expected = fit_effects(
        [fill_missing(s.y, 7) for s in panel],
        [s.known_ahead for s in panel],
        [np.isfinite(s.y) for s in panel],
        season_length=7,
    )
    np.testing.assert_array_equal(effects.gamma, expected.gamma)
    negative = [*panel, Series(panel[0].y - 20.0, panel[0].known_ahead, panel[0].extra)]
    models, effects, _ = fit_shared(negative, PLAN)
    np.testing.assert_array_equal(effects.gamma, expected.gamma)
    assert models[0].preparation.effects is models[1].preparation.effects is effects
    assert not models[2].preparation.effects.relative
    assert fit_shared(panel, replace(PLAN, log=True))[1] is None


def test_constant_series_have_no_shared_model(rng):
    flat, empty = (
        Series(np.full(50, v), np.zeros((50, 0)), np.zeros((50, 0))) for v in (3.0, np.nan)
    )
    models, *_ = fit_shared([flat, make(rng), empty], PLAN)
    assert [isinstance(m, str) for m in models] == [True, False, True]
    assert fit_shared([flat, empty], PLAN) == (["all values are the same", "no values"], None, None)


def test_too_few_rows_altogether(rng):
    short = [make(rng, 9) for _ in range(2)]
    with pytest.raises(UnfitError, match=r"windows in all series together: 2, needed: 6"):
        fit_shared(short, replace(PLAN, lags=tuple(range(1, 9))))


def test_short_series_have_no_shared_model(rng):
    panel = [make(rng, n) for n in (7, 200, 8)]
    models, *_ = fit_shared(panel, PLAN)
    assert models[0] == "too short (known values: 7, needed: 8)"
    assert models[1].windows is models[2].windows
    (alone,), *_ = fit_shared(panel[:1], PLAN)
    assert alone == models[0]


def validated(n_inputs):
    return replace(quick(n_inputs), alpha=None, alpha_linear=None)


def test_penalties_of_a_shared_network_are_those_best_on_the_latest_fifth(rng):
    panel = [make(rng, n) for n in (200, 150)]
    plan = replace(PLAN, lags=(1, 2, 7), level="mean", settings=validated)
    models, *_ = fit_shared(panel, plan)
    early, late = [], []
    for series in panel:
        steps = prepare_for(series, replace(plan, transforms=("standardize",))).preparation.steps
        known, none = np.isfinite(series.y), np.zeros((series.y.size, 0))
        X, Y = window_rows(
            steps.apply(series.y), known, none, lags=(1, 2, 7), level="mean", block=1
        )
        cut = len(X) - len(X) // 5
        early.append((X[:cut], Y[:cut]))
        late.append((X[cut:], Y[cut:]))
    train, test = (
        [np.concatenate(part) for part in zip(*rows, strict=True)] for rows in (early, late)
    )
    errors = {}
    for alpha in (1e-4, 1e-2, 1.0, 1e9):
        for alpha_linear in (1e-4, 1e-2, 1.0):
            fixed = replace(quick(3), alpha=alpha, alpha_linear=alpha_linear)
            fitted = fit_windows(*train, fixed, lags=(1, 2, 7), level="mean")
            path = fitted.network.predict(test[0] / fitted.unit) * fitted.unit
            errors[alpha, alpha_linear] = np.mean((path - test[1]) ** 2)
    alpha, alpha_linear = min(errors, key=errors.get)
    best = replace(quick(3), alpha=alpha, alpha_linear=alpha_linear)
    expected, *_ = fit_shared(panel, replace(plan, settings=lambda _: best))
    for model, other, series in zip(models, expected, panel, strict=True):
        np.testing.assert_allclose(forecast(model, series, 7)[0], forecast(other, series, 7)[0])
    worst = replace(best, alpha=1e-4, alpha_linear=1e-4)
    other, *_ = fit_shared(panel, replace(plan, settings=lambda _: worst))
    assert (alpha, alpha_linear) != (1e-4, 1e-4)
    assert not np.allclose(forecast(models[0], panel[0], 7)[0], forecast(other[0], panel[0], 7)[0])


def test_the_order_of_series_does_not_matter_to_a_shared_network(rng):
    panel = [make(rng, n, n_ahead=1, n_extra=1) for n in (200, 150, 90)]
    # Two series with the same values, but other inputs.
    panel.append(Series(panel[0].y, panel[0].known_ahead[::-1], panel[0].extra))
    models, effects, _ = fit_shared(panel, PLAN)
    others, other_effects, _ = fit_shared(panel[::-1], PLAN)
    np.testing.assert_array_equal(effects.gamma, other_effects.gamma)
    for model, other, series in zip(models, others[::-1], panel, strict=True):
        np.testing.assert_array_equal(forecast(model, series, 7)[0], forecast(other, series, 7)[0])


def test_a_new_series_is_adopted_on_its_own_scale(rng):
    panel = [make(rng, n_ahead=1) for _ in range(2)]
    models, effects, _ = fit_shared(panel, PLAN)
    again = adopt_series(panel[1], models[0], PLAN, effects)
    assert again.windows is models[0].windows
    np.testing.assert_allclose(forecast(again, panel[1], 7)[0], forecast(models[1], panel[1], 7)[0])
    assert np.all(again.exemplars == -1)


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        ([np.nan] * 20, "no values"),
        ([0.0, np.nan] * 10, "all values are zero"),
        ([2.5] * 20, "all values are the same"),
        ([1.0, 2.0, 3.0, np.nan], r"too short \(known values: 3, needed: 8\)"),
        (list(range(12)), r"too short for lag 10 \(windows: 2, needed: 6\)"),
    ],
)
def test_series_that_cannot_be_fitted_say_why(y, reason):
    none = np.zeros((len(y), 0))
    plan = replace(PLAN, lags=tuple(range(1, 11)))
    with pytest.raises(UnfitError, match=reason):
        fit_local(Series(np.array(y, dtype=float), none, none), plan)


@pytest.mark.parametrize("season_length", [1, 4, 7, 12, 24, 52])
def test_lags_are_at_most_a_third_of_a_series(season_length):
    plan = Plan(quick, season_length=season_length)
    for n in (1, 2, 8, 30, 100, 1000):
        lags = plan.lags_for(n)
        assert lags == tuple(range(1, len(lags) + 1))
        assert 1 <= len(lags) <= max(1, n // 3)
    assert len(plan.lags_for(1000)) >= season_length
    assert replace(plan, lags=(1, 9)).lags_for(3) == (1, 9)


def test_the_level_depends_on_length_differences_and_unit_roots(rng):
    walk = rng.normal(size=500).cumsum()
    assert [PLAN.level_for(walk[:n]) for n in (199, 200)] == ["last", "mean"]
    assert PLAN.level_for(rng.normal(size=500)) == "none"
    assert PLAN.level_for(walk, walk, rng.normal(size=500)) == "mean"
    assert PLAN.level_for(np.empty(0)) == "last"
    for differenced in (("adf", "mean"), (Difference(),)):
        assert replace(PLAN, transforms=differenced).level_for(walk) == "none"
    assert replace(PLAN, transforms=("standardize",)).level_for(walk) == "mean"
    assert replace(PLAN, transforms=("adf",), level="last").level_for(walk) == "last"


def test_gaps_in_windows_are_filled_from_the_past_only(rng):
    series = make(rng, gaps=40)
    model = fit_local(series, PLAN)
    origins = np.arange(50, 200)
    windows = model.base_windows(series, origins)
    for origin, window in zip(origins, windows, strict=True):
        alone = model.base_windows(series.until(int(origin)), np.array([origin]))[0]
        np.testing.assert_array_equal(window, alone)


@pytest.mark.parametrize("season_length", [1, 7, 12])
@pytest.mark.parametrize("jump", ["level", "spike", "closure"])
def test_outliers_in_windows_are_judged_from_the_past_only(season_length, jump, rng):
    n = 700  # so long that the level does not change for more than 5 % of the values
    series = make(rng, n)
    if jump == "level":
        series.y[400:] += 200.0
    elif jump == "spike":
        series.y[[90, 400, 401, 650]] = 900.0
    else:
        series.y[[90, 400, 401, n - 1]] = 0.0
    model = fit_local(series, replace(PLAN, season_length=season_length, lags=(1, 2, 7)))
    origins = np.arange(50, n + 1)
    windows = model.base_windows(series, origins)
    for origin, window in zip(origins, windows, strict=True):
        alone = model.base_windows(series.until(int(origin)), np.array([origin]))[0]
        np.testing.assert_array_equal(window, alone)
    # Seen from the end, the jump is something else than it was when it happened.
    whole, _ = clean_series(model.preparation, series.y, series.known_ahead)
    hindsight = whole[origins[:, None] - np.arange(model.history, 0, -1)]
    assert not np.array_equal(windows, hindsight)


def test_forecasts_stay_within_bounds():
    t = np.arange(120.0)
    growth = Series(np.exp(t / 8.0), np.zeros((120, 0)), np.zeros((120, 0)))
    plan = replace(PLAN, season_length=1, transforms=(Difference(), Difference()))
    model = fit_local(growth, plan)
    path, _ = forecast(model, growth, 300)
    assert np.all(np.isfinite(path))
    assert path.max() <= model.preparation.high
    assert path.min() >= model.preparation.low
    assert path.max() == pytest.approx(model.preparation.high)


def test_cutting_a_series_cuts_its_inputs(rng):
    series = make(rng, n_ahead=2, n_extra=1).until(30)
    assert (series.y.shape, series.known_ahead.shape, series.extra.shape) == (
        (30,),
        (30, 2),
        (30, 1),
    )


def test_a_level_takes_no_dimension_out_of_a_small_map():
    y = henon_map(250)
    df = pd.DataFrame({"unique_id": "map", "ds": np.arange(250), "y": y})
    model = RBFDiffNet(1, scope="local", lags=2)
    folds = model.cross_validation(df, h=1, n_windows=20, refit=False)
    assert np.abs(folds["RBFDiffNet"] - folds["y"]).mean() < 0.05 * y.std()

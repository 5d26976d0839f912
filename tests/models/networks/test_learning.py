"""Networks that go on learning: rows added later count like those there from the start."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from panels import (
    CONFIGURATIONS,
    LEVELS,
    NAME,
    every_series,
    fit_panel,
    future_of,
    last_part,
    make_panel,
)
from problems import statistics_of
from rbfdiffnet import RBFDiffNet, RBFDiffNetRegressor
from rbfdiffnet.forecasting.saving import write_arrays
from rbfdiffnet.models.networks import shared_training as shared
from rbfdiffnet.models.networks.shared_training import cut_new_rows, standardize_like, train_weights
from rbfdiffnet.models.networks.window_model import TrainingRows
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.train import Settings
from rbfdiffnet.series.series import Series, SeriesPanel

PLAN = Plan(lambda _: Settings(6, width_factor=4.0), season_length=7, lags=(1, 2, 7))
GLOBAL = {"scope": "global", "lags": 7}
SMALL = RBFDiffNetRegressor(n_centers=8, metric="standard", width_factor=4.0, loss="squared")
EVERYTHING, COLUMNS = CONFIGURATIONS["everything"]
CASES = {
    "plain": (GLOBAL, ()),
    "fast": ({**GLOBAL, "preset": "fast"}, ()),
    "direct": ({**GLOBAL, "strategy": "direct"}, ()),
    "differences": ({**GLOBAL, "transforms": ["seasonal", "difference"]}, ()),
    "inputs": ({**EVERYTHING, "lags": 7, "regressor": SMALL}, COLUMNS),
}


def some_series(n, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    y = 20.0 + 5.0 * np.sin(np.arange(n) * 2 * np.pi / 7) + rng.normal(size=n)
    return Series(scale * y, np.zeros((n, 0)), rng.normal(size=(n, 1)))


@pytest.fixture
def panel():
    return [some_series(n, seed, 10.0**seed) for seed, n in enumerate((220, 160, 130))]


def fitted(panel, cut=30, plan=PLAN):
    early = [series.until(series.y.size - cut) for series in panel]
    return fit_panel(early, plan, scope="global", calibrate=True)


def windows_of(model):
    """The network that all series share."""
    return next(iter(model.fitted.values())).windows


def rows_of(series, own, plan):
    prepared = own.preparation.apply(series.y, series.known_ahead)
    return TrainingRows.of(series, prepared, own.plan_for_refit(plan))


def from_scratch(model, panel):
    """Statistics of all rows on the basis of a model, and the network trained on them."""
    windows, plan = windows_of(model), model.plan
    rows = TrainingRows.concatenate(
        [rows_of(series, own, plan) for series, own in zip(panel, model.models, strict=True)]
    )
    net = windows.network
    statistics = statistics_of(
        net.centers,
        net.beta,
        *standardize_like(windows, rows),
        order=net.order,
        order_zero=net.order_zero,
        unit=net.unit,
        metric=net.metric,
        n_linear=net.n_lags,
    )
    tol = plan.settings(rows.X.shape[1]).tol
    largest = float(np.abs(rows.Y).max() / windows.unit)
    windows = train_weights(windows, statistics, model.learning.penalties, tol=tol)
    return statistics, replace(windows, largest=largest)


def assert_same_network(found, expected, rtol=1e-9):
    for name in ("a", "w", "linear"):
        a, b = (getattr(windows.network, name) for windows in (found, expected))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())


@pytest.mark.parametrize("name", CASES)
def test_new_rows_count_like_those_there_from_the_start(name):
    parameters, columns = CASES[name]
    df = make_panel(n=130, columns=columns)
    model = RBFDiffNet("D", **parameters).fit(every_series(df, slice(-20)), h=3)
    before = model._fitted.model
    model.update(every_series(df, slice(-20, None)), refit="weights")
    state = model._fitted
    statistics, expected = from_scratch(before, state.series)
    assert state.model.learning.statistics.total == statistics.total
    np.testing.assert_allclose(
        state.model.learning.statistics.gram, statistics.gram, rtol=1e-9, atol=1e-9
    )
    assert_same_network(windows_of(state.model), expected)
    assert windows_of(state.model).largest == pytest.approx(expected.largest, rel=1e-9)
    # Everything else stays, the networks that intervals rest on too.
    for old, new in zip(before.models, state.model.models, strict=True):
        assert new.preparation is old.preparation
        assert new.windows is windows_of(state.model)
    assert state.model.calibrated is before.calibrated
    assert not np.allclose(new.windows.network.linear, old.windows.network.linear, rtol=1e-6)


def test_a_fit_leaves_the_statistics_of_its_rows(panel):
    model = fitted(panel, cut=0)
    statistics, expected = from_scratch(model, panel)
    found = model.learning.statistics.gram
    np.testing.assert_allclose(found, statistics.gram, rtol=1e-9, atol=1e-9)
    assert_same_network(windows_of(model), expected)
    # There is nothing new to learn: nothing changes.
    again = model.learn_weights(panel)
    assert_same_network(windows_of(again), windows_of(model), rtol=1e-12)
    assert again.learning.statistics is model.learning.statistics


@pytest.mark.parametrize("block", [1, 4])
def test_two_updates_are_one(block, panel):
    model = fitted(panel, plan=replace(PLAN, block=block))
    between = [series.until(series.y.size - 11 - k) for k, series in enumerate(panel)]
    twice, once = model.learn_weights(between).learn_weights(panel), model.learn_weights(panel)
    np.testing.assert_array_equal(twice.learning.steps, once.learning.steps)
    assert twice.learning.statistics.total == once.learning.statistics.total
    assert_same_network(windows_of(twice), windows_of(once))
    assert windows_of(twice).largest == windows_of(once).largest


def test_rows_that_were_passed_over_count_too(panel, monkeypatch):
    total = fitted(panel).learning.statistics.total
    monkeypatch.setattr(shared, "_MOST_SHARED_ROWS", 100)
    model = fitted(panel)
    assert model.learning.statistics.total == pytest.approx(total, abs=5 * 3)
    later = model.learn_weights(panel).learning.statistics
    assert later.total - model.learning.statistics.total == 3 * 30


@pytest.mark.parametrize("block", [1, 4])
def test_what_is_long_past_is_not_looked_at(block, panel):
    plan = replace(PLAN, block=block)
    model = fitted(panel, plan=plan)
    own, series = model.models[0], panel[0]
    y = series.y.copy()
    y[[189, 200]] = np.nan
    series = replace(series, y=y)
    everything = rows_of(series, own, plan)
    late = everything.ends + block >= 190
    forgotten = replace(series, y=np.where(np.arange(220) < 120, np.nan, y))
    for history in (series, forgotten):
        rows = cut_new_rows(history, own, plan, seen=190)
        np.testing.assert_allclose(rows.X, everything.X[late], rtol=1e-12)
        np.testing.assert_allclose(rows.Y, everything.Y[late], rtol=1e-12)
        assert np.isfinite(rows.X).all()


def test_a_series_that_outgrew_its_scale_does_not_spoil_the_others(panel):
    model = fitted(panel)
    huge = replace(panel[1], y=panel[1].y * np.where(np.arange(160) < 130, 1.0, 1e200))
    found = model.learn_weights([panel[0], huge, panel[2]])
    expected = model.learn_weights([panel[0], panel[1].until(130), panel[2]])
    assert found.learning.statistics.total == expected.learning.statistics.total
    assert_same_network(windows_of(found), windows_of(expected))


def test_learning_is_selected_and_joined(panel):
    model = fitted(panel)
    part = model.select([2, 0])
    assert part.learning.steps.tolist() == [100, 190]
    assert part.learning.statistics is model.learning.statistics
    extended = model.extend(SeriesPanel.of([*panel, panel[2], panel[0]]))
    assert extended.learning.steps.tolist() == [190, 130, 100, 0, 0]


def test_new_series_and_earlier_updates_are_learned_too():
    df = make_panel("ab", n=100)
    new = make_panel("z", n=100, seed=3)
    early, late = every_series(df, slice(-10)), every_series(df, slice(-10, None))
    apart = RBFDiffNet("D", **GLOBAL).fit(early)
    total = apart._fitted.model.learning.statistics.total
    apart.update(new).update(late, refit="weights")
    together = RBFDiffNet("D", **GLOBAL).fit(early)
    together.update(pd.concat([late, new]), refit="weights")
    assert_frame_equal(apart.predict(5), together.predict(5), rtol=1e-9)
    learning = together._fitted.model.learning
    assert learning.statistics.total == total + 2 * 10 + 100 - 7
    assert learning.steps.tolist() == [100, 100, 100]


@pytest.mark.parametrize("long", [False, True])
def test_a_loaded_model_goes_on_learning(long, tmp_path):
    n = 1700 if long else 130
    df = make_panel("ab", n=n)
    cuts = (-1100, -20) if long else (-40, -20)
    model = RBFDiffNet("D", **GLOBAL).fit(every_series(df, slice(cuts[0])))
    model.update(every_series(df, slice(*cuts)))  # not learned yet
    model.save(tmp_path / "model.npz")
    loaded = RBFDiffNet.load(tmp_path / "model.npz")
    late = every_series(df, slice(cuts[1], None))
    expected = model.update(late, refit="weights").predict(5)
    found = loaded.update(late, refit="weights").predict(5)
    assert_frame_equal(found, expected, check_exact=True)


def test_an_older_file_has_nothing_to_go_on_from(tmp_path):
    path = tmp_path / "model.npz"
    df = make_panel("ab", n=100)
    model = RBFDiffNet("D", **GLOBAL).fit(every_series(df, slice(-5)))
    model.save(path)
    with np.load(path) as file:
        arrays = {k: v for k, v in file.items() if not k.startswith(("learned/", "statistics/"))}
    assert len(arrays) < len(np.load(path).files)
    write_arrays(path, arrays)
    old = RBFDiffNet.load(path)
    assert_frame_equal(old.predict(5), model.predict(5), check_exact=True)
    with pytest.raises(ValueError, match=r"older version.*refit=True"):
        old.update(every_series(df, slice(-5, None)), refit="weights")
    assert_frame_equal(old.predict(5), model.predict(5), check_exact=True)
    old.update(every_series(df, slice(-5, None)), refit=True).update(
        make_panel("ab", n=4, start="2023-04-11"), refit="weights"
    )


@pytest.mark.parametrize("name", CASES)
def test_a_backtest_equals_updates(name):
    parameters, columns = CASES[name]
    parameters = {key: value for key, value in parameters.items() if key != "calendar"}
    df = make_panel(n=120, columns=columns)
    arguments = {"h": 4, "n_windows": 3, "step_size": 3, "level": [80]}
    found = RBFDiffNet("D", **parameters).cross_validation(df, refit="weights", **arguments)
    stale = RBFDiffNet("D", **parameters).cross_validation(df, refit=False, **arguments)
    assert not np.allclose(found[NAME], stale[NAME], rtol=1e-6)
    model = RBFDiffNet("D", **parameters).fit(every_series(df, slice(-10)), h=4)
    for cut in (10, 7, 4):
        if cut < 10:
            model.update(every_series(df, slice(-cut - 3, -cut)), refit="weights")
        rows = every_series(df, slice(-cut, -cut + 4 or None))
        expected = model.predict(4, last_part(rows, 4, columns, model), level=[80])
        part = found[found["cutoff"] == df["ds"].max() - pd.Timedelta(days=cut)]
        assert_frame_equal(
            part[["unique_id", "ds"]].reset_index(drop=True), expected[["unique_id", "ds"]]
        )
        np.testing.assert_allclose(part[LEVELS[:3]], expected[LEVELS[:3]], rtol=1e-8)


@pytest.mark.parametrize("strategy", ["recursive", "direct"])
def test_a_backtest_does_not_look_ahead(strategy):
    df = make_panel(n=120)
    df.loc[df.index % 41 == 0, "y"] = np.nan
    model = RBFDiffNet("D", **GLOBAL, strategy=strategy)
    arguments = {"h": 5, "n_windows": 4, "step_size": 4, "level": [80], "refit": "weights"}
    expected = model.cross_validation(df, **arguments)
    cutoffs = np.unique(expected["cutoff"])
    rng = np.random.default_rng(1)
    for k, cutoff in enumerate(cutoffs):
        later = df["ds"] > cutoff
        changed = df.assign(y=df["y"].where(~later, rng.uniform(0.0, 200.0, len(df))))
        found = model.cross_validation(changed, **arguments)
        earlier = expected["cutoff"] <= cutoff
        assert_frame_equal(
            found.loc[earlier, LEVELS[:3]], expected.loc[earlier, LEVELS[:3]], check_exact=True
        )
        if k + 1 < len(cutoffs):
            assert not np.allclose(found.loc[~earlier, NAME], expected.loc[~earlier, NAME])


@pytest.mark.parametrize(
    "parameters",
    [
        {"preset": "paper"},
        {"regressor": RBFDiffNetRegressor(n_centers=6, alpha=1e-3)},
        {"regressor": RBFDiffNetRegressor(n_centers=6, loss="huber")},
    ],
    ids=["paper", "alpha", "loss"],
)
def test_settings_without_statistics_are_refused(parameters):
    df = make_panel("ab", n=80)
    model = RBFDiffNet("D", scope="global", **parameters).fit(every_series(df, slice(-9)))
    expected = model.predict(3)
    with pytest.raises(ValueError, match=r"settings.*Use refit=True"):
        model.update(every_series(df, slice(-9, None)), refit="weights")
    assert_frame_equal(model.predict(3), expected)
    with pytest.raises(ValueError, match=r"settings.*Use refit=True"):
        model.cross_validation(df, 3, n_windows=2, refit="weights")


def test_local_networks_and_unknown_ways_are_refused():
    df = make_panel("ab", n=60)
    model = RBFDiffNet("D", preset="fast").fit(df)
    later = make_panel("ab", n=5, start="2023-03-02")
    with pytest.raises(ValueError, match=r"scope='global'.*Use refit=True"):
        model.update(later, refit="weights")
    with pytest.raises(ValueError, match=r"scope='global'.*Use refit=True"):
        model.cross_validation(df, 3, refit="weights")
    for wrong in ("all", 2, None):
        with pytest.raises(ValueError, match=r"True, False, 'weights'; got"):
            model.update(later, refit=wrong)
    with pytest.raises(ValueError, match="'weights' or a positive integer; got 'all'"):
        model.cross_validation(df, 3, refit="all")


def test_learning_renews_the_report():
    model = RBFDiffNet("D", **GLOBAL).fit(make_panel("ab", n=90))
    model.predict(1)
    assert len(model.report_) == 0
    later = make_panel(["a", "flat"], n=9, start="2023-04-03")
    later.loc[later["unique_id"] == "flat", "y"] = 3.0
    model.update(later, refit="weights")
    assert model.report_["unique_id"].to_list() == ["a", "flat"]
    assert model.report_["problem"].to_list() == [
        "2 missing dates, first 2023-04-01",
        "all values are the same",
    ]
    assert (model.predict(2).query("unique_id == 'flat'")[NAME] == 3.0).all()


def test_learning_follows_a_change():
    # The series turns around after the fit: only a network that goes on learning notices.
    n, cut = 400, 200
    rng = np.random.default_rng(0)
    sign = np.where(np.arange(n) < cut, 0.8, -0.8)
    y = np.zeros(n)
    for t in range(1, n):
        y[t] = sign[t] * y[t - 1] + rng.normal()
    df = pd.DataFrame({"unique_id": "a", "ds": np.arange(n), "y": y})
    errors = {}
    for refit in (False, "weights"):
        folds = RBFDiffNet(1, scope="global", lags=3).cross_validation(
            df, 1, n_windows=n - cut, refit=refit
        )
        errors[refit] = np.square(folds["y"] - folds[NAME]).to_numpy()[-80:].mean()
    assert errors["weights"] < 0.7 * errors[False]


def test_explanations_still_add_up():
    parameters, columns = CASES["inputs"]
    df = make_panel(n=120, columns=columns)
    model = RBFDiffNet("D", **parameters).fit(every_series(df, slice(-9)))
    model.update(every_series(df, slice(-9, None)), refit="weights")
    X_df = future_of(model, 3, columns)
    parts = model.explain(3, X_df).groupby(["unique_id", "ds"], sort=False)["contribution"].sum()
    np.testing.assert_allclose(parts.to_numpy(), model.predict(3, X_df)[NAME], rtol=1e-9)


def test_the_order_of_series_does_not_matter():
    df = make_panel("abcd", n=90)
    results = []
    for names in ("abcd", "dbca"):
        parts = [df[df["unique_id"] == name] for name in names]
        model = RBFDiffNet("D", scope="global").fit(pd.concat(part[:80] for part in parts))
        model.update(pd.concat(part[80:] for part in parts), refit="weights")
        results.append(model.predict(5).sort_values(["unique_id", "ds"], ignore_index=True))
    assert_frame_equal(*results, check_exact=True)

"""The mixture of the stack: members, weights, and what they may see."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from panels import NAME
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.base import ForecastRequest
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.scores import to_scores
from rbfdiffnet.models.stack import lesson as lesson_module
from rbfdiffnet.models.stack import members as members_module
from rbfdiffnet.models.stack import model as model_module
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.members import forecast_pretrained
from rbfdiffnet.models.stack.mixing import _MEDIAN, fit_weights
from rbfdiffnet.models.stack.model import Stack
from rbfdiffnet.network.train import Settings
from rbfdiffnet.series.series import Series, SeriesPanel, find_sparse
from stacks import PLAN, arrays, auto, frame, learn_from, walks


def test_the_mixture_by_hand(rng):
    h, series = 6, list(walks(rng, [40] * 12).values())
    panel = arrays(series)
    plan = Plan(lambda _: Settings(5), season_length=1, clean=False)
    model, request = Stack().fit(SeriesPanel.of(panel), plan), ForecastRequest.after(panel, h)
    mixture, scores = model.mix(request), scores_of(model, request)
    errors = []
    for k in (1, 2):  # windows of eight steps
        past = members_of([y[: 40 - 8 * k] for y in series], 8)
        actual = np.array([y[40 - 8 * k :][:8] for y in series])
        errors.append(np.stack([forecast - actual for forecast in past.values()]))
    wrong = np.stack(errors, axis=2)
    units = np.array([np.abs(np.diff(y)).mean() for y in series])
    relative = (wrong / units[:, None, None]).reshape(len(wrong), -1)
    # Those after the pretrained network and its correction:
    others = fit_weights(relative[2:], np.ones(len(relative) - 2))
    ways = [relative[:2], others @ relative[2:], np.median(relative, axis=0)]
    *first, rest, of_median = fit_weights(np.vstack(ways), np.array([1.0, 1.0, 1.0, _MEDIAN]))
    weights = np.append(first, rest * others)

    def mix(members):
        return np.tensordot(weights, members, axes=1) + of_median * np.median(members, axis=0)

    now = members_of(series, h)
    assert list(mixture.weights) == list(now)
    assert_allclose(mixture.values, mix(np.stack(list(now.values()))), rtol=1e-7)
    total = sum(own * now[name] for name, own in mixture.weights.items())
    assert_allclose(mixture.values, total, rtol=1e-9)
    for k in (1, 2):
        past = Histories.of([y[: 40 - 8 * k] for y in series], 1)
        ((points, quantiles),) = forecast_pretrained([past], 8)
        distances = (quantiles - points[:, :, None])[:, :h]
        away = -mix(wrong[:, :, k - 1])[:, :h]
        assert_allclose(scores[:, k - 1, :, 0], to_scores(away, distances), rtol=1e-6, atol=1e-6)


def scores_of(model, request):
    (part,) = model._recall(request, 1)
    return part.scores


def members_of(series, h):
    return learn_from(Histories.of(series, 1), h)[1]


def test_zeros_before_the_first_sale_do_not_count():
    late = np.append(np.zeros(60), np.arange(1.0, 41.0))
    rare = np.tile([0.0, 0.0, 3.0], 30)
    assert find_sparse([late, rare, np.zeros(5)]).tolist() == [False, True, False]


def test_without_errors_the_pretrained_network_is_left(rng):
    panel = arrays([walks(rng, [8])["s0"]])
    mixture = Stack().fit(SeriesPanel.of(panel), PLAN).mix(ForecastRequest.after(panel, 10))
    assert [name for name, weight in mixture.weights.items() if weight.any()] == ["pretrained"]
    assert_allclose(mixture.values, mixture.members["pretrained"])


def test_trends_go_on_farther_than_rows_reach(rng):
    """Two years of months: no row has a target twelve steps ahead, and forecasts are fed back."""
    t = np.arange(24)
    series = {f"s{i}": 100.0 + 3.0 * (i + 1) * t + rng.normal(0, 2, 24) for i in range(5)}
    for h in (6, 12, 18):
        found = auto("MS").forecast(frame(series, freq="MS"), h)[NAME].to_numpy().reshape(5, h)
        truth = [100.0 + 3.0 * (i + 1) * np.arange(24, 24 + h) for i in range(5)]
        assert_allclose(found, truth, rtol=0.12)


def test_members_that_could_not_forecast_earlier_have_no_weight(rng):
    t = np.arange(40)
    season = 20.0 * np.sin(t * np.pi / 6)
    series = [100.0 + season + t + rng.normal(0, 5, 40) for _ in range(20)]
    panel = arrays(series)
    plan = Plan(lambda _: Settings(5), season_length=12)
    mixture = Stack().fit(SeriesPanel.of(panel), plan).mix(ForecastRequest.after(panel, 12))
    networks = [mixture.weights[name] for name in ("pretrained", "corrected", "direct")]
    assert_allclose(np.sum(networks, axis=0), 1.0)
    assert not mixture.weights["damped trend"].any()


def test_members_that_were_not_there_yet_leave_the_errors_of_the_others(rng):
    """Forty months have three seasons; thirty-four, when the last six are held back, do not."""
    panel = arrays(list(walks(rng, [40, 40]).values()))
    plan = Plan(lambda _: Settings(5), season_length=12)
    model = Stack().fit(SeriesPanel.of(panel), plan)
    scores = scores_of(model, ForecastRequest.after(panel, 6))
    assert np.isfinite(scores).all()
    assert (scores != 0.0).all()


@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("m", [1, 7, 12])
def test_a_forecast_does_not_depend_on_how_far_beyond_it_one_asks(rng, n, m):
    df = frame(walks(rng, [40 + 11 * i for i in range(n)], m=7), freq="D")
    asked = {
        h: RBFDiffNet("D", season_length=m).forecast(df, h)[NAME].to_numpy().reshape(n, h)
        for h in (1, 2, 12, 17, 40)
    }
    for h, found in asked.items():
        assert_allclose(found, asked[40][:, :h], rtol=1e-9)


def test_forecasts_that_rows_start_from_are_made_once(rng, monkeypatch):
    made = []

    def look(series, *arguments):
        made.extend(y.tobytes() for y in series)
        return original(series, *arguments)

    original = members_module._look_ahead
    monkeypatch.setattr(members_module, "_look_ahead", look)
    panel = arrays(list(walks(rng, [80] * 3).values()))
    Stack().fit(SeriesPanel.of(panel), PLAN).mix(ForecastRequest.after(panel, 8))
    ends = [y.y[: 80 - 8 * k].tobytes() for y in panel for k in range(6)]
    rows = [y for y in made if y not in ends]
    assert len(rows) == len(set(rows)) > 100


def test_the_future_is_not_seen(rng):
    series = list(walks(rng, [70] * 6).values())
    panel = arrays(series)
    origins, ahead = np.full(6, 60), [np.zeros((5, 0))] * 6
    spoiled = arrays([np.r_[y[:60], 1e4 * rng.normal(size=10)] for y in series])
    known, found = (
        (Stack().fit(SeriesPanel.of(own), PLAN), ForecastRequest(own, origins, 5, ahead))
        for own in (panel, spoiled)
    )
    assert_array_equal(found[0].mix(found[1]).values, known[0].mix(known[1]).values)
    assert_array_equal(scores_of(*found), scores_of(*known))


def test_what_two_mixtures_rest_on_is_remembered(rng, monkeypatch):
    inputs = [rng.normal(size=(30, 1)) for _ in range(3)]
    series = walks(rng, [30] * 3).values()
    panel = [Series(y, X, np.zeros((30, 0))) for y, X in zip(series, inputs, strict=True)]
    origins, model, calls = np.full(3, 30), Stack().fit(SeriesPanel.of(panel), PLAN), []
    learned = model_module.learn
    monkeypatch.setattr(
        model_module, "learn", lambda *args: calls.append(args[0].h) or learned(*args)
    )
    for h in (1, 2, 2, 1, 3, 2, 3, 1, 4, 5, 6):
        low, high = (
            model.mix(ForecastRequest(panel, origins, h, [x * np.ones((h, 1))] * 3)) for x in (0, 1)
        )
        assert model._latest[0] is high
        np.testing.assert_equal(low.weights, high.weights)
        assert not np.isclose(low.values, high.values).any()
        assert len(model._known) <= 2
    assert calls == [1, 2, 3, 1, 4, 5, 6]


def test_a_series_starts_at_its_first_known_value(rng):
    series = walks(rng, [40] * 8)
    plain = frame(series)
    late = plain.copy()
    late.loc[late["unique_id"] == "s3", "y"] = np.where(np.arange(40) < 15, np.nan, series["s3"])
    cut = late[late["y"].notna()]
    assert_allclose(auto().forecast(late, 5)[NAME], auto().forecast(cut, 5)[NAME], rtol=1e-9)


def test_squared_errors_count_where_most_values_are_zero(rng, monkeypatch):
    asked = []

    def weights(errors, usual, *, squared):
        asked.append(squared)
        return fit_weights(errors, usual, squared=squared)

    monkeypatch.setattr("rbfdiffnet.models.stack.mixing.fit_weights", weights)
    often = [rng.poisson(3.0, 60).astype(float) for _ in range(9)]
    rarely = [y * (rng.random(60) < 0.3) for y in often]
    for series in (often, rarely):
        auto().forecast(frame(dict(enumerate(series))), 6)
    assert asked == [False, False, True, True]  # two steps each
    asked.clear()
    model = auto().fit(frame(dict(enumerate(often + rarely))))
    model.predict(6)
    assert sorted(asked) == [False, False, True, True]


def test_a_window_of_a_cut_series_is_not_taken_for_the_fitted_one(rng, monkeypatch):
    monkeypatch.setattr(lesson_module, "_MOST_VALUES", 100)
    df = frame({"a": 80.0 + rng.normal(size=150).cumsum()}, freq="D")
    arguments = {"h": 5, "n_windows": 2, "step_size": 10}
    anew, kept = (auto("D").cross_validation(df, refit=r, **arguments) for r in (True, False))
    assert_allclose(kept[NAME], anew[NAME], rtol=1e-12)


def test_another_panel_is_not_answered_from_memory(rng):
    panel = arrays(walks(rng, [40] * 3).values())
    model = Stack().fit(SeriesPanel.of(panel), PLAN)
    doubled = [Series(2.0 * s.y, s.known_ahead, s.extra) for s in panel]
    one, two = (model.mix(ForecastRequest.after(p, 4)).values for p in (panel, doubled))
    assert_allclose(two, 2.0 * one, rtol=1e-6)

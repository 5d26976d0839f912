"""The forecaster with scope="auto": frames, inputs, threads, and settings it does not take."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal

from panels import EVENTS, LEVELS, NAME, future_of, make_panel, to_polars
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.base import ForecastRequest
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.models.stack.model import Stack
from rbfdiffnet.network.train import Settings
from rbfdiffnet.series.series import SeriesPanel
from stacks import arrays, auto, check, frame, walks


def test_pandas_and_polars_agree(rng):
    df = frame(walks(rng, rng.integers(30, 60, 6)))
    expected = auto().fit(df).predict(4)
    found = auto("1mo").fit(to_polars(df)).predict(4)
    assert type(found).__module__.startswith("polars")
    assert found["unique_id"].to_list() == expected["unique_id"].to_list()
    assert_allclose(found[LEVELS].to_numpy(), expected[LEVELS], rtol=1e-9)


def test_the_order_of_rows_and_series_does_not_matter(rng):
    df = frame(walks(rng, rng.integers(30, 60, 9)))
    expected = auto().fit(df).predict(4).set_index(["unique_id", "ds"])
    shuffled = df.sample(frac=1.0, random_state=0)
    found = auto().fit(shuffled).predict(4).set_index(["unique_id", "ds"])
    assert_allclose(found.loc[expected.index], expected, rtol=1e-8)


def test_the_order_of_series_does_not_matter_where_rows_are_left_out(rng, monkeypatch):
    monkeypatch.setattr("rbfdiffnet.models.stack.rows._MOST_ROWS", 60)
    series = list(walks(rng, [40, 50, 60, 45, 55]).values())
    plan = Plan(lambda _: Settings(5), season_length=12)
    found = []
    for ordered in (series, series[::-1]):
        panel = arrays(ordered)
        mixture = Stack().fit(SeriesPanel.of(panel), plan).mix(ForecastRequest.after(panel, 6))
        found.append(mixture.members["direct"])
    assert_allclose(found[0], found[1][::-1], rtol=1e-9)


def test_units_of_the_panel_do_not_matter(rng):
    df = frame(walks(rng, [50] * 7))
    expected = auto().fit(df).predict(4)[LEVELS]
    found = auto().fit(df.assign(y=1e4 * df["y"])).predict(4)[LEVELS]
    assert_allclose(found, 1e4 * expected, rtol=1e-5)


@pytest.mark.slow
def test_the_same_again_and_by_more_threads():
    df = make_panel("ab", n=203)
    quick = {"preset": "fast"}
    expected = auto("D", **quick).fit(df).predict(7)
    model = auto("D", **quick, n_jobs=2).fit(df)
    assert_frame_equal(model.predict(7), expected, check_exact=True)
    assert_frame_equal(model.predict(7), expected, check_exact=True)
    model.predict(3)
    model.predict(4)
    assert_frame_equal(model.predict(7), expected, check_exact=True)
    levels = [column for column in expected if "-95" not in column]
    at_once = auto("D", **quick).forecast(df, 7, level=[80])
    assert_frame_equal(at_once, expected[levels], check_exact=True)


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("parameters", "columns"),
    [
        ({"events": EVENTS, "calendar": ["dayofweek"], "lower": 0.0}, ("price", "offer")),
        ({"past_exog": ["visitors"], "static_exog": ["region"]}, ("price", "visitors", "region")),
        ({"preset": "fast"}, ("price",)),
        slow({"transforms": ["log1p"]}, ("price",)),
        slow({"preset": "paper"}, ()),
    ],
)
def test_settings_and_inputs_go_together_with_the_stack(parameters, columns):
    df = make_panel(n=205, columns=columns)
    model = auto("D", **parameters).fit(df, h=6)
    found = model.predict(6, future_of(model, 6, columns))
    check(found, 3, 6)
    backtest = auto("D", **parameters).cross_validation(df, 6)
    assert np.abs(backtest[NAME] - backtest["y"]).mean() < 6.0


def test_an_input_known_ahead_moves_the_forecasts():
    df = make_panel(n=120, columns=("price", "offer"))
    model = auto("D").fit(df)
    future = future_of(model, 5, ("price", "offer"))
    low = model.predict(5, future.assign(price=1.0, offer="none"), level=None)[NAME]
    high = model.predict(5, future.assign(price=3.0, offer="none"), level=None)[NAME]
    flyer = model.predict(5, future.assign(price=1.0, offer="flyer"), level=None)[NAME]
    assert_allclose(high - low, -8.0, atol=3.5)  # four for a unit of price
    assert_allclose(flyer - low, 15.0, atol=5.0)
    with pytest.raises(ValueError, match="X_df"):
        model.predict(5)


def test_a_lower_bound_holds(rng):
    df = frame({f"s{k}": rng.poisson(0.4, 60) for k in range(6)})
    found = auto(lower=0.0).fit(df).predict(6)
    assert found[LEVELS].min(axis=None) == 0.0


def test_what_needs_networks_says_so(rng):
    model = auto().fit(frame(walks(rng, [30])))
    with pytest.raises(ValueError, match=r"fitted_values.*scope='auto' keeps none.*scope='local'"):
        model.fitted_values()
    refused = pytest.raises(AttributeError, match=r"Noise was not .*noise='auto'.*scope='local'")
    with refused:
        model.noise_  # noqa: B018


def test_other_settings_that_a_stack_does_not_take(rng):
    with pytest.raises(ValueError, match="scope='local'"):
        auto(noise="auto")
    with pytest.raises(ValueError, match="device='cuda' is for the default"):
        RBFDiffNet("MS", scope="global", device="cuda")
    df = frame(walks(rng, [30]))
    with pytest.raises(ValueError, match="scope='global'"):
        auto().fit(df).predict(2, new_df=df)


@pytest.mark.parametrize("n_series", [1, 12])
def test_any_number_of_threads_gives_the_same_bits(rng, n_series):
    df = frame(walks(rng, [150] * n_series))
    found = [auto(n_jobs=n).forecast(df, 14, level=[80, 95]) for n in (1, 2, 2, 3)]
    for other in found[1:]:
        assert_array_equal(other[LEVELS], found[0][LEVELS])


@pytest.mark.parametrize("preset", ["default", "instant"])
def test_a_device_gives_the_numbers_of_numpy(monkeypatch, preset):
    """PyTorch on the processor stands for a card; series with gaps, an outlier and an input."""
    pytest.importorskip("torch")
    from rbfdiffnet.batch import backend
    from rbfdiffnet.batch.torch_backend import TorchBackend
    from rbfdiffnet.models.networks import series_model

    df = make_panel([f"s{i}" for i in range(6)], n=70, columns=("price",))
    df.loc[[100, 101, 150], "y"] = [np.nan, np.nan, 1e4]
    df = df[(df["unique_id"] != "s4") | (df["ds"] > "2023-02-20")]
    options = {"n_windows": 2, "step_size": 4, "level": [80]}
    usual = RBFDiffNet("D", preset=preset).cross_validation(df, 5, **options)
    used = []

    def on_torch(device):
        used.append(device)
        return TorchBackend("cpu")

    for module in (backend, series_model):
        monkeypatch.setattr(module, "backend_for", on_torch)
    found = RBFDiffNet("D", preset=preset, device="cuda").cross_validation(df, 5, **options)
    assert_frame_equal(found, usual, rtol=1e-7)
    assert set(used) == {"cuda"}

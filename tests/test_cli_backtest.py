import numpy as np
import pytest
from sklearn.linear_model import Ridge

from rbfdiffnet.cli.backtest import Backtest, backtest
from rbfdiffnet.cli.single import Settings, forecast_series
from rbfdiffnet.datasets import load_air_passengers

AIR = load_air_passengers()["y"].to_numpy()
MONTHLY = Settings(lambda: Ridge(1e-2), season_length=12)


def test_backtest_never_looks_at_what_it_is_scored_on():
    honest = backtest(AIR, 12, MONTHLY)
    assert honest.origins == (108, 120, 132)
    changed = AIR.copy()
    changed[120:] = np.random.default_rng(0).uniform(1, 1e4, size=24)
    other = backtest(changed, 12, MONTHLY)
    assert other.model[0] == honest.model[0]
    assert other.naive[0] == honest.naive[0]
    assert other.model[1] != honest.model[1]


def test_backtest_window_equals_a_forecast_of_the_cut_series():
    result = backtest(AIR, 12, MONTHLY)
    for origin, error in zip(result.origins, result.model, strict=True):
        cut = forecast_series(AIR[:origin], 12, MONTHLY).values
        assert error == pytest.approx(np.abs(cut - AIR[origin : origin + 12]).mean())


@pytest.mark.parametrize(("n", "h", "expected"), [(40, 12, 2), (24, 12, 1), (23, 12, None)])
def test_backtest_takes_as_many_windows_as_fit(n, h, expected):
    result = backtest(AIR[:n], h, MONTHLY)
    assert (None if result is None else len(result.origins)) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "sentence"),
    [
        (
            3.0,
            4.0,
            "RBF-DiffNet won: its mean absolute error, 3.000, is 25 % below that of n, 4.000.",
        ),
        (
            5.0,
            4.0,
            "RBF-DiffNet lost: its mean absolute error, 5.000, is 25 % above that of n, 4.000.",
        ),
        (5.0, 0.0, "RBF-DiffNet lost: its mean absolute error, 5.000, is above that of n, 0."),
        (4.0, 4.0, "A tie: RBF-DiffNet and n both have a mean absolute error of 4.000."),
    ],
)
def test_verdict(ours, theirs, sentence):
    assert Backtest((1,), np.array([ours]), np.array([theirs])).verdict("n") == sentence

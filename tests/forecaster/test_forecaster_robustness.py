"""Whatever a panel holds, every series gets finite forecasts on the right dates.

The environment variable RBFDIFFNET_EXAMPLES sets how many panels are tried, over all kinds of
dates together.
"""

import os

import hypothesis
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from fuzzing.odd_panels import DRAWN, KINDS, fitted_models_are_sound, forecasts_are_sound
from rbfdiffnet import RBFDiffNet

EXAMPLES = int(os.environ.get("RBFDIFFNET_EXAMPLES", "30"))


def on_many_panels(kind, examples, claim):
    @hypothesis.seed(KINDS.index(kind))  # other panels for each kind
    @settings(
        max_examples=max(1, examples // len(KINDS)),
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(**DRAWN)
    def test(**drawn):
        claim(kind=kind, **drawn)

    test()


@pytest.mark.parametrize("kind", KINDS)
def test_every_series_gets_finite_forecasts_on_the_right_dates(kind):
    on_many_panels(kind, EXAMPLES, forecasts_are_sound)


@pytest.mark.parametrize("kind", KINDS)
def test_explanations_windows_and_files_of_any_panel(kind, tmp_path):
    path = tmp_path / "model.npz"
    on_many_panels(kind, EXAMPLES // 2, lambda **drawn: fitted_models_are_sound(path, **drawn))


@pytest.mark.parametrize(
    "dtypes", [None, {"unique_id": str, "ds": "datetime64[ns]", "y": float}], ids=["bare", "typed"]
)
@pytest.mark.parametrize("scope", [None, "local", "global"])
def test_an_empty_frame_gives_an_empty_frame(dtypes, scope):
    df = pd.DataFrame({"unique_id": [], "ds": [], "y": []})
    df = df if dtypes is None else df.astype(dtypes)
    forecast = RBFDiffNet("D", scope=scope).forecast(df, 3, level=[80])
    assert len(forecast) == 0
    assert list(forecast) == [
        "unique_id",
        "ds",
        "RBFDiffNet",
        "RBFDiffNet-lo-80",
        "RBFDiffNet-hi-80",
    ]
    assert forecast["ds"].dtype == "datetime64[ns]"

"""Whatever a panel holds, every series gets finite forecasts on the right dates.

The environment variable RBFDIFFNET_EXAMPLES sets how many panels are tried, over all kinds of
dates together.
"""

import os
import warnings
from statistics import NormalDist

import hypothesis
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from fuzzing.odd_panels import DRAWN, KINDS, fitted_models_are_sound, forecasts_are_sound
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.support.checks import DataWarning

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
def test_an_empty_frame_is_refused(dtypes, scope):
    df = pd.DataFrame({"unique_id": [], "ds": [], "y": []})
    df = df if dtypes is None else df.astype(dtypes)
    model = RBFDiffNet("D", scope=scope)
    for use in (
        model.fit,
        lambda df: model.forecast(df, 3),
        lambda df: model.cross_validation(df, 3),
    ):
        with pytest.raises(ValueError, match="The frame has no rows"):
            use(df)


def test_doubtful_dates_get_one_warning_a_call():
    days = pd.date_range("2024-01-01", periods=400)
    months = days[days.day == 1]
    df = pd.concat([pd.DataFrame({"unique_id": i, "ds": months, "y": range(14)}) for i in "ab"])
    with pytest.warns(DataWarning) as found:
        RBFDiffNet("D", preset="instant").fit(df)
    (warning,) = found
    assert "768 of 796 dates have no row with freq='D': take a freq that fits" in str(
        warning.message
    )
    assert warning.filename == __file__
    twice = pd.DataFrame({"unique_id": "a", "ds": days[:40].repeat(2), "y": range(80)})
    with pytest.warns(DataWarning, match="40 of 40 dates of series have several rows"):
        RBFDiffNet("D", preset="instant").forecast(twice, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RBFDiffNet("D", preset="instant").fit(df.query("ds < '2024-01-02'"))
        workdays = pd.DataFrame({"unique_id": "a", "ds": days[days.day_of_week < 5]})
        RBFDiffNet("D", preset="instant").fit(workdays.assign(y=range(len(workdays))))


@pytest.mark.parametrize("preset", ["default", "instant", "fast"])
def test_one_value_has_intervals_of_some_width(preset):
    df = pd.DataFrame({"unique_id": list("abc"), "ds": 1, "y": [112.5, 0.0, -3.25]})
    model = RBFDiffNet(1, preset=preset)
    found = model.forecast(df, 2, level=[80, 95], quantiles=[0.9])
    for level in (80, 95):
        assert (found[f"RBFDiffNet-lo-{level}"] <= found["RBFDiffNet"]).all()
        assert (found["RBFDiffNet"] < found[f"RBFDiffNet-hi-{level}"]).all()
    z = NormalDist().inv_cdf(0.975)
    first = found.iloc[0]
    assert first["RBFDiffNet-lo-95"] == pytest.approx(112.5 * (1 - z / 2))
    assert first["RBFDiffNet-hi-95"] == pytest.approx(112.5 * (1 + z / 2))
    one = model.forecast(df, 2, quantiles=[0.9])
    assert one["RBFDiffNet-q-90"].tolist() == found["RBFDiffNet-q-90"].tolist()

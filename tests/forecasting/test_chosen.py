"""What was chosen can be read in frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.models.networks.fitted import _ranges


@pytest.fixture
def panel(rng):
    t = np.arange(84)
    season = 10.0 * np.sin(t * np.pi / 6.0)
    series = {"season": season + rng.normal(size=84), "walk": rng.normal(size=84).cumsum()}
    ds = pd.date_range("2018-01-01", periods=84, freq="MS")
    frames = [pd.DataFrame({"unique_id": k, "ds": ds, "y": y}) for k, y in series.items()]
    return pd.concat([*frames, frames[0][:1].assign(unique_id="short")], ignore_index=True)


def test_networks(panel):
    chosen = RBFDiffNet("MS", preset="fast").fit(panel).chosen_.set_index("unique_id")
    assert list(chosen.index) == ["season", "walk"]
    assert chosen.loc["season", "differences"] == "12"
    assert (chosen["season_length"] == 12).all()
    assert (chosen["lags"] == "1-24").all()
    assert (chosen["order"] == 1).all()
    assert (chosen["n_centers"] > 0).all()


def test_given_settings_are_found_again(panel):
    model = RBFDiffNet("MS", scope="local", lags=[1, 2, 12], transforms=["log1p"])
    positive = panel.assign(y=panel["y"] - panel["y"].min())
    chosen = model.fit(positive).chosen_
    assert (chosen["lags"] == "1-2, 12").all()
    assert chosen["logarithms"].all()
    assert (chosen["differences"] == "").all()


def test_weights(panel):
    model = RBFDiffNet("MS").fit(panel)
    with pytest.raises(AttributeError, match="use predict first"):
        model.chosen_  # noqa: B018
    model.predict(6)
    chosen = model.chosen_.set_index("unique_id")
    assert list(chosen.index) == ["season", "walk", "short"]
    members = chosen.drop(columns="season_length")
    np.testing.assert_allclose(members.loc[["season", "walk"]].sum(axis=1), 1.0)
    assert {name: members[name].mean() for name in members} == pytest.approx(model.weights_)


@pytest.mark.parametrize(
    ("lags", "text"), [((1,), "1"), ((1, 2), "1-2"), ((2, 4, 5, 6, 9), "2, 4-6, 9")]
)
def test_ranges(lags, text):
    assert _ranges(lags) == text

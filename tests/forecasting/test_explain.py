import numpy as np
import pandas as pd
import pytest

from rbfdiffnet import RBFDiffNetRegressor
from rbfdiffnet.forecaster import RBFDiffNet
from rbfdiffnet.models.networks.explain import operator_terms
from rbfdiffnet.models.networks.series_model import fit_local
from rbfdiffnet.models.plan import Plan
from rbfdiffnet.network.basis import derivatives
from rbfdiffnet.network.train import Settings
from rbfdiffnet.series.series import Series
from rbfdiffnet.series.transforms import Difference


@pytest.fixture
def sales(rng):
    frames = []
    for name, scale in (("a", 1.0), ("b", 50.0)):
        promotion = (rng.uniform(size=160) < 0.15).astype(float)
        y = 20.0 + 5.0 * np.sin(np.arange(160) * 2 * np.pi / 7) + rng.normal(size=160)
        frame = pd.DataFrame(
            {"ds": pd.date_range("2024-01-01", periods=160), "promotion": promotion}
        )
        frames.append(frame.assign(unique_id=name, y=scale * y * (1.0 + 0.4 * promotion)))
    return pd.concat(frames, ignore_index=True)


@pytest.mark.parametrize(
    "options",
    [
        {"scope": "local"},
        {"scope": "global"},
        {"strategy": "direct"},
        {"transforms": ["log1p", "standardize"]},
        {"transforms": [Difference(), "seasonal", "standardize"]},
        {"transforms": ["adf", "mean"], "lower": 25.0},
        {"scope": "local", "past_exog": ["promotion"]},
        {"regressor": RBFDiffNetRegressor(5, order=2, n_lags=3, width_factor=2.0)},
    ],
)
def test_contributions_add_up_to_the_forecast(options, sales):
    h = 10
    seen = sales[sales["ds"] < "2024-05-25"]
    future = sales[sales["ds"] >= "2024-05-25"].drop(columns="y")
    X_df = None if "past_exog" in options else future.groupby("unique_id").head(h)
    model = RBFDiffNet("D", **options).fit(seen, h=h)
    forecast = model.predict(h, X_df)
    table = model.explain(h, X_df)
    total = table.groupby(["unique_id", "ds"], sort=False)["contribution"].sum()
    np.testing.assert_allclose(total, forecast["RBFDiffNet"], rtol=1e-9)
    assert not table["part"].eq("guard").any()
    linear = table[table["part"] == "linear"]
    assert linear["term"].nunique() >= 3
    assert linear["value"].notna().all()


def operator_by_equation(network, rows):
    """What the operator adds, from derivatives of the basis functions by their inputs."""
    active = network.metric > 0
    near = ((rows - network.x_shift) / network.x_scale * network.metric)[:, active]
    tensor = derivatives(near, network.centers, network.beta, order=network.order)
    return tensor, network.w[:, 0] * network.y_scale[0]


@pytest.mark.parametrize("order_zero", [True, False])
def test_operator_terms_are_the_coefficients_of_the_equation(order_zero, rng):
    y = np.sin(np.arange(150) / 3.0) + 0.1 * rng.normal(size=150)
    metric = np.array([0.0, 1.0, 2.0])

    def settings(_n):
        return Settings(
            5, order=2, metric=metric, order_zero=order_zero, width_factor=1.0, alpha=1e-4
        )

    none = np.zeros((150, 0))
    model = fit_local(Series(y, none, none), Plan(settings, lags=(1, 2, 4), level="none"))
    terms = operator_terms(model, ())
    orders = [0] * order_zero + [1, 1, 2, 2]
    inputs = [""] * order_zero + ["lag 2", "lag 1"] * 2
    assert [(k, name) for k, name, _ in terms] == list(zip(orders, inputs, strict=True))
    rows = rng.normal(size=(20, 3))
    tensor, w = operator_by_equation(model.windows.network, rows)
    active = {"": 0, "lag 2": 0, "lag 1": 1}
    total = sum(value * tensor[k][:, :, active[name]] @ w for k, name, value in terms)
    _, _, exemplars = model.windows.network.contributions(rows)
    np.testing.assert_allclose(total, exemplars.sum(axis=1)[:, 0], atol=1e-9)


def test_ids_are_told_from_their_names(rng):
    y = rng.normal(size=(2, 30)).cumsum(axis=1)
    df = pd.concat(
        pd.DataFrame({"unique_id": [name] * 30, "ds": np.arange(30), "y": values}, dtype=object)
        for name, values in zip([1, "1"], y, strict=True)
    ).astype({"ds": int, "y": float})
    model = RBFDiffNet(1, scope="local").fit(df)
    expected = model.predict(1)["RBFDiffNet"]
    for k, name in enumerate([1, "1"]):
        total = model.explain(1, ids=[name])["contribution"].sum()
        assert total == pytest.approx(expected[k])

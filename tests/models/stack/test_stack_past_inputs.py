"""Inputs known only in the past, in the stack: what they are worth, and that they do no harm."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal

from panels import NAME, every_series, make_stores, to_polars
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.adapters import clusters
from rbfdiffnet.models import sampled
from rbfdiffnet.models.stack import direct
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.rows import RowMaker, choose_row_cut

LEAD = 4


def leading(n_series=12, n=90, lead=LEAD, seed=0):
    """Series that follow the column ``x`` so many days later, and a column of noise."""
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(n_series):
        x = rng.normal(size=n + lead)
        size = np.exp(rng.normal())
        part = {
            "unique_id": f"s{k:02d}",
            "ds": pd.date_range("2024-01-01", periods=n),
            "y": size * (40.0 + 3.0 * x[:n] + rng.normal(size=n)),
            "x": 7.0 * k + size * x[lead:],
            "noise": rng.normal(size=n),
        }
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


DF = leading()


def past(*columns, **options):
    return RBFDiffNet("D", past_exog=list(columns), **options)


def keep(df, *columns):
    return df[["unique_id", "ds", "y", *columns]]


def errors(model, df, h=4, n_windows=3):
    """Mean absolute errors of a backtest, each series in its own units."""
    found = model.cross_validation(df, h, n_windows=n_windows, level=None)
    sizes = df.groupby("unique_id")["y"].std()
    away = np.abs(found[NAME] - found["y"]) / found["unique_id"].map(sizes)
    return away.mean()


# Rows ---------------------------------------------------------------------------------------------


def inputs_by_hand(x, t, m, n_lags):
    """What a row knows at t of an input (T,) with gaps, value by value."""
    first = np.flatnonzero(np.isfinite(x))[0]
    filled = [x[first]] * first
    for value in x[first:]:
        filled.append(value if np.isfinite(value) else filled[-1])
    for lag in (m, 1):
        changes = [abs(filled[s] - filled[s - lag]) for s in range(first + lag, t + 1)]
        if changes := [change for change in changes if change > 0.0]:
            break
    else:
        return np.zeros(n_lags)
    unit = np.prod(np.power(changes, 1.0 / len(changes)))
    usual = np.median([filled[max(t - k, 0)] for k in range(24)])
    seen = [*(filled[max(t - k, 0)] for k in range(1, n_lags)), usual]
    return np.clip((np.array(seen) - filled[t]) / unit, -10.0, 10.0)


@pytest.mark.parametrize("m", [1, 7])
def test_inputs_in_rows_by_hand(rng, m):
    y = [rng.normal(size=n).cumsum() for n in (60, 45)]
    tables = [rng.normal(size=(n, 2)) for n in (60, 45)]
    tables[0][:5, 0] = tables[0][20:23, 1] = tables[1][-2:, 0] = np.nan
    tables[1][30, 1] = 1e6
    tables[1][:20, 0] = 3.0
    histories = Histories.of(y, m, past=tables)
    cut = choose_row_cut(histories, 3)
    assert cut.past_lags == min(cut.n_lags // 2, 8)
    maker = RowMaker.of(histories, cut)
    for i, table in enumerate(tables):
        for t in (3, 10, 30, len(table) - 1):
            row = maker.cut(np.array([i]), np.array([60 - len(table) + t])).X[0]
            found = row[-2 * cut.past_lags :].reshape(2, cut.past_lags)
            for j in range(2):
                expected = inputs_by_hand(table[:, j], t, m, cut.past_lags)
                assert_allclose(found[j], expected, rtol=1e-9, atol=1e-12)


def test_no_input_after_the_origin_enters_a_row(rng):
    y, x = rng.normal(size=(2, 80)).cumsum(axis=1), rng.normal(size=(2, 80, 1))
    later = x.copy()
    later[:, 50:] = 1e6 * rng.normal(size=(2, 30, 1))
    both = [Histories.of(y, 7, past=table) for table in (x, later)]
    rows = [
        RowMaker.of(own, choose_row_cut(own, 5)).cut(np.arange(2), np.array([49, 49]))
        for own in both
    ]
    assert_array_equal(rows[0].X, rows[1].X)


def test_delayed_inputs_are_those_of_earlier_steps(rng):
    x = rng.normal(size=(30, 2))
    own = Histories.of([rng.normal(size=30)], 1, past=[x])
    found = own.delay((0, 3)).past[0]
    assert_array_equal(found[:, 0], x[:, 0])
    assert_array_equal(found[3:, 1], x[:-3, 1])
    assert np.isnan(found[:3, 1]).all()
    assert np.isnan(own.delay((40, 0)).past[0][:, 0]).all()


# Worth and harm -----------------------------------------------------------------------------------


def test_an_input_that_leads_the_series_is_used():
    assert past("x").options.chosen_scope == "auto"
    without = errors(RBFDiffNet("D"), keep(DF))
    assert errors(past("x"), keep(DF, "x")) < 0.75 * without


def test_an_input_that_says_nothing_does_little_harm():
    without = errors(RBFDiffNet("D"), keep(DF))
    assert errors(past("noise"), keep(DF, "noise")) < 1.02 * without


def test_an_input_that_is_published_late_is_learned_as_such():
    """Two steps later, what it says of the last two of four steps is still known."""
    h, seen = 4, every_series(DF, slice(None, -4))
    actual = every_series(DF, slice(-4, None))
    late = seen.copy()
    late.loc[seen.groupby("unique_id").cumcount(ascending=False) < 2, "x"] = np.nan
    sizes = actual["unique_id"].map(DF.groupby("unique_id")["y"].std()).to_numpy()

    def away(df, *columns):
        found = past(*columns).forecast(keep(df, *columns), h, level=None)[NAME]
        return np.abs((found.to_numpy() - actual["y"].to_numpy()) / sizes).mean()

    now, then, never = away(seen, "x"), away(late, "x"), away(seen)
    assert now < then < 0.9 * never


def test_values_after_the_cutoff_change_nothing():
    changed = keep(DF, "x").copy()
    last = changed.groupby("unique_id").cumcount(ascending=False) < 4
    changed.loc[last, "x"] = 1e3
    expected = past("x").cross_validation(keep(DF, "x"), 4, n_windows=2, step_size=4)
    found = past("x").cross_validation(changed, 4, n_windows=2, step_size=4)
    assert_frame_equal(found, expected, check_exact=True)


def test_a_wild_value_moves_others_no_more_than_another_neighbor_does(rng):
    before = past("x").forecast(keep(DF, "x"), 4, level=None)
    others = before["unique_id"] != "s00"
    own = np.flatnonzero(DF["unique_id"] == "s00")

    def moved(values, rows):
        df = keep(DF, "x").copy()
        df.loc[rows, "x"] = values
        found = past("x").forecast(df, 4, level=None)
        assert np.isfinite(found[NAME]).all()
        return np.abs(found[NAME] - before[NAME])[others].max()

    usual = moved(rng.normal(size=own.size), own)
    assert moved(1e6, own[40]) < usual
    assert moved(-1e300, own[-1]) < usual


# Gaps and odd inputs ------------------------------------------------------------------------------


def test_gaps_in_an_input_are_filled_with_the_latest_value():
    gaps = keep(DF, "x").copy()
    gaps.loc[gaps.index[::9], "x"] = np.nan
    filled = gaps.assign(x=gaps.groupby("unique_id")["x"].ffill())
    found, expected = (past("x").forecast(df, 3) for df in (gaps, filled))
    assert_frame_equal(found, expected, check_exact=True)


def test_inputs_that_never_change_say_nothing():
    expected = RBFDiffNet("D").forecast(keep(DF), 3)
    empty = keep(DF).assign(x=np.nan)
    assert_frame_equal(past("x").forecast(empty, 3), expected, check_exact=True)
    same = keep(DF).assign(x=2.0)
    assert_frame_equal(past("x").forecast(same, 3), expected, check_exact=True)
    # Where it changes between series only, rows have columns of zeros.
    level = keep(DF).assign(x=DF.groupby("unique_id").ngroup() + 0.5)
    found = past("x").forecast(level, 3)
    assert_allclose(found[NAME], expected[NAME], rtol=0.02)


def test_texts_and_whole_numbers_are_inputs():
    df = keep(DF).assign(
        mood=np.where(DF["x"] > DF.groupby("unique_id")["x"].transform("median"), "up", "down"),
        count=np.rint(3.0 * DF["noise"]).astype(int),
    )
    assert past("mood", "count").fit(df).fitted_panel.exogenous.extra_names == (
        "mood=down",
        "mood=up",
        "count",
    )
    assert errors(past("mood"), keep(df, "mood")) < 0.9 * errors(RBFDiffNet("D"), keep(df))


def test_the_pretrained_network_has_no_use_for_them():
    for options in ({"preset": "instant"}, {"scope": "pretrained"}):
        with pytest.raises(ValueError, match="past_exog: the pretrained network learns nothing"):
            past("x", **options)


# Everything else of a forecaster ------------------------------------------------------------------


def test_explanations_say_what_inputs_add():
    model = past("x", "noise").fit(DF)
    found, terms = model.predict(4, level=None), model.explain(4)
    total = terms.groupby(["unique_id", "ds"], sort=False)["contribution"].sum()
    assert_allclose(total, found[NAME], rtol=1e-9)
    inputs = terms[terms["part"] == "past input"]
    assert inputs["term"].unique().tolist() == ["x", "noise"]
    sizes = inputs["contribution"].abs().groupby(inputs["term"]).mean()
    assert sizes["x"] > 3.0 * sizes["noise"]
    latest = DF.groupby("unique_id")["x"].last()
    assert_array_equal(inputs[inputs["term"] == "x"].groupby("unique_id")["value"].first(), latest)
    members = terms[terms["part"] == "member"]
    assert_allclose(members["contribution"], members["weight"] * members["value"])
    assert len(model.equation(["s00"]))


def test_saved_and_updated_models_go_on(tmp_path):
    df = keep(DF, "x").copy()
    df.loc[df.index[::11], "x"] = np.nan
    model = past("x").fit(every_series(df, slice(-5)))
    model.save(tmp_path / "model")
    newer = every_series(df, slice(-5, None))
    expected = past("x").fit(df).predict(3)
    for own in (model, RBFDiffNet.load(tmp_path / "model")):
        assert_frame_equal(own.update(newer).predict(3), expected, check_exact=True)
    paths = model.simulate(3, n_paths=20)
    assert np.isfinite(paths.select_dtypes("number")).all(axis=None)
    assert_frame_equal(past("x", n_jobs=2).forecast(df, 3), past("x").forecast(df, 3))


def test_the_order_of_series_and_the_kind_of_frame_do_not_matter():
    df = keep(DF, "x")
    expected = past("x").forecast(df, 3)
    shuffled = past("x").forecast(df.sample(frac=1.0, random_state=1), 3)
    joined = expected.merge(shuffled, on=["unique_id", "ds"])
    assert_allclose(joined[f"{NAME}_x"], joined[f"{NAME}_y"], rtol=1e-9)
    found = RBFDiffNet("1d", past_exog=["x"]).forecast(to_polars(df), 3)
    assert_array_equal(found[NAME].to_numpy(), expected[NAME])


def test_chunks_and_clusters_give_the_same_numbers(monkeypatch):
    monkeypatch.setattr(sampled, "MOST_LEARNED_FROM", 8)
    df = keep(DF, "x").copy()
    df.loc[df.groupby("unique_id").cumcount(ascending=False) < 1, "x"] = np.nan
    expected = past("x").forecast(df, 3, level=[80])
    monkeypatch.setattr(sampled, "_LARGEST_CHUNK", 200)
    in_chunks = past("x").forecast(df, 3, level=[80])
    assert_allclose(in_chunks.iloc[:, 2:], expected.iloc[:, 2:], rtol=1e-9)
    found = clusters.forecast(df, 3, level=[80], model=past("x"), group_size=3)
    found = found.sort_values(["unique_id", "ds"])
    assert_allclose(found.iloc[:, 2:], expected.iloc[:, 2:], rtol=1e-9)


def test_tensors_give_the_same_numbers(monkeypatch):
    torch = pytest.importorskip("torch")
    expected = past("x").forecast(keep(DF, "x"), 3, level=None)
    monkeypatch.setattr(direct, "place_on", lambda _: torch.as_tensor)
    found = past("x").forecast(keep(DF, "x"), 3, level=None)
    assert_allclose(found[NAME], expected[NAME], rtol=1e-9)


def test_inputs_of_groups_are_means_of_those_that_are_known(rng):
    df = make_stores(60).drop(columns="kind")
    df["x"] = np.where(rng.random(len(df)) < 0.2, np.nan, rng.normal(size=len(df)))
    model = RBFDiffNet("D", past_exog=["x"], hierarchy=["state", "store"]).fit(df)
    state = model.fitted_panel
    total = state.series[state.panel.names.index("Total")].extra[:, 0]
    assert_allclose(total, df.groupby("ds")["x"].mean())
    found = model.predict(3, level=None)
    sums = found[found["unique_id"].str.contains("@")].groupby("ds")[NAME].sum()
    assert_allclose(found[found["unique_id"] == "Total"].set_index("ds")[NAME], sums)

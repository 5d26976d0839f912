import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pandas.testing import assert_frame_equal

from panels import CONFIGURATIONS, KINDS, LOCAL, future_of, make_panel, to_polars
from rbfdiffnet import Event, Holidays, RBFDiffNet, RBFDiffNetRegressor, RBFNetworkRegressor
from rbfdiffnet.forecasting.saving import FORMAT_VERSION, write_arrays
from rbfdiffnet.series.transforms import Difference, Rescale


def with_odd_series(df):
    """A panel with series that get a fallback, too, and a gap."""
    a = df[df["unique_id"] == "a"]
    short = a.head(5).assign(unique_id="short")
    constant = a.head(40).assign(unique_id="constant", y=3.0)
    spike = a.assign(unique_id="spike", y=a["y"].where(np.arange(len(a)) != 70, 900.0))
    empty = a.head(9).assign(unique_id="empty", y=np.nan)
    parts = [short, df.drop(index=df.index[[40, 41]]), constant, spike, empty]
    return pd.concat(parts).reset_index(drop=True)


def roundtrip(model, path):
    model.save(path)
    return RBFDiffNet.load(path)


def rewritten(path, **changes):
    """Save the same file with other arrays; None leaves one out."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    write_arrays(path, {name: values for name, values in arrays.items() if values is not None})


def words_of(path):
    with np.load(path) as file:
        return json.loads(file["json"].tobytes())


def as_bytes(words):
    return np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A small saved model and its forecast."""
    path = tmp_path_factory.mktemp("models") / "model.npz"
    df = make_panel("ab", n=40)
    model = RBFDiffNet("D", preset="fast", lags=3, calendar=["dayofweek"]).fit(df)
    model.save(path)
    return path, model.predict(3, level=[80])


@pytest.fixture
def copy(saved, tmp_path):
    """A copy of the saved model, to be damaged."""
    path = tmp_path / "copy.npz"
    path.write_bytes(saved[0].read_bytes())
    return path


@pytest.mark.parametrize("name", KINDS)
def test_a_loaded_model_gives_the_same_bits(name, tmp_path):
    parameters, columns = CONFIGURATIONS[name]
    df = with_odd_series(make_panel(n=120, columns=columns))
    model = RBFDiffNet("D", **parameters).fit(df, h=4)
    loaded = roundtrip(model, tmp_path / "model.npz")
    X_df = future_of(model, 9, columns)
    expected = model.predict(9, X_df, level=[50, 90])
    assert_frame_equal(loaded.predict(9, X_df, level=[50, 90]), expected, check_exact=True)
    assert_frame_equal(loaded.fitted_values(), model.fitted_values(), check_exact=True)
    assert_frame_equal(loaded.explain(9, X_df), model.explain(9, X_df), check_exact=True)
    assert_frame_equal(loaded.equation(), model.equation(), check_exact=True)
    assert_frame_equal(loaded.make_future_frame(2), model.make_future_frame(2))
    assert_frame_equal(loaded.report_, model.report_)


@pytest.mark.parametrize("scope", ["local", "global"])
def test_a_loaded_model_goes_on_like_the_old_one(scope, tmp_path):
    df = make_panel(n=120)
    early, late = df[df["ds"] < "2023-04-20"], df[df["ds"] >= "2023-04-20"]
    model = RBFDiffNet("D", scope=scope).fit(early)
    loaded = roundtrip(model, tmp_path / "model.npz")
    again = roundtrip(loaded, tmp_path / "again.npz")
    for one in (model, loaded, again):
        one.update(late)
    expected = model.predict(5, level=[80])
    assert_frame_equal(loaded.predict(5, level=[80]), expected, check_exact=True)
    assert_frame_equal(again.predict(5, level=[80]), expected, check_exact=True)
    if scope == "global":
        new = make_panel("z", n=60, seed=5)
        assert_frame_equal(
            loaded.predict(5, level=[80], new_df=new),
            model.predict(5, level=[80], new_df=new),
            check_exact=True,
        )
    refitted = model.update(make_panel(n=4, start="2023-05-01"), refit=True)
    also = loaded.update(make_panel(n=4, start="2023-05-01"), refit=True)
    assert_frame_equal(also.predict(5), refitted.predict(5), check_exact=True)


def test_the_scope_is_saved_as_it_was_given(tmp_path):
    df, path = make_panel("ab", n=60), tmp_path / "model.npz"
    for parameters in ({}, {"scope": "auto"}, {"scope": "local"}, {"preset": "fast"}):
        model = RBFDiffNet("D", **parameters).fit(df)
        loaded = roundtrip(model, path)
        assert loaded.scope == words_of(path)["parameters"]["scope"] == parameters.get("scope")
        assert_frame_equal(loaded.predict(3), model.predict(3), check_exact=True)
    # Files from the time when local was the default name it.
    words = words_of(path)
    rewritten(path, json=as_bytes({**words, "parameters": {**words["parameters"], **LOCAL}}))
    old = RBFDiffNet.load(path)
    assert old.scope == "local"
    assert_frame_equal(old.predict(3), model.predict(3), check_exact=True)
    assert_frame_equal(old.fitted_values(), model.fitted_values(), check_exact=True)


@pytest.mark.parametrize(
    "parameters",
    [
        {"regressor": RBFDiffNetRegressor(n_centers=6, order=1, alpha=(1e-3, 1e-2))},
        {"regressor": RBFNetworkRegressor(n_centers=5, random_state=3)},
        {"transforms": ["log1p", Difference(7), Rescale(0.5, 2.0)]},
        {"lags": np.int64(4), "season_length": 5},
        {"lags": [np.int64(7), 1]},
        {"preset": "instant", "season_length": [np.int64(7), 21]},
        {"freq": pd.offsets.Day(), "n_jobs": 2},
        {"holidays": Holidays("US", lead=2, lag=np.int8(1))},
        {"events": [Event("a", ["2023-02-01"], lead=np.int64(2))]},
    ],
    ids=[
        "diffnet",
        "rbf",
        "steps",
        "lags",
        "list of lags",
        "seasons",
        "offset",
        "holidays",
        "events",
    ],
)
def test_parameters_survive(parameters, tmp_path):
    df = make_panel("ab", n=80)
    model = RBFDiffNet(**{"freq": "D", **parameters}).fit(df)
    loaded = roundtrip(model, tmp_path / "model.npz")
    for name in ("holidays", "season_length"):
        assert getattr(loaded, name) == getattr(model, name)
    assert_frame_equal(loaded.predict(5, level=[80]), model.predict(5, level=[80]))
    # Fitted anew, it is the same model, too.
    assert_frame_equal(loaded.fit(df).predict(5), model.predict(5), check_exact=True)


@pytest.mark.parametrize("h", [1, 3])
def test_a_direct_model_keeps_its_horizon(h, tmp_path):
    df = make_panel("ab", n=80)
    model = RBFDiffNet("D", preset="fast", strategy="direct").fit(df, h=h)
    loaded = roundtrip(model, tmp_path / "model.npz")
    assert_frame_equal(loaded.predict(5), model.predict(5), check_exact=True)
    later = make_panel("ab", n=5, start="2023-03-22")
    expected = model.update(later, refit=True).predict(5)
    found = loaded.update(later, refit=True).predict(5)
    assert_frame_equal(found, expected, check_exact=True)


def test_frames_look_the_same_after_loading(tmp_path):
    df = make_panel("ab", n=40)
    zoned = df.assign(
        ds=df["ds"].dt.tz_localize("Asia/Tokyo"), unique_id=pd.Categorical(df["unique_id"])
    )
    numbers = pd.DataFrame({"shop": np.repeat([7, 3], 40), "t": [*range(40)] * 2, "sales": df["y"]})
    names = {"id_col": "shop", "time_col": "t", "target_col": "sales"}
    for frame, freq, parameters in [(zoned, "D", {}), (numbers, 1, names)]:
        model = RBFDiffNet(freq, preset="fast", **parameters).fit(frame)
        loaded = roundtrip(model, tmp_path / "model.npz")
        assert_frame_equal(loaded.predict(2, level=[80]), model.predict(2, level=[80]))
    model = RBFDiffNet("D", preset="fast").fit(to_polars(df))
    loaded = roundtrip(model, tmp_path / "model.npz")
    assert isinstance(loaded.predict(2), pl.DataFrame)
    assert loaded.predict(2).equals(model.predict(2))


def test_a_long_history_is_cut_without_changing_forecasts(tmp_path):
    rng = np.random.default_rng(0)
    df = pd.concat(
        [
            pd.DataFrame(
                {
                    "unique_id": name,
                    "ds": np.arange(1941),
                    "y": 9.0 + np.sin(np.arange(1941) * 2 * np.pi / 7) + rng.normal(size=1941),
                }
            )
            for name in "ab"
        ]
    )
    df.loc[df["ds"].isin([5, 1000, 1500, 1938]), "y"] = np.nan
    model = RBFDiffNet(
        1,
        lags=14,
        season_length=7,
        regressor=RBFDiffNetRegressor(n_centers=28, metric="standard", width_factor=4.0),
    ).fit(df)
    path = tmp_path / "model.npz"
    loaded = roundtrip(model, path)
    assert path.stat().st_size < 2 * 20_000
    expected = model.predict(28, level=[80, 95])
    assert_frame_equal(loaded.predict(28, level=[80, 95]), expected, check_exact=True)
    numbers = ["contribution", "value", "weight", "activation"]
    assert_frame_equal(loaded.explain(3)[numbers], model.explain(3)[numbers], check_exact=True)
    fitted = loaded.fitted_values().merge(model.fitted_values(), on=["unique_id", "ds", "y"])
    late = fitted[fitted["ds"] > 1200]
    assert len(late) == 2 * 740
    np.testing.assert_array_equal(late["RBFDiffNet_x"], late["RBFDiffNet_y"])


def test_truncated_files_are_refused(saved, tmp_path):
    whole = saved[0].read_bytes()
    path = tmp_path / "short.npz"
    for size in [0, 1, 3, 4, 30, *range(100, len(whole), len(whole) // 40), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"short\.npz"):
            RBFDiffNet.load(path)


def test_flipped_bytes_are_refused_or_do_not_matter(saved, tmp_path):
    whole = saved[0].read_bytes()
    path = tmp_path / "flipped.npz"
    refused = 0
    # Every byte near the end, where the zip file keeps its directory, and many others.
    positions = sorted({*range(0, len(whole), 29), *range(len(whole) - 150, len(whole), 3)})
    for position in positions:
        for mask in (0xFF, 0x01):
            damaged = bytearray(whole)
            damaged[position] ^= mask
            path.write_bytes(damaged)
            try:
                loaded = RBFDiffNet.load(path)
            except ValueError as error:
                assert "flipped.npz" in str(error)  # noqa: PT017
                refused += 1
            else:  # a byte without meaning, such as the date of a member
                assert_frame_equal(loaded.predict(3, level=[80]), saved[1], check_exact=True)
    assert refused > len(positions)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.npz"

    def refused():
        with pytest.raises(ValueError, match=r"other\.npz"):
            RBFDiffNet.load(path)

    np.savez(path, x=np.arange(3))
    refused()
    np.savez(path, json=as_bytes({"format": "something else", "version": 1}))
    refused()
    np.savez(path, json=as_bytes([1, 2]))
    refused()
    np.savez(path, json=np.frombuffer(b"\xff{", dtype=np.uint8))
    refused()
    np.savez(path, json=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    refused()
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    refused()
    path.write_bytes(pickle.dumps({"format": "rbfdiffnet-forecaster"}))
    refused()
    path.write_text("not a model")
    refused()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "not an array")
    refused()
    with pytest.raises(FileNotFoundError):
        RBFDiffNet.load(tmp_path / "nothing.npz")


def test_pickled_objects_are_never_loaded(copy):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("executed",)

    with np.load(copy) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(copy, **arrays | {"panel/y": np.array([Trap()], dtype=object)})
    with pytest.raises(ValueError, match="damaged or not a model"):
        RBFDiffNet.load(copy)


def test_newer_versions_are_refused(copy):
    rewritten(copy, json=as_bytes({**words_of(copy), "version": FORMAT_VERSION + 1}))
    with pytest.raises(ValueError, match="newer"):
        RBFDiffNet.load(copy)


def test_incomplete_or_contradictory_files_are_refused(saved, tmp_path):
    whole, path = saved[0].read_bytes(), tmp_path / "odd.npz"
    words = words_of(saved[0])
    with np.load(saved[0]) as file:
        needed = [name for name in file.files if not name.startswith("panel/categories")]
    changes = [{name: None} for name in needed]
    changes += [{"json": as_bytes({k: v for k, v in words.items() if k != name})} for name in words]
    changes += [
        {"json": as_bytes({**words, "models": words["models"][:1]})},
        {"json": as_bytes({**words, "parameters": {**words["parameters"], "lags": "many"}})},
        {"json": as_bytes({**words, "parameters": {**words["parameters"], "more": 1}})},
        {"starts": np.zeros(9, dtype=np.int64)},
    ]
    for change in changes:
        path.write_bytes(whole)
        rewritten(path, **change)
        with pytest.raises(ValueError, match=r"odd\.npz"):
            RBFDiffNet.load(path)


def test_a_failed_save_leaves_the_old_file(saved, copy, monkeypatch):
    model = RBFDiffNet("D", preset="fast").fit(make_panel("a", n=40))

    def interrupted(file, *_, **__):
        file.write(b"half a file")
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", interrupted)
    with pytest.raises(OSError, match="disk full"):
        model.save(copy)
    monkeypatch.undo()
    assert copy.read_bytes() == saved[0].read_bytes()
    assert [file.name for file in copy.parent.iterdir()] == [copy.name]
    model.regressor = RBFDiffNetRegressor(centers=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(copy)
    assert copy.read_bytes() == saved[0].read_bytes()


def test_only_a_fitted_model_can_be_saved(tmp_path):
    with pytest.raises(RuntimeError, match="fit"):
        RBFDiffNet("D").save(tmp_path / "model.npz")


def test_the_name_of_the_file_is_taken_as_it_is(tmp_path):
    model = RBFDiffNet("D", preset="fast").fit(make_panel("a", n=40))
    model.save(str(tmp_path / "model"))
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    assert_frame_equal(RBFDiffNet.load(str(tmp_path / "model")).predict(2), model.predict(2))


@pytest.mark.parametrize("parameters", [LOCAL, {}, {"scope": "global"}], ids=str)
def test_fitted_forecasters_can_be_pickled(parameters):
    df = make_panel(n=60)
    model = RBFDiffNet("D", **parameters).fit(df)
    copied = pickle.loads(pickle.dumps(model))
    assert_frame_equal(copied.predict(4), model.predict(4))
    later = df.assign(ds=df["ds"] + pd.Timedelta(days=60))
    for each in (copied, model):
        each.update(later, refit=True)
    assert_frame_equal(copied.predict(4), model.predict(4))


@pytest.mark.parametrize("settings", [LOCAL, {"scope": "global"}, {"preset": "fast"}])
@pytest.mark.parametrize("missing", [slice(-1200, None), slice(-1100, -40)])
def test_long_gaps_at_the_end_lose_nothing(settings, missing, tmp_path):
    y = 30.0 + np.tile(np.arange(7.0), 360) + np.random.default_rng(0).normal(size=2520)
    y[missing] = np.nan
    dates = pd.date_range("2015-01-01", periods=2520)
    df = pd.DataFrame({"unique_id": "a", "ds": dates, "y": y})
    model = RBFDiffNet("D", **settings).fit(df)
    assert_frame_equal(roundtrip(model, tmp_path / "m").predict(9), model.predict(9))


def test_numbers_of_numpy_are_saved(tmp_path):
    settings = {
        "season_length": np.int64(7),
        "lags": np.array([1, 7]),
        "lower": np.float32(0),
        "outliers": np.bool_(True),
        "regressor": RBFDiffNetRegressor(np.int64(5), metric="standard", random_state=np.int64(3)),
    }
    model = RBFDiffNet("D", **settings).fit(make_panel("ab", n=60))
    loaded = roundtrip(model, tmp_path / "m")
    assert loaded.outliers is True
    assert_frame_equal(loaded.predict(3), model.predict(3))

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbfdiffnet.panel.encode import Encoder


def where(row):
    return f"series 'A' on day {row}"


def objects(*values):
    return np.array(values, dtype=object)


def column(values):
    """Return the encoding of one training column, with the names of the inputs."""
    encoder = Encoder.fit({"x": values}, where)
    return encoder.names, encoder.encode({"x": values}, where)


@given(st.lists(st.none() | st.sampled_from(["a", "b", "B", "", "ü", "a=b"]), min_size=1))
def test_text_equals_pandas_dummies(texts):
    names, encoded = column(objects(*texts))
    dummies = pd.get_dummies(pd.Series(texts, dtype=object), prefix="x", prefix_sep="=")
    if len(set(texts)) == 1:  # never changes
        dummies = dummies[[]]
    assert sorted(names) == sorted(dummies.columns)
    np.testing.assert_array_equal(encoded, dummies[list(names)].to_numpy(float))


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=200))
def test_whole_numbers_stay_and_equal_pandas_dummies(numbers):
    values = np.array(numbers, dtype=float)
    names, encoded = column(values)
    distinct = len(set(numbers))
    if distinct == 1:
        assert names == ()
        assert encoded.shape == (len(numbers), 0)
    elif 3 <= distinct <= 31:
        dummies = pd.get_dummies(pd.Series(numbers), prefix="x", prefix_sep="=")
        assert list(names) == ["x", *dummies.columns]
        np.testing.assert_array_equal(encoded[:, 0], values)
        np.testing.assert_array_equal(encoded[:, 1:], dummies.to_numpy(float))
    else:
        assert names == ("x",)
        np.testing.assert_array_equal(encoded[:, 0], values)


@pytest.mark.parametrize(
    ("distinct", "inputs"), [(1, 0), (2, 1), (3, 4), (31, 32), (32, 1), (100, 1)]
)
def test_how_many_whole_numbers_are_codes(rng, distinct, inputs):
    names, _ = column(rng.permutation(np.arange(3 * distinct) % distinct).astype(float))
    assert len(names) == inputs


def test_fractions_and_flags_stay_one_column():
    for values in ([0.0, 1.0, 0.0, 1.0], [1.0, 2.0, 2.5, 1.0]):
        names, encoded = column(np.array(values))
        assert names == ("x",)
        np.testing.assert_array_equal(encoded[:, 0], values)


def test_columns_keep_their_order_and_stand_side_by_side(rng):
    columns = {
        "b": rng.normal(size=20),
        "a": objects(*rng.choice(["x", "y"], 20)),
        "same": np.full(20, 3.0),
        "c": rng.integers(1, 4, 20).astype(float),
    }
    encoder = Encoder.fit(columns, where)
    assert encoder.names == ("b", "a=x", "a=y", "c", "c=1", "c=2", "c=3")
    alone = [Encoder.fit({k: v}, where).encode({k: v}, where) for k, v in columns.items()]
    np.testing.assert_array_equal(encoder.encode(columns, where), np.hstack(alone))


def test_new_texts_have_no_effect_and_new_numbers_only_their_slope():
    train = {"t": objects("a", "b", None), "n": np.array([1.0, 2.0, 3.0])}
    encoder = Encoder.fit(train, where)
    new = {"t": objects("c", None, float("nan")), "n": np.array([4.0, 2.5, -1.0])}
    assert encoder.names == ("t=a", "t=b", "n", "n=1", "n=2", "n=3")
    expected = np.zeros((3, 6))
    expected[:, 2] = new["n"]
    np.testing.assert_array_equal(encoder.encode(new, where), expected)


def test_a_text_that_is_sometimes_missing_changes():
    names, encoded = column(objects("sale", None, "sale"))
    assert names == ("x=sale",)
    np.testing.assert_array_equal(encoded[:, 0], [1, 0, 1])
    assert column(objects(None, None))[0] == ()


def test_categories_need_not_be_text():
    names, encoded = column(objects(10, 2, None, 10))
    assert names == ("x=10", "x=2")
    np.testing.assert_array_equal(encoded, [[1, 0], [0, 1], [0, 0], [1, 0]])


def test_rows_are_encoded_one_by_one(rng):
    columns = {
        "t": objects(*rng.choice(["a", "b", None], 30)),
        "n": rng.integers(0, 5, 30).astype(float),
        "f": rng.normal(size=30),
    }
    encoder = Encoder.fit(columns, where)
    single = [encoder.encode({k: v[[i]] for k, v in columns.items()}, where) for i in range(30)]
    np.testing.assert_array_equal(encoder.encode(columns, where), np.vstack(single))


def test_missing_numbers_get_the_mean_of_training():
    train = {
        "f": np.array([0.5, np.nan, 1.0, 3.0]),
        "n": np.array([1.0, 2.0, np.nan, 3.0]),
        "none": np.full(4, np.nan),
        "same": np.array([np.nan, 2.0, 2.0, 2.0]),
    }
    encoder = Encoder.fit(train, where, allow_missing=True)
    assert encoder.names == ("f", "n", "n=1", "n=2", "n=3")
    encoded = encoder.encode(train, where)
    known = ~np.isnan(np.column_stack([train["f"], *[train["n"]] * 4]))
    for inputs, given_ in zip(encoded.T, known.T, strict=True):
        np.testing.assert_allclose(inputs[~given_], inputs[given_].mean())
    # The means are those of training, whatever comes later.
    later = {"f": np.array([np.nan, 100.0]), "n": np.array([np.nan, 1.0])}
    np.testing.assert_allclose(encoder.encode(later, where)[0], encoded.mean(axis=0))


def test_no_columns_give_no_inputs():
    assert Encoder.fit({}, where).encode({"unused": np.zeros(3)}, where).shape == (3, 0)


@pytest.mark.parametrize("allow_missing", [False, True])
def test_json_restores_the_encoder(rng, allow_missing):
    columns = {
        "t": objects(*rng.choice(["a", "b", None], 30)),
        "n": rng.integers(0, 5, 30).astype(float),
        "f": rng.normal(size=30),
    }
    encoder = Encoder.fit(columns, where, allow_missing=allow_missing)
    restored = Encoder.from_json(json.loads(json.dumps(asdict(encoder))))
    assert restored == encoder
    np.testing.assert_array_equal(restored.encode(columns, where), encoder.encode(columns, where))


def test_a_missing_or_infinite_number_is_named():
    good = {"price": np.array([1.0, 2.5, 3.0])}
    encoder = Encoder.fit(good, where)
    for value, text in (
        (np.nan, "Column 'price' has no value for series 'A' on day 1; fill it in."),
        (-np.inf, "Column 'price' is infinite for series 'A' on day 1; correct it."),
    ):
        bad = {"price": np.array([1.0, value, value])}
        for use in (Encoder.fit, encoder.encode):
            with pytest.raises(ValueError, match=f"^{text}$"):
                use(bad, where)
    with pytest.raises(ValueError, match="infinite"):
        Encoder.fit({"price": np.array([1.0, np.inf])}, where, allow_missing=True)


def test_too_many_texts_are_refused():
    texts = [f"item {i}" for i in range(61)]
    assert len(column(objects(*texts[:60]))[0]) == 60
    with pytest.raises(ValueError, match=r"'x' has 61 different texts, .* leave the column out"):
        column(objects(*texts))


def test_a_column_that_is_gone_or_of_another_kind_is_named():
    encoder = Encoder.fit({"t": objects("a", "b"), "f": np.array([0.5, 1.0])}, where)
    with pytest.raises(ValueError, match=r"Column 'f' was there in training .* add it"):
        encoder.encode({"t": objects("a")}, where)
    with pytest.raises(ValueError, match=r"Column 't' held text in training and holds numbers"):
        encoder.encode({"t": np.ones(1), "f": np.ones(1)}, where)
    with pytest.raises(ValueError, match=r"Column 'f' held numbers in training and holds text"):
        encoder.encode({"t": objects("a"), "f": objects("1")}, where)


def test_a_column_without_any_value_may_be_of_either_kind():
    train = {"t": objects("a", "b"), "f": np.array([0.5, 1.0])}
    empty = {"t": np.full(1, np.nan), "f": objects(None)}
    encoder = Encoder.fit(train, where, allow_missing=True)
    np.testing.assert_array_equal(encoder.encode(empty, where), [[0.0, 0.0, 0.75]])
    with pytest.raises(ValueError, match="'f' has no value for series 'A' on day 0"):
        Encoder.fit(train, where).encode(empty, where)


def test_names_that_clash_are_refused():
    with pytest.raises(ValueError, match=r"Two inputs are called 'a=b'"):
        Encoder.fit({"a": objects("b", "c"), "a=b": np.array([0.0, 1.0])}, where)
    with pytest.raises(ValueError, match=r"Two inputs are called 'a=1'"):
        Encoder.fit({"a": np.arange(3.0), "a=1": np.array([0.0, 1.0, 0.0])}, where)

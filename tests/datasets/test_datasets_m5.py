import gzip
import zipfile

import numpy as np
import pandas as pd
import pytest

import rbfdiffnet.datasets.m5 as module
from m5_files import DAYS, items_frame, level8_frame, real_m5
from rbfdiffnet.datasets.m5 import M5_LEVEL8_SERIES, load_m5_level8

KAGGLE = r"https://www\.kaggle\.com/competitions/m5-forecasting-accuracy"
SALES = "sales_train_evaluation.csv"


few_rows = pytest.mark.filterwarnings("ignore:.* rows, the competition's has")


@pytest.fixture(scope="module")
def items():
    return items_frame()


@pytest.fixture(scope="module")
def level8():
    return level8_frame()


@pytest.fixture
def write(tmp_path):
    def write_frame(frame, name):
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write_frame


def test_series_are_the_papers_in_alphabetical_order():
    assert list(M5_LEVEL8_SERIES) == sorted(M5_LEVEL8_SERIES)
    assert len(M5_LEVEL8_SERIES) == 30
    assert M5_LEVEL8_SERIES[:4] == ("CA_1_FOODS", "CA_1_HOBBIES", "CA_1_HOUSEHOLD", "CA_2_FOODS")


@few_rows
def test_items_add_up_in_chunks(items, write, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 7)  # does not divide the 60 rows
    frame = load_m5_level8(write(items, SALES))
    names = items["store_id"] + "_" + items["cat_id"]
    expected = items[DAYS].groupby(names).sum().T
    assert frame.columns.tolist() == list(M5_LEVEL8_SERIES)
    np.testing.assert_array_equal(frame, expected[frame.columns])
    assert frame.index[[0, -1]].strftime("%Y-%m-%d").tolist() == ["2011-01-29", "2016-05-22"]


@few_rows
def test_folder_zip_and_file_give_the_same(items, write, tmp_path):
    file = write(items, SALES)
    expected = load_m5_level8(file)
    pd.testing.assert_frame_equal(load_m5_level8(tmp_path), expected)
    archive = tmp_path / "m5-forecasting-accuracy.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr("calendar.csv", "date\n")
        content.write(file, SALES)
    file.unlink()
    pd.testing.assert_frame_equal(load_m5_level8(archive), expected)
    pd.testing.assert_frame_equal(load_m5_level8(str(tmp_path)), expected)


def test_other_numbers_of_rows_get_a_warning(items, write, monkeypatch):
    file = write(items, SALES)
    with pytest.warns(UserWarning, match=f"{SALES}' has 60 rows, the competition's has 30,490"):
        load_m5_level8(file)
    monkeypatch.setattr(module, "_N_ITEMS", 60)
    load_m5_level8(file)


def test_ready_level8_file_in_any_column_order(level8, write, tmp_path):
    shuffled = level8[["WI_3_FOODS", *level8.columns.drop("WI_3_FOODS")]]
    frame = load_m5_level8(write(shuffled, "level8.csv"))
    np.testing.assert_array_equal(frame, level8[list(M5_LEVEL8_SERIES)])
    write(level8, "level8.csv.gz")
    (tmp_path / "level8.csv").unlink()
    pd.testing.assert_frame_equal(load_m5_level8(tmp_path), frame)


def test_real_data():
    frame = load_m5_level8(real_m5())
    assert frame.shape == (1941, 30)
    assert frame.iloc[0, :3].tolist() == [3239, 556, 542]


def test_missing_file_says_where_the_data_is(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"no file or folder '.*nowhere'; .*{KAGGLE}"):
        load_m5_level8(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=rf"no {SALES} in the folder .*{KAGGLE}"):
        load_m5_level8(tmp_path)
    (tmp_path / "sales_train_validation.csv").touch()
    with pytest.raises(FileNotFoundError, match="ends before the test days"):
        load_m5_level8(tmp_path)


def break_cell(frame, row, column, value):
    return (
        frame.astype({column: object})
        .set_axis(range(len(frame)))
        .assign(**{column: lambda f: [value if i == row else v for i, v in enumerate(f[column])]})
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="cat_id"), "has no column 'cat_id'"),
        (lambda f: f.drop(columns="d_77"), "has no column 'd_77'"),
        (lambda f: f.iloc[:, :-28], "has no column 'd_1914' and 27 more"),
        (lambda f: break_cell(f, 4, "d_9", "x"), "line 6, column 'd_9': .*found 'x'"),
        (lambda f: break_cell(f, 4, "d_9", None), "line 6, column 'd_9': .*found an empty cell"),
        (lambda f: break_cell(f, 4, "d_9", -1), "line 6, column 'd_9': .*found '-1'"),
        (lambda f: break_cell(f, 4, "store_id", "NY_1"), "line 6: .*'NY_1_HOBBIES'"),
        (lambda f: f.iloc[:-1], "incomplete: 1 rows for store 'CA_1' and category 'FOODS'"),
        (lambda f: f.iloc[:20], "incomplete: 0 rows for store 'CA_1'"),
        (
            lambda f: pd.concat([f, f]),
            "line 62, column 'id': 'HOUSEHOLD_1_000_WI_3_evaluation' is on line 2 already",
        ),
        (
            lambda f: pd.concat([f, f.iloc[[8]]]).drop(columns="id"),
            "line 62, columns 'item_id' and 'store_id': 'FOODS_1_000 WI_1' is on line 10 already",
        ),
    ],
)
def test_broken_items_file(change, message, items, write, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 7)
    file = write(change(items), SALES)
    with pytest.raises(ValueError, match=f"{SALES}'.*{message}.*{KAGGLE}"):
        load_m5_level8(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="TX_2_FOODS"), "has no column 'TX_2_FOODS';"),
        (lambda f: f.iloc[:-1], "has 1940 days, M5 has 1941"),
        (lambda f: break_cell(f, 2, "CA_1_FOODS", "?"), r"line 4, column 'CA_1_FOODS'.*'\?'"),
        (lambda f: f.iloc[::-1], "line 2, column 'd': expected 'd_1', found 'd_1941'"),
        (
            lambda f: f.iloc[::-1].drop(columns="d"),
            "line 2, column 'date': expected '2011-01-29', found '2016-05-22'; sort the days",
        ),
        (
            lambda f: f.assign(date=[*f["date"][:7], *f["date"][6:-1]]),
            "line 9, column 'date': expected '2011-02-05', found '2011-02-04'",
        ),
        (lambda f: break_cell(f, 9, "date", None), "line 11, column 'date'"),
    ],
)
def test_broken_level8_file(change, message, level8, write):
    with pytest.raises(ValueError, match=f"other.csv'.*{message}"):
        load_m5_level8(write(change(level8), "other.csv"))


def test_files_that_are_no_csv(tmp_path, level8):
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(ValueError, match=f"empty.csv' cannot be read as CSV.*{KAGGLE}"):
        load_m5_level8(empty)
    archive = tmp_path / "m5.zip"
    archive.write_bytes(b"PK no zip")
    with pytest.raises(ValueError, match=r"m5\.zip' cannot be read"):
        load_m5_level8(archive)
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("calendar.csv", "date\n")
    with pytest.raises(ValueError, match=f"there is no {SALES} in it"):
        load_m5_level8(archive)
    cut = tmp_path / "level8.csv.gz"
    packed = gzip.compress(level8.to_csv(index=False).encode())
    cut.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ValueError, match=r"level8\.csv\.gz' (is damaged|cannot be read)"):
        load_m5_level8(cut)

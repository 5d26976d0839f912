"""Tables as spreadsheets and R write them: months as columns, totals, titles, units, row names."""

import pandas as pd
import pytest

from cli_files import fails
from rbfdiffnet.readers import ColumnChoices, read_data

MONTHS = pd.date_range("2021-01-01", periods=24, freq="MS")
GERMAN = ["Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"]


def values(data):
    return data.frame()["y"].tolist()


def sales(steps, names=("Region", "Product"), *, more="", last=()):
    """Lines of a table with a row for each region and product, and a column for each month."""
    lines = [",".join([*names, *steps]) + (f",{more}" if more else "")]
    for k, (region, product) in enumerate((r, p) for r in ("North", "South") for p in "ABC"):
        cells = {
            "Region": region,
            "Product": product,
            "SKU": f"{1000 + k}",
            "Name": region + product,
        }
        numbers = [100 * k + i for i in range(len(steps))]
        total = f',"{30 * sum(numbers) + 1000:,}"' if more else ""
        lines.append(",".join([*(cells[n] for n in names), *map(str, numbers)]) + total)
    return [*lines, *last]


PAIRS = ["North/A", "North/B", "North/C", "South/A", "South/B", "South/C"]


# Months as columns ----------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("Region", "Product", "SKU"), ("Region", "Product"), ("Name",)])
@pytest.mark.parametrize(
    "steps",
    [
        MONTHS.strftime("%b-%y"),
        MONTHS.strftime("%b %Y"),
        MONTHS.strftime("%b-%Y"),
        MONTHS.strftime("%d-%b-%y"),
        [f"{GERMAN[day.month - 1]}-{day:%y}" for day in MONTHS],
        [f"{GERMAN[day.month - 1]} {day:%Y}" for day in MONTHS],
    ],
)
def test_columns_are_months_as_people_write_them(write, steps, names):
    for layout in (None, "rows"):
        data = read_data(write(*sales(steps, names)), ColumnChoices(layout))
        assert (data.freq, data.series.n_series) == ("MS", 6)
        assert data.frame()["ds"].tolist() == [*MONTHS] * 6
        assert values(data)[-24:] == [500 + i for i in range(24)]
    told = read_data(
        write(*sales(steps, ("Region", "Product"))), ColumnChoices(ids=["Product", "Region"])
    )
    assert told.ids[:2] == ["A/North", "B/North"]


def test_days_of_one_month_are_counted(write):
    days = [f"Jan-{i:02d}" for i in range(1, 25)]
    assert read_data(write(*sales(days, ("Name",)))).frame()["ds"].tolist() == [*range(1, 25)] * 6


def test_a_step_that_was_given_is_not_asked_for(capsys, write):
    lines = [f"{shop},{kind},{i}" for i, (shop, kind) in enumerate(("ax", "ay", "bx"))]
    told = ("--horizon", 1, "--id-col", "shop", "kind", "--freq", "MS")
    message = fails(capsys, "forecast", write("shop,kind,y", *lines), *told)
    assert "--freq MS: " in message
    assert "has no dates, and no series has two rows to count; name the column of dates" in message

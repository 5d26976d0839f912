import numpy as np
import pandas as pd

from cli_files import panel, run
from rbfdiffnet.panel.calendar import find_closed_weekdays, is_daily, name_weekdays
from rbfdiffnet.panel.frequency import Frequency


def test_weekdays_without_values_are_named():
    days = pd.date_range("2024-01-01", periods=60)
    kept = [days[days.day_of_week != 6], days, days[days.day_of_week == 2], days[:20:7]]
    series = np.repeat(np.arange(4), [len(part) for part in kept])
    closed = find_closed_weekdays(series, np.concatenate([part.to_numpy() for part in kept]), 5)
    found = [name_weekdays(row) for row in closed]
    assert found[:2] == ["Sundays", ""]
    assert found[2] == "Mondays, Tuesdays, Thursdays, Fridays, Saturdays and Sundays"
    assert found[3:] == ["", ""]  # too short, and none


def test_days_are_daily_and_business_days_are_not():
    assert [is_daily(Frequency.parse(f)) for f in ("D", "B", "W", "MS", 1)] == [True] + 4 * [False]
    assert not is_daily(None)


def test_closed_days_that_have_rows_are_named(capsys, tmp_path):
    frame = panel(2, 60)
    frame.loc[frame["ds"].dt.day_of_week == 0, "y"] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    code, _, err = run(capsys, "forecast", tmp_path / "a.csv", "--horizon", 2, "--scope", "local")
    assert code == 0
    assert "no value on Mondays, ever" in err
    assert "(and 1 more series)" in err

"""Reports: frames that do not fit together, and texts that are markup."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fuzzing.anything import anything
from fuzzing.claims import Refused, attempt
from fuzzing.frames import DATES, IDS, TARGETS
from fuzzing.trial import for_all
from panels import make_panel
from rbfdiffnet.report import write_report

SCRIPT = "</script><script>alert('found')</script><img src=x onerror=alert(1)>"
EVERY = {**TARGETS, **IDS, **DATES}


def parts(name="a"):
    """History, forecasts, backtest, explanations, notes."""
    history = make_panel([name], n=30)
    ahead = pd.date_range("2023-01-31", periods=3)
    forecasts = pd.DataFrame({"unique_id": name, "ds": ahead, "M": 60.0})
    forecasts = forecasts.assign(**{"M-lo-80": 50.0, "M-hi-80": 70.0})
    backtest = history.tail(3).assign(cutoff=history["ds"].iloc[-4], M=61.0)
    notes = pd.DataFrame({"unique_id": [name], "problem": [name], "action": ["none"]})
    return {"history": history, "forecasts": forecasts, "backtest": backtest, "notes": notes}


@for_all(
    name=st.one_of(st.just("a"), st.just(SCRIPT), st.text(max_size=9)),
    changed=st.sampled_from(["nothing", "history", "forecasts", "backtest", "notes"]),
    change=st.one_of(st.sampled_from(sorted(EVERY)), st.just("anything")),
    value=anything,
    left_out=st.sets(st.sampled_from(["backtest", "notes"])),
    title=st.one_of(st.none(), st.just(SCRIPT), anything),
    season_length=st.one_of(st.none(), st.just(7), anything),
    freq=st.one_of(st.none(), st.just("D"), anything),
    seed=st.integers(0, 9),
)
def reports_of_any_kind(name, changed, change, value, left_out, title, season_length, freq, seed):
    given_parts = {key: part for key, part in parts(name).items() if key not in left_out}
    if changed in given_parts:
        if change == "anything":
            given_parts[changed] = value
        else:
            try:
                rng = np.random.default_rng(seed)
                given_parts[changed] = EVERY[change](given_parts[changed], rng)
            except Exception:  # the part has no such column, or no such values
                return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        found = attempt(
            lambda: write_report(
                path,
                given_parts.pop("history"),
                given_parts.pop("forecasts"),
                title=title,
                season_length=season_length,
                freq=freq,
                **given_parts,
            )
        )
        assert path.exists() != isinstance(found, Refused)
        if path.exists():
            page = path.read_text(encoding="utf-8")
            assert SCRIPT not in page
            assert page.rstrip().endswith("</html>")

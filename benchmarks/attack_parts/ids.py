"""Names of series and columns."""

from decimal import Decimal

import numpy as np
import pandas as pd

from attack_parts.registry import Cases, Group
from fuzzing.claims import Refused, attempt
from panels import NAME, make_panel
from rbfdiffnet import RBFDiffNet

GROUP = Group("ids", "Names of series")
promise = GROUP.promise
ALIKE = (
    *((1, True), (0, False), (1.0, True), (1, "1"), (True, "True"), (1.5, "1.5")),
    *(("a", "a "), ("a", "A"), ("a", "a\x00"), ("", " "), ("é", "e\u0301"), ("a", b"a")),
    *(("nan", float("nan")), ("None", None), (2**53, 2**53 + 1), (Decimal("1.5"), "1.5")),
    *(("1", "01"), ("1", "1.0"), ("ß", "ss"), ("K", "\u212a"), (10**17, float(10**17 + 16))),
)


@promise(
    "Two ids are never taken for one: each has its own forecast, or the frame is refused",
    "forecaster.md",
    "pairs of ids that look alike or are equal in Python, series at 60 and 1060",
)
def ids_that_look_alike(cases: Cases) -> None:
    df = make_panel("ab", n=30)
    for low, high in ALIKE:
        with cases(f"{low!r} and {high!r}"):
            ids = pd.Series([low] * 30 + [high] * 30, dtype=object)
            y = 60.0 + 1000.0 * (df["unique_id"] == "b") + df["y"] % 5
            both = df.assign(unique_id=ids, y=y)
            found = attempt(lambda d=both: RBFDiffNet("D", preset="fast").forecast(d, 2))
            if isinstance(found, Refused):
                continue
            assert len(found) == 4, f"{len(found)} rows"
            assert found[NAME].max() > 1000.0 > 500.0 > found[NAME].min(), found[NAME].tolist()


@promise(
    "Ids come back as they were, in the order of their first rows",
    "forecaster.md",
    "ids of ten types, series in random order",
)
def ids_come_back(cases: Cases) -> None:
    df = make_panel("abcd", n=30)
    kinds = {
        "text": lambda k: f"s{k}",
        "unicode": lambda k: f"{k}\u202e😀ß\n",
        "integers": lambda k: 10**15 + k,
        "negative": lambda k: -k,
        "floats": lambda k: k + 0.5,
        "formulas": lambda k: f"={k}+1",
        "markup": lambda k: f"<b onclick=x>{k}</b>",
        "long": lambda k: f"{k}" * 2000,
        "spaces": lambda k: " " * (k + 1),
        "numbers as text": lambda k: f"00{k}",
    }
    for kind, name in kinds.items():
        with cases(kind):
            order = cases.rng.permutation(4)
            parts = [df[df["unique_id"] == "abcd"[k]].assign(unique_id=name(int(k))) for k in order]
            own = pd.concat(parts, ignore_index=True)
            found = RBFDiffNet("D", preset="fast").forecast(own, 2)
            assert found["unique_id"].dtype == own["unique_id"].dtype
            assert (
                found["unique_id"].tolist() == own["unique_id"].drop_duplicates().repeat(2).tolist()
            )


@promise(
    "Other names of series change nothing",
    "versions.md",
    "series renamed, in local and pooled settings",
)
def other_names(cases: Cases) -> None:
    df = make_panel("abc", n=60)
    for parameters in ({}, {"preset": "fast"}, {"scope": "local"}, {"scope": "global"}):
        with cases(parameters):
            expected = RBFDiffNet("D", **parameters).forecast(df, 4, level=[80])
            renamed = df.assign(unique_id=df["unique_id"].map({"a": "z", "b": "0", "c": "😀"}))
            found = RBFDiffNet("D", **parameters).forecast(renamed, 4, level=[80])
            np.testing.assert_allclose(found.iloc[:, 2:], expected.iloc[:, 2:], rtol=1e-9)


@promise(
    "Names are text in reports, never markup; the page allows no other script and no network",
    "report.md",
    "random frames, and ids, titles and notes that are scripts",
)
def names_in_reports(cases: Cases) -> None:
    cases.fuzz("reports", 120)
    cases.tests("report/test_report_markup.py")


@promise(
    "No name steers the terminal",
    "SECURITY.md",
    "ids, columns, files and options with escape sequences, in nine commands",
)
def names_on_the_terminal(cases: Cases) -> None:
    cases.tests(
        "test_security.py::test_nothing_that_is_read_steers_the_terminal",
        "test_security.py::test_the_terminal_gets_quiet_forecasts_without_escapes",
    )


@promise(
    "Columns may have any names; only those in use are asked for",
    "forecaster.md",
    "other names of all three columns, and names of ours among the inputs",
)
def names_of_columns(cases: Cases) -> None:
    df = make_panel("ab", n=40)
    expected = RBFDiffNet("D", preset="fast").forecast(df, 2, level=[80]).to_numpy()
    for names in (("item", "day", "sold"), ("ds", "y", "unique_id"), ("y", "unique_id", "ds")):
        with cases(names):
            own = df.set_axis(list(names), axis=1)
            columns = dict(zip(("id_col", "time_col", "target_col"), names, strict=True))
            found = RBFDiffNet("D", preset="fast", **columns).forecast(own, 2, level=[80])
            assert list(found.columns[:2]) == list(names[:2])
            assert (found.to_numpy() == expected).all()
    for name in ("RBFDiffNet", "cutoff", "RBFDiffNet-lo-80"):
        with cases(f"an input called {name}"):
            own = df.assign(**{name: 1.0})
            model = attempt(lambda d=own: RBFDiffNet("D", preset="fast").fit(d), naming=[name])
            if not isinstance(model, Refused):
                plan = model.make_future_frame(2).assign(**{name: 1.0})
                found = model.predict(2, X_df=plan, level=[80])
                assert not found.columns.duplicated().any(), list(found.columns)

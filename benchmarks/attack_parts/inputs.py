"""Inputs, arguments and what is known ahead."""

import numpy as np
import pandas as pd

from attack_parts.registry import SETTINGS, Cases, Group, refused
from fuzzing.claims import Refused, attempt
from panels import NAME, make_panel, make_stores
from rbfdiffnet import Event, Holidays, RBFDiffNet

GROUP = Group("inputs", "Inputs and arguments")
promise = GROUP.promise


def _with_price(parameters: dict, n: int = 70) -> tuple[RBFDiffNet, pd.DataFrame]:
    """A model of three series with prices of 1 to 3, and a plan of seven days at 2."""
    model = RBFDiffNet("D", **parameters).fit(make_panel("abc", n=n, columns=("price",)))
    return model, model.make_future_frame(7).assign(price=2.0)


@promise(
    "An input far outside of what was trained on gets a line in `report_`",
    "inputs.md",
    "a price of 2e6, of -500 and of 60 after prices of 1 to 3, on one day, in four settings",
)
def inputs_far_out(cases: Cases) -> None:
    for name, parameters in SETTINGS.items():
        model, plan = _with_price(parameters)
        usual = len(_lines(model, plan, "price"))
        for price in (2e6, -500.0, 60.0):
            with cases(f"{price:g}, {name}"):
                odd = plan.assign(price=np.where(np.arange(21) == 8, price, 2.0))
                lines = _lines(model, odd, "price")
                assert len(lines) > usual, "no line about the price"
                assert set(lines["unique_id"]) == {"b"}, set(lines["unique_id"])


@promise(
    "An input that never changed in training and changes ahead gets a line in `report_`",
    "inputs.md",
    "a column of 0 that becomes 1, and a text that becomes another one, in four settings",
)
def inputs_that_never_changed(cases: Cases) -> None:
    df = make_panel("ab", n=70)
    for name, parameters in SETTINGS.items():
        for before, after in ((0, 1), (0.0, 1.0), ("none", "flyer")):
            with cases(f"{before!r} becomes {after!r}, {name}"):
                model = RBFDiffNet("D", **parameters).fit(df.assign(offer=before))
                plan = model.make_future_frame(3)
                assert not len(_lines(model, plan.assign(offer=before), "offer"))
                assert len(_lines(model, plan.assign(offer=after), "offer")), "no line"


def _lines(model: RBFDiffNet, plan: pd.DataFrame, column: str) -> pd.DataFrame:
    """Lines of the report on a column, after a forecast."""
    model.predict(plan.groupby("unique_id").size().iloc[0], X_df=plan)
    report = model.report_
    return report[report["problem"].astype(str).str.contains(column)]


@promise(
    "A value ahead that is missing, or a row that is not needed, is named: series, date, column",
    "inputs.md",
    "rows left out, repeated, added, values missing, infinite, text, in four settings",
)
def inputs_ahead(cases: Cases) -> None:
    for name, parameters in SETTINGS.items():
        model, plan = _with_price(parameters)
        date = str(plan["ds"].iloc[9].date())
        damages = {
            "left out": plan.drop(index=9),
            "missing": plan.assign(price=plan["price"].mask(plan.index == 9)),
            "infinite": plan.assign(price=plan["price"].mask(plan.index == 9, np.inf)),
            "repeated": pd.concat([plan, plan.iloc[[9]].assign(price=1.0)]),
        }
        for kind, damaged in damages.items():
            with cases(f"{kind}, {name}"):
                refused(lambda m=model, d=damaged: m.predict(7, X_df=d), "'b'", date, "price")
        for kind, damaged in {
            "no column": plan.drop(columns="price"),
            "text": plan.assign(price="a"),
            "none at all": None,
        }.items():
            with cases(f"{kind}, {name}"):
                refused(lambda m=model, d=damaged: m.predict(7, X_df=d), "price")


@promise(
    "Rows ahead may come in any order",
    "inputs.md",
    "X_df shuffled, in four settings",
)
def rows_ahead_in_any_order(cases: Cases) -> None:
    for name, parameters in SETTINGS.items():
        model, plan = _with_price(parameters)
        plan["price"] = cases.rng.uniform(1.0, 3.0, len(plan))
        expected = model.predict(7, X_df=plan, level=[80])
        for trial in range(3):
            with cases(f"{name}, {trial}"):
                mixed = plan.iloc[cases.rng.permutation(len(plan))]
                found = model.predict(7, X_df=mixed, level=[80])
                pd.testing.assert_frame_equal(found, expected, check_exact=True)


@promise(
    "A text never seen before is taken, and forecasts stay finite",
    "forecaster.md",
    "another text ahead, in one row and in all, in four settings",
)
def texts_never_seen(cases: Cases) -> None:
    df = make_panel("ab", n=70, columns=("offer",))
    for name, parameters in SETTINGS.items():
        model = RBFDiffNet("D", **parameters).fit(df)
        plan = model.make_future_frame(4)
        for k in (1, 8):
            with cases(f"{k} rows, {name}"):
                offers = ["never seen"] * k + ["none"] * (8 - k)
                found = model.predict(4, X_df=plan.assign(offer=offers), level=[80])
                assert np.isfinite(found.iloc[:, 2:].to_numpy()).all()


@promise(
    "Nothing looks ahead: a backtest does not depend on what came after its cutoff",
    "forecaster.md",
    "values, and columns known afterwards, replaced by others behind each cutoff, in five settings",
)
def nothing_looks_ahead(cases: Cases) -> None:
    df = make_panel("abc", n=80, columns=("price", "visitors"))
    past = {"past_exog": ["visitors"], "strategy": "direct", "preset": "fast"}
    for name, parameters in {**SETTINGS, "past": past}.items():
        own = df if name == "past" else df.drop(columns="visitors")
        model = RBFDiffNet("D", **parameters)
        expected = model.cross_validation(own, 7, n_windows=2, level=[80])
        for cutoff, window in expected.groupby("cutoff"):
            with cases(f"{cutoff.date()}, {name}"):
                later = own["ds"] > cutoff
                noise = cases.rng.normal(0.0, 1e4, len(own))
                changed = own.assign(y=own["y"].where(~later, noise))
                if name == "past":
                    changed["visitors"] = own["visitors"].where(~later, 7)
                found = model.cross_validation(changed, 7, n_windows=2, level=[80])
                found = found[found["cutoff"] == cutoff]
                columns = [c for c in found if c.startswith(NAME)]
                np.testing.assert_array_equal(found[columns], window[columns])


@promise(
    "Every scenario gets the numbers that it would get alone",
    "inputs.md",
    "three plans of prices together and one by one, in four settings",
)
def scenarios(cases: Cases) -> None:
    for name, parameters in SETTINGS.items():
        model, plan = _with_price(parameters)
        futures = {f"at {price}": plan.assign(price=price) for price in (1.0, 2.0, 3.0)}
        parts = [future.assign(scenario=key) for key, future in futures.items()]
        together = model.predict(7, X_df=pd.concat(parts), level=[80])
        for key, future in futures.items():
            with cases(f"{key}, {name}"):
                alone = model.predict(7, X_df=future, level=[80])
                own = together[together["scenario"] == key].drop(columns="scenario")
                pd.testing.assert_frame_equal(own.reset_index(drop=True), alone, check_exact=True)


@promise(
    "Explanations add up exactly to the forecast",
    "explanations.md",
    "sums of all terms with inputs, in four settings",
)
def explanations(cases: Cases) -> None:
    for name, parameters in SETTINGS.items():
        with cases(name):
            model, plan = _with_price(parameters)
            forecast = model.predict(7, X_df=plan)[NAME].to_numpy()
            terms = model.explain(7, X_df=plan)
            sums = terms.groupby(["unique_id", "ds"], sort=False)["contribution"].sum()
            np.testing.assert_allclose(sums.to_numpy(), forecast, rtol=1e-9)


@promise(
    "Forecasts of a hierarchy add up, and so do sums over time",
    "hierarchies.md",
    "groups of two levels by four ways to reconcile; weeks against their days",
)
def sums(cases: Cases) -> None:
    df = make_stores(n=60).drop(columns="kind")
    for way in ("structural", "mint", "bottom_up"):
        with cases(way):
            model = RBFDiffNet("D", hierarchy=["state", "store"], reconcile=way).fit(df)
            found = model.predict(5)
            levels = model.hierarchy_.set_index("unique_id")
            wide = found.pivot(index="ds", columns="unique_id", values=NAME)
            series = [i for i in wide if i in set(df["unique_id"])]
            total = next(
                i for i in wide if i not in series and "/" not in i and i not in ("CA", "TX")
            )
            assert len(levels) == wide.shape[1]
            np.testing.assert_allclose(wide[series].sum(axis=1), wide[total], rtol=1e-9)
            for state in ("CA", "TX"):
                own = [i for i in series if i.partition("@")[2].startswith(state)]
                np.testing.assert_allclose(wide[own].sum(axis=1), wide[state], rtol=1e-9)
    for name, parameters in SETTINGS.items():
        with cases(f"weeks, {name}"):
            model = RBFDiffNet("D", **parameters).fit(make_panel("ab", n=60))
            days = model.predict(14)[NAME].to_numpy().reshape(2, 2, 7).sum(axis=2)
            weeks = model.predict(14, totals=7)[NAME].to_numpy().reshape(2, 2)
            np.testing.assert_allclose(weeks, days, rtol=1e-9)


@promise(
    "A whole number means the same in every type, a wrong argument is refused by its name",
    "forecaster.md",
    "eleven arguments as small types of NumPy; random parameters, methods and updates",
)
def arguments(cases: Cases) -> None:
    df = make_panel("ab", n=100)

    def fast(**parameters) -> RBFDiffNet:
        return RBFDiffNet("D", preset="fast", **parameters)

    event = ["2023-02-10", "2023-03-10"]
    calls = {
        "h": lambda t: fast().forecast(df, t(100), level=[80]),
        "h, default": lambda t: RBFDiffNet("D").forecast(df, t(100), level=[80]),
        "lags": lambda t: fast(lags=t(40)).forecast(df, 5),
        "season_length": lambda t: fast(season_length=t(30)).forecast(df, 5),
        "windows": lambda t: fast().cross_validation(df, t(10), n_windows=t(2), step_size=t(9)),
        "lead, lag": lambda t: fast(events=[Event("e", event, t(3), t(2))]).forecast(df, 5),
        "holidays": lambda t: fast(holidays=Holidays("US", lead=t(3))).forecast(df, 5),
        "n_paths": lambda t: fast().fit(df).simulate(t(9), n_paths=t(100), seed=t(0)),
        "totals": lambda t: fast().fit(df).predict(t(120), totals=t(100)),
        "n_jobs": lambda t: fast(n_jobs=t(2)).forecast(df, 5),
    }
    for name, call in calls.items():
        expected = call(int)
        for kind in (np.uint8, np.int8, np.int64):
            with cases(f"{name} as {kind.__name__}"):
                pd.testing.assert_frame_equal(call(kind), expected, check_exact=True)
    for target in ("forecaster parameters", "forecaster methods", "forecaster updates"):
        cases.fuzz(target, 120)


@promise(
    "A level makes columns of its own, or is refused",
    "intervals.md",
    "levels that differ in the last digits, near 0 and near 100",
)
def levels(cases: Cases) -> None:
    model = RBFDiffNet("D", preset="fast").fit(make_panel("a", n=60))
    for given in (
        [80, 80.0000001],
        [99.99999],
        [99.9999999999],
        [1e-9],
        [80, 80],
        [0],
        [100],
        [101],
    ):
        with cases(given):
            found = attempt(lambda g=given: model.predict(2, level=g), naming=["level"])
            if isinstance(found, Refused):
                continue
            assert found.shape[1] == 3 + 2 * len(set(given)), list(found.columns)
            assert "RBFDiffNet-lo-100" not in found, "a level below 100 is called 100"


@promise(
    "A rare value of an input is no typo, and has its effect",
    "inputs.md",
    "discounts on 4 % of days, with and without an absurd one",
)
def rare_values(cases: Cases) -> None:
    cases.tests("series/test_effects.py::test_rare_discounts_are_no_typos_but_absurd_ones_are")
    cases.tests("series/test_effects.py::test_a_rare_discount_has_its_effect")

"""Reports in a real browser, opened from the file system."""

import shutil

import numpy as np
import pandas as pd
import pytest

from panels import make_stores
from rbfdiffnet import RBFDiffNet
from rbfdiffnet.datasets import daily_demand
from rbfdiffnet.report import report_of, write_report
from report_files import demand_model, frames
from report_pages import click_at, drawn, view, wait_until

sync_api = pytest.importorskip("playwright.sync_api", reason="needs rbfdiffnet[browser]")
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
FLAGS += ["--disable-component-update", "--no-first-run"]
NASTY = [
    "</script><script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "<b>bold</b>\u2028{{script}}",
    "javascript:window.hacked=1//'\"`${window.hacked=1}",
    "<!--<script><svg onload=window.hacked=1>",
]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def demand(tmp_path_factory):
    """A report with explanations and a fallback."""
    df, model = demand_model(12, 120)
    ids = ["item_001", "item_002"]
    path = tmp_path_factory.mktemp("browser") / "demand.html"
    write_report(
        path,
        df,
        model.predict(14, level=[80, 95]),
        notes=model.report_,
        explanations={"terms": model.explain(14, ids=ids), "equation": model.equation(ids)},
        backtest=model.cross_validation(df, 14, n_windows=2, level=[80, 95]),
        title="Demand",
    )
    return path


@pytest.fixture
def visit(browser):
    """Open a file; in the end nothing may have gone wrong, or left the file."""
    contexts, troubles, requests = [], [], []

    def opened(path, width=1280, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        assert requests == [path.as_uri()]
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []
    assert len(requests) == len(contexts)


def test_it_says_what_the_backtest_says(visit, demand):
    page = visit(demand)
    assert page.title() == "Demand"
    assert page.locator("#lead").inner_text().startswith("In backtests over 2 windows of 14 steps")
    assert page.locator("#figures dd").count() == 5
    heads = page.locator("#accuracy thead th").all_inner_texts()
    assert [head.replace("\xa0", " ") for head in heads] == [
        *("Model", "MASE", "RMSSE", "MAE", "Bias", "WQL", "In 80 %", "In 95 %", "Best on"),
    ]
    assert page.locator("#accuracy tbody tr").count() == 3
    assert page.locator("#by-step svg path").count() == 2  # a line for each level
    assert page.locator("#by-step svg .promise").count() == 2
    assert page.locator("#calibration svg circle").count() == 5  # 2.5, 10, 50, 90, 97.5 %
    assert page.locator("#calibration svg .promise").count() == 1
    worst = [float(text) for text in page.locator("#worst li span:last-child").all_inner_texts()]
    best = [float(text) for text in page.locator("#best li span:last-child").all_inner_texts()]
    assert worst == sorted(worst, reverse=True)
    assert best == sorted(best)
    assert max(best) <= min(worst)
    assert page.locator("#fallbacks tbody tr").count() == 1


def test_search_finds_series_and_keys_go_through_them(visit, demand):
    page = visit(demand)
    name, search = page.locator("#name"), page.locator("#search")
    assert name.inner_text() == "item_001"
    search.fill("ITEM 01")
    assert page.locator("#count").inner_text() == "4 of 13 series"  # 001, 010, 011, 012
    search.press("ArrowDown")
    search.press("ArrowDown")
    assert name.inner_text() == "item_011"
    active = search.get_attribute("aria-activedescendant")
    chosen = page.locator(f"[id='{active}']")
    assert chosen.get_attribute("aria-selected") == "true"
    assert chosen.locator("span").first.inner_text() == "item_011"
    search.press("ArrowUp")
    assert name.inner_text() == "item_010"

    search.fill("nothing like it")
    assert page.locator("#list").inner_text() == "No series fits the search."
    search.fill("")
    page.locator("#list").focus()
    page.keyboard.press("End")
    assert name.inner_text() == "new"
    assert "Fallback: one value only" in page.locator("#badge").inner_text()
    page.locator(".option", has_text="item_003").click()
    assert name.inner_text() == "item_003"
    assert page.locator("#badge").is_hidden()


@pytest.mark.slow
def test_series_can_be_put_in_order_and_chosen_from_other_lists(visit, demand):
    page = visit(demand)
    worst = page.locator("#worst li button").first
    page.locator("#order").select_option("worst first")
    assert page.locator(".option span").first.inner_text() == worst.inner_text()
    page.locator("#order").select_option("fallbacks first")
    assert page.locator(".option span").first.inner_text() == "new"
    worst.click()
    assert page.locator("#name").inner_text() == worst.inner_text()
    page.locator("#fallbacks button").click()
    assert page.locator("#name").inner_text() == "new"


@pytest.mark.slow
def test_toggles_change_what_is_drawn(visit, demand):
    page = visit(demand)
    boxes = {box: page.get_by_label(box, exact=True) for box in ("RBFDiffNet", "80 % intervals")}
    backtests, naive = (
        page.get_by_label(box, exact=True) for box in ("Backtests", "SeasonalNaive")
    )
    before = drawn(page)
    for box in boxes.values():
        box.focus()
        page.keyboard.press("Space")
        assert not box.is_checked()
        assert drawn(page) != before
        page.keyboard.press("Space")
        assert drawn(page) == before
    assert backtests.is_checked()
    page.locator("label", has_text="SeasonalNaive").click()
    assert drawn(page) != before
    page.locator("label", has_text="Backtests").click()
    assert naive.is_hidden()
    assert drawn(page) != before


@pytest.mark.slow
def test_zoom_and_pan(visit, demand):
    page = visit(demand)
    latest = view(page)
    span = latest[1] - latest[0]
    page.get_by_label("Zoom in").click()
    near = view(page)
    assert near[1] - near[0] == pytest.approx(0.7 * span)
    page.get_by_role("button", name="All").click()
    whole = view(page)
    assert whole[0] < latest[0]
    assert whole[1] == latest[1]
    page.get_by_role("button", name="Latest").click()
    assert view(page) == latest

    chart = page.locator("#chart")
    box = chart.bounding_box()
    y = box["y"] + 100
    page.mouse.move(box["x"] + 300, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, y, steps=4)
    page.mouse.up()
    panned = view(page)
    assert panned[0] < latest[0]
    assert panned[1] - panned[0] == pytest.approx(span)
    assert page.locator("#explanation").is_hidden()  # a drag is no click

    page.evaluate("document.activeElement.blur()")
    page.mouse.wheel(0, 200)  # the page, not the chart
    wait_until(page, lambda: page.evaluate("scrollY") > 0)
    assert view(page) == panned
    page.evaluate("scrollTo(0, 0)")
    chart.focus()
    page.mouse.move(box["x"] + 300, y)
    page.mouse.wheel(0, -200)
    wait_until(page, lambda: view(page) != panned)
    zoomed = view(page)
    assert zoomed[1] - zoomed[0] < span
    chart.dblclick(position={"x": 300, "y": 50})
    assert view(page) == latest


def test_a_click_explains_a_forecast(visit, demand):
    page = visit(demand)
    panel = page.locator("#explanation")
    click_at(page, 0.3)
    assert panel.is_hidden()  # the past needs no explanation
    click_at(page, 0.97)
    title = panel.locator("h2").inner_text()
    assert title.startswith("Why ")
    value = title.split()[1]
    assert panel.locator(".total").last.inner_text() == value
    tip = page.locator("#tip").inner_text()
    assert value in tip
    assert "80 %" in tip
    assert "Learned equation" in panel.inner_text()
    assert panel.locator(".equation").inner_text().startswith("f(x) = ")
    dates = panel.locator("td .dates button")
    if dates.count():
        before = view(page)
        dates.last.click()
        assert view(page) != before

    page.locator(".option", has_text="item_003").click()
    assert panel.is_hidden()
    click_at(page, 0.97)
    assert "no explanation in the report; 2 others have" in panel.inner_text()
    panel.get_by_role("button", name="item_002").click()
    assert page.locator("#name").inner_text() == "item_002"


@pytest.mark.slow
def test_the_chart_obeys_keys(visit, demand):
    page = visit(demand)
    page.locator("#chart").focus()
    live = page.locator("#live")
    page.keyboard.press("ArrowRight")
    first = live.inner_text()
    assert "RBFDiffNet" in first
    page.keyboard.press("ArrowRight")
    assert live.inner_text() != first
    page.keyboard.press("Enter")
    assert page.locator("#explanation h2").inner_text() == live.inner_text()
    before = view(page)
    page.keyboard.press("+")
    page.keyboard.press("Shift+ArrowLeft")
    after = view(page)
    assert after[1] - after[0] < before[1] - before[0]
    page.keyboard.press("0")
    assert view(page) == before
    page.keyboard.press("Home")
    assert view(page)[0] < before[0]
    assert "y " in live.inner_text()


@pytest.mark.slow
def test_everything_can_be_reached_with_tab_and_has_a_name(visit, demand):
    page = visit(demand)
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
              const node = document.activeElement;
              const shown = node.matches(".toggle input") ? node.parentElement : node;
              return [node.id || node.type || node.tagName, getComputedStyle(shown).outlineStyle,
                node.ariaLabel || node.labels?.length || node.textContent.trim()];
            }"""
        )
        if found[0] in ("BODY", "HTML"):
            break
        assert found[1] != "none", found
        assert found[2], found
        seen.append(found[0])
    for name in ("search", "order", "list", "zoom-in", "show-all", "checkbox", "chart"):
        assert name in seen


def test_ids_stay_text(visit, tmp_path):
    history, forecasts, backtest = frames(n_series=len(NASTY))
    names = {f"item {i}": text for i, text in enumerate(NASTY)}
    given = [f.assign(unique_id=f["unique_id"].map(names)) for f in (history, forecasts, backtest)]
    given[1:] = [f.rename(columns=lambda c: c.replace("RBFDiffNet", NASTY[1])) for f in given[1:]]
    notes = pd.DataFrame({"unique_id": NASTY, "problem": NASTY, "action": "forecast 0"})
    path = tmp_path / "nasty.html"
    write_report(path, *given[:2], backtest=given[2], notes=notes, title=NASTY[0])
    page = visit(path)
    assert page.title() == NASTY[0]
    for i, text in enumerate(NASTY):
        page.locator(".option").nth(i).click()
        assert page.locator("#name").text_content() == text
        click_at(page, 0.97)
        assert page.locator("#fallbacks tbody tr").nth(i).locator("button").text_content() == text
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, svg:not(figure svg), a[href^=javascript], b:not(.bar b)").count() == 0
    assert page.locator("script").count() == 2  # facts and the script; the numbers are gone


@pytest.mark.slow
def test_blank_and_long_ids_can_be_read(visit, tmp_path):
    given = frames(n_series=3)
    names = {"item 0": "  ", "item 1": "x" * 300, "item 2": "plain"}
    history, forecasts, backtest = (f.replace({"unique_id": names}) for f in given)
    path = tmp_path / "ids.html"
    write_report(path, history, forecasts, backtest=backtest)
    page = visit(path)
    for i, shown in enumerate(("(blank)", "x" * 59 + "…", "plain")):
        page.locator(".option").nth(i).click()
        assert page.locator("#name").text_content() == shown
        assert page.locator("#name").get_attribute("title") == list(names.values())[i]
    assert "(blank)" in page.locator("#extremes").inner_text() + page.locator("#list").inner_text()
    page.locator("#search").fill("(blank)")
    assert page.locator(".option").count() == 1
    assert "Click a forecast" not in page.locator("#invitation").inner_text()
    assert page.locator("#explain-key").is_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways(visit, demand, scheme):
    page = visit(demand, 390, 844, color_scheme=scheme, device_scale_factor=2, has_touch=True)
    click = page.locator("#chart")
    click.scroll_into_view_if_needed()
    box = click.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] - 20, box["y"] + 60)
    assert page.locator("#explanation").is_visible()
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    canvas = page.evaluate("(({width, clientWidth}) => [width, clientWidth])(chart.canvas)")
    assert canvas[0] == 2 * canvas[1]
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(int(part) for part in paper[4:-1].split(",")) > 3 * 128
    assert light == (scheme == "light")


def test_one_series_has_no_list_and_no_empty_cards(visit, tmp_path):
    history, forecasts, backtest = frames(n_series=1)
    path = tmp_path / "one.html"
    write_report(path, history, forecasts, backtest=backtest)
    page = visit(path)
    for hidden in (".picker", "#notes", "#extremes", "#anomalies", "#source"):
        assert page.locator(hidden).is_hidden()
    assert "Best on" not in page.locator("#accuracy").inner_text()
    assert "repeats the last season" in page.locator("#legend").inner_text()


def test_remarks_and_outliers_are_shown(visit, tmp_path):
    history, forecasts, _ = frames(n_series=1)
    path = tmp_path / "one.html"
    notes = pd.DataFrame({"unique_id": ["item 0"], "problem": ["x"], "action": ["y"]})
    write_report(path, history, forecasts, notes=notes, outliers=history.iloc[[58]])
    page = visit(path)
    assert page.locator("#notes-title").inner_text() == "Remarks"
    with_cross = drawn(page)
    page.get_by_text("Outliers, not learned from").click()
    assert drawn(page) != with_cross


@pytest.mark.slow
def test_one_value_whole_numbers_and_no_backtest(visit, tmp_path):
    history = pd.DataFrame({"unique_id": "a", "ds": [3], "y": [np.nan]})
    forecasts = pd.DataFrame({"unique_id": "a", "ds": [4], "M": [0.0], "M-lo-80": -1, "M-hi-80": 1})
    path = tmp_path / "small.html"
    write_report(path, history, forecasts)
    page = visit(path)
    assert "nothing is known" in page.locator("#lead").inner_text()
    assert page.locator("#accuracy").is_hidden()
    page.locator("#chart").focus()
    page.keyboard.press("End")
    assert page.locator("#live").inner_text() == "4: M 0, 80 % \N{MINUS SIGN}1 to 1"


@pytest.mark.slow
def test_the_table_shows_the_numbers_of_the_frame(visit, tmp_path):
    history, forecasts, _ = frames(n_series=4, h=5, level=(80, 95))
    path = tmp_path / "table.html"
    write_report(path, history, forecasts)
    page = visit(path)
    page.locator("#values summary").click()
    for i in range(4):
        page.locator(".option").nth(i).click()
        cells = page.locator("#values td").all_inner_texts()
        shown = np.array([float(cell.replace("\N{MINUS SIGN}", "-")) for cell in cells])
        own = forecasts[forecasts["unique_id"] == f"item {i}"]
        expected = own.iloc[:, 2:].to_numpy().ravel()
        np.testing.assert_allclose(shown, expected, atol=0.006)
        assert page.locator("#values tbody th").all_inner_texts() == [
            str(d.date()) for d in own["ds"]
        ]


@pytest.mark.slow
def test_forecasts_of_values_that_are_known(visit, tmp_path):
    history, _, backtest = frames(n_series=1, n_windows=1)
    path = tmp_path / "known.html"
    write_report(path, history, backtest.drop(columns="cutoff"))
    page = visit(path)
    page.locator("#chart").focus()
    page.keyboard.press("End")
    assert page.locator("#live").inner_text().startswith("2024-02-29: y ")
    assert "RBFDiffNet" in page.locator("#live").inner_text()
    page.keyboard.press("Enter")
    assert page.locator("#explanation").is_visible()


@pytest.mark.slow
def test_thousands_of_series(visit, tmp_path, capsys):
    history, forecasts, backtest = frames(n_series=5000, n_days=120, level=(80, 95))
    path = tmp_path / "many.html"
    write_report(path, history, forecasts, backtest=backtest)
    page = visit(path)
    assert page.locator(".option").count() < 50  # rows in sight only
    page.locator("#search").fill("item 4999")
    page.locator("#search").press("Enter")
    assert page.locator("#name").inner_text() == "item 4999"
    page.locator("#search").fill("")
    page.locator("#list").focus()
    page.keyboard.press("Home")
    assert page.locator("#name").inner_text() == "item 0"
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    with capsys.disabled():
        print(f" first paint after {paint:.0f} ms, {path.stat().st_size / 1e6:.1f} MB ", end="")


def test_exemplars_and_the_response_curve_are_drawn(visit, tmp_path):
    df = daily_demand(n_series=2, n_days=120).drop(columns="promotion")
    model = RBFDiffNet(freq="D", preset="instant").fit(df)
    terms = model.explain(14, ids=["item_001"])
    path = tmp_path / "instant.html"
    write_report(path, df, model.predict(14), explanations={"terms": terms})
    page = visit(path)
    portrait = page.locator("#portrait")
    assert portrait.locator("figure").count() == 4
    exemplars = terms[(terms["part"] == "exemplar") & (terms["ds"] == terms["ds"].min())]
    for number, term in enumerate(exemplars["term"][:3], 1):
        name, words = term.split(": ")
        caption = portrait.locator("figcaption").nth(number).inner_text()
        assert f"%, {name}" in caption
        assert words in caption
    box = portrait.locator("figure svg path").first.bounding_box()
    assert min(box["width"], box["height"]) > 10
    response = terms[(terms["part"] == "response") & (terms["ds"] == terms["ds"].max())]
    assert portrait.locator("rect.curve-1").count() == len(response)
    click_at(page, 0.98)
    assert "Exemplars, nonlinear" not in page.locator("#explanation").inner_text()
    page.locator("[role=option]").nth(1).click()
    wait_until(page, portrait.is_hidden)  # the other series is not explained


def test_unusual_values_are_drawn_listed_and_reached(visit, tmp_path):
    history, forecasts, _ = frames(n_series=3, n_days=90)
    history = history.assign(unique_id=history["unique_id"].replace("item 1", NASTY[0]))
    forecasts = forecasts.assign(unique_id=forecasts["unique_id"].replace("item 1", NASTY[0]))
    history.loc[120, "y"] += 300.0
    found = RBFDiffNet("D").detect_anomalies(history)
    path = tmp_path / "anomalies.html"
    write_report(path, history, forecasts, anomalies=found)
    page = visit(path)
    n = int(found["anomaly"].sum())
    said = page.locator("#anomalies-text").inner_text()
    assert f"{n} of {len(found)} judged values" in said
    assert "about 1.0 %" in said
    first = page.locator("#anomalies tbody tr").first
    assert first.locator("td").nth(1).inner_text() == f"{history['ds'][120]:%Y-%m-%d}"
    first.locator("button").click()
    assert page.locator("#name").inner_text().startswith("</script>")
    low, high = view(page)
    assert low < history["ds"][120].timestamp() * 1000 < high
    with_rings = drawn(page)
    page.get_by_text("Unusual values", exact=True).click()
    assert drawn(page) != with_rings
    assert page.evaluate("window.hacked") is None


def test_groups_are_shown_as_a_tree(visit, tmp_path):
    df = make_stores(60)[["unique_id", "ds", "y", "state", "store"]]
    model = RBFDiffNet("D", preset="instant", hierarchy=["state", "store"]).fit(df)
    path = tmp_path / "groups.html"
    report_of(model, path, df, 5, n_windows=1)
    page = visit(path)
    assert "10 series and 8 groups" in page.locator("#extent").inner_text()
    assert page.locator("#name").inner_text() == "Total"
    assert page.locator("#tree-text").inner_text().startswith("Forecasts add up: every group is")
    rows = page.locator("#tree tbody tr")
    assert rows.count() == 9  # the last is that of the series
    heads = page.locator("#tree thead th").all_inner_texts()
    assert heads == ["Group", "Level", "Series", "Forecast of 5 steps", "Error alone", "Added up"]
    left = [
        rows.nth(i).locator("th").evaluate("(cell) => parseFloat(cell.style.paddingLeft)")
        for i in range(3)
    ]
    assert left[0] < left[1] < left[2]
    page.locator("#tree").get_by_text("TX/TX_2", exact=True).click()
    assert page.locator("#name").inner_text() == "TX/TX_2"

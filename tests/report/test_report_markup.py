"""Nothing in the data becomes part of the page."""

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser

import pandas as pd

from report_files import frames, written

NASTY = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!--<script>",
    "line\u2028separator",
    "{{numbers}} & <b>bold</b>",
    "javascript:alert(1)//'\"`",
]


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_nothing_in_the_data_becomes_markup(tmp_path):
    history, forecasts, backtest = frames(n_series=len(NASTY))
    plain = written(tmp_path, history, forecasts, backtest=backtest)
    names = {f"item {i}": text for i, text in enumerate(NASTY)}
    frames_ = [
        f.assign(unique_id=pd.Series([names[i] for i in f["unique_id"]], f.index, dtype=object))
        for f in (history, forecasts, backtest)
    ]
    model = {"RBFDiffNet": NASTY[0]}
    frames_[1:] = [
        f.rename(columns=lambda c: c.replace("RBFDiffNet", NASTY[0])) for f in frames_[1:]
    ]
    columns = {"unique_id": NASTY, "problem": NASTY, "action": NASTY[::-1]}
    notes = pd.DataFrame(columns, dtype=object)
    report = written(
        tmp_path, *frames_[:2], backtest=frames_[2], notes=notes, title=NASTY[1], season_length=7
    )
    assert report.facts["ids"] == NASTY
    assert report.facts["models"][0]["name"] == model["RBFDiffNet"]
    assert [note["problem"] for note in report.facts["notes"]] == NASTY
    tags, expected = Tags(report.html).found, Tags(plain.html).found
    assert [tag for tag, _ in tags] == [tag for tag, _ in expected]
    assert all(attrs == plain for (_, attrs), (_, plain) in zip(tags, expected, strict=True))
    assert "\u2028" not in report.html


def test_the_policy_allows_this_script_and_style_and_nothing_else(tmp_path):
    history, forecasts, _ = frames(n_series=1)
    text = written(tmp_path, history, forecasts).html
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL).group(1)
        digest = b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://|@import|url\(", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


class Visible(HTMLParser):
    """The text that a reader sees who runs no script, by the id of the element around it."""

    def __init__(self, text):
        super().__init__()
        self.text, self._path = {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "input", "br"):
            self._path.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self._path and self._path.pop()[0] != tag:
            pass

    def handle_data(self, data):
        hidden = any(
            tag in ("script", "style", "template") or "hidden" in attrs for tag, attrs in self._path
        )
        owner = next((own["id"] for _, own in self._path[::-1] if "id" in own), None)
        if not hidden and data.strip():
            self.text.setdefault(owner, []).append(data.strip())


def test_the_answer_is_there_without_a_script(tmp_path):
    history, forecasts, backtest = frames(n_series=40)
    report = written(tmp_path, history, forecasts, backtest=backtest)
    seen = Visible(report.html).text
    verdict = report.facts["verdict"]
    assert seen["lead"] == [verdict["lead"]]
    assert seen["more"] == [" ".join(verdict["more"])]
    assert seen["extent"] == ["40 series, history from 2024-01-01 to 2024-02-29, 7 steps ahead"]
    head, cells = seen["plain"][:5], seen["plain"][5:-1]
    assert head == ["Series", "Date", "RBFDiffNet", "RBFDiffNet-lo-80", "RBFDiffNet-hi-80"]
    assert len(cells) == 5 * 200
    assert cells[5:7] == ["item 0", "2024-03-02"]
    assert float(cells[7]) == float(f"{forecasts['RBFDiffNet'][1]:.4g}")
    assert seen["plain"][-1] == "And 80 more rows."
    assert not {"explore", "totals", "name"} & set(seen)  # no empty chart


def test_steps_that_are_numbers_are_there_without_a_script(tmp_path):
    history, forecasts, _ = frames(n_series=1)
    start = history["ds"].min()
    numbered = [f.assign(ds=(f["ds"] - start).dt.days) for f in (history, forecasts)]
    seen = Visible(written(tmp_path, *numbered).html).text
    assert seen["extent"] == ["1 series, history from 0 to 59, 7 steps ahead"]
    assert seen["plain"][1] == "Step"
    assert seen["plain"][5:7] == ["item 0", "60"]

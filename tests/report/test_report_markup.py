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

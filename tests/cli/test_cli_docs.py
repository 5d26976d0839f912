import re
from pathlib import Path

import pytest

from cli_files import run
from rbfdiffnet.cli.arguments import add_evaluate, add_forecast

GUIDE = Path(__file__).parents[2] / "docs" / "command_line.md"
here = pytest.mark.skipif(not GUIDE.exists(), reason="the tests run without the repository")


@pytest.fixture
def guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text(encoding="utf-8")
    made = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    exec(compile(made, "command_line.md", "exec"), {})
    return dict(re.findall(r"```text\n\$ rbfdiffnet (.*?)\n(.*?)```", text, re.DOTALL))


def plain(text):
    return re.sub(r"in [\d.]+ s", "in N s", text).strip()


@here
def test_the_guide_shows_what_is_printed(capsys, guide):
    command = next(c for c in guide if c.startswith("forecast sales.csv") and "--exog" not in c)
    code, out, _ = run(capsys, *command.split())
    assert code == 0
    assert plain(out) == plain(guide[command])


@here
def test_the_guide_reads_a_messy_file_as_it_says(capsys, guide):
    refused, told = (command for command in guide if command.startswith("forecast shop.csv"))
    code, out, err = run(capsys, *refused.split())
    assert (code, out, plain(err)) == (2, "", plain(guide[refused]))
    code, out, err = run(capsys, *told.split())
    assert code == 0
    printed, shown = plain(out + err).splitlines(), plain(guide[told]).splitlines()
    assert sorted(filter(None, printed)) == sorted(filter(None, shown))


@here
@pytest.mark.slow
def test_the_guide_explains_as_it_says(capsys, guide):
    command = next(c for c in guide if c.startswith("explain"))
    code, out, _ = run(capsys, *command.split())
    assert code == 0
    shown = guide[command].removesuffix("...\n").strip()
    assert [line.split() for line in out.splitlines()][: len(shown.splitlines())] == [
        line.split() for line in shown.splitlines()
    ]


@here
@pytest.mark.parametrize("add", [add_forecast, add_evaluate])
def test_the_guide_knows_every_option(add):
    import argparse

    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    text = GUIDE.read_text(encoding="utf-8")
    subparser = next(iter(parser._subparsers._group_actions[0].choices.values()))
    for action in subparser._actions:
        for option in action.option_strings:
            assert option in ("-h", "--help") or option in text

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README, GUIDE = ROOT / "README.md", ROOT / "docs" / "forecaster.md"
here = pytest.mark.skipif(not README.exists(), reason="the tests run without the repository")


def blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


@here
def test_examples_run_and_print_what_they_say(capsys):
    panel, network = blocks(README)
    exec(compile(panel, "README.md", "exec"), {})
    assert "RBFDiffNet-hi-95" in capsys.readouterr().out
    exec(compile(network, "README.md", "exec"), {})
    claimed = float(re.search(r"# (0\.\d+);", network).group(1))
    printed = float(capsys.readouterr().out.split()[0])
    assert round(printed, 3) == claimed


@here
def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit, more, inside = blocks(GUIDE)
    names = {}
    exec(compile(fit, "forecaster.md", "exec"), names)
    assert len(names["forecast"]) == 6 * 14
    exec(compile(more, "forecaster.md", "exec"), names)
    assert (tmp_path / "demand.npz").exists()
    exec(
        compile(inside.replace("X_df=...", "X_df=future7"), "forecaster.md", "exec"),
        {**names, "future7": names["model"].make_future_frame(7).assign(promotion=0)},
    )

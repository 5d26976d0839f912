import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the tests run without the repository's README")
def test_python_example_prints_what_it_says(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    claimed = float(re.search(r"# (0\.\d+);", block).group(1))
    printed = float(capsys.readouterr().out.split()[0])
    assert round(printed, 3) == claimed

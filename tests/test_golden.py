"""Numbers are those written down in ``tests/golden``, so that a change of them is deliberate."""

import json

import numpy as np
import pytest

from golden import make
from rbfdiffnet import RBFDiffNetRegressor

CASES = [
    pytest.param(name, case, id=f"{name}: {case}", marks=[pytest.mark.slow] if made.slow else [])
    for name, cases in make.FILES.items()
    for case, made in cases.items()
]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_numbers_are_those_written_down(name, case):
    found = make.FILES[name][case].rows()
    if off := make.differences(name, case, found):
        pytest.fail(
            "\n".join(off) + f"\nIf that is meant, `{make.COMMAND} {name}` writes them down anew; "
            "its diff belongs to the change, as does a line in CHANGELOG.md.",
            pytrace=False,
        )


@pytest.mark.parametrize("name", make.FILES)
def test_every_case_and_no_other_is_written_down(name):
    assert list(make.read(name)) == list(make.FILES[name])
    assert all(np.isfinite(row).all() for rows in make.read(name).values() for row in rows.values())


@pytest.mark.parametrize("name", make.FILES)
def test_a_number_that_is_off_is_named(name):
    for case, made in make.FILES[name].items():
        rows = make.read(name)[case]
        assert make.differences(name, case, rows) == []
        for row, values in rows.items():
            at = int(np.argmax(np.abs(values)))
            for factor, fine in ((0.5, True), (2.0, False)):
                off = list(values)
                off[at] += factor * made.tolerance * (abs(off[at]) or 1.0)
                found = make.differences(name, case, rows | {row: off})
                assert (found == []) == fine
            (message,) = found
            assert message.startswith(f"{case!r}, {row}: off by {2.0 * made.tolerance:.1e}, more")
            for bad in ([*values, 0.0], [*values[:-1], float("nan")]):
                assert len(make.differences(name, case, rows | {row: bad})) == 1
        assert "other rows" in make.differences(name, case, rows | {"new": [1.0]})[0]


def test_a_change_of_the_package_is_noticed():
    """Half a percent more of a penalty shows in the numbers."""
    regressor = RBFDiffNetRegressor()
    known = make.regress(regressor)
    assert make.differences("regressors", "default", known) == []
    other = make.regress(RBFDiffNetRegressor(alpha=tuple(1.005 * a for a in regressor.alpha_)))
    assert any(
        ", prediction: off by" in line for line in make.differences("regressors", "default", other)
    )


def test_files_are_written_as_they_are_read(tmp_path, monkeypatch):
    for name in make.FILES:
        known, text = make.read(name), (make.FOLDER / f"{name}.json").read_text(encoding="utf-8")
        monkeypatch.setattr(make, "FOLDER", tmp_path)
        make.write(name, known)
        monkeypatch.undo()
        assert (tmp_path / f"{name}.json").read_text(encoding="utf-8") == text
        assert json.loads(text) == known

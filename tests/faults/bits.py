"""Files that are cut short, or in which a bit has flipped, at every position."""

import io
import itertools
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
from writes import panel

from rbfdiffnet import RBFDiffNet
from rbfdiffnet.cli import main
from rbfdiffnet.readers import read_data
from rbfdiffnet.support.checks import CommandError


def damages(data, bits):
    """The beginnings of some bytes, and these with one bit flipped."""
    for size in range(len(data)):
        yield data[:size]
    for position, bit in itertools.product(range(len(data)), range(bits)):
        other = bytearray(data)
        other[position] ^= 1 << ((bit + position) % 8)
        yield bytes(other)


def check_model(folder, bits):
    """No damaged model can be loaded."""
    path = folder / "model.npz"
    RBFDiffNet("D", preset="fast", lags=2).fit(panel(0, 20)).save(path)
    return _all_refused(path, path.read_bytes(), bits)


def _all_refused(path, data, bits):
    cases = 0
    for other in damages(data, bits):
        path.write_bytes(other)
        try:
            RBFDiffNet.load(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            raise AssertionError(f"case {cases}: a damaged model was loaded")
        cases += 1
    return cases


def check_data(folder, suffix, bits, every=1):
    """Damaged tables are an error in words, or numbers; never a crash.

    Text has no checksum, and the pages of Parquet files usually have none, so other numbers than
    those written cannot be ruled out.
    """
    path = folder / f"table{suffix}"
    frame = panel(0, 12)
    content = io.BytesIO()
    if suffix == ".parquet":
        frame.to_parquet(content, index=False)
    else:
        frame.to_csv(content, index=False)
    cases = refused = 0
    for other in itertools.islice(damages(content.getvalue(), bits), 0, None, every):
        path.write_bytes(other)
        cases += 1
        try:
            data = read_data(str(path))
        except (CommandError, MemoryError) as error:
            assert str(path) in str(error) or "--" in str(error)  # noqa: PT017
            refused += 1
        else:
            if not np.isfinite(data.frame()["y"].to_numpy(dtype=float)).any():  # no number is left
                with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                    assert main(["forecast", str(path), "--horizon", "1", "--quiet"]) in (0, 2)
    return cases, refused

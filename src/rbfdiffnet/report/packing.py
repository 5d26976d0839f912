r"""Many numbers as little text: three bytes each, by significance, compressed, in base 64.

A number is kept as the first three bytes of its 32-bit float, rounded to nearest, so

.. math:: |\tilde y - y| \le 2^{-17} \max_{2^k \le |y|} 2^{k+1} \le 2^{-16} |y|

which is between four and five digits, and whole numbers up to 65,536 exactly. All first bytes
come before all second ones, since bytes of the same significance are alike and compress well.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Packer"]

_LARGEST = 3.3e38  # a little below the largest 32-bit float


class Packer:
    """Collects named arrays, and where in the bytes each of them begins.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.report.packing import Packer
    >>> packer = Packer()
    >>> packer.floats("y", np.array([1.5, 2.5]))
    >>> packer.counts("n", np.array([3]))
    >>> packer.sections
    {'y': ['floats', 0, 2], 'n': ['counts', 6, 1]}
    >>> packer.text()[:4]
    'H4sI'
    """

    def __init__(self) -> None:
        self.sections: dict[str, list[Any]] = {}
        self._stream = zlib.compressobj(level=6, wbits=31)  # in the format of gzip
        self._parts: list[bytes] = []
        self._size = 0

    def floats(self, name: str, values: npt.NDArray[Any]) -> None:
        """Add numbers of which four to five digits are kept."""
        self._planes("floats", name, np.clip(values, -_LARGEST, _LARGEST), 3)

    def singles(self, name: str, values: npt.NDArray[Any]) -> None:
        """Add numbers of which seven digits are kept."""
        self._planes("singles", name, np.clip(values, -_LARGEST, _LARGEST), 4)

    def counts(self, name: str, values: npt.NDArray[Any]) -> None:
        """Add whole numbers from 0 to 2^32 - 1."""
        bits = np.ascontiguousarray(values).astype(">u4")
        self._add("counts", name, bits.view(np.uint8).reshape(-1, 4).T.tobytes(), len(values))

    def doubles(self, name: str, values: npt.NDArray[Any]) -> None:
        """Add numbers as they are."""
        self._add("doubles", name, np.asarray(values).astype("<f8").tobytes(), len(values))

    def size(self) -> int:
        """Return how many bytes they take so far, compressed."""
        self._parts.append(self._stream.flush(zlib.Z_SYNC_FLUSH))
        return sum(map(len, self._parts))

    def text(self) -> str:
        """Return all of them; nothing can be added any more."""
        self._parts.append(self._stream.flush())
        return base64.b64encode(b"".join(self._parts)).decode("ascii")

    def _planes(self, kind: str, name: str, values: npt.NDArray[Any], size: int) -> None:
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        if size == 3:  # to nearest; a NaN stays one
            bits = np.where(np.isnan(values), bits, bits + np.uint32(0x80))
        planes = bits.astype(">u4").view(np.uint8).reshape(-1, 4).T[:size]
        self._add(kind, name, planes.tobytes(), len(values))

    def _add(self, kind: str, name: str, data: bytes, count: int) -> None:
        self.sections[name] = [kind, self._size, count]
        self._parts.append(self._stream.compress(data))
        self._size += len(data)

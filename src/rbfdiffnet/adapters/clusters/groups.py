r"""Which series go together: groups that depend on nothing but the ids.

.. math:: g(i) = \#\{k : c_k \le \eta(i)\}

where :math:`\eta` is a hash of the id, and the cuts :math:`c_1 < c_2 < \ldots` lie so that groups
are equally large, up to one. Neither the engine nor the number of workers nor the order of the rows
has a say, and only the cuts travel.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["cuts", "digests", "group_of"]

Digests = npt.NDArray[np.uint64]


def digests(ids: Iterable[Any]) -> Digests:
    """Hash ids: the same on every machine and in every run.

    Examples
    --------
    >>> from rbfdiffnet.adapters.clusters.groups import digests
    >>> digests(["a", "b"]).tolist()
    [4681665781835383343, 9543904841865449333]
    """
    return np.array(
        [int.from_bytes(blake2b(str(i).encode(), digest_size=8).digest()) for i in ids],
        dtype=np.uint64,
    )


def cuts(hashes: Digests, size: int) -> Digests:
    """Cut the hashes of all ids into groups of at most so many.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.adapters.clusters.groups import cuts, group_of
    >>> between = cuts(np.array([70, 10, 50, 30, 90], dtype=np.uint64), 2)
    >>> between.tolist()
    [50, 90]
    >>> group_of(np.array([10, 30, 50, 70, 90], dtype=np.uint64), between).tolist()
    [0, 0, 1, 1, 2]
    """
    ordered = np.unique(hashes)
    n_groups = max(-(-ordered.size // size), 1)
    parts = np.array_split(ordered, n_groups)
    return np.array([part[0] for part in parts[1:]], dtype=np.uint64)


def group_of(hashes: Digests, between: Digests) -> npt.NDArray[np.int64]:
    """Return the number of the group of each hash."""
    return np.searchsorted(between, hashes, side="right").astype(np.int64)

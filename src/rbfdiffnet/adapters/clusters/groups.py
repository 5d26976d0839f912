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

Digests = npt.NDArray[np.uint64]


def hash_ids(ids: Iterable[Any]) -> Digests:
    """Hash ids: the same on every machine and in every run."""
    return np.array(
        [int.from_bytes(blake2b(str(i).encode(), digest_size=8).digest()) for i in ids],
        dtype=np.uint64,
    )


def find_cuts(hashes: Digests, size: int) -> Digests:
    """Return where to cut the hashes of all ids into groups of at most ``size``."""
    ordered = np.unique(hashes)
    n_groups = max(-(-ordered.size // size), 1)
    parts = np.array_split(ordered, n_groups)
    return np.array([part[0] for part in parts[1:]], dtype=np.uint64)


def find_groups(hashes: Digests, cuts: Digests) -> npt.NDArray[np.int64]:
    """Return the number of the group of each hash."""
    return np.searchsorted(cuts, hashes, side="right").astype(np.int64)

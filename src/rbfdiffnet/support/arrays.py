"""Types of arrays by what they hold; comments and docstrings tell their shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Arrays by name, as files hold them.
Arrays = dict[str, npt.NDArray[Any]]

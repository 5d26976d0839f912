"""Benchmarks run on one thread of the libraries of linear algebra."""

from __future__ import annotations

import os

LIMITS = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM")


def one_thread() -> None:
    """Set the limits; to be called before NumPy is imported."""
    for limit in LIMITS:
        os.environ[f"{limit}_THREADS"] = "1"

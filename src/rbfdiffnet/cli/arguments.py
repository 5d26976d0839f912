"""Types of command line arguments."""

from __future__ import annotations

import argparse

__all__ = ["positive"]


def positive(text: str) -> int:
    """Read a whole number of at least 1.

    Parameters
    ----------
    text : str

    Returns
    -------
    int

    Examples
    --------
    >>> from rbfdiffnet.cli.arguments import positive
    >>> positive("12")
    12
    """
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return number


def seed(text: str) -> int:
    """Read a random seed, a whole number from 0 to 4294967295.

    Parameters
    ----------
    text : str

    Returns
    -------
    int

    Examples
    --------
    >>> from rbfdiffnet.cli.arguments import seed
    >>> seed("0")
    0
    """
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 to 4294967295")
    return int(text)

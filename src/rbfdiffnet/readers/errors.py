"""The one error a command raises when its input, not the program, is at fault."""

__all__ = ["CommandError"]


class CommandError(Exception):
    """Something the user can put right: what, where, and the remedy, in one line.

    Examples
    --------
    >>> from rbfdiffnet.readers.errors import CommandError
    >>> raise CommandError("sales.csv, line 3: '12a' is not a number; correct it")
    Traceback (most recent call last):
        ...
    rbfdiffnet.readers.errors.CommandError: sales.csv, line 3: '12a' is not a number; correct it
    """

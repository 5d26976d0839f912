"""The one error that readers and commands raise when the input, not the program, is at fault."""


class CommandError(Exception):
    """Something the user can put right: what, where, and the remedy, in one line."""

"""Optional libraries: whether they can be used, and if not, why."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

__all__ = ["import_problem"]


def import_problem(module: str) -> str | None:
    """Say what keeps a module from being imported, by importing it.

    Parameters
    ----------
    module : str
        Name of the module, such as ``"torch"`` or ``"matplotlib.figure"``.

    Returns
    -------
    str or None
        That it is not installed, or the first line of the error; None if all is well.

    Examples
    --------
    >>> from rbfdiffnet.experiments.libraries import import_problem
    >>> import_problem("json") is None
    True
    >>> import_problem("no_such_library")
    'is not installed'
    """
    try:
        if find_spec(module.partition(".")[0]) is None:
            return "is not installed"
    except ImportError:
        return "is not installed"
    try:
        import_module(module)
    except Exception as error:  # a broken library may raise anything
        reason = (str(error).splitlines() or [""])[0]
        return f"cannot be imported ({type(error).__name__}: {reason})"
    return None

"""Every method by name: a function from a cell to its figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from noise_parts.data import Cell
from noise_parts.ours import tracked, without_settings
from noise_parts.reservoir import echo_state_network
from noise_parts.rivals import RIVALS, figures, plain

Method = Callable[[Cell], dict[str, float]]

PLAIN = "RBFDiffNet, plain"
OURS = "RBFDiffNet, noise"
NO_SETTINGS = "RBFDiffNet, noise, no settings"
METHODS: dict[str, Method] = {name: partial(figures, rival) for name, rival in RIVALS.items()}
METHODS["echo state network"] = echo_state_network
RIVAL_NAMES = tuple(METHODS)
METHODS[PLAIN] = partial(figures, plain)  # the reference: ours, which does not know of noise
METHODS[OURS] = tracked
METHODS[NO_SETTINGS] = without_settings

"""The methods there are, by the name that `scope` gives them: the place that chooses a model."""

from __future__ import annotations

from rbfdiffnet.models.base import PanelMethod
from rbfdiffnet.models.networks.local import LocalNetworks
from rbfdiffnet.models.networks.shared import SharedNetwork
from rbfdiffnet.models.pretrained import Pretrained
from rbfdiffnet.models.stack.model import Stack

#: Methods by the value of `scope`.
METHODS: dict[str, PanelMethod] = {
    "auto": Stack(),
    "local": LocalNetworks(),
    "global": SharedNetwork(),
    "pretrained": Pretrained(),
}
SCOPES = tuple(METHODS)

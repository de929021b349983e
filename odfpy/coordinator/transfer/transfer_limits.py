"""The settings of a workspace that limit what is copied from elsewhere."""

from __future__ import annotations

from typing import Final

from odfpy.coordinator.storage.config import Config
from odfpy.http.limits import TransferLimits, set_limits

_NAMES: Final = ("leastSpeed", "window", "maxUnpacked")


def put_in_force(config: Config) -> Config:
    """Let them hold for all clients of this process, which have them in common; gives the settings back."""
    set_limits(TransferLimits(*(config.get(f"transfer.{name}") for name in _NAMES)))
    return config

"""The settings of a workspace that limit what is copied from elsewhere."""

from __future__ import annotations

from odfpy.coordinator.storage.config import Config
from odfpy.http.limits import TransferLimits, set_limits
from odfpy.settings.sections import TransferSection


def put_in_force(config: Config) -> Config:
    """Let them hold for all clients of this process, which have them in common; gives the settings back."""
    transfer = config.section(TransferSection)
    set_limits(TransferLimits(transfer.least_speed, transfer.window, transfer.max_unpacked))
    return config

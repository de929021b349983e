"""Settings of a workspace that limit transfers."""

from __future__ import annotations

from odfpy.coordinator.storage.config import Config
from odfpy.http.limits import TransferLimits, set_limits
from odfpy.settings.sections import TransferSection


def apply_transfer_limits(config: Config) -> Config:
    """Apply the transfer settings to all HTTP clients of this process, and return the settings."""
    transfer = config.section(TransferSection)
    set_limits(TransferLimits(transfer.least_speed, transfer.window, transfer.max_unpacked))
    return config

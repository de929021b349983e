"""The version of this engine, as recorded with every transform."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

ENGINE_RELEASE: Final = 2
"""Incremented whenever this engine returns other results for the same query, inputs and DataFusion."""


def engine_version() -> str:
    """Return the version of everything that results depend on besides query and inputs."""
    return f"odfpy-datafusion/{ENGINE_RELEASE} datafusion/{version('datafusion')}"

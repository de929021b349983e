"""Coordinator of the Open Data Fabric: a verifiable, append-only data ledger with pipelines on Spark.

    >>> import odfpy
    >>> workspace = odfpy.Workspace.open(".")
    >>> odfpy.connect(".").sql("SELECT 1").to_pandas()

Everything heavy is imported when it is first used, so that `import odfpy` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odfpy.client.connection import connect as connect
    from odfpy.coordinator.workspace import Workspace as Workspace
    from odfpy.errors import OdfError as OdfError

__version__ = "0.2.0.dev0"
__all__ = ["OdfError", "Workspace", "__version__", "connect"]

_HOMES = {
    "Workspace": "odfpy.coordinator.workspace",
    "OdfError": "odfpy.errors",
    "connect": "odfpy.client.connection",
    "load_ipython_extension": "odfpy.client.magic",  # what `%load_ext odfpy` looks for
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'odfpy' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)

"""Background imports: load modules for a commit while the engine works."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import Thread
from typing import Final

_FOR_A_COMMIT: Final = (
    "odfpy.codec.flatbuffers_writer",
    "odfpy.chain.new_blocks",
    "odfpy.chain.links.checks",
    "odfpy.coordinator.storage.signing",
    "odfpy.coordinator.storage.revoked_keys",
    "odfpy.engine.spark.process.version",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
)


@cache
def preload_commit_modules() -> None:
    """Start to import the modules for a commit in a separate thread; later calls do nothing."""
    Thread(target=_load, name="imports for a commit", daemon=True).start()


def _load() -> None:
    for name in _FOR_A_COMMIT:
        with suppress(Exception):  # the thread that needs the module gets the error
            import_module(name)

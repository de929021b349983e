"""Imports of a server: the modules that common commands need.

These modules must not start threads, read user settings, or access the terminal on import. Commands import everything
else themselves. A test runs commands and reports missing modules.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Final

from odfpy.extras import do_without_pandas

_PACKAGES: Final = (
    "odfpy.chain",
    "odfpy.cli.datasets",
    "odfpy.cli.query",
    "odfpy.cli.screen",
    "odfpy.cli.workspace",
    "odfpy.codec",
    "odfpy.coordinator.ingest",
    "odfpy.coordinator.lineage",
    "odfpy.coordinator.maintenance",
    "odfpy.coordinator.reading",
    "odfpy.coordinator.schedules",
    "odfpy.coordinator.storage",
    "odfpy.coordinator.transfer",
    "odfpy.coordinator.transform",
    "odfpy.coordinator.verbs",
    "odfpy.data",
    "odfpy.dataset",
    "odfpy.engine.sql",
    "odfpy.ingest",
    "odfpy.query",
    "odfpy.settings",
    "odfpy.state",
)
"""Packages whose modules are all imported, with their dependencies."""

_MODULES: Final = (
    "odfpy.automation.job_planner",
    "odfpy.automation.lock",
    "odfpy.automation.failing_jobs",
    "odfpy.cli.command_server.starting",
    "odfpy.cli.commands",
    "odfpy.coordinator.manifests",
    "odfpy.coordinator.pull",
    "odfpy.coordinator.record_log",
    "odfpy.coordinator.status",
    "odfpy.serving.callers.visibility",
    "pyarrow.parquet",
    "sqlglot.dialects.spark",
    "sqlglot.optimizer.annotate_types",
)
"""Further modules, with their dependencies."""


def import_all() -> None:
    """Import what commands need."""
    do_without_pandas()
    for package in _PACKAGES:
        for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            import_module(found.name)
    for name in _MODULES:
        import_module(name)

"""`/platform/system`, `/platform/engine`, `/platform/settings`: the machine, the Spark engine, and the settings.

Settings are read-only here: some let sources run commands or access files, which no token may permit.
"""

from __future__ import annotations

import os
import platform
import shutil
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from odfpy import __version__
from odfpy.chain.block import SPECIFICATION_VERSION
from odfpy.codec.tree import to_tree
from odfpy.coordinator.diagnosis import diagnose
from odfpy.coordinator.maintenance.reachable import size_of
from odfpy.coordinator.storage.config import Config
from odfpy.engine.worker.messages import Status
from odfpy.errors import EngineUnavailable
from odfpy.serving.rest.administration.admin import Admin, AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import like, refusals

router = APIRouter(prefix="/platform", tags=["administration"], route_class=AdministrationRoute)

_ENGINE = {
    "running": True,
    "problem": None,
    "status": {"pid": 4711, "ready": True, "busy": False, "uptimeMillis": 60000, "memoryBytes": 900000000},
}
_DISK = {"total": 500_000_000_000, "free": 200_000_000_000, "data": 3_000_000, "cache": 40_000}


class EngineModel(BaseModel):
    """The Spark engine, which starts when it is needed."""

    model_config = like(_ENGINE)

    running: bool
    problem: Annotated[str | None, Field(description="Why its status is unknown.")] = None
    status: Annotated[dict[str, Any] | None, Field(description="Status, as in `odf engine status`.")] = None


class DiskModel(BaseModel):
    """The disk of the workspace, in bytes."""

    model_config = like(_DISK)

    total: int
    free: int
    data: Annotated[int, Field(description="Rows of datasets: bytes of all slices.")]
    cache: Annotated[int, Field(description="Caches, including those of engines, which `odf gc` may remove.")]


class SystemModel(BaseModel):
    """The server, its machine and its workspace."""

    model_config = like(
        {
            "version": __version__,
            "specification": str(SPECIFICATION_VERSION),
            "python": "3.12.3",
            "platform": "Linux-6.1-x86_64",
            "processors": 8,
            "workspace": "/srv/data",
            "numDatasets": 12,
            "disk": _DISK,
            "engine": _ENGINE,
        }
    )

    version: str
    specification: str
    python: str
    platform: str
    processors: int | None
    workspace: str
    numDatasets: int  # noqa: N815
    disk: DiskModel
    engine: EngineModel


class SettingModel(BaseModel):
    """A setting, its value, and the origin of the value."""

    model_config = like(
        {
            "key": "engine.memory",
            "value": "4g",
            "from": "/srv/data/.odf/config.yaml",
            "isDefault": False,
            "isSecret": False,
            "meaning": "Greatest heap of the engine's Java process, for example 2g",
            "values": "a size such as 512m or 2g",
            "variable": "ODF_ENGINE_MEMORY",
        }
    )

    key: str
    value: Annotated[
        str | int | bool | None, Field(description="The effective value; null if it is not set, or a secret.")
    ]
    origin: Annotated[str, Field(alias="from", description="Origin of the value: a variable, a file, or default.")]
    isDefault: bool  # noqa: N815
    isSecret: Annotated[bool, Field(description="Whether it may contain tokens, and so is not returned.")]  # noqa: N815
    meaning: str
    values: str
    variable: Annotated[str, Field(description="The environment variable that would set it.")]


class CheckModel(BaseModel):
    """A check of the installation."""

    model_config = like({"name": "disk", "ok": True, "detail": "12 GiB free", "hint": None})

    name: str
    ok: bool
    detail: str
    hint: str | None


@router.get("/system", responses=refusals())
def system(request: Request, admin: AnAdmin) -> SystemModel:
    """Return versions, disk and engine of the server."""
    entries = request.app.state.catalog.entries()
    disk, odf = shutil.disk_usage(admin.workspace.odf), admin.workspace.odf
    return SystemModel(
        version=__version__,
        specification=str(SPECIFICATION_VERSION),
        python=platform.python_version(),
        platform=platform.platform(),
        processors=os.cpu_count(),
        workspace=str(admin.workspace.root),
        numDatasets=len(entries),
        disk=DiskModel(
            total=disk.total,
            free=disk.free,
            data=sum(entry.data_size for entry in entries),
            cache=size_of(odf / "cache"),
        ),
        engine=_engine(admin),
    )


@router.delete("/engine", responses=refusals(503))
def stop_engine(
    admin: AnAdmin, force: Annotated[bool, Query(description="Stop it even during a job.")] = False
) -> EngineModel:
    """Stop the engine if it is running; the next query that needs it starts it again."""
    admin.workspace.engines.stop(force=force)
    return _engine(admin)


@router.get("/settings", responses=refusals())
def settings(admin: AnAdmin) -> list[SettingModel]:
    """List all settings with their effective values and origins. Change them on the machine of the server."""
    return [
        SettingModel(
            **{"from": item.origin},
            key=item.setting.key,
            value=None if item.setting.help.is_secret else item.value,
            isDefault=item.origin == "default",
            isSecret=item.setting.help.is_secret,
            meaning=item.setting.description,
            values=item.setting.values,
            variable=item.setting.variable,
        )
        for item in Config.load(admin.workspace.root).items()
    ]


@router.get("/diagnosis", responses=refusals())
def diagnosis(admin: AnAdmin) -> list[CheckModel]:
    """Check the installation, without starting engines; takes some seconds."""
    checks = diagnose(admin.workspace.root, engines=False)
    return [CheckModel(name=check.name, ok=check.ok, detail=check.detail, hint=check.hint) for check in checks]


def _engine(admin: Admin) -> EngineModel:
    try:
        status: Status | None = admin.workspace.engines.status()
    except EngineUnavailable as error:
        return EngineModel(running=True, problem=error.message)
    return EngineModel(running=status is not None, status=None if status is None else to_tree(status))

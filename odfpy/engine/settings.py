"""Settings of a workspace's Spark engine. None of them may change a result."""

from __future__ import annotations

from enum import Enum
from typing import Final

from odfpy.data.amounts import parse_size
from odfpy.data.scalars import U64
from odfpy.settings.sections import EngineSection
from odfpy.values import dataclass


class SandboxMode(Enum):
    """The demands for a sandbox: required, used where the system allows it, or none."""

    REQUIRED = "required"
    BEST_EFFORT = "best-effort"
    OFF = "off"


_SANDBOX: Final = SandboxMode(EngineSection.sandbox)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Settings of the engine's process; the defaults are those of the settings `engine.*`.

    Attributes:
        idle_seconds: seconds after which an idle engine ends.
        start_seconds: seconds after which a start has failed.
        job_seconds: seconds after which a job of Spark is cancelled; None for no limit.
        memory: the maximum heap of the Java process as in `-Xmx`, for example `2g`; None means half of the memory.
        master: where Spark runs its tasks: `local[2]`, or the address of a cluster in Spark's notation.
        host: address at which the executors of a cluster reach this machine; None to determine it from the route to the
            cluster.
        storage: folder in a Hadoop file system (`s3a://bucket/folder`, `hdfs://...`) through which executors get files;
            None means that they see those of the workspace under the same paths.
        properties: file with Spark properties for a cluster, in the format of `spark-defaults.conf`.
        startup_cache: whether to store a cache of loaded classes in the user's cache folder, which halves a cold start.
        sandbox: see `SandboxMode`.
        max_memory: how much memory all processes of the engine may hold, for example `4g`; None means nine tenths of
            the machine's. Only in a sandbox.
        max_disk: how much a job may write to the disk, for example `100g`; None means no limit but the free space. Only
            in a sandbox.
        jobs_only: whether to run only the functions of `odfpy.engine.jobs`, without loading anything else.
    """

    idle_seconds: U64 = EngineSection.idle_timeout
    start_seconds: U64 = EngineSection.start_timeout
    job_seconds: U64 | None = EngineSection.job_timeout
    memory: str | None = EngineSection.memory
    master: str = EngineSection.master
    host: str | None = EngineSection.host
    storage: str | None = EngineSection.storage
    properties: str | None = EngineSection.properties
    startup_cache: bool = EngineSection.startup_cache
    sandbox: SandboxMode = _SANDBOX
    max_memory: str | None = EngineSection.max_memory
    max_disk: str | None = EngineSection.max_disk
    jobs_only: bool = False

    @property
    def is_cluster(self) -> bool:
        """True if tasks run in processes other than the engine's, perhaps on other machines."""
        return not self.master.startswith("local")

    @property
    def most_memory(self) -> int | None:
        """Return `max_memory` in bytes."""
        return None if self.max_memory is None else parse_size(self.max_memory)

    @property
    def most_disk(self) -> int | None:
        """Return `max_disk` in bytes."""
        return None if self.max_disk is None else parse_size(self.max_disk)

"""Settings of the Spark engine of a workspace. None of them may change a result."""

from __future__ import annotations

from enum import Enum
from typing import Final

from odfpy.data.scalars import U64
from odfpy.settings.sections import EngineSection
from odfpy.settings.setting import bytes_of_size
from odfpy.values import dataclass


class SandboxMode(Enum):
    """The demand for a sandbox: required, used where the system allows it, or none."""

    REQUIRED = "required"
    BEST_EFFORT = "best-effort"
    OFF = "off"


_SANDBOX: Final = SandboxMode(EngineSection.sandbox)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Settings of the engine's process; the defaults are those of the settings `engine.*`.

    Attributes:
        idle_seconds: an engine without work ends after so long.
        start_seconds: a start that takes longer has failed.
        job_seconds: a job that Spark is at for longer is cancelled; None means that it may take any time.
        memory: greatest heap of the Java process as `-Xmx` has it, for example `2g`; None means half of the memory.
        master: where Spark runs its tasks: `local[2]`, or the address of a cluster as Spark has it.
        host: address at which the executors of a cluster reach this machine; None for that of the way to the cluster.
        storage: folder in a file system of Hadoop (`s3a://bucket/folder`, `hdfs://...`) through which executors get
            files; None means that they see those of the workspace under the same paths.
        properties: file with properties of Spark for a cluster, as `spark-defaults.conf` has them.
        startup_cache: keep a cache of loaded classes in the user's cache folder, which halves a cold start.
        sandbox: see `SandboxMode`.
        max_memory: what all processes of the engine may hold in memory, for example `4g`; None means nine tenths of
            the machine's. Only in a sandbox.
        max_disk: what a job may write to the disk, for example `100g`; None means as long as there is space. Only in a
            sandbox.
        jobs_only: run the functions of `odfpy.engine.jobs`, and load nothing that does anything else.
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
        """True if tasks run in other processes than the engine's, perhaps on other machines."""
        return not self.master.startswith("local")

    @property
    def most_memory(self) -> int | None:
        """`max_memory` in bytes."""
        return _bytes_of(self.max_memory)

    @property
    def most_disk(self) -> int | None:
        """`max_disk` in bytes."""
        return _bytes_of(self.max_disk)


def _bytes_of(size: str | None) -> int | None:
    return None if size is None else bytes_of_size(size)

"""What a person can set about the Spark engine of a workspace. Nothing here may change a result."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.data.scalars import U64


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How the engine's process is run.

    Attributes:
        idle_seconds: an engine without work ends after so long.
        start_seconds: a start that takes longer has failed.
        job_seconds: a job that Spark is at for longer is cancelled; None means that it may take any time.
        memory: greatest heap of the Java process as `-Xmx` has it, for example `2g`; None means half of the memory.
        master: where Spark runs its tasks: `local[2]`, or the address of a cluster as Spark has it.
        host: address at which the executors of a cluster reach this machine.
        startup_cache: keep a cache of loaded classes in the user's cache folder, which halves a cold start.
    """

    idle_seconds: U64 = 600
    start_seconds: U64 = 120
    job_seconds: U64 | None = None
    memory: str | None = None
    master: str = "local[*]"
    host: str = "127.0.0.1"
    startup_cache: bool = True

    @property
    def is_cluster(self) -> bool:
        """Whether tasks run in other processes than the engine's, perhaps on other machines."""
        return not self.master.startswith("local")

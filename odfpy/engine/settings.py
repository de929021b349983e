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
        master: where Spark runs its tasks, for example `local[2]`.
        startup_cache: keep a cache of loaded classes in the user's cache folder, which halves a cold start.
    """

    idle_seconds: U64 = 600
    start_seconds: U64 = 120
    job_seconds: U64 | None = None
    memory: str | None = None
    master: str = "local[*]"
    startup_cache: bool = True

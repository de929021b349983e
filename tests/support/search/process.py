"""A process of the search, with its own Spark. Separate from `__main__`, which a spawned process cannot import."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from support.engine.session import engine_spark
from support.search.hunt import Hunt, Tally
from support.search.trial import tried


def search(seed: int, seconds: float, findings: Path, stop_at: int, verbose: bool) -> Tally:
    """Search in this process."""
    with TemporaryDirectory() as folder, engine_spark(Path(folder), "local[1]") as spark:
        hunt = Hunt(lambda query, pulls: tried(spark, query, pulls), seed, findings, verbose)
        hunt.run(seconds, stop_at)
    return hunt.tally

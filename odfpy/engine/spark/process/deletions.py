"""Objects of Java that Python needs no longer: Java is told when a job has its answer, not in the middle of it.

py4j tells it for each object, from a thread of its own that takes turns with the one that works.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST: Final = 20_000
"""So many wait; a long job holds no more of them."""


class Deletions:
    """The deletions of one connection to Java, which wait from now on."""

    def __init__(self, spark: SparkSession) -> None:
        self._client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]  # noqa: SLF001
        self._delete = self._client.garbage_collect_object
        self._waiting: deque[str] = deque()
        self._client.garbage_collect_object = self._wait

    def _wait(self, target_id: str, enqueue: bool = True) -> None:
        if not enqueue:  # by the thread of py4j
            self._delete(target_id, enqueue=False)
            return
        self._waiting.append(target_id)
        if len(self._waiting) > MOST:
            self.let_go()

    def let_go(self) -> None:
        """Give what waits to the thread of py4j."""
        while self._waiting:
            self._delete(self._waiting.popleft())

"""Java objects that Python no longer needs: Java is notified of all of them at once, after a job's answer.

py4j would notify it of each object, from a thread of its own that competes with the working thread. A small job leaves
more than a thousand objects.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_COUNT: Final = 20_000
"""Maximum number of waiting deletions; a long job holds no more of them."""
_APART: Final = ","


class Deletions:
    """The deletions of one connection to Java, which wait from now on."""

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
        client = gateway._gateway_client  # noqa: SLF001
        self._apart = gateway.jvm.java.util.regex.Pattern.compile(_APART)
        self._known = gateway.java_gateway_server.getGateway().getBindings().keySet()
        self._waiting: deque[str] = deque()
        client.garbage_collect_object = self._wait

    @property
    def are_many(self) -> bool:
        """True if so many wait that Java should be notified."""
        return len(self._waiting) > MAX_COUNT

    def _wait(self, target_id: str, enqueue: bool = True) -> None:
        del enqueue  # py4j passes whether its own thread calls; it makes no difference
        self._waiting.append(target_id)

    def flush(self) -> None:
        """Notify Java of waiting deletions; no call that names one of them may be running or about to start."""
        if taken := self._taken():
            self._known.removeAll(self._apart.splitAsStream(_APART.join(taken)).toList())

    def _taken(self) -> list[str]:
        """Return the objects that wait, which do no more."""
        taken = []
        with suppress(IndexError):  # another thread may take some at the same time
            while True:
                taken.append(self._waiting.popleft())
        return taken

"""Pipelined calls to Java (promise pipelining).

A call takes a fifth of a millisecond, more on machines whose idle processors sleep, and a small pull makes a thousand
of them. Most return an object that is only used in the next call. Such a call is deferred: Python names its result, and
continues. Deferred calls are sent with the next one whose response is needed, and Java executes all of them in order. A
failure is raised by the call that they were sent with.
"""

from __future__ import annotations

import threading
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, starmap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from py4j.java_gateway import JavaObject
from py4j.protocol import REFERENCE_TYPE, RETURN_MESSAGE, SUCCESS

from odfpy.engine.spark.plan.catalyst import CALLS
from odfpy.engine.spark.process.deletions import Deletions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from odfpy.engine.spark.process.own_classes import OwnClass

_MAX_COUNT: Final = 1_000
"""Maximum number of deferred calls."""
_LAST: Final = "."
_CALL: Final = "c"
_CONSTRUCTOR: Final = "i"
_BUILT: Final = ("org.apache.spark.sql.", "org.apache.hadoop.fs.Path")
"""Prefixes of the names of classes from which plans are built."""
_METHODS: Final = """
aggregateExpressions aggregateFunction appendedAll asNullable batches child children dataType emptySpec exprId
expressions groupingExpressions metadata newExprId of orderSpec output partitionColumns partitionSpec projectList
queryExecution relation resultId rows schema sessionState toArrowBatchRdd toAttribute toSeq windowExpressions
windowFunction windowSpec withNewChildren
"""
_ALWAYS_AN_OBJECT: Final = frozenset(_METHODS.split())
"""Methods that always return an object, never a value or null. They cannot fail, except for `toArrowBatchRdd`,
`batches` and `rows`, which are followed by another call at once."""
_STATIC: Final = {
    "z:org.apache.spark.sql.types.DataType": frozenset({"fromJson"}),
    "z:scala.Option": frozenset({"apply", "empty"}),
}


class Calls:
    """The calls over one connection to Java, and the Java objects that Python has dropped.

    One thread may build plans; other threads may make calls that are not deferred.
    """

    def __init__(self, spark: SparkSession, java: OwnClass) -> None:
        """Defer calls from now on.

        Args:
            spark: the session.
            java: the side of this class in Java, `Calls.java`.
        """
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
        self._client: Any = gateway._gateway_client  # noqa: SLF001
        self._java: Any = java.new(gateway.java_gateway_server)
        self._page = 0
        self._waiting = _PendingCalls()
        self._deletions = Deletions(spark)
        self._numbers = count()
        self._send = self._client.send_command
        self._client.send_command = self._sent
        self._client.__dict__[CALLS] = self

    def _sent(self, command: str, retry: bool = True, binary: bool = False) -> Any:
        """Replace py4j's method that sends a command and returns the response."""
        calls = self._waiting.calls
        kind, target, method, *_ = command.split("\n", 3)
        if _may_wait(kind, target, method) and len(calls) < _MAX_COUNT:
            name = self._new_name()
            calls.append(f"{name}\n{command}")
            return f"{SUCCESS}{REFERENCE_TYPE}{name}"
        if not calls:
            return self._send(command, retry, binary)
        travels_along = kind in (_CALL, _CONSTRUCTOR) and not binary
        together = "".join(calls) + (f"\n{command}" if travels_along else "")
        calls.clear()
        answer: str = self._java.run(together)
        if self._deletions.are_many:
            self._deletions.flush()
        if travels_along or answer:  # an error, if no response was expected
            return answer.removeprefix(RETURN_MESSAGE)
        return self._send(command, retry, binary)

    def _new_name(self) -> str:
        return f"odf{next(self._numbers)}"

    def rows(self, frame: DataFrame) -> Iterator[bytes]:
        """Yield the Arrow batches of few rows. If a single task computes them, it runs in Java's calling thread."""
        return _all(self._java.rows(frame._jdf.toArrowBatchRdd()))  # noqa: SLF001

    def in_memory(self, frame: DataFrame) -> RowsInMemory | None:
        """Compute few rows and keep them in Java; return None if they are many, or need several tasks."""
        rows = self._java.inMemory(frame._jdf)  # noqa: SLF001
        return None if rows is None else RowsInMemory(rows)

    def received(self, session: JavaObject, schema: JavaObject, batches: Iterable[pa.RecordBatch]) -> RowsInMemory:
        """Send few rows to Java, which keeps them.

        Args:
            session: the Spark session.
            schema: Spark schema of the rows; all columns may have nulls.
            batches: the rows, in the types in which Spark hands over such rows.
        """
        sent = ",".join(b64encode(batch.serialize()).decode() for batch in batches)
        return RowsInMemory(self._java.received(session, schema, sent))

    def jobs(self, spark: SparkSession) -> int:
        """Return the number of jobs that Spark has run; a task that ran without a job counts, too."""
        return int(self._java.jobs(spark._jsparkSession))  # noqa: SLF001

    def settings(self, session: SparkSession, names: Sequence[str]) -> list[str]:
        """Return the values of settings; empty for one that is not set and has no default.

        Args:
            session: the session.
            names: names of the settings.
        """
        return [*_texts(self._java.settings(session._jsparkSession, "\n".join(names)))]  # noqa: SLF001

    def change(self, session: SparkSession, settings: Mapping[str, str]) -> None:
        """Change settings, and pass all settings of the session to the tasks of jobs started by this thread.

        Tasks read them from the properties of their job. Spark sets these for its own executions, but not for the RDD
        of a query, which is fetched here: tasks would use Spark's defaults.

        Args:
            session: the session.
            settings: those that change.
        """
        lines = [line for pair in settings.items() for line in pair]
        self._java.change(session._jsparkSession, "\n".join(lines))  # noqa: SLF001

    def use_pages(self, size: int) -> None:
        """Set the page size of the memory of later tasks, see `session.use_pages`."""
        if size != self._page:
            self._java.usePages(size)
            self._page = size

    def page_bytes(self) -> int:
        """Return the number of bytes of a page of memory."""
        return int(self._java.pageBytes())

    def cancel(self) -> None:
        """Cancel the task that `rows` waits for, if there is one; from another thread."""
        self._java.cancel()

    @property
    def is_running(self) -> bool:
        """True while `rows` waits for a task; from any thread."""
        return bool(self._java.isRunning())

    def flush(self) -> None:
        """Tell Java which objects Python has dropped; called when a job has its response."""
        self._deletions.flush()

    def items(self, sequence: Any) -> list[Any]:
        """Return the items of a Scala sequence; facts sent with them need not be requested again."""
        prefix = f"{self._new_name()}."
        texts = _texts(self._java.items(sequence, prefix))
        return [
            facts.name if facts.java_class == "java.lang.String" else self._item(f"{prefix}{at}", facts)
            for at, facts in enumerate(starmap(_ItemFacts, zip(texts, texts, texts, texts, strict=True)))
        ]

    def _item(self, reference: str, facts: _ItemFacts) -> JavaObject:
        item = JavaObject(reference, self._client)
        attributes = item.__dict__
        attributes["_odf_class"] = facts.java_class
        if facts.number:
            attributes["_odf_id"] = int(facts.number)
            attributes["name"] = lambda: facts.name
        if facts.nullable:
            attributes["nullable"] = lambda: facts.nullable == "true"
        return item


class RowsInMemory:
    """Rows that Java has in its memory."""

    def __init__(self, java: JavaObject) -> None:
        self._java = java

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self._java.count())

    def relation(self) -> JavaObject:
        """Return a plan of them, with the columns of the plan that has made them."""
        return self._java.relation()

    def batches(self) -> Iterator[bytes]:
        """Yield the rows as Arrow batches."""
        return _all(self._java.batches())


class _ItemFacts(NamedTuple):
    """Facts about an item from Java; those that do not apply are empty."""

    java_class: str
    name: str
    number: str
    nullable: str


class _PendingCalls(threading.local):
    """The calls of this thread that wait."""

    def __init__(self) -> None:
        self.calls: list[str] = []


def calls_of(node: Any) -> Calls:
    """Return the calls of the connection that a Java object came from."""
    calls: Calls = node._gateway_client.__dict__[CALLS]  # noqa: SLF001
    return calls


def _may_wait(kind: str, target: str, method: str) -> bool:
    if kind == _CONSTRUCTOR:
        return target.startswith(_BUILT)
    return kind == _CALL and (method in _ALWAYS_AN_OBJECT or method in _STATIC.get(target, ()))


def _all(batches: Any) -> Iterator[bytes]:
    """Return the batches from Java; the first ones have arrived on return."""
    return _decoded(batches, batches.next())


def _decoded(batches: Any, message: str) -> Iterator[bytes]:
    while True:
        _, *encoded = message.removesuffix(_LAST).split(",")
        yield from map(b64decode, encoded)
        if message.endswith(_LAST):
            return
        message = batches.next()


def _texts(message: str) -> Iterator[str]:
    at = 0
    while at < len(message):
        begin = message.index(" ", at) + 1
        at = begin + int(message[at : begin - 1])
        yield message[begin:at]

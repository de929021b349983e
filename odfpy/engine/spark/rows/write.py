"""Writing rows to a file: by this process, or on a cluster by an executor, so that no rows pass through here.

One task writes one file: a slice is one Parquet file with one hash, over rows in one order. Computing the rows is
still shared by all executors; the task fetches them in order.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import pyarrow as pa

from odfpy import __version__
from odfpy.codec.errors import RaisedError, as_value, error_of
from odfpy.data.memory import bulk_memory
from odfpy.engine.spark.plan.catalyst import Node
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.process.counting import count_jobs
from odfpy.engine.spark.process.shared_files import on_cluster, storage_of
from odfpy.engine.spark.rows.parallelism import is_gathered
from odfpy.errors import EngineError, OdfError
from odfpy.stages import stage, staged

if TYPE_CHECKING:
    from pyspark.rdd import RDD
    from pyspark.sql import DataFrame, SparkSession

    from odfpy.engine.spark.process.calls import Calls, RowsInMemory

R = TypeVar("R")
Write = Callable[[str, Iterator[pa.RecordBatch]], R]
"""Writes batches to the named file, and returns a description; it creates no file if there is nothing."""

_PIECE: Final = 1 << 22


def batches_of(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a data frame, partition by partition; at most two are in memory at a time."""
    spark = frame.sparkSession
    with stage("optimize"):
        schema = arrow_schema(frame.schema)
        frame._jdf.queryExecution().executedPlan()  # noqa: SLF001
    with stage("Spark job"):  # includes all stages but the last
        if are_few(spark):  # these need no separate socket
            messages = calls_by(frame._jdf).rows(frame)  # noqa: SLF001
        else:
            messages = iter(_messages(frame).toLocalIterator(prefetchPartitions=True))
    yield from read_batches(staged("Spark job", messages, again=True), schema)
    with stage("Spark job", again=True):
        count_jobs(spark)


def table_of(frame: DataFrame) -> pa.Table:
    """Return the rows of a data frame as a table of Arrow, all in memory."""
    return pa.Table.from_batches(batches_of(frame), arrow_schema(frame.schema))


def in_memory(frame: DataFrame) -> RowsInMemory | None:
    """Compute the rows of a data frame, which stay in the memory of Java; None if they are many, or on a cluster."""
    spark = frame.sparkSession
    if not are_few(spark):
        return None
    with stage("optimize"):
        frame._jdf.queryExecution().executedPlan()  # noqa: SLF001
    with stage("Spark job"):
        rows = calls_by(frame._jdf).in_memory(frame)  # noqa: SLF001
        count_jobs(spark)
    return rows


def read_batches(messages: Iterable[bytes], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Arrow batches from the messages that Java sends.

    Args:
        messages: the messages.
        schema: schema of the batches.
    """
    return (pa.ipc.read_record_batch(pa.py_buffer(message), schema) for message in messages)


def write_file(frame: DataFrame, path: Path, write: Write[R]) -> R:
    """Write the rows of a data frame to one file.

    Args:
        frame: rows; those of several partitions are in no order if a cluster writes them.
        path: the file.
        write: function that writes them. On a cluster it runs at an executor.

    Returns:
        The result of `write`.

    Raises:
        OdfError: as `write` does.
    """
    spark = frame.sparkSession
    if not on_cluster(spark):
        return write(str(path), batches_of(frame))
    with stage("Spark job"):
        messages = _messages(frame)
        if messages.getNumPartitions() != 1:
            messages = _messages(frame.repartition(1))
        is_shared = storage_of(spark) is None
        task = _Task(write, arrow_schema(frame.schema), str(path) if is_shared else None)
        answer = _received(messages.mapPartitions(task).toLocalIterator(), path)
        count_jobs(spark)
    if isinstance(answer, RaisedError):
        raise error_of(answer)
    reported, has_file = answer
    if has_file and not path.exists():
        raise EngineError(
            f"An executor has written {path}, and the file is not here",
            hint="All machines of the cluster must share the folder of the workspace; see docs/cluster.md.",
        )
    result: R = reported
    return result


def are_few(spark: SparkSession) -> bool:
    """Return whether rows are few, and go from one process to the other without a file or a socket of their own."""
    return is_gathered(spark) and not on_cluster(spark)


def calls_by(node: Node) -> Calls:
    """Return the calls of the connection that a Java object came from."""
    from odfpy.engine.spark.process.calls import calls_of  # which needs py4j

    return calls_of(node)


def _messages(frame: DataFrame) -> RDD[Any]:
    from pyspark.rdd import RDD
    from pyspark.serializers import NoOpSerializer

    batches = frame._jdf.toArrowBatchRdd().toJavaRDD()  # noqa: SLF001
    return RDD(batches, frame.sparkSession.sparkContext, NoOpSerializer())


def _received(answers: Iterator[Any], path: Path) -> Any:
    """Return the final message of a task; preceding pieces of the file are written here."""
    answer: Any = None
    try:
        for answer in answers:
            if isinstance(answer, bytes):
                with path.open("ab") as file:
                    file.write(answer)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return answer


@dataclass(frozen=True, slots=True)
class _Task(Generic[R]):
    """The task that runs at an executor.

    Attributes:
        write: see `Write`.
        schema: schema of the rows.
        path: the file, None if it has to be sent.
        versions: versions in the engine that determine the bytes of a file.
    """

    write: Write[R]
    schema: pa.Schema
    path: str | None
    versions: tuple[str, str] = (__version__, pa.__version__)

    def __call__(self, messages: Iterator[bytes]) -> Iterator[bytes | RaisedError | tuple[R, bool]]:
        """Yield the pieces of the file if it is not shared, and the result or the error."""
        folder = tempfile.gettempdir() if self.path is None else str(Path(self.path).parent)
        # An abandoned task may still be at work when another one has replaced it.
        own = os.path.join(folder, f"odf-{uuid.uuid4().hex}")  # noqa: PTH118
        try:
            self._check_versions()
            with bulk_memory():
                reported = self.write(own, read_batches(messages, self.schema))
            has_file = os.path.exists(own)  # noqa: PTH110
            if has_file and self.path is not None:
                os.replace(own, self.path)  # noqa: PTH105
            elif has_file:
                yield from _pieces(own)
            yield reported, has_file
        except OdfError as error:
            yield as_value(error)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(own)  # noqa: PTH108

    def _check_versions(self) -> None:
        seen = (__version__, pa.__version__)
        if seen != self.versions:
            raise EngineError(
                f"An executor has odfpy {seen[0]} and pyarrow {seen[1]}, the engine {' and '.join(self.versions)}",
                hint="Install the same versions on all machines of the cluster; see docs/cluster.md.",
            )


def _pieces(path: str) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece

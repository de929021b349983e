"""Whole queries in Spark: fragments travel, and Spark does the rest over the frames of their answers.

The relays are asked here, all fragments under one id. What is small is read here, too; for the rest, Spark's workers
get places and tickets. Credentials go with the pickled source, not as options, which Spark would show.
"""

from __future__ import annotations

import secrets
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from odfpy.errors import OdfError
from odfpy.federation.client import Web
from odfpy.federation.execution.execute import start_query
from odfpy.federation.execution.plan import StartedQuery
from odfpy.federation.relay.question import AnswerOptions, Part
from odfpy.federation.spark.access import Access
from odfpy.federation.spark.broadcast import SMALL, small_answers
from odfpy.federation.spark.fragments import DIALECT
from odfpy.federation.spark.options import READING_SECONDS, SECONDS
from odfpy.federation.spark.scan import Scan, incomplete
from odfpy.federation.spark.source import PartsReader
from odfpy.flight.conversion import plain_batch
from odfpy.flight.spark.schema import arrow_schema, spark_schema

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PySpark's remarks on the version of pandas, which is not used
    from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_NAME: Final = "odf-web-asked"
_REGISTERED: Final = threading.Lock()
"""Held from the registration of a source until its frame is made: the name is the same for all."""


def spark_sql(
    session: SparkSession,
    web: Web,
    query: str,
    *,
    require_complete: bool = True,
    seconds: float = SECONDS,
    reading_seconds: float = READING_SECONDS,
    small: int = SMALL,
) -> DataFrame:
    """The answer to a query as a frame: Spark joins and sums up what the relays give.

    The relays are asked at once, and their rows are read whenever Spark needs them, as long as the tickets are good.

    Args:
        session: of Spark 4.0 or later.
        web: the web. It may be closed afterwards.
        query: SQL of Spark, over the entities.
        require_complete: whether an answer without the rows of a relay is an error; otherwise there is a warning.
        seconds: to wait for the relays.
        reading_seconds: for a task to read a part.
        small: bytes of a fragment that is read at once, so that Spark can send it to all workers; 0 for none.

    Raises:
        InvalidQuery: the query is invalid.
        RelayUnavailable: the relay does not answer.
        IncompleteAnswer: a relay is missing, and that is not wanted.
    """
    prefix = f"odf_web_{secrets.token_hex(8)}_"
    found = start_query(web.asker, query, time.monotonic() + seconds, AnswerOptions(), dialect=DIALECT, prefix=prefix)
    if found.missing:
        _report(incomplete(found.missing, "require_complete=False gives the rows of all others."), require_complete)
    if not found.fragments:
        return session.sql(found.rest)
    read = small_answers(web.asker, found, small) if small else {}
    return session.sql(_as_format(found), **_frames(session, web, found, reading_seconds, read))


def _report(error: OdfError, require_complete: bool) -> None:
    if require_complete:
        raise error
    warnings.warn(error.message, stacklevel=3)


def _as_format(found: StartedQuery) -> str:
    """The rest as PySpark wants it where frames are to be tables: a text for `format`."""
    text = found.rest.replace("{", "{{").replace("}", "}}")
    for name in found.fragments:
        text = text.replace(f"`{name}`", f"{{{name}}}")  # nothing else has such a name: nobody could guess it
    return text


def _frames(
    session: SparkSession, web: Web, found: StartedQuery, seconds: float, small: Mapping[str, pa.Table]
) -> dict[str, Any]:
    frames: dict[str, Any] = {}
    access = Access(web.relay, web.credentials.certificates, web.credentials.key, web.authorities)
    for name, fragment in found.fragments.items():
        schema = spark_schema(fragment.schema)
        if name in small:
            batches = [plain_batch(batch, arrow_schema(schema)) for batch in small[name].to_batches()]
            frames[name] = session.createDataFrame(pa.Table.from_batches(batches, arrow_schema(schema)), schema)
            continue
        scan = Scan(access, fragment.schema, arrow_schema(schema), seconds)
        frames[name] = _frame(session, _Answer(scan, schema, found.answers[name].parts))
    return frames


@dataclass(frozen=True)
class _Answer:
    """The answer to a fragment, as Spark gets it."""

    scan: Scan
    schema: StructType
    parts: tuple[Part, ...]


def _frame(session: SparkSession, answer: _Answer) -> DataFrame:
    class AskedSource(DataSource):
        """The rows of an answer, which is pickled with the class."""

        @classmethod
        def name(cls) -> str:
            return _NAME

        def schema(self) -> StructType:
            return answer.schema

        def reader(self, schema: StructType) -> PartsReader:
            del schema
            return PartsReader(answer.scan, answer.parts)

    with _REGISTERED:
        session.dataSource.register(AskedSource)
        return session.read.format(_NAME).load()

"""Whole queries in Spark: fragments are sent to relays, and Spark runs the rest over the data frames of their answers.

The relays are queried here, for all fragments under one id. Small answers are read here, too; for others, Spark's
workers get locations and tickets. Credentials are pickled with the source; Spark would display them as options.
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
    warnings.simplefilter("ignore")  # PySpark warns of the version of pandas, which is not used
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
    """Run a query and return the answer as a data frame: Spark joins and aggregates the rows of the relays.

    The relays are queried immediately; rows are read whenever Spark needs them, until the tickets expire.

    Args:
        session: a session of Spark 4.0 or later.
        web: the web to query. It may be closed afterwards.
        query: a query in Spark's SQL over the entities.
        require_complete: whether the missing rows of any relay are an error; otherwise a warning is shown.
        seconds: maximum time to wait for the relays.
        reading_seconds: maximum time for a task to read a part.
        small: maximum bytes of a fragment that is read immediately, so that Spark can broadcast it; 0 for none.

    Raises:
        InvalidQuery: the query is invalid.
        RelayUnavailable: the relay does not respond.
        IncompleteAnswer: a relay is missing, and the answer must be complete.
    """
    prefix = f"odf_web_{secrets.token_hex(8)}_"
    started = start_query(web.asker, query, time.monotonic() + seconds, AnswerOptions(), dialect=DIALECT, prefix=prefix)
    if started.missing:
        _report(incomplete(started.missing, "require_complete=False gives the rows of all others."), require_complete)
    if not started.fragments:
        return session.sql(started.rest)
    read = small_answers(web.asker, started, small) if small else {}
    return session.sql(_as_format(started), **_frames(session, web, started, reading_seconds, read))


def _report(error: OdfError, require_complete: bool) -> None:
    if require_complete:
        raise error
    warnings.warn(error.message, stacklevel=3)


def _as_format(started: StartedQuery) -> str:
    """Return the rest as PySpark needs it to refer to data frames as tables: a text for `format`."""
    text = started.rest.replace("{", "{{").replace("}", "}}")
    for name in started.fragments:
        text = text.replace(f"`{name}`", f"{{{name}}}")  # no other name looks like this: nobody could guess it
    return text


def _frames(
    session: SparkSession, web: Web, started: StartedQuery, seconds: float, small: Mapping[str, pa.Table]
) -> dict[str, Any]:
    frames: dict[str, Any] = {}
    access = Access(web.relay, web.credentials.certificates, web.credentials.key, web.authorities)
    for name, fragment in started.fragments.items():
        schema = spark_schema(fragment.schema)
        if name in small:
            batches = [plain_batch(batch, arrow_schema(schema)) for batch in small[name].to_batches()]
            frames[name] = session.createDataFrame(pa.Table.from_batches(batches, arrow_schema(schema)), schema)
            continue
        scan = Scan(access, fragment.schema, arrow_schema(schema), seconds)
        frames[name] = _frame(session, _Answer(scan, schema, started.answers[name].parts))
    return frames


@dataclass(frozen=True)
class _Answer:
    """The answer to a fragment, as used by Spark."""

    scan: Scan
    schema: StructType
    parts: tuple[Part, ...]


def _frame(session: SparkSession, answer: _Answer) -> DataFrame:
    class AskedSource(DataSource):
        """The data source for the rows of an answer, which is pickled together with its class."""

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

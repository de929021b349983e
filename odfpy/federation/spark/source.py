"""`spark.read.format("odf-web")`: a partition for each part of the answer.

Spark makes these objects in processes of Python that it starts for a question each, and pickles them to its workers.
Options are read where Spark plans, so that only that machine needs the files of certificates. Spark keeps a plan for
each `load()`, and redeems tickets again.
"""

from __future__ import annotations

import secrets
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from odfpy.federation.relay.question import AnswerOptions, MissingRelay, Part
from odfpy.federation.spark.fragments import fragment_of, picked
from odfpy.federation.spark.options import WebOptions
from odfpy.federation.spark.scan import Scan, incomplete
from odfpy.federation.sql.fragment import Fragment
from odfpy.flight.spark.schema import arrow_schema, spark_schema, told

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PySpark's remarks on the version of pandas, which is not used
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_REMEDY = '.option("require-complete", "false") gives the rows of all others.'


class PartPartition(InputPartition):
    """A part, as it travels to a worker. Shown, it has only the name of the relay: a ticket is somebody's."""

    def __init__(self, number: int, part: Part) -> None:
        super().__init__(number)
        self.part = part

    def __repr__(self) -> str:
        return f"PartPartition({self.part.relay!r})"


class PartsReader(DataSourceReader):
    """Reads parts that are known."""

    def __init__(self, scan: Scan, parts: Sequence[Part] = ()) -> None:
        self._scan = scan
        self._parts = tuple(parts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._scan.access.relay!r})"

    def partitions(self) -> Sequence[InputPartition]:
        """Give each part a partition."""
        return [PartPartition(number, part) for number, part in enumerate(self._parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part, in a worker. Spark makes a partition of nothing where there is no part."""
        if isinstance(partition, PartPartition):
            with told():
                yield from self._scan.read(partition.part)


class WebReader(PartsReader):
    """Reads a frame: asks for its parts when Spark plans it."""

    def __init__(self, options: WebOptions, fragment: Fragment, schema: StructType) -> None:
        super().__init__(Scan(options.access, fragment.schema, arrow_schema(schema), options.reading_seconds))
        self._options = options
        self._fragment = fragment

    def partitions(self) -> Sequence[InputPartition]:
        """Ask the relay, and through it all others."""
        with told():
            options = self._options
            beside = AnswerOptions(single_use=options.single_use)
            query = secrets.token_hex(16)
            [answer] = options.access.user.ask(query, {"f1": self._fragment}, beside, options.seconds).values()
            if answer.missing:
                self._report(answer.missing)
        self._parts = answer.parts
        return super().partitions()

    def _report(self, missing: Sequence[MissingRelay]) -> None:
        error = incomplete(missing, _REMEDY)
        if self._options.require_complete:
            raise error
        print(f"odf-web: {error.message}", file=sys.stderr)  # noqa: T201  Spark has no other way from its planner


class WebSource(DataSource):
    """Rows of an entity of a web."""

    @classmethod
    def name(cls) -> str:
        """Return the word for `format`."""
        return "odf-web"

    def schema(self) -> StructType:
        """Ask the relay for the columns."""
        with told():
            return spark_schema(self._fragment.schema)

    def reader(self, schema: StructType) -> WebReader:
        """Return what plans and reads a frame."""
        with told():
            return WebReader(self._wanted, picked(self._fragment, schema.names), schema)

    @cached_property
    def _wanted(self) -> WebOptions:
        return WebOptions.of(dict(self.options))

    @cached_property
    def _fragment(self) -> Fragment:
        """The fragment, which Spark pickles with the source, so that it is made once."""
        return fragment_of(self._wanted, self._wanted.access.user.entities(self._wanted.seconds))

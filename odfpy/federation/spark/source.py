"""The data source behind `spark.read.format("odf-web")`: a partition for each part of the answer.

Spark creates these objects in Python processes that it starts for each request, and pickles them to its workers.
Options are evaluated where Spark plans, so that only that machine needs the certificate files. Spark reuses a plan for
each `load()`, and so redeems tickets repeatedly.
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
from odfpy.flight.spark.schema import arrow_schema, errors_with_hints, spark_schema

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PySpark warns of the version of pandas, which is not used
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_REMEDY = '.option("require-complete", "false") gives the rows of all others.'


class PartPartition(InputPartition):
    """A part, as pickled to a worker. Its `repr` only shows the name of the relay, since tickets are confidential."""

    def __init__(self, number: int, part: Part) -> None:
        super().__init__(number)
        self.part = part

    def __repr__(self) -> str:
        return f"PartPartition({self.part.relay!r})"


class PartsReader(DataSourceReader):
    """A reader of parts that are already known."""

    def __init__(self, scan: Scan, parts: Sequence[Part] = ()) -> None:
        self._scan = scan
        self._parts = tuple(parts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._scan.access.relay!r})"

    def partitions(self) -> Sequence[InputPartition]:
        """Create a partition for each part."""
        return [PartPartition(number, part) for number, part in enumerate(self._parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of a part, in a worker. If there are no parts, Spark passes an empty partition."""
        if isinstance(partition, PartPartition):
            with errors_with_hints():
                yield from self._scan.read(partition.part)


class WebReader(PartsReader):
    """A reader of a data frame, which queries the relays for its parts when Spark plans it."""

    def __init__(self, options: WebOptions, fragment: Fragment, schema: StructType) -> None:
        super().__init__(Scan(options.access, fragment.schema, arrow_schema(schema), options.reading_seconds))
        self._options = options
        self._fragment = fragment

    def partitions(self) -> Sequence[InputPartition]:
        """Query the relay, and through it all others."""
        with errors_with_hints():
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
    """The data source: rows of an entity of a web."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "odf-web"

    def schema(self) -> StructType:
        """Request the columns from the relay."""
        with errors_with_hints():
            return spark_schema(self._fragment.schema)

    def reader(self, schema: StructType) -> WebReader:
        """Return the reader that plans and reads a data frame."""
        with errors_with_hints():
            return WebReader(self._wanted, picked(self._fragment, schema.names), schema)

    @cached_property
    def _wanted(self) -> WebOptions:
        return WebOptions.of(dict(self.options))

    @cached_property
    def _fragment(self) -> Fragment:
        """Return the fragment; cached, since Spark pickles it with the source."""
        return fragment_of(self._wanted, self._wanted.access.user.entities(self._wanted.seconds))

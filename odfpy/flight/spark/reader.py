"""Reading data frames: one partition for each endpoint, with Arrow batches passed directly to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from odfpy.flight.conversion import plain_batch
from odfpy.flight.options import Source
from odfpy.flight.plan import Endpoint, FlightPlan
from odfpy.flight.request import Request
from odfpy.flight.service import FlightService
from odfpy.flight.spark.schema import arrow_schema, errors_with_hints

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class EndpointPartition(InputPartition):
    """The rows of an endpoint, as pickled to a worker.

    Attributes:
        plan: the plan, without endpoints.
        endpoint: its endpoint.
    """

    def __init__(self, plan: FlightPlan, endpoint: Endpoint) -> None:
        super().__init__(endpoint.number)
        self.plan = plan
        self.endpoint = endpoint


class RequestPartition(InputPartition):
    """All rows of a request, planned by the task that reads it: for tickets that can only be redeemed once.

    Attributes:
        request: the requested rows.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(0)
        self.request = request


@dataclass
class Rows:
    """The rows of a service, in the columns that Spark expects.

    Attributes:
        service: the server.
        columns: columns that Spark expects.
        single_use: whether the server's tickets can be redeemed only once.
    """

    service: FlightService
    columns: pa.Schema
    single_use: bool = False

    def partitions(self, request: Request) -> list[InputPartition]:
        """Plan a request: a partition for each endpoint, or one that is planned when it is read.

        Args:
            request: the requested rows. Of a table, only the columns that Spark expects are requested.
        """
        names = tuple(self.columns.names)
        wanted = request if request.table is None else replace(request, columns=names)
        if self.single_use:
            return [RequestPartition(wanted)]
        plan = self.service.plan(wanted, names)
        bare = replace(plan, endpoints=())
        return [EndpointPartition(bare, endpoint) for endpoint in plan.endpoints]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of a partition. Without endpoints, Spark passes an empty partition.

        Args:
            partition: a planned partition.
        """
        for plan, endpoint in self._endpoints(partition):
            for batch in self.service.batches(plan, endpoint):
                yield plain_batch(batch, self.columns)

    def _endpoints(self, partition: InputPartition) -> list[tuple[FlightPlan, Endpoint]]:
        if isinstance(partition, EndpointPartition):
            return [(partition.plan, partition.endpoint)]
        if isinstance(partition, RequestPartition):
            plan = self.service.plan(partition.request, self.columns.names)
            return [(plan, endpoint) for endpoint in plan.endpoints]
        return []


class FlightReader(DataSourceReader):
    """Reads a data frame. Spark plans it once for each `load()`, and may read it repeatedly, which redeems tickets
    again.
    """

    def __init__(self, source: Source, schema: StructType) -> None:
        self._request = source.request
        self._rows = Rows(source.service, arrow_schema(schema), source.single_use)

    def partitions(self) -> list[InputPartition]:
        """Request the endpoints from the server."""
        with errors_with_hints():
            return self._rows.partitions(self._request)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of an endpoint, in a worker."""
        with errors_with_hints():
            yield from self._rows.read(partition)

"""The client's view of a Flight server: plans, reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from odfpy.flight.errors import FlightFailed
from odfpy.flight.plan import Endpoint, FlightPlan
from odfpy.flight.reading import first_schema, pick, read_endpoint
from odfpy.flight.request import Request
from odfpy.flight.server import Server
from odfpy.flight.writing import write_rows


class FlightService(Server):
    """A Flight server, the entry point of this package. Thread-safe.

    >>> service = FlightService("grpc://127.0.0.1:50050")
    >>> service.read(Request(table="orders", columns=("id",), filters=filters_of([("amount", ">", 10)])))
    """

    def plan(self, request: Request, columns: Sequence[str] = ()) -> FlightPlan:
        """Request the columns and endpoints of rows; no rows are sent.

        Args:
            request: the requested rows.
            columns: columns to select from the received rows; by default those of the request.

        Raises:
            UsageError, InvalidValue: the request cannot be expressed for this server.
            FlightFailed: the server is unreachable, the table unknown, or the query invalid.
        """
        descriptor = self.commands.descriptor(request)
        info = self.ask(lambda client, options: client.get_flight_info(descriptor, options))
        endpoints = tuple(Endpoint(one.serialize(), number) for number, one in enumerate(info.endpoints))
        declared = _schema_of(info) or self._schema_beside(descriptor, endpoints)
        picked = pick(declared, columns or request.columns)
        wanted = declared if picked is None else [declared.field(place) for place in picked]
        return FlightPlan(
            schema=pa.schema([field.with_nullable(True) for field in wanted]),
            declared=declared,
            picked=picked,
            endpoints=endpoints,
            rows=_known(info.total_records),
            size=_known(info.total_bytes),
            ordered=bool(info.ordered),
            metadata=bytes(info.app_metadata or b""),
        )

    def batches(self, plan: FlightPlan, endpoint: Endpoint) -> Iterator[pa.RecordBatch]:
        """Yield the rows of an endpoint, each once. All locations are tried.

        Args:
            plan: the plan from the server.
            endpoint: an endpoint of the plan.

        Raises:
            NoLocationLeft: no location returns the rows; none was passed on.
            StreamBroken: the stream broke off after rows were passed on.
            SchemaBroken: the rows have other columns than planned.
            FlightRefused: the server rejects the credentials.
        """
        return read_endpoint(self, plan, endpoint, self.limits.held_bytes)

    def read(self, request: Request) -> pa.Table:
        """Read all rows into a table, endpoints concurrently.

        Args:
            request: the requested rows.

        Raises:
            NoLocationLeft: no location of an endpoint returns the rows; broken streams are restarted.
            SchemaBroken: the rows have other columns than planned.
            FlightRefused: the server rejects the request or the credentials.
        """
        plan = self.plan(request)

        def rows(endpoint: Endpoint) -> list[pa.RecordBatch]:
            return list(read_endpoint(self, plan, endpoint, None))

        with ThreadPoolExecutor(min(self.limits.at_once, max(len(plan.endpoints), 1))) as threads:
            parts = list(threads.map(rows, plan.endpoints))
        return pa.Table.from_batches([batch for part in parts for batch in part], plan.schema)

    def stream(self, request: Request) -> pa.RecordBatchReader:
        """Stream all rows, endpoint by endpoint, for results that exceed the memory.

        Args:
            request: the requested rows.

        Raises:
            NoLocationLeft: the server does not respond; may also be raised while rows are consumed.
            StreamBroken: the stream broke off, while rows are consumed.
            SchemaBroken: the rows have other columns than planned, while they are consumed.
            FlightRefused: the server rejects the request or the credentials.
        """
        plan = self.plan(request)
        rows = (batch for endpoint in plan.endpoints for batch in self.batches(plan, endpoint))
        return pa.RecordBatchReader.from_batches(plan.schema, rows)

    def write(self, table: str, rows: pa.Table | pa.RecordBatchReader, *, replace: bool = False) -> int:
        """Append rows to a table, in one call.

        Args:
            table: name of the table.
            rows: the rows to append.
            replace: whether to delete existing rows.

        Returns:
            The number of rows that the server reports as written.

        Raises:
            FlightWriteFailed: the server has not accepted all rows.
        """
        batches: Iterable[pa.RecordBatch] = rows.to_batches() if isinstance(rows, pa.Table) else rows
        return write_rows(self, Request(table), rows.schema, batches, replace_rows=replace)

    def _schema_beside(self, descriptor: Any, endpoints: tuple[Endpoint, ...]) -> pa.Schema:
        """Return the columns if FlightInfo lacks them: from GetSchema, or else from the first stream."""
        try:
            return self.ask(lambda client, options: client.get_schema(descriptor, options)).schema
        except FlightFailed as error:
            if not endpoints:
                raise error.with_message(
                    f"{self.location} declares no columns, and has no endpoint that would have some",
                    hint="Give the columns: spark.read.schema(...).",
                ) from error
        return first_schema(self, endpoints[0])


def _schema_of(info: Any) -> pa.Schema | None:
    try:
        found = info.schema
    except pa.ArrowException:  # the bytes are empty
        return None
    return found if found is not None and len(found) else None


def _known(number: int) -> int | None:
    return number if number >= 0 else None

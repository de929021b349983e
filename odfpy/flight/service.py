"""A Flight server as seen by those who ask it."""

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
    """A server, and how it is spoken to. Thread-safe.

    >>> service = FlightService("grpc://127.0.0.1:50050")
    >>> service.read(Request(table="orders", columns=("id",), filters=filters_of([("amount", ">", 10)])))
    """

    def plan(self, request: Request, columns: Sequence[str] = ()) -> FlightPlan:
        """Ask for the columns and endpoints of some rows. No row is sent.

        Args:
            request: the rows.
            columns: that are picked when rows arrive; by default those of the request.

        Raises:
            UsageError, InvalidValue: the request cannot be said to this server.
            FlightFailed: the server cannot be reached, or does not know the table, or the query is wrong.
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
        """The rows of an endpoint, each once. All locations are tried; what has been handed over does not come again.

        Args:
            plan: as the server has given it.
            endpoint: a part of it.

        Raises:
            NoLocationLeft: none of the locations gives the rows; nothing was handed over.
            StreamBroken: the rows have ended too early.
            SchemaBroken: they have other columns than the plan says.
            FlightRefused: the server does not take the credentials.
        """
        return read_endpoint(self, plan, endpoint, self.limits.held_bytes)

    def read(self, request: Request) -> pa.Table:
        """All rows in a table, endpoints at the same time.

        Args:
            request: the rows.

        Raises:
            NoLocationLeft: none of the locations of an endpoint gives the rows; streams that break off begin again.
            SchemaBroken: they have other columns than the plan says.
            FlightRefused: the server does not take the question or the credentials.
        """
        plan = self.plan(request)

        def rows(endpoint: Endpoint) -> list[pa.RecordBatch]:
            return list(read_endpoint(self, plan, endpoint, None))

        with ThreadPoolExecutor(min(self.limits.at_once, max(len(plan.endpoints), 1))) as threads:
            parts = list(threads.map(rows, plan.endpoints))
        return pa.Table.from_batches([batch for part in parts for batch in part], plan.schema)

    def stream(self, request: Request) -> pa.RecordBatchReader:
        """All rows as they come, endpoint by endpoint: more than fits into memory.

        Args:
            request: the rows.

        Raises:
            NoLocationLeft: the server does not answer; also while rows are taken.
            StreamBroken: the rows have ended too early, while they are taken.
            SchemaBroken: they have other columns than the plan says, while they are taken.
            FlightRefused: the server does not take the question or the credentials.
        """
        plan = self.plan(request)
        rows = (batch for endpoint in plan.endpoints for batch in self.batches(plan, endpoint))
        return pa.RecordBatchReader.from_batches(plan.schema, rows)

    def write(self, table: str, rows: pa.Table | pa.RecordBatchReader, *, replace: bool = False) -> int:
        """Add rows to a table, in one call.

        Args:
            table: name of the table.
            rows: what is added.
            replace: whether rows that are there are to go.

        Returns:
            The number of rows that the server says it has taken.

        Raises:
            FlightWriteFailed: the server has not taken them all.
        """
        batches: Iterable[pa.RecordBatch] = rows.to_batches() if isinstance(rows, pa.Table) else rows
        return write_rows(self, Request(table), rows.schema, batches, replace_rows=replace)

    def _schema_beside(self, descriptor: Any, endpoints: tuple[Endpoint, ...]) -> pa.Schema:
        """The columns of a server that leaves them out of FlightInfo: GetSchema has them, or else the first stream."""
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

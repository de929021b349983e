"""A plain Flight server for tests: tables in memory, in parts, with configurable faults."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.flight.commands.protobuf import bytes_of, data, number_of, packed, unpacked
from odfpy.serving.flight.messages import message, unwrap

REFUSED = "grpc://127.0.0.1:1"
"""A location without a listener."""
REUSE = "arrow-flight-reuse-connection://?"


@dataclass
class Flight:
    """A table.

    Attributes:
        parts: parts, one per endpoint.
        locations: locations of each endpoint; none is the server itself.
        declared: columns that FlightInfo has, None for those of the parts; an empty schema leaves them out.
        batch: rows in a batch.
        expires: when the tickets run out.
        single_use: whether a ticket can be redeemed only once.
    """

    parts: list[pa.Table]
    locations: list[str] = field(default_factory=list)
    declared: pa.Schema | None = None
    batch: int = 3
    expires: datetime | None = None
    single_use: bool = False

    @property
    def schema(self) -> pa.Schema:
        return self.parts[0].schema if self.declared is None else self.declared


class PlainServer(fl.FlightServerBase):
    """Flights by the name in their path or command.

    Attributes:
        flights: flights by name; `do_put` adds new ones.
        faults: faults of the next streams: `die`, `raise`, `wait`, `refuse`, `lie`; None for none.
        commands: received commands.
        headers: headers of received calls.
        transactions: open transactions with their pending rows.
        waiting: set when streams that wait shall go on.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "grpc://127.0.0.1:0" if "tls_certificates" not in options else "grpc+tls://127.0.0.1:0",
            middleware={"seen": _Seen(self), **options.pop("middleware", {})},
            **options,
        )
        self.flights: dict[str, Flight] = {}
        self.faults: deque[str | None] = deque()
        self.commands: list[bytes] = []
        self.headers: list[dict[str, list[str]]] = []
        self.transactions: dict[bytes, list[tuple[str, pa.Table]]] = {}
        self.waiting = threading.Event()
        self._serial, self._redeemed = count(), set[int]()
        scheme = "grpc+tls" if "tls_certificates" in options else "grpc"
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        name = self._name(descriptor)
        flight = self.flights.get(name)
        if flight is None:
            raise fl.FlightServerError(f"no flight {name}")
        expires = None if flight.expires is None else pa.scalar(flight.expires, pa.timestamp("ns", "UTC"))
        tickets = [json.dumps([name, number, next(self._serial)]) for number in range(len(flight.parts))]
        endpoints = [fl.FlightEndpoint(ticket, flight.locations, expires) for ticket in tickets]
        rows = sum(part.num_rows for part in flight.parts)
        size = sum(part.nbytes for part in flight.parts)
        return fl.FlightInfo(flight.schema, descriptor, endpoints, rows, size)

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        return fl.SchemaResult(self.flights[self._name(descriptor)].parts[0].schema)

    def do_get(self, context: Any, ticket: Any) -> Any:
        name, number, serial = json.loads(ticket.ticket)
        if self.flights[name].single_use and serial in self._redeemed:
            raise fl.FlightServerError("this ticket has been redeemed")
        self._redeemed.add(serial)
        part = self.flights[name].parts[number]
        expires = self.flights[name].expires
        if expires is not None and expires < datetime.now(timezone.utc):
            raise fl.FlightServerError("too late")
        fault = self.faults.popleft() if self.faults else None
        if fault == "refuse":
            raise fl.FlightUnavailableError("not now")
        if fault == "wait":
            self.waiting.wait(60)
        if fault == "lie":
            part = part.rename_columns([f"{column}_" for column in part.column_names])
        size = self.flights[name].batch
        if fault is None:
            return fl.RecordBatchStream(part.to_reader(size))
        return fl.GeneratorStream(part.schema, self._stream(part.to_batches(size), fault))  # it sends no dictionaries

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        if b"CommandStatementIngest" in (descriptor.command or b""):
            self._ingest(unwrap(descriptor.command).table, unpacked(descriptor.command), reader, writer)
            return
        name = self._name(descriptor)
        rows = reader.read_all()
        if name == "forbidden":
            raise fl.FlightServerError("nobody writes here")
        self.flights.setdefault(name, Flight([])).parts.append(rows)

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        if action.type == "BeginTransaction":
            found = b"transaction %d" % len(self.transactions)
            self.transactions[found] = []
            return [packed("ActionBeginTransactionResult", data(1, found))]
        ended = unpacked(action.body.to_pybytes())
        waiting = self.transactions.pop(bytes_of(ended, 1))
        if number_of(ended, 2) == 1:
            for name, rows in waiting:
                self.flights.setdefault(name, Flight([])).parts.append(rows)
        return []

    def _ingest(self, name: str, command: bytes, reader: Any, writer: Any) -> None:
        """Ingest by Flight SQL: rows wait for their transaction, or replace or extend existing ones."""
        rows = reader.read_all()
        if name == "full":
            raise fl.FlightServerError("the disk is full")
        transaction = bytes_of(command, 6)
        if transaction:
            self.transactions[transaction].append((name, rows))
        else:
            if number_of(bytes_of(command, 1), 2) == 3:
                self.flights.pop(name, None)
            self.flights.setdefault(name, Flight([])).parts.append(rows)
        writer.write(message("DoPutUpdateResult", record_count=rows.num_rows).SerializeToString())

    def _stream(self, batches: list[pa.RecordBatch], fault: str | None) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 1 and fault == "die":
                os._exit(1)
            if number == 1 and fault == "raise":
                raise fl.FlightServerError("the disk is gone")
            if number == 1 and fault == "stall":
                self.waiting.wait(60)
            yield batch

    def _name(self, descriptor: Any) -> str:
        if descriptor.descriptor_type == fl.DescriptorType.PATH:
            return b"/".join(descriptor.path).decode()
        self.commands.append(descriptor.command)
        try:
            return str(json.loads(descriptor.command)["table"])
        except ValueError:
            return str(descriptor.command.decode())


class _Seen(fl.ServerMiddlewareFactory):
    def __init__(self, server: PlainServer) -> None:
        self.server = server

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> None:
        self.server.headers.append(headers)


@contextmanager
def plain_flight(**options: Any) -> Iterator[PlainServer]:
    """A server without tables."""
    server = PlainServer(**options)
    try:
        yield server
    finally:
        server.waiting.set()
        server.shutdown()

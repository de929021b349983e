"""Reading an endpoint: tries all locations, and never returns a row twice.

Flight does not guarantee that a ticket returns the same rows in the same order when it is redeemed again. So a stream
that breaks off cannot be resumed: it is restarted, which is only possible before any of its rows was passed on. Rows
are buffered until the endpoint is complete, or the buffer is full.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timezone
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.errors import UsageError, did_you_mean
from odfpy.flight.errors import NoLocationLeft, SchemaBroken, StreamBroken
from odfpy.flight.failures import FAILURES, REFUSED, as_ours, reason
from odfpy.flight.locations import locations_of
from odfpy.flight.plan import Endpoint, FlightPlan
from odfpy.flight.server import Server
from odfpy.flight.streams import ReadAhead, StreamTimeout

_MICROSECONDS: Final = pa.timestamp("us", "UTC")
"""The finest type of Python's times."""
_PAUSE: Final = 0.2
"""Seconds before the second round; twice as long before each one after it."""


def read_endpoint(
    server: Server, plan: FlightPlan, endpoint: Endpoint, held_bytes: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an endpoint, in the columns of the plan.

    Args:
        server: the server that planned the endpoint.
        plan: the plan.
        endpoint: the endpoint.
        held_bytes: maximum bytes to buffer before the first row is passed on; None for all.
    """
    found = fl.FlightEndpoint.deserialize(endpoint.data)
    usable, failures = _locations(found, server)
    for turn in range(server.limits.rounds if usable else 0):
        if turn:
            time.sleep(_PAUSE * 2 ** (turn - 1))
        for location in usable:
            handed_over = 0
            try:
                for batch in _held_back(_rows(server, location, found.ticket, plan), held_bytes):
                    yield batch
                    handed_over += batch.num_rows
            except (StreamTimeout, *FAILURES) as error:
                if handed_over:
                    raise _broken(location, endpoint, handed_over, error) from error
                if isinstance(error, REFUSED) and len(usable) == 1:
                    raise as_ours(error, location) from error
                failures.append(f"{location}: {reason(error)}")
            else:
                return
    raise _none_left(found, endpoint, failures)


def first_schema(server: Server, endpoint: Endpoint) -> pa.Schema:
    """Return the columns of a stream, without reading its rows.

    Args:
        server: the server that planned the endpoint.
        endpoint: an endpoint of a plan.

    Raises:
        FlightFailed: no location returns the stream.
    """
    found = fl.FlightEndpoint.deserialize(endpoint.data)
    usable, failures = _locations(found, server)
    for location in usable:
        try:
            with _opened(server, location, found.ticket) as stream:
                return stream.schema()
        except (StreamTimeout, *FAILURES) as error:
            failures.append(f"{location}: {reason(error)}")
    raise _none_left(found, endpoint, failures)


def pick(declared: pa.Schema, columns: Sequence[str]) -> list[int] | None:
    """Return the indices of the requested columns among the declared ones; None for all of them, unchanged.

    Args:
        declared: columns declared by the server, which may have dropped others already.
        columns: requested names; all if empty.

    Raises:
        UsageError: a column does not exist.
    """
    if not columns or list(columns) == declared.names:
        return None
    for name in columns:
        if name not in declared.names:
            raise UsageError(f"There is no column {name!r}", hint=did_you_mean(name, declared.names))
    return [declared.names.index(name) for name in columns]


def _rows(server: Server, location: str, ticket: Any, plan: FlightPlan) -> Iterator[pa.RecordBatch]:
    """Yield the rows from one location, without retries."""
    with _opened(server, location, ticket) as stream:
        _check(stream.schema(), plan.declared, location)
        for batch in stream:
            columns = batch.columns if plan.picked is None else [batch.column(place) for place in plan.picked]
            yield pa.RecordBatch.from_arrays(columns, schema=plan.schema)


@contextmanager
def _opened(server: Server, location: str, ticket: Any) -> Iterator[ReadAhead]:
    """Open a stream; its connection stays open during the block."""
    with server.client(location) as client:
        opened = partial(
            server.call, client, lambda connection, options: connection.do_get(ticket, options), timeout=None
        )
        with closing(ReadAhead(opened, server.limits.patience)) as stream:
            yield stream


def _locations(endpoint: Any, server: Server) -> tuple[list[str], list[str]]:
    return locations_of([location.uri.decode() for location in endpoint.locations], server.location)


def _none_left(found: Any, endpoint: Endpoint, failures: list[str]) -> NoLocationLeft:
    return NoLocationLeft(
        f"No location returned the rows of endpoint {endpoint.number}: {'; '.join(dict.fromkeys(failures))}",
        hint=_advice(found),
    )


def _held_back(rows: Iterator[pa.RecordBatch], bound: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the same batches, but buffered until they exceed the limit or are complete."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in rows:
        held.append(batch)
        size += batch.get_total_buffer_size()
        if bound is not None and size > bound:
            break
    yield from held
    held.clear()
    yield from rows


def _check(found: pa.Schema, declared: pa.Schema, location: str) -> None:
    """Compare names and types, in order; names inside lists and maps, and metadata, are ignored."""
    if found.equals(declared):
        return
    if found.names != declared.names:
        what = f"the columns {', '.join(found.names)} instead of {', '.join(declared.names)}"
    else:
        differing = [(one, two) for one, two in zip(found, declared, strict=True) if not one.type.equals(two.type)]
        if not differing:
            return  # only nullability differs
        sent, declared_field = differing[0]
        what = f"column {declared_field.name!r} of type {sent.type} instead of {declared_field.type}"
    raise SchemaBroken(
        f"{location} sends {what}, as it had declared",
        hint="This is a fault of the server. CAST the column in the query, or omit it.",
    )


def _broken(location: str, endpoint: Endpoint, rows: int, error: BaseException) -> StreamBroken:
    return StreamBroken(
        f"{location}: endpoint {endpoint.number} has ended after {rows:,} rows: {reason(error)}",
        hint="Read again from the start. More memory for rows held back (option arrow-flight.held-bytes) "
        "lets larger endpoints restart automatically.",
    )


def _advice(endpoint: Any) -> str:
    expires = endpoint.expiration_time
    if expires is not None and expires.cast(_MICROSECONDS, safe=False).as_py() < datetime.now(timezone.utc):
        return "The ticket has expired: plan again (in Spark: load() again)."
    return "Check that the locations of the server are reachable from here."

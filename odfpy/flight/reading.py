"""The rows of an endpoint: every location in turn, and no row twice.

Flight does not promise that a ticket gives the same rows in the same order when it is redeemed again. So a stream that
breaks off cannot go on where it was: it begins again, which is allowed only while none of its rows has been handed
over. Rows are held back until the endpoint has ended, or until they are too large to be held.
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
"""Python has no finer times."""
_PAUSE: Final = 0.2
"""Seconds before the second round; twice as long before each one after it."""


def read_endpoint(
    server: Server, plan: FlightPlan, endpoint: Endpoint, held_bytes: int | None
) -> Iterator[pa.RecordBatch]:
    """The rows of an endpoint in the columns that the plan wants.

    Args:
        server: that has named it.
        plan: what the server has declared.
        endpoint: a part of it.
        held_bytes: bytes that are held back before the first row is handed over; None for all.
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
    """The columns that a stream has; its rows are not read.

    Args:
        server: that has named it.
        endpoint: one of a plan.

    Raises:
        FlightFailed: none of its locations tells.
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
    """Places of the columns that are wanted among those that a server declares; None for all of them as they are.

    Args:
        declared: by the server, which may have left out the others already.
        columns: names; none for all.

    Raises:
        UsageError: one is not there.
    """
    if not columns or list(columns) == declared.names:
        return None
    for name in columns:
        if name not in declared.names:
            raise UsageError(f"There is no column {name!r}", hint=did_you_mean(name, declared.names))
    return [declared.names.index(name) for name in columns]


def _rows(server: Server, location: str, ticket: Any, plan: FlightPlan) -> Iterator[pa.RecordBatch]:
    """The rows that one location gives, once."""
    with _opened(server, location, ticket) as stream:
        _check(stream.schema(), plan.declared, location)
        for batch in stream:
            columns = batch.columns if plan.picked is None else [batch.column(place) for place in plan.picked]
            yield pa.RecordBatch.from_arrays(columns, schema=plan.schema)


@contextmanager
def _opened(server: Server, location: str, ticket: Any) -> Iterator[ReadAhead]:
    """A stream; its connection is not closed before the block is left."""
    with server.client(location) as client:
        opened = partial(server.call, client, lambda one, options: one.do_get(ticket, options), timeout=None)
        with closing(ReadAhead(opened, server.limits.patience)) as stream:
            yield stream


def _locations(endpoint: Any, server: Server) -> tuple[list[str], list[str]]:
    return locations_of([one.uri.decode() for one in endpoint.locations], server.location)


def _none_left(found: Any, endpoint: Endpoint, failures: list[str]) -> NoLocationLeft:
    return NoLocationLeft(
        f"No location gives the rows of endpoint {endpoint.number}: {'; '.join(dict.fromkeys(failures))}",
        hint=_advice(found),
    )


def _held_back(rows: Iterator[pa.RecordBatch], bound: int | None) -> Iterator[pa.RecordBatch]:
    """The same batches: the first ones only when there are too many to be held, or when they were all."""
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
    """Compare names and types, in order; what columns are called in lists and maps, and metadata, is not looked at."""
    if found.equals(declared):
        return
    if found.names != declared.names:
        what = f"the columns {', '.join(found.names)} instead of {', '.join(declared.names)}"
    else:
        differing = [(one, two) for one, two in zip(found, declared, strict=True) if not one.type.equals(two.type)]
        if not differing:
            return  # they only differ in what may be null
        sent, said = differing[0]
        what = f"column {said.name!r} of type {sent.type} instead of {said.type}"
    raise SchemaBroken(
        f"{location} sends {what}, as it had declared",
        hint="That is a fault of the server. Another query may do: CAST the column, or leave it out.",
    )


def _broken(location: str, endpoint: Endpoint, rows: int, error: BaseException) -> StreamBroken:
    return StreamBroken(
        f"{location}: endpoint {endpoint.number} has ended after {rows:,} rows: {reason(error)}",
        hint="Read again from the start. More memory for rows held back (option arrow-flight.held-bytes) "
        "lets larger endpoints begin again by themselves.",
    )


def _advice(endpoint: Any) -> str:
    expires = endpoint.expiration_time
    if expires is not None and expires.cast(_MICROSECONDS, safe=False).as_py() < datetime.now(timezone.utc):
        return "The ticket has run out: ask for a new plan (in Spark: load() again)."
    return "Are the locations that the server names reachable from here?"

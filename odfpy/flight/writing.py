"""Rows to a server, by DoPut, and transactions of Flight SQL around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.flight.commands.protobuf import bytes_of, data, number, packed, unpacked
from odfpy.flight.errors import FlightFailed, FlightWriteFailed
from odfpy.flight.failures import FAILURES, reason
from odfpy.flight.request import Request
from odfpy.flight.server import Server

ATTEMPT: Final = "flight-write-attempt"
"""Header that names an attempt to write: WRITE/PARTITION/ATTEMPT. A server can keep the last one of each partition."""
_TRANSACTION_ID, _ACTION = 1, 2
_COMMIT, _ROLL_BACK = 1, 2


def write_rows(
    server: Server,
    request: Request,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    replace_rows: bool = False,
    transaction: bytes | None = None,
    attempt: str | None = None,
) -> int:
    """Add rows to a table, in one call. Nothing is tried again: only the caller knows whether rows may come twice.

    Args:
        server: whose table it is.
        request: the table.
        schema: schema of the rows.
        batches: the rows.
        replace_rows: whether rows that are there are to go.
        transaction: in which the rows are added, if the server has transactions.
        attempt: a name for this try, which goes into a header.

    Returns:
        The number of rows that the server says it has taken; of those that were sent if it does not say.

    Raises:
        FlightWriteFailed: the server has not taken them all; what it has done with the others is its own affair.
        UsageError: the server cannot be told that.
    """
    descriptor = server.commands.write_descriptor(request, replace=replace_rows, transaction=transaction)
    if attempt is not None:
        server = replace(server, headers=(*server.headers, (ATTEMPT, attempt)))
    sent = 0
    with server.client() as client:
        try:
            writer, answers = server.call(
                client, lambda one, options: one.do_put(descriptor, schema, options), timeout=None
            )
            with writer:
                for batch in batches:
                    writer.write_batch(batch)
                    sent += batch.num_rows
                writer.done_writing()
                said = _answers(answers, server)
        except FAILURES as error:
            raise FlightWriteFailed(
                f"{server.location} did not accept the rows for {request.what}: {reason(error)}",
                hint="Check the table before you write again: some rows may have been written.",
            ) from error
    return sent if said is None else said


def begin(server: Server) -> bytes:
    """Begin a transaction.

    Raises:
        FlightFailed: the server has none.
    """
    result = _act(server, "BeginTransaction", packed("ActionBeginTransactionRequest", b""))
    found = bytes_of(unpacked(result), _TRANSACTION_ID)
    if not found:
        raise FlightFailed(f"{server.location} names no transaction", hint="Write without arrow-flight.transactions.")
    return found


def end(server: Server, transaction: bytes, *, commit: bool) -> None:
    """End a transaction.

    Args:
        server: whose table it is.
        transaction: as `begin` has given it.
        commit: whether its rows are to stay.

    Raises:
        FlightFailed: the server has not done it.
    """
    body = data(_TRANSACTION_ID, transaction) + number(_ACTION, _COMMIT if commit else _ROLL_BACK)
    _act(server, "EndTransaction", packed("ActionEndTransactionRequest", body))


def _act(server: Server, kind: str, body: bytes) -> bytes:
    results = server.ask(lambda client, options: list(client.do_action(fl.Action(kind, body), options)))
    return results[0].body.to_pybytes() if results else b""


def _answers(answers: object, server: Server) -> int | None:
    """The number of rows that the server says it has taken, in the last of its answers that has one."""
    said = None
    while (found := answers.read()) is not None:  # type: ignore[attr-defined]
        rows = server.commands.rows_written(found.to_pybytes())
        said = said if rows is None else rows
    return said

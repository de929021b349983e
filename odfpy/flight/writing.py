"""Writing of rows to a server by DoPut, and transactions of Flight SQL."""

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
"""Header with the id of a write attempt: WRITE/PARTITION/ATTEMPT. Servers can keep only the last one per partition."""
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
    """Append rows to a table in one call. There are no retries: only the caller knows whether duplicates are
    acceptable.

    Args:
        server: the server of the table.
        request: the table.
        schema: schema of the rows.
        batches: the rows.
        replace_rows: whether to delete existing rows.
        transaction: id of a transaction for the write, if the server supports transactions.
        attempt: id of this attempt, sent in a header.

    Returns:
        The number of rows written as reported by the server, or else the number of rows sent.

    Raises:
        FlightWriteFailed: the server has not accepted all rows; it may have written some.
        UsageError: the server does not support the write.
    """
    descriptor = server.commands.write_descriptor(request, replace=replace_rows, transaction=transaction)
    if attempt is not None:
        server = replace(server, headers=(*server.headers, (ATTEMPT, attempt)))
    sent = 0
    with server.client() as client:
        try:
            writer, answers = server.call(
                client, lambda connection, options: connection.do_put(descriptor, schema, options), timeout=None
            )
            with writer:
                for batch in batches:
                    writer.write_batch(batch)
                    sent += batch.num_rows
                writer.done_writing()
                written = _answers(answers, server)
        except FAILURES as error:
            raise FlightWriteFailed(
                f"{server.location} did not accept the rows for {request.what}: {reason(error)}",
                hint="Check the table before you write again: some rows may have been written.",
            ) from error
    return sent if written is None else written


def begin(server: Server) -> bytes:
    """Begin a transaction.

    Raises:
        FlightFailed: the server does not support transactions.
    """
    result = _act(server, "BeginTransaction", packed("ActionBeginTransactionRequest", b""))
    found = bytes_of(unpacked(result), _TRANSACTION_ID)
    if not found:
        raise FlightFailed(f"{server.location} names no transaction", hint="Write without arrow-flight.transactions.")
    return found


def end(server: Server, transaction: bytes, *, commit: bool) -> None:
    """End a transaction.

    Args:
        server: the server of the transaction.
        transaction: id returned by `begin`.
        commit: whether to commit, or else to roll back.

    Raises:
        FlightFailed: the server could not end the transaction.
    """
    body = data(_TRANSACTION_ID, transaction) + number(_ACTION, _COMMIT if commit else _ROLL_BACK)
    _act(server, "EndTransaction", packed("ActionEndTransactionRequest", body))


def _act(server: Server, kind: str, body: bytes) -> bytes:
    results = server.ask(lambda client, options: list(client.do_action(fl.Action(kind, body), options)))
    return results[0].body.to_pybytes() if results else b""


def _answers(answers: object, server: Server) -> int | None:
    """Return the number of rows in the last response that contains one, None if none does."""
    written = None
    while (found := answers.read()) is not None:  # type: ignore[attr-defined]
        rows = server.commands.rows_written(found.to_pybytes())
        written = written if rows is None else rows
    return written

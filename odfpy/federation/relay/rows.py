"""Rows that a relay sends for tickets: its own, hashed if they are to be signed, and those of other relays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from odfpy.data.multihash import Multihash
from odfpy.data.rows.batch_stream import BatchStream
from odfpy.engine.cancellation import CancellationToken
from odfpy.federation.relay.bounds import Received
from odfpy.federation.relay.flight import Connections
from odfpy.federation.relay.reading import SourceReader
from odfpy.federation.relay.statements import RowsSigner
from odfpy.federation.relay.tickets import PassedTicket, Ticket, Tickets


@dataclass(frozen=True, slots=True)
class TicketReader:
    """A reader of the rows of tickets, from the relay's own sources or the relay that issued the ticket; thread-safe.

    Attributes:
        tickets: opens the tickets of the relay.
        sources: reads the sources of the relay.
        connections: connections to other relays, for tickets of theirs that are passed on.
        signer: signs the relay's own rows, where the ticket asks for it.
    """

    tickets: Tickets
    sources: SourceReader
    connections: Connections
    signer: RowsSigner

    @contextmanager
    def rows(
        self, ticket: Ticket | PassedTicket, control: CancellationToken, seconds: float, max_bytes: int
    ) -> Iterator[TicketRows]:
        """Open the rows of a ticket.

        Args:
            ticket: an opened ticket.
            control: cancels the reading of the relay's own rows.
            seconds: time limit for the rows of another relay.
            max_bytes: maximum bytes of Arrow data from another relay.

        Raises:
            TicketRefused: its holder may no longer see anything of the source.
            OdfError: the rows cannot be read; may also be raised while they are consumed.
        """
        if isinstance(ticket, PassedTicket):
            with self.connections.rows(ticket.part, seconds, reader=ticket.holder.fingerprint) as stream:
                yield ForwardedRows(stream, Received(max_bytes))
        elif ticket.is_signed:
            yield SignedRows(self.sources.read(ticket, control), ticket, self.signer)
        else:
            yield UnsignedRows(self.sources.read(ticket, control))


class TicketRows(BatchStream, Protocol):
    """The rows of a ticket, which can be read once."""

    @property
    def statement(self) -> str | None:
        """The signed statement about the rows, once all were read; None if there is none."""


class UnsignedRows:
    """Rows of the relay itself, about which it states nothing."""

    statement: Final = None

    def __init__(self, rows: BatchStream) -> None:
        self.schema: pa.Schema = rows.schema
        self._rows = rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self._rows)


class SignedRows:
    """Rows of the relay itself, hashed while they are read and then signed."""

    def __init__(self, rows: BatchStream, ticket: Ticket, signer: RowsSigner) -> None:
        self.schema: pa.Schema = rows.schema
        self._rows = rows
        self._ticket = ticket
        self._signer = signer
        self._found: tuple[int, Multihash] | None = None

    @property
    def statement(self) -> str | None:
        """The relay's statement about the rows, once all were read."""
        return None if self._found is None else self._signer.signed(self._ticket, *self._found)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        from odfpy.data.rows.rows_hash import RowsHasher

        with RowsHasher() as hasher:
            for batch in self._rows:
                hasher.update(batch)
                yield batch
            self._found = hasher.num_rows, hasher.finish()


class ForwardedRows:
    """The rows of another relay, passed through as they arrive.

    Attributes:
        statement: the other relay's statement about them, once all have arrived.
    """

    def __init__(self, reader: Any, received: Received) -> None:
        """
        Args:
            reader: reader of the stream.
            received: counts received bytes, and stops endless streams.
        """
        self.schema: pa.Schema = reader.schema
        self.statement: str | None = None
        self._reader = reader
        self._received = received

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for chunk in self._reader:
            if chunk.app_metadata is not None:
                self.statement = chunk.app_metadata.to_pybytes().decode("ascii", "replace")
            if chunk.data is not None and chunk.data.num_rows:
                yield self._received.taken("", chunk.data)

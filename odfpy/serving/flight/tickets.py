"""Tickets for rows: they contain the complete query, so that every caller who may run it can redeem them.

A ticket names the blocks at which datasets are read: redeemed twice, it returns the same rows.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from odfpy.codec.arrow_message import is_compressed
from odfpy.data.multihash import Multihash
from odfpy.data.sql_text import OF_STRANGERS, check_text
from odfpy.dataset.identity import DatasetId
from odfpy.errors import InvalidValue
from odfpy.query.query import Query
from odfpy.serving.flight.binding import check_types, values_of
from odfpy.serving.flight.errors import WrongMessage, as_arrow
from odfpy.serving.flight.messages import message, wrap

_MAX_NAME_LENGTH: Final = 100


@dataclass(frozen=True, slots=True)
class QueryTicket:
    """The query in a ticket.

    Attributes:
        text: SQL.
        dialect: SQL dialect of the query.
        parameters: values for `?`, in order.
    """

    text: str
    dialect: str
    parameters: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        check_text(self.text, OF_STRANGERS)


@dataclass(frozen=True, slots=True)
class Ticket:
    """Some rows of an answer.

    Attributes:
        name: name of the execution that it belongs to, for cancellation.
        question: the query.
        pins: the block at which each dataset is read.
        skip: rows to skip first.
        limit: maximum number of rows.
    """

    name: str
    question: QueryTicket
    pins: Mapping[DatasetId, Multihash] = field(default_factory=dict)
    skip: int = 0
    limit: int | None = None

    def query(self) -> Query:
        """Return the question for the query service."""
        asked = self.question
        return Query(
            asked.text,
            asked.dialect,
            self.pins,
            self.skip,
            self.limit,
            parameters=asked.parameters,
            text_limits=OF_STRANGERS,
        )

    def to_bytes(self) -> bytes:
        """Encode the ticket as a Flight SQL message."""
        document: dict[str, Any] = {
            "name": self.name,
            "query": self.question.text,
            "dialect": self.question.dialect,
            "parameters": _packed(self.question.parameters) or None,
            "pins": {str(key): str(value) for key, value in self.pins.items()},
            "skip": self.skip,
            "limit": self.limit,
        }
        text = json.dumps(
            {key: value for key, value in document.items() if value not in ({}, None)}, separators=(",", ":")
        )
        return wrap(message("TicketStatementQuery", statement_handle=text.encode()))

    @classmethod
    def parse(cls, handle: bytes) -> Ticket:
        """Decode a ticket.

        Raises:
            WrongMessage: it is not a ticket of this server.
        """
        try:
            document = json.loads(handle)
            parameters = _unpacked(document.get("parameters", ""))
            question = QueryTicket(_text(document["query"]), _text(document["dialect"]), parameters)
            pins = {DatasetId.parse(key): Multihash.parse(value) for key, value in document.get("pins", {}).items()}
            limit = document.get("limit")
            most = None if limit is None else _count(limit)
            return cls(_name(document["name"]), question, pins, _count(document.get("skip", 0)), most)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidValue) as error:
            raise WrongMessage(
                "This is not a ticket of this server", hint="Use tickets as GetFlightInfo returns them."
            ) from error


def _storable(value: Any) -> Any:
    """Return a value that Arrow can store: integers beyond 64 bits become decimals."""
    return Decimal(value) if type(value) is int and not -(1 << 63) <= value < 1 << 63 else value


def _packed(values: tuple[Any, ...]) -> str:
    """Encode values with their types."""
    if not values:
        return ""
    sink = pa.BufferOutputStream()
    arrays = [pa.array([_storable(value)]) for value in values]
    batch = pa.record_batch(arrays, names=[str(number) for number in range(len(arrays))])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue()).decode()


def _unpacked(text: str) -> tuple[Any, ...]:
    if not text:
        return ()
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise WrongMessage("This is not a ticket of this server") from error
    return values_of(as_arrow(lambda: _first_batch(data), "This is not a ticket of this server"))


def _first_batch(data: bytes) -> pa.RecordBatch:
    if any(is_compressed(message.metadata.to_pybytes()) for message in pa.ipc.MessageReader.open_stream(data)):
        raise ValueError
    with pa.ipc.open_stream(data) as reader:
        check_types(reader.schema)
        return reader.read_next_batch()


def _name(value: Any) -> str:
    """Return the name of an execution; cancelled names are remembered."""
    if len(_text(value)) > _MAX_NAME_LENGTH:
        raise ValueError
    return _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value

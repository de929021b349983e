"""Plans: a server's description of the rows before it sends them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Endpoint:
    """A part of the rows, with its locations. Pickled, it is a few hundred bytes.

    Attributes:
        data: pyarrow's endpoint, serialized.
        number: index in its plan.
    """

    data: bytes
    number: int


@dataclass(frozen=True)
class FlightPlan:
    """A server's answer to a request: the columns, and the endpoints that return the rows.

    Attributes:
        schema: the requested columns. All are nullable: servers' declarations of that are often wrong.
        declared: the columns of every stream, as declared by the server.
        picked: indices of the requested columns among those; None for all of them, unchanged.
        endpoints: the parts of the rows.
        rows: number of rows, None if the server does not report it.
        size: size in bytes, None if the server does not report it.
        ordered: whether the rows are ordered when endpoints are read in order.
        metadata: application metadata.
    """

    schema: pa.Schema
    declared: pa.Schema
    picked: list[int] | None
    endpoints: tuple[Endpoint, ...]
    rows: int | None
    size: int | None
    ordered: bool
    metadata: bytes = b""

"""Plans: what a server says about rows before it sends them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Endpoint:
    """A part of the rows, and where it is. Pickled, it is a few hundred bytes.

    Attributes:
        data: pyarrow's endpoint, serialized.
        number: number of it in its plan.
    """

    data: bytes
    number: int


@dataclass(frozen=True)
class FlightPlan:
    """The answer to a request: columns, and endpoints that give rows when they are asked.

    Attributes:
        schema: the columns that the request wants. All may be null: what servers say about that is often wrong.
        declared: the columns that every stream has, as the server has declared them.
        picked: places of the columns that are wanted among those; None for all of them as they are.
        endpoints: parts of the rows.
        rows: how many there are, None if the server does not say.
        size: how many bytes they have, None if the server does not say.
        ordered: whether the rows are in order when the endpoints are read in order.
        metadata: what the application says beside.
    """

    schema: pa.Schema
    declared: pa.Schema
    picked: list[int] | None
    endpoints: tuple[Endpoint, ...]
    rows: int | None
    size: int | None
    ordered: bool
    metadata: bytes = b""

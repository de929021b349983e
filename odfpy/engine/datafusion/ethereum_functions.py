"""Functions over logs of Ethereum contracts that the reference implementation adds to DataFusion.

eth_event_selector(signature)                                             the first topic of an event's logs
eth_decode_event(signature, topic0, topic1, topic2, topic3, data)         a log as JSON
eth_try_decode_event(signature, topic0, topic1, topic2, topic3, data)     the same, but NULL for another event
"""

from __future__ import annotations

from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING

import pyarrow as pa

from odfpy.ethereum.events import EventSignature, NotOfThisEvent

if TYPE_CHECKING:
    from datafusion import SessionContext

_BINARY = pa.binary()


def register_ethereum_functions(context: SessionContext) -> None:
    """Register the functions in a session."""
    from datafusion import udf

    log = [pa.string(), *[_BINARY] * 5]
    context.register_udf(udf(_selectors, [pa.string()], _BINARY, "immutable", "eth_event_selector"))
    context.register_udf(udf(_decoded, log, pa.string(), "immutable", "eth_decode_event"))
    context.register_udf(udf(_decoded_or_null, log, pa.string(), "immutable", "eth_try_decode_event"))


_event = cache(EventSignature.parse)


def _selectors(signatures: pa.Array) -> pa.Array:
    return pa.array([None if text is None else _event(text).selector for text in signatures.to_pylist()], _BINARY)


def _decoded(*columns: pa.Array) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([_as_json(*row) for row in rows], pa.string())


def _decoded_or_null(*columns: pa.Array) -> pa.Array:
    def row(signature: str | None, *parts: bytes | None) -> str | None:
        try:
            return _as_json(signature, *parts)
        except NotOfThisEvent:
            return None

    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([row(*values) for values in rows], pa.string())


def _as_json(signature: str | None, *parts: bytes | None) -> str | None:
    *topics, data = parts
    if signature is None:
        return None
    present = [topic for topic in takewhile(lambda topic: topic is not None, topics) if topic is not None]
    return _event(signature).to_json(present, data or b"")

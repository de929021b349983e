"""The part of Arrow's `Message` (`Message.fbs`) that must be inspected before Arrow reads a message."""

from __future__ import annotations

import struct

import flatbuffers.number_types as numbers
from flatbuffers.table import Table

_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


def is_compressed(header: bytes) -> bool:
    """Return whether a header of Arrow's type `Message` describes a batch with the field `compression`.

    Older writers state compression in the metadata of the message, which batches of parameters do not have.

    Raises:
        ValueError, struct.error, and others: the header is invalid.
    """
    if not header:
        return False
    message = Table(header, struct.unpack_from("<I", header)[0])
    kind = message.Offset(6)
    kind = message.Get(numbers.Uint8Flags, message.Pos + kind) if kind else 0
    place = message.Offset(8)
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH) or not place:
        return False
    if message.Offset(12):
        return True
    batch = Table(header, message.Indirect(message.Pos + place))
    if kind == _DICTIONARY_BATCH:
        place = batch.Offset(6)
        if not place:
            return False
        batch = Table(header, batch.Indirect(batch.Pos + place))
    return bool(batch.Offset(10))

"""Deletion vectors: superseded rows of a file, inline in the file's action (Delta protocol, "Deletion Vector
Format": storage type `i`; Roaring bitmaps: "portable" serialization, extension for 64 bits).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

FEATURE: Final = "deletionVectors"
"""The reader feature that a client must support."""

MAX_SHARE: Final = 0.3
"""Maximum share of superseded rows; above it, a file without them is less to read."""

_MAGIC: Final = 1681511377
_NO_RUNS: Final = 12346
_CONTAINER: Final = 1 << 16  # rows of a container
_MAX_ARRAY_SIZE: Final = 4096  # maximum rows in an array container; larger containers are bitmaps
_Z85: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def inline_vector(live: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return the descriptor of an inline deletion vector.

    Args:
        live: for each row of a file, whether it is live; fewer than 2^32.
    """
    dead = np.flatnonzero(~live).astype(np.uint32)
    bits = struct.pack("<iQI", _MAGIC, 1, 0) + _roaring(dead)
    return {"storageType": "i", "pathOrInlineDv": _z85(bits), "sizeInBytes": len(bits), "cardinality": len(dead)}


def _roaring(rows: npt.NDArray[np.uint32]) -> bytes:
    """Encode sorted numbers as a 32-bit Roaring bitmap, without runs."""
    high, starts = np.unique(rows // _CONTAINER, return_index=True)
    parts = [part.astype(np.uint32) % _CONTAINER for part in np.split(rows, starts[1:])] if len(rows) else []
    containers = [_array(part) if len(part) <= _MAX_ARRAY_SIZE else _bits(part) for part in parts]
    heads = b"".join(struct.pack("<HH", key, len(part) - 1) for key, part in zip(high, parts, strict=True))
    place = 8 + len(heads) + 4 * len(containers)
    places = np.cumsum([place, *map(len, containers)])[:-1].astype("<u4")
    return struct.pack("<II", _NO_RUNS, len(containers)) + heads + places.tobytes() + b"".join(containers)


def _array(rows: npt.NDArray[np.uint32]) -> bytes:
    return rows.astype("<u2").tobytes()


def _bits(rows: npt.NDArray[np.uint32]) -> bytes:
    bits = np.zeros(_CONTAINER, np.bool_)
    bits[rows] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _z85(data: bytes) -> str:
    """Encode bytes as Z85, padded to a multiple of four."""
    filled = data + bytes(-len(data) % 4)
    words = np.frombuffer(filled, ">u4").astype(np.int64)
    digits = np.stack([words // 85**power % 85 for power in (4, 3, 2, 1, 0)], axis=1)
    return np.frombuffer(_Z85.encode(), np.uint8)[digits].tobytes().decode()

"""Self-describing hashes: multihash bytes, multibase text (ODF specification, "Hashes").

Algorithms are values in a registry: sha3-256 names blocks, data files and checkpoints; blake3 is a second physical
algorithm; `arrow0-sha3-256` is the logical hash of a slice (see `odfpy.data.slices.logical_hash`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import BinaryIO, Protocol

from odfpy.errors import IntegrityError, InvalidValue
from odfpy.values import dataclass

_CHUNK = 1 << 20
"""Number of bytes of a stream that are hashed at a time."""


class Hasher(Protocol):
    """The part of `hashlib`'s interface that is used."""

    def update(self, data: bytes | memoryview, /) -> object: ...

    def digest(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class HashAlgorithm:
    """A hash function with its multicodec.

    Attributes:
        name: name in the multicodec table.
        code: multicodec number.
        size: bytes of a digest.
        new: creates an empty hasher; None if the algorithm is not over plain bytes.
    """

    name: str
    code: int
    size: int
    new: Callable[[], Hasher] | None = None

    def hasher(self) -> Hasher:
        """Return an empty hasher over bytes.

        Raises:
            IntegrityError: the algorithm is not over plain bytes.
        """
        if self.new is None:
            raise IntegrityError(f"{self.name} is not a hash over bytes")
        return self.new()


def _blake3() -> Hasher:
    from blake3 import blake3

    return blake3()


SHA3_256 = HashAlgorithm("sha3-256", 0x16, 32, hashlib.sha3_256)
BLAKE3 = HashAlgorithm("blake3", 0x1E, 32, _blake3)
ARROW0_SHA3_256 = HashAlgorithm("arrow0-sha3-256", 0x300016, 32)

ALGORITHMS = {algorithm.code: algorithm for algorithm in (SHA3_256, BLAKE3, ARROW0_SHA3_256)}

_MAX_BYTES = 128


@dataclass(frozen=True, order=True, slots=True)
class Multihash:
    """A digest with its algorithm.

    Attributes:
        code: multicodec number of the algorithm; hashes of unknown algorithms are stored and compared, but not checked.
        digest: the hash itself.
    """

    code: int
    digest: bytes

    @classmethod
    def of(cls, data: bytes, algorithm: HashAlgorithm = SHA3_256) -> Multihash:
        """Return the hash of bytes."""
        hasher = algorithm.hasher()
        hasher.update(data)
        return cls(algorithm.code, hasher.digest())

    @classmethod
    def of_stream(cls, stream: BinaryIO, algorithm: HashAlgorithm = SHA3_256) -> Multihash:
        """Return the hash of the remaining bytes of a stream."""
        hasher = algorithm.hasher()
        while chunk := stream.read(_CHUNK):
            hasher.update(chunk)
        return cls(algorithm.code, hasher.digest())

    @classmethod
    def from_bytes(cls, data: bytes) -> Multihash:
        """Parse multihash bytes: code and length as varints, then the digest.

        Raises:
            InvalidValue: the bytes are not a multihash.
        """
        if len(data) > _MAX_BYTES:
            raise InvalidValue(f"Not a multihash: {len(data)} bytes")
        code, at = read_varint(data, 0)
        size, at = read_varint(data, at)
        if size != len(data) - at:
            raise InvalidValue(f"Not a multihash: {len(data) - at} bytes of digest where {size} are announced")
        algorithm = ALGORITHMS.get(code)
        if algorithm is not None and size != algorithm.size:
            raise InvalidValue(f"Not a multihash: {algorithm.name} has {algorithm.size} bytes, not {size}")
        return cls(code, data[at:])

    @classmethod
    def parse(cls, text: str) -> Multihash:
        """Parse multibase text in any base of final status.

        Raises:
            InvalidValue: the text is not a multihash in multibase.
        """
        return cls.from_bytes(decode_multibase(text))

    def to_bytes(self) -> bytes:
        """Return multihash bytes."""
        return write_varint(self.code) + write_varint(len(self.digest)) + self.digest

    @property
    def algorithm(self) -> HashAlgorithm:
        """The algorithm.

        Raises:
            IntegrityError: the algorithm is unknown.
        """
        try:
            return ALGORITHMS[self.code]
        except KeyError:
            raise IntegrityError(f"Unknown hash algorithm 0x{self.code:x} in {self}: it cannot be checked") from None

    def matches(self, data: bytes) -> bool:
        """Return whether the bytes have this hash.

        Raises:
            IntegrityError: the algorithm is unknown, or not over plain bytes.
        """
        return Multihash.of(data, self.algorithm) == self

    def __str__(self) -> str:
        return encode_multibase(self.to_bytes())


def encode_multibase(data: bytes) -> str:
    """Encode bytes as base16 in lower case with the prefix `f`, the canonical text form of hashes and ids."""
    return "f" + data.hex()


def decode_multibase(text: str) -> bytes:
    """Decode any multibase text.

    Raises:
        InvalidValue: the base is unknown, or a character is outside of it.
    """
    if not text or len(text) > 4 * _MAX_BYTES:
        raise InvalidValue(f"Not multibase: {text[:80]!r}")
    try:
        if text[0] == "f":
            return bytes.fromhex(text[1:]) if text.isalnum() else _reject(text)
        from multiformats import multibase  # the other bases are rare, and the import is slow

        if multibase.from_str(text).status != "final":
            _reject(text)
        return multibase.decode(text)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidValue(f"Not multibase: {text[:80]!r}") from error


def _reject(text: str) -> bytes:
    raise ValueError(text)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned varint of at most nine bytes, and the position after it."""
    value = 0
    for count in range(9):
        if at + count >= len(data):
            break
        byte = data[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            if byte == 0 and count > 0:
                break
            return value, at + count + 1
    raise InvalidValue("Not a varint")


def write_varint(value: int) -> bytes:
    """Encode an unsigned varint (multiformats, LEB128)."""
    out = bytearray()
    while value > 0x7F:
        out.append(0x80 | (value & 0x7F))
        value >>= 7
    out.append(value)
    return bytes(out)

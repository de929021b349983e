"""Fingerprints of texts: 64-bit hashes by which the index finds names without storing them sorted.

Two texts may share a fingerprint, so results are compared with the query. The seed is random for each index, so
that nobody can construct names with equal fingerprints.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Fingerprints: TypeAlias = "npt.NDArray[np.uint64]"

_WORD: Final = 8
_ONE: Final = np.uint64(0x9E3779B97F4A7C15)
_TWO: Final = np.uint64(0xD6E8FEB86659FD93)
_ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)


def fingerprints(texts: pa.Array, seed: int) -> Fingerprints:
    """Return a fingerprint for each text; null has the same as the empty text.

    Args:
        texts: array of type string.
        seed: seed of the index, 64 bits.
    """
    starts, lengths, data = _parts(texts)
    hashes = mixed(lengths.astype(np.uint64) ^ np.uint64(seed))
    if len(lengths) and int(lengths.min()) == int(lengths.max()):  # hashes, and values derived from them
        size = int(lengths[0])
        padded = np.zeros((len(lengths), -(-size // _WORD) * _WORD), np.uint8)
        padded[:, :size] = data.reshape(len(lengths), size)
        for column in padded.view("<u8").T:
            hashes = mixed(hashes ^ column)
        return hashes
    words, at = _words(data), 0
    rows: Any = np.flatnonzero(lengths > 0)
    while len(rows):
        left = lengths[rows] - at
        word = words[starts[rows] + at] & _ALL >> (np.uint64(_WORD) * np.maximum(_WORD - left, 0).astype(np.uint64))
        hashes[rows] = mixed(hashes[rows] ^ word)
        rows, at = rows[left > _WORD], at + _WORD
    return hashes


def fingerprint(text: str, seed: int) -> Fingerprints:
    """Return the fingerprint of one text, as an array of one."""
    return fingerprints(pa.array([text], pa.string()), seed)


def combined(left: Fingerprints, right: Fingerprints | npt.NDArray[np.int64]) -> Fingerprints:
    """Return the fingerprints of pairs of fingerprints, or of a fingerprint and a small number."""
    return mixed(mixed(left) + right.astype(np.uint64))


def mixed(values: Fingerprints) -> Fingerprints:
    """Map each number to a number, injectively, so that all bits depend on all bits."""
    once: Fingerprints = (values ^ values >> np.uint64(32)) * _ONE
    twice: Fingerprints = (once ^ once >> np.uint64(29)) * _TWO
    last: Fingerprints = twice ^ twice >> np.uint64(32)
    return last


def prefixes(texts: pa.Array) -> Fingerprints:
    """Return the first 8 bytes of each text as a number. The numbers sort like the texts, except for ties."""
    starts, lengths, data = _parts(texts)
    keep = np.clip(_WORD - lengths, 0, _WORD).astype(np.uint64) * np.uint64(_WORD)
    words = _words(data)[starts]
    # A shift by all 64 bits is undefined.
    prefix_words: Fingerprints = np.where(lengths > 0, words & _ALL >> np.minimum(keep, np.uint64(56)), np.uint64(0))
    ordered: Fingerprints = prefix_words.byteswap()
    return ordered


def _parts(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the start of each text, its number of bytes, and the bytes."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or offsets is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    used = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    return bounds[:-1] - bounds[0], np.diff(bounds), used


def _words(data: npt.NDArray[np.uint8]) -> Fingerprints:
    """Return the 8 bytes from each position on as numbers, padded with zeros at the end."""
    padded = np.concatenate([data, np.zeros(_WORD, np.uint8)])
    words: Fingerprints = np.ndarray((len(padded) - _WORD + 1,), "<u8", padded, strides=(1,))
    return words


def text_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column of texts as a single array."""
    if isinstance(column, pa.Array):
        return column
    chunks: Sequence[pa.Array] = column.chunks
    return pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


assert sys.byteorder == "little", "the files of the index are little-endian"  # noqa: S101

"""The beginning of a file is read, and unpacked, but never more of it than was asked for."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zlib

import pytest

from odfpy.archive.preview.head import FileHead, read_head

MAX_SIZE = 1000


class Counted(io.BytesIO):
    """Bytes that tell how many of them were read, in pieces as networks give them."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(min(size or 0, 7000))
        self.count += len(found)
        return found


def begun(data: bytes) -> FileHead:
    return read_head(Counted(data), MAX_SIZE)


@pytest.mark.parametrize("size", [0, 1, 2, 3, MAX_SIZE - 1, MAX_SIZE])
def test_what_is_small_is_whole(size: int) -> None:
    data = bytes(n % 7 for n in range(size))
    assert begun(data) == FileHead(data, is_whole=True)
    assert begun(gzip.compress(data)) == FileHead(data, is_whole=True, packing="gzip")


def test_of_what_is_large_no_more_is_read() -> None:
    stream = Counted(b"x" * 10_000_000)
    assert read_head(stream, MAX_SIZE) == FileHead(b"x" * MAX_SIZE, is_whole=False)
    assert stream.count <= MAX_SIZE + 1


def test_of_what_is_packed_no_more_is_unpacked() -> None:
    assert begun(gzip.compress(b"x" * (MAX_SIZE + 1))) == FileHead(b"x" * MAX_SIZE, is_whole=False, packing="gzip")
    bomb = gzip.compress(bytes(200_000_000))
    tracemalloc.start()
    try:
        assert begun(bomb) == FileHead(bytes(MAX_SIZE), is_whole=False, packing="gzip")
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_files_of_gzip_one_after_the_other_are_one() -> None:
    assert begun(gzip.compress(b"one, ") + gzip.compress(b"two")).data == b"one, two"


@pytest.mark.parametrize("size", [20, 32])  # of the latter, whole ones fill each piece that is read
def test_members_without_content_end_somewhere(size: int) -> None:
    member = gzip.compress(b"")
    named = member[:3] + b"\x08" + member[4:10] + b"n" * (size - 21) + b"\0" + member[10:] if size > 20 else member
    assert len(named) == size
    stream = Counted(named * 500_000)
    assert read_head(stream, MAX_SIZE).data == b""
    assert stream.count < 100_000


@pytest.mark.parametrize("number", [1, 2, 3, 10, 15])
def test_of_what_is_cut_off_that_much_is_given(number: int) -> None:
    packed = gzip.compress(b"x" * 100)
    found = begun(packed[:-number])
    assert (found.is_whole, found.packing, found.problem) == (False, "gzip", "it is truncated")
    assert found.data == b"x" * 100 or number > 8


def test_what_is_damaged_says_so() -> None:
    packed = bytearray(gzip.compress(zlib.compress(bytes(range(256)) * 3)))
    packed[20] ^= 0xFF
    assert "damaged" in (begun(bytes(packed)).problem or "")
    assert begun(gzip.compress(b"text") + b"more").problem == "more follows that is not gzip"

"""Files on their way into an archive: copied and hashed at once, whatever happens to them meanwhile."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfpy.archive import files
from odfpy.archive.errors import CannotCopy, FileChanged, NotAFile, WrongContent
from odfpy.archive.files import CHUNK, copy_content, copy_stream, files_in, new_files
from odfpy.data.multihash import BLAKE3, SHA3_256, Multihash
from odfpy.errors import InvalidValue, NotFound, OdfError

SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK, 5 * CHUNK + 3]


def copied(file: Path, to: Path) -> files.Content:
    return copy_content(file, to, BLAKE3)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("algorithm", [BLAKE3, SHA3_256])
def test_a_copy_has_the_bytes_and_their_hashes(tmp_path: Path, size: int, algorithm: object) -> None:
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    (tmp_path / "file").write_bytes(data)
    content = copy_content(tmp_path / "file", tmp_path / "copy", algorithm)
    assert content.path.read_bytes() == data
    assert content.size == size
    assert content.hash == hashlib.blake2b(data, digest_size=16).hexdigest()
    assert content.object == Multihash.of(data, algorithm)


@settings(max_examples=30)
@given(st.lists(st.sampled_from([b"\0" * CHUNK, b"x" * CHUNK, b"\0" * 5, b"y"]), max_size=7))
def test_runs_of_zeros_are_bytes_like_others(parts: list[bytes]) -> None:
    data = b"".join(parts)
    to = Path(os.environ.get("TMPDIR", "/tmp")) / f"odf-copy-{os.getpid()}"
    try:
        content = copy_stream(BytesIO(data), to, BLAKE3, name="it", size=len(data))
        assert to.read_bytes() == data
        assert content.object == Multihash.of(data, BLAKE3)
    finally:
        to.unlink(missing_ok=True)


def test_a_sparse_file_stays_sparse(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(64 * CHUNK)
    content = copied(tmp_path / "sparse", tmp_path / "copy")
    assert content.size == 64 * CHUNK
    assert content.path.stat().st_size == 64 * CHUNK
    assert content.path.stat().st_blocks * 512 < CHUNK


def test_a_symbolic_link_is_followed_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    assert copied(tmp_path / "link", tmp_path / "copy").size == 3


def test_what_is_no_file_is_refused_by_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to("nothing")
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name in ("pipe", "socket", "nowhere", "circle", "."):
            with pytest.raises(NotAFile):
                copied(tmp_path / name, tmp_path / "copy")
    with pytest.raises(NotAFile):
        copied(Path("/dev/null"), tmp_path / "copy")
    with pytest.raises(NotFound):
        copied(tmp_path / "missing", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda file: os.truncate(file, file.stat().st_size + 1),
        lambda file: os.truncate(file, 1),
        lambda file: file.write_bytes(b"X" * file.stat().st_size),
        lambda file: file.unlink(),
        lambda file: (
            file.with_name("new").write_bytes(b"n" * file.stat().st_size) and file.with_name("new").replace(file)
        ),
    ],
    ids=["grows", "shrinks", "is overwritten", "goes", "is replaced"],
)
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a" * (2 * CHUNK))
    os.utime(file, (1, 1))
    read = files._chunks

    def changing(source: BinaryIO, name: str) -> object:
        chunks = read(source, name)
        yield next(chunks)
        change(file)
        yield from chunks

    monkeypatch.setattr(files, "_chunks", changing)
    with pytest.raises(FileChanged, match="has changed"):
        copied(file, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_full_disk_leaves_no_part_of_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_target: object, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write_all", full)
    (tmp_path / "file").write_bytes(b"abc")
    with pytest.raises(CannotCopy, match="No space left"):
        copied(tmp_path / "file", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_an_error_of_the_disk_that_is_read_names_the_file(tmp_path: Path) -> None:
    class Broken(BytesIO):
        def read(self, _size: int | None = None) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(OdfError, match=r"Cannot read it: Input/output error") as caught:
        copy_stream(Broken(), tmp_path / "copy", BLAKE3, name="it", size=9)
    assert not isinstance(caught.value, CannotCopy)
    assert not (tmp_path / "copy").exists()


def test_a_wrong_hash_is_told_with_both(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    content = copied(tmp_path / "file", tmp_path / "copy")
    content.require("it", hash=content.hash, object=content.object)
    with pytest.raises(WrongContent, match=f"{content.hash}, not {'0' * 32}"):
        content.require("it", hash="0" * 32, object=None)
    with pytest.raises(WrongContent):
        content.require("it", hash=None, object=Multihash.of(b"abd", BLAKE3))


def test_the_files_of_a_folder_come_in_order_without_links(tmp_path: Path) -> None:
    for name in ("b", "a/2", "a/1", "c/d/e"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "link").symlink_to("b")
    (tmp_path / "folder-link").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    assert [str(file.relative_to(tmp_path)) for file in files_in(tmp_path)] == ["a/1", "a/2", "b", "c/d/e"]


def test_times_of_files_may_be_those_of_modification(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    os.utime(file, ns=(0, 1_709_294_400_123_456_789))
    (new,) = new_files([file], what="a", where="b", start="2024-01-01", end="mtime")
    assert (new.start, new.end) == (1_704_067_200_000, 1_709_294_400_123)
    (new,) = new_files([file], what="a", where="b", start="mtime")
    assert (new.start, new.end) == (None, None)
    assert copied(file, tmp_path / "copy").modified == 1_709_294_400_123
    with pytest.raises(InvalidValue):
        new_files([file], what="a", where="b", start="soon")

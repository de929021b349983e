"""Bundles: a file and its metadata as one tar, as datalake writes and reads it."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from odfpy.archive.errors import RecordRefused
from odfpy.archive.metadata import Metadata
from odfpy.archive.queue.bundle import Bundled, BundleRefused, _header, opened_bundle, write_bundle
from odfpy.data.multihash import BLAKE3, Multihash
from odfpy.errors import OdfError

CONTENT = b"Wake up.\nEat.\nSleep.\n"
METADATA = {
    "version": 0,
    "start": 1474308548000,
    "end": 1474308636507,
    "path": "/home/you/chicken.log",
    "work_id": None,
    "where": "nomad",
    "what": "chicken",
    "id": "7c72f3ab092445a08aa6983c864c087c",
    "hash": hashlib.blake2b(CONTENT, digest_size=16).hexdigest(),
}

Members = dict[str, bytes | tarfile.TarInfo | None]


def bundle(path: Path, members: Members | None = None, *, form: int = tarfile.PAX_FORMAT) -> Path:
    """A bundle as another program writes it; `members` takes the place of the usual ones."""
    usual: Members = {"content": CONTENT, "version": b"0", "datalake-metadata.json": json.dumps(METADATA).encode()}
    with tarfile.open(path, "w", format=form) as tar:
        for name, data in (usual | (members or {})).items():
            if isinstance(data, bytes):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, BytesIO(data))
            elif data is not None:
                tar.addfile(data)
    return path


def described(metadata: dict[str, Any]) -> Callable[[Bundled], Metadata]:
    fields = {name: value for name, value in metadata.items() if name != "version"}
    return lambda content: Metadata(**fields | {"hash": content.hash})


def written(content: bytes, *, compress: bool = False) -> bytes:
    file = BytesIO()
    write_bundle(file, BytesIO(content), described(METADATA), BLAKE3, compress=compress)
    return file.getvalue()


def content_of(path: Path) -> bytes:
    with opened_bundle(path) as opened:
        copy = path.with_suffix(".content")
        opened.extract(copy)
        assert copy.stat().st_size == opened.size
        return copy.read_bytes()


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_bundle_of_datalake_is_read(tmp_path: Path, form: int) -> None:
    path = bundle(tmp_path / "it.tar", form=form)
    with opened_bundle(path) as opened:
        assert opened.metadata.to_dict() == METADATA
    assert content_of(path) == CONTENT


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 3 << 20])
def test_what_is_written_is_read_again(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "it").write_bytes(written(content))
    assert content_of(tmp_path / "it") == content


def test_what_is_written_is_a_bundle_for_datalake(tmp_path: Path) -> None:
    """By what its own reader asks: a tar of three members by these names, the version a single 0."""
    (tmp_path / "it.tar").write_bytes(written(CONTENT))
    with tarfile.open(tmp_path / "it.tar", "r:") as tar:
        assert tar.getnames() == ["content", "version", "datalake-metadata.json"]
        read = {name: (tar.extractfile(name) or BytesIO()).read() for name in tar.getnames()}
    assert read["version"] == b"0"
    assert read["content"] == CONTENT
    assert json.loads(read["datalake-metadata.json"]) == METADATA


def test_a_bundle_tells_hash_and_name_of_its_content() -> None:
    found: list[Bundled] = []

    def describe(content: Bundled) -> Metadata:
        found.append(content)
        return described(METADATA)(content)

    write_bundle(BytesIO(), BytesIO(CONTENT), describe, BLAKE3)
    assert found == [Bundled(len(CONTENT), METADATA["hash"], Multihash.of(CONTENT, BLAKE3))]  # type: ignore[arg-type]


def test_packed_content_is_the_same_tomorrow(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(written(CONTENT, compress=True))
    packed = content_of(tmp_path / "it")
    assert gzip.decompress(packed) == CONTENT
    assert packed[4:8] == b"\0\0\0\0"  # no time
    with opened_bundle(tmp_path / "it") as opened:
        assert opened.metadata.hash == hashlib.blake2b(packed, digest_size=16).hexdigest()


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"version": None}, "no version"),
        ({"content": None}, "no content"),
        ({"datalake-metadata.json": None}, "no datalake-metadata.json"),
        ({"version": None, "content": None}, "no content and no version"),
        ({"version": b"1"}, "version"),
        ({"version": b""}, "version"),
        ({"content": tarfile.TarInfo("content/")}, "no content"),
    ],
)
def test_what_lacks_something_is_refused(tmp_path: Path, members: Members, told: str) -> None:
    with pytest.raises(BundleRefused, match=told), opened_bundle(bundle(tmp_path / "it.tar", members)):
        pass


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE])
@pytest.mark.parametrize("name", ["content", "version", "datalake-metadata.json"])
def test_members_are_plain_files(tmp_path: Path, kind: bytes, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(BundleRefused, match="plain file"), opened_bundle(bundle(tmp_path / "it.tar", {name: info})):
        pass


@pytest.mark.parametrize("metadata", [b"not:a%json#", b"[]", json.dumps({**METADATA, "what": None}).encode(), b"\xff"])
def test_metadata_that_breaks_rules_is_refused(tmp_path: Path, metadata: bytes) -> None:
    path = bundle(tmp_path / "it.tar", {"datalake-metadata.json": metadata})
    with pytest.raises(RecordRefused), opened_bundle(path):
        pass


@pytest.mark.parametrize("name", ["version", "datalake-metadata.json"])
def test_small_members_are_small(tmp_path: Path, name: str) -> None:
    path = bundle(tmp_path / "it.tar", {name: bytes(2 << 20)})
    with pytest.raises(RecordRefused, match="bytes"), opened_bundle(path):
        pass


@pytest.mark.parametrize(
    "data",
    [b"", b"foobar", bytes(100), bytes(10240), gzip.compress(b"x" * 10_000)],
    ids=["empty", "short", "zeros", "end of a tar", "packed"],
)
def test_what_is_no_tar_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "it.tar").write_bytes(data)
    with pytest.raises(BundleRefused), opened_bundle(tmp_path / "it.tar"):
        pass


def test_a_packed_tar_is_no_bundle(tmp_path: Path) -> None:
    packed = gzip.compress(bundle(tmp_path / "plain.tar").read_bytes())
    (tmp_path / "it.tar").write_bytes(packed)
    with pytest.raises(BundleRefused), opened_bundle(tmp_path / "it.tar"):
        pass


def test_a_bundle_that_breaks_off_anywhere_is_refused(tmp_path: Path) -> None:
    whole = written(CONTENT)
    path = tmp_path / "it.tar"
    for end in range(0, whole.rindex(b"}"), 97):  # what comes after that is only the end of a tar
        path.write_bytes(whole[:end])
        with pytest.raises(OdfError), opened_bundle(path) as opened:
            opened.extract(tmp_path / f"content-{end}")


def test_a_damaged_header_is_refused_and_nothing_worse(tmp_path: Path) -> None:
    whole = bytearray(bundle(tmp_path / "good.tar", form=tarfile.GNU_FORMAT).read_bytes())
    path = tmp_path / "it.tar"
    for place in range(0, 3 * 1024, 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0xA5
        path.write_bytes(damaged)
        copy = tmp_path / f"content-{place}"
        try:
            with opened_bundle(path) as opened:
                opened.extract(copy)
        except OdfError:
            continue
        assert copy.stat().st_size == len(CONTENT)  # the hash of the metadata tells whether these are its bytes


def test_a_header_cannot_ask_for_much_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    path = tmp_path / "it.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with path.open("r+b") as file:
        file.truncate(1 << 34)  # sparse
    with pytest.raises(BundleRefused, match="header of"), opened_bundle(path):
        pass


def test_many_members_are_not_looked_through(tmp_path: Path) -> None:
    path = tmp_path / "it.tar"
    with tarfile.open(path, "w") as tar:
        for number in range(1000):
            tar.addfile(tarfile.TarInfo(f"{number}"))
    with path.open("ab") as file:
        file.write(written(CONTENT))
    with pytest.raises(BundleRefused, match="no content"), opened_bundle(path):
        pass


def test_a_link_to_a_bundle_is_none(tmp_path: Path) -> None:
    (tmp_path / "link.tar").symlink_to(bundle(tmp_path / "it.tar"))
    with pytest.raises(BundleRefused, match="regular"), opened_bundle(tmp_path / "link.tar"):
        pass


def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tar")
    with pytest.raises(BundleRefused, match="regular"), opened_bundle(tmp_path / "pipe.tar"):
        pass


def test_more_than_eight_gigabytes_have_a_header_of_one_block() -> None:
    assert tarfile.TarInfo.frombuf(_header("content", 9 << 30), "utf-8", "strict").size == 9 << 30

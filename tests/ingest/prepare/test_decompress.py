"""Decompress: gzip and zip, one file of many, and what strangers may try."""

from __future__ import annotations

import gzip
import io
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.ingest.preparing import GZIP, ZIP, Prepare, from_zip, zipped

from odfpy.chain.sources import CompressionFormat, PrepDecompress
from odfpy.errors import PrepareError
from odfpy.ingest.archive import UnpackLimits
from odfpy.ingest.prepare import PrepareContext, prepare

ROWS = b"city,population\nA,1000\nB,2000\n"
TREE = {"readme.txt": b"hello", "data/2023/a.csv": b"1", "data/2024/a.csv": b"2", "data/b.csv": b"3", "c.csv": b"4"}


@pytest.mark.parametrize("steps", [None, ()])
def test_without_steps_the_file_is_read_as_fetched(steps: tuple[()] | None, tmp_path: Path):
    assert prepare(steps, tmp_path / "x", PrepareContext(scratch=tmp_path)) == tmp_path / "x"


# --- What there is in it ---


def test_gzip(prepared: Prepare):
    assert prepared(GZIP, content=gzip.compress(ROWS)) == ROWS


def test_gzip_of_nothing_and_of_several_parts(prepared: Prepare, scratch: Path):
    assert prepared(GZIP, content=gzip.compress(b"")) == b""
    (scratch / "prepared-1").unlink()
    assert prepared(GZIP, content=gzip.compress(ROWS) + gzip.compress(b"C,1\n") + b"\0\0") == ROWS + b"C,1\n"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_with_one_file(prepared: Prepare, method: int):
    assert prepared(ZIP, content=zipped({"folder/": b"", "folder/data.csv": ROWS}, method)) == ROWS


def test_what_macos_adds_does_not_count(prepared: Prepare):
    files = {"data.csv": ROWS, "__MACOSX/._data.csv": b"x", ".DS_Store": b"y"}
    assert prepared(ZIP, content=zipped(files)) == ROWS


@pytest.mark.parametrize(
    ("sub_path", "content"),
    [
        ("data/b.csv", b"3"),
        ("./data/b.csv", b"3"),
        ("data/*.csv", b"3"),
        ("*.csv", b"4"),
        ("?.csv", b"4"),
        ("**/b.csv", b"3"),
        ("data/**/b.csv", b"3"),
        ("*/2024/*", b"2"),
        ("data/[0-9]*4/a.csv", b"2"),
        ("**/c.csv", b"4"),
    ],
)
def test_sub_path_is_a_name_or_a_pattern(prepared: Prepare, sub_path: str, content: bytes):
    assert prepared(from_zip(sub_path), content=zipped(TREE)) == content


def test_a_name_goes_before_a_pattern(prepared: Prepare):
    assert prepared(from_zip("[a].csv"), content=zipped({"[a].csv": b"1", "a.csv": b"2"})) == b"1"


def test_steps_follow_each_other(prepared: Prepare, tmp_path: Path):
    content = gzip.compress(zipped({"inner.zip": zipped({"data.csv.gz": gzip.compress(ROWS)})}))
    assert prepared(GZIP, ZIP, ZIP, GZIP, content=content) == ROWS


def test_large_file_is_streamed(prepared: Prepare):
    content = random.Random(7).randbytes(5 << 20)
    assert prepared(ZIP, content=zipped({"x": content})) == content


# --- What is not ---


@pytest.mark.parametrize(
    ("sub_path", "message", "hint"),
    [
        (None, "There are 5 files in input: 'readme.txt', 'data/2023/a.csv'", "Name one of them with `subPath`"),
        ("d.csv", "There is no file in input under the subPath 'd.csv'", "It has 'readme.txt', 'data/2023/a.csv'"),
        ("data", "There is no file in input under the subPath 'data'", "It has"),
        ("**/a.csv", "There are 2 files in input under the subPath '**/a.csv'", "Name one"),
        ("../data/b.csv", "There is no file in input", "It has"),
    ],
)
def test_file_that_is_missing_or_not_the_only_one(prepared: Prepare, sub_path: str | None, message: str, hint: str):
    with pytest.raises(PrepareError, match="^" + re.escape(message)) as caught:
        prepared(PrepDecompress(CompressionFormat.ZIP, sub_path), content=zipped(TREE))
    assert hint in (caught.value.hint or "")


def test_messages_about_many_files_stay_short(prepared: Prepare):
    with pytest.raises(PrepareError, match=r"'x9' and 990 more$"):
        prepared(ZIP, content=zipped({f"x{i}": b"" for i in range(1000)}))


def test_archive_without_files(prepared: Prepare):
    with pytest.raises(PrepareError, match=r"^There is no file in input$"):
        prepared(ZIP, content=zipped({"folder/": b""}))


def test_file_that_is_there_twice(prepared: Prepare):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"2")
    with pytest.raises(PrepareError, match="input has the file 'a' twice"):
        prepared(from_zip("a"), content=buffer.getvalue())


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "..\\x", "C:\\x", "c:x", "\\\\server\\x", "a/.."])
def test_names_that_lead_out_of_the_archive(prepared: Prepare, name: str):
    with pytest.raises(PrepareError, match="which points outside of the archive"):
        prepared(from_zip("data.csv"), content=zipped({"data.csv": ROWS, name: b"x"}))


def test_encrypted_file(prepared: Prepare):
    content = bytearray(zipped({"data.csv": ROWS}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1
    with pytest.raises(PrepareError, match=r"^input/data.csv is encrypted$"):
        prepared(ZIP, content=bytes(content))


@pytest.mark.parametrize(
    ("step", "content", "hint"),
    [
        (ZIP, b"", "error page"),
        (ZIP, ROWS, "error page"),
        (ZIP, gzip.compress(ROWS), "format: Gzip"),
        (GZIP, b"", "already decompressed it"),
        (GZIP, ROWS, "already decompressed it"),
        (GZIP, zipped({"a": b""}), "format: Zip"),
    ],
    ids=["zip of nothing", "zip of rows", "zip of gzip", "gzip of nothing", "gzip of rows", "gzip of zip"],
)
def test_file_that_is_not_packed(prepared: Prepare, step: PrepDecompress, content: bytes, hint: str):
    with pytest.raises(PrepareError, match=r"^input is not a (zip|gzip) file$") as caught:
        prepared(step, content=content)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("step", [GZIP, ZIP])
def test_file_that_is_cut_off_wherever(prepared: Prepare, step: PrepDecompress, scratch: Path):
    content = gzip.compress(ROWS) if step is GZIP else zipped({"data.csv": ROWS})
    for length in range(2, len(content)):
        with pytest.raises(PrepareError, match=r"^input(/data.csv)? is (truncated or damaged|no)"):
            prepared(step, content=content[:length])
        assert not list(scratch.iterdir())


@pytest.mark.parametrize("step", [GZIP, ZIP])
def test_damaged_file_gives_all_of_the_content_or_an_error(prepared: Prepare, step: PrepDecompress, scratch: Path):
    rng = random.Random(11)
    content = gzip.compress(ROWS) if step is GZIP else zipped({"data.csv": ROWS, "b/": b""})
    for _ in range(1000):
        damaged = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            assert prepared(step, content=bytes(damaged)) == ROWS
        except PrepareError:
            assert not list(scratch.iterdir())
        else:
            (scratch / "prepared-1").unlink()


def test_gzip_has_no_sub_path(prepared: Prepare):
    with pytest.raises(PrepareError, match="a Gzip file is a single file"):
        prepared(PrepDecompress(CompressionFormat.GZIP, "x"), content=gzip.compress(ROWS))


# --- Bombs ---

BOMB = bytes(70 << 20)
BOMBS = {
    "gzip": (GZIP, gzip.compress),
    "zip": (ZIP, lambda bomb: zipped({"x": bomb})),
    "zip with bzip2": (ZIP, lambda bomb: zipped({"x": bomb}, zipfile.ZIP_BZIP2)),
}


@pytest.mark.parametrize(("step", "packed"), BOMBS.values(), ids=BOMBS)
def test_bombs_are_defused(prepared: Prepare, step: PrepDecompress, packed: Callable[[bytes], bytes], scratch: Path):
    content = packed(BOMB)
    with pytest.raises(PrepareError, match="unpacks to more than 200 times its size") as caught:
        prepared(step, content=content)
    assert "prepare.maxRatio" in (caught.value.hint or "")
    with pytest.raises(PrepareError, match="unpacks to more than 1000000 bytes") as caught:
        prepared(step, content=content, limits=UnpackLimits(max_bytes=1_000_000))
    assert "prepare.maxSize" in (caught.value.hint or "")
    assert not list(scratch.iterdir())


def test_a_zip_does_not_talk_its_way_out_of_the_limits(prepared: Prepare):
    content = bytearray(zipped({"x": BOMB}))
    start = content.index(b"PK\x01\x02")
    content[start + 20 : start + 24] = (2**31).to_bytes(4, "little")  # the compressed size it claims
    with pytest.raises(PrepareError):
        prepared(ZIP, content=bytes(content))


def test_small_files_may_be_repetitive(prepared: Prepare):
    content = b"0,0\n" * 1_000_000
    assert prepared(GZIP, content=gzip.compress(content)) == content

"""Files that were hashed before: whatever changes one of them lets it be hashed again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfpy.chain.stores import checked_files
from odfpy.chain.stores.checked_files import CheckedFiles
from odfpy.data.multihash import BLAKE3, SHA3_256, Multihash
from odfpy.errors import HashMismatch, ObjectNotFound, OdfError

DATA = b"some rows"
NAME = Multihash.of(DATA)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / str(NAME)
    path.write_bytes(DATA)
    return path


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Multihash]:
    """The hashes of the files that are read."""
    names: list[Multihash] = []
    real = Multihash.of_stream.__func__  # type: ignore[attr-defined]  # a class method

    def counted(*args: object) -> Multihash:
        names.append(real(*args))
        return names[-1]

    monkeypatch.setattr(Multihash, "of_stream", classmethod(counted))
    return names


def test_a_file_is_hashed_once_by_all_processes(file: Path, tmp_path: Path, hashed: list[Multihash]) -> None:
    record = tmp_path / "cache" / "record"
    CheckedFiles(record).check(NAME, file)
    CheckedFiles(record).check(NAME, file)
    assert len(hashed) == 1
    code = (
        "import sys; from pathlib import Path; from odfpy.data.multihash import Multihash\n"
        "from odfpy.chain.stores.checked_files import CheckedFiles\n"
        "Multihash.of_stream = None\n"
        "CheckedFiles(Path(sys.argv[1])).check(Multihash.parse(sys.argv[2]), Path(sys.argv[3]))"
    )
    subprocess.run([sys.executable, "-c", code, record, str(NAME), file], check=True)


def test_what_was_just_written_is_not_hashed_again(file: Path, tmp_path: Path, hashed: list[Multihash]) -> None:
    CheckedFiles(tmp_path / "record").add(NAME, file)
    CheckedFiles(tmp_path / "record").check(NAME, file)
    assert hashed == []


def test_a_file_that_is_gone_is_not_remembered(tmp_path: Path) -> None:
    files = CheckedFiles(tmp_path / "record")
    files.add(NAME, tmp_path / "nothing")
    assert not (tmp_path / "record").exists()
    with pytest.raises(ObjectNotFound, match="nothing"):
        files.check(NAME, tmp_path / "nothing")


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[3] ^= 1
    with file.open("r+b") as stream:
        stream.write(data)


def another_in_its_place(file: Path) -> None:
    other = file.with_suffix(".other")
    other.write_bytes(DATA[::-1])
    times = file.stat()
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(file)


def flipped_and_dated_back(file: Path) -> None:
    times = file.stat()
    flipped(file)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def cut(file: Path) -> None:
    os.truncate(file, 4)


CHANGES: list[Callable[[Path], None]] = [flipped, another_in_its_place, flipped_and_dated_back, cut]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_file_that_has_changed_is_found_out(change: Callable[[Path], None], file: Path, tmp_path: Path) -> None:
    CheckedFiles(tmp_path / "record").check(NAME, file)
    os.utime(file, ns=(1, 1))
    CheckedFiles(tmp_path / "record").check(NAME, file)
    change(file)
    for _ in range(2):
        with pytest.raises(HashMismatch, match=f"{NAME} has the hash "):
            CheckedFiles(tmp_path / "record").check(NAME, file)


def test_each_algorithm_has_its_own_names(tmp_path: Path, hashed: list[Multihash]) -> None:
    file, record = tmp_path / "file", tmp_path / "record"
    file.write_bytes(DATA)
    for algorithm in (SHA3_256, BLAKE3) * 2:
        CheckedFiles(record).check(Multihash.of(DATA, algorithm), file)
    assert len(hashed) == 2


def test_a_pipe_is_not_waited_for(tmp_path: Path, file: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OdfError, match=r"Cannot read .*: it is not a regular file"):
        CheckedFiles(tmp_path / "record").check(NAME, tmp_path / "pipe")
    CheckedFiles(tmp_path / "pipe").check(NAME, file)


@pytest.mark.parametrize("content", [b"", b"\xff\x00\n\n", f"{NAME} 1 2 3".encode()], ids=["empty", "binary", "cut"])
def test_a_damaged_record_only_costs_time(content: bytes, file: Path, tmp_path: Path, hashed: list[Multihash]) -> None:
    (tmp_path / "record").write_bytes(content)
    CheckedFiles(tmp_path / "record").check(NAME, file)
    assert len(hashed) == 1


def test_a_record_that_cannot_be_written_only_costs_time(file: Path, tmp_path: Path, hashed: list[Multihash]) -> None:
    (tmp_path / "a file").write_text("")
    files = CheckedFiles(tmp_path / "a file" / "record")
    files.check(NAME, file)
    files.check(NAME, file)
    CheckedFiles(tmp_path / "a file" / "record").check(NAME, file)
    assert len(hashed) == 2


def test_what_one_place_knows_is_taken_over(file: Path, tmp_path: Path, hashed: list[Multihash]) -> None:
    files, moved = CheckedFiles(), tmp_path / "there"
    files.check(NAME, file)
    moved.mkdir()
    CheckedFiles(tmp_path / "record").update(files)
    CheckedFiles(tmp_path / "record").check(NAME, file)
    CheckedFiles(tmp_path / "other").update(CheckedFiles())
    assert len(hashed) == 1
    assert not (tmp_path / "other").exists()


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.lists(st.integers(0, 11), max_size=20), st.sampled_from([1, 90, 300, 1 << 16]))
def test_long_records_are_read_from_the_end(
    tmp_path_factory: pytest.TempPathFactory, count: int, asked: list[int], newest: int
) -> None:
    folder = tmp_path_factory.mktemp("long")
    names = {}
    for number in range(count):
        data = str(number).encode()
        names[number] = Multihash.of(data)
        (folder / str(number)).write_bytes(data)
        CheckedFiles(folder / "record").check(names[number], folder / str(number))
    lines = (folder / "record").read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checked_files, "_NEWEST", newest)
        files = CheckedFiles(folder / "record")
        for number in asked:
            files.check(names[number % count], folder / str(number % count))
    assert (folder / "record").read_bytes() == lines

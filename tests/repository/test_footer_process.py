"""The process that reads footers of slices from elsewhere: one for many datasets, a new one when it is gone."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfpy.codec.errors import error_of
from odfpy.data.slices.footer import ExpectedSlice
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.errors import IntegrityError, ObjectNotFound, OdfError
from odfpy.repository.transfer import footer_process
from odfpy.repository.transfer.footer_process import FooterOf, first_problem


@pytest.fixture
def footer(tmp_path: Path) -> FooterOf:
    """Of a slice without system columns, which is a problem."""
    path = tmp_path / "slice"
    pq.write_table(pa.table({"name": ["a"]}), path)
    return FooterOf(str(path), ExpectedSlice(0, 0, DEFAULT_VOCABULARY, None), 1000)


def waiting() -> int:
    """Number of the one process that waits."""
    (reader,) = footer_process._waiting
    return reader._process.pid


def test_a_process_stays_for_the_next_dataset(footer: FooterOf) -> None:
    first = first_problem([footer, footer])
    assert first is not None
    assert first[0] == 0
    process = waiting()
    assert first_problem([footer]) == first
    assert waiting() == process


def test_one_that_is_gone_is_replaced(footer: FooterOf) -> None:
    first = first_problem([footer])
    (reader,) = footer_process._waiting
    os.kill(reader._process.pid, signal.SIGKILL)
    reader._process.wait()
    assert first_problem([footer]) == first


def test_one_that_ends_while_it_is_asked_is_replaced(footer: FooterOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does when it has waited long enough."""
    first = first_problem([footer])
    (reader,) = footer_process._waiting
    reader._process.stdin.close()
    reader._process.wait()
    reader._process.stdin = Path(os.devnull).open("wb")  # noqa: SIM115  closed with the process
    monkeypatch.setattr(reader, "is_ready", lambda: True)
    assert first_problem([footer]) == first


def test_paths_are_those_of_the_folder_of_now(
    footer: FooterOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first_problem([footer]) is not None
    monkeypatch.chdir(tmp_path)
    found = first_problem([FooterOf("slice", footer.expected, footer.most_unpacked)])
    assert found is not None
    assert found[1].message.startswith("Data file slice ")


def test_what_is_wrong_comes_out_as_what_it_was(footer: FooterOf, tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(b"PAR1 and nothing else PAR1")
    paths = [tmp_path / "nothing", tmp_path / "damaged", tmp_path]
    found = [first_problem([FooterOf(str(path), footer.expected, footer.most_unpacked)]) for path in paths]
    errors = [error_of(one[1]) for one in found if one is not None]
    assert [type(error) for error in errors] == [ObjectNotFound, IntegrityError, OdfError]
    assert [error.hint is None for error in errors] == [True, False, True]


def test_a_fork_has_one_of_its_own(footer: FooterOf) -> None:
    assert first_problem([footer]) is not None
    process = waiting()
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            first_problem([footer])
            os.write(writing, str(waiting()).encode())
        finally:
            for reader in footer_process._waiting:
                reader.end()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        assert int(told.read()) != process
    os.waitpid(child, 0)
    assert first_problem([footer]) is not None
    assert waiting() == process

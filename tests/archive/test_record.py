"""Records: what they must be, and all that is wrong with those that are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.archive.errors import RecordRefused
from odfpy.archive.record import FileRecord, Status, derived_id
from odfpy.archive.times import iso
from odfpy.data.multihash import BLAKE3, Multihash

CONTENT = Multihash.of(b"content", BLAKE3)
RECORD = FileRecord(
    id="6309e115c2914d0f8622973422626954",
    what="syslog",
    where="web-server_02",
    start=1_426_809_920_345,
    end=1_426_895_999_114,
    path="/var/log/syslog.1",
    hash="a3e75ee4f45f676422e038f2c116d000",
    object=CONTENT,
    size=7,
    create_time=1_426_896_791_333,
)


def reasons(**values: object) -> list[str]:
    """What is wrong with the record, with different values."""
    return list(replace(RECORD, **values).reasons_against())


def test_a_good_record_has_nothing_against_it() -> None:
    assert reasons() == []
    assert RECORD.checked() is RECORD


@pytest.mark.parametrize("word", ["a", "nginx", "web-1", "0", "_", "blappo-14321359"])
def test_words_are_lower_case_letters_digits_and_dashes(word: str) -> None:
    assert reasons(what=word, where=word, work_id=word) == []


@pytest.mark.parametrize("word", ["", "Nginx", "a.log", "a b", "a/b", "ü", "a\n", "a" * 256, "x\0"])
@pytest.mark.parametrize("name", ["what", "where", "work_id"])
def test_other_words_are_refused_by_name(name: str, word: str) -> None:
    (reason,) = reasons(**{name: word})
    assert reason.startswith(name)


@pytest.mark.parametrize("work_id", ["null", "null1234", "nullable"])
def test_a_work_id_does_not_begin_with_null(work_id: str) -> None:
    (reason,) = reasons(work_id=work_id)
    assert "null" in reason


def test_an_open_end_and_an_end_at_the_start_are_fine() -> None:
    assert reasons(end=None) == []
    assert reasons(end=RECORD.start) == []


def test_an_end_before_the_start_is_refused_with_both_times() -> None:
    (reason,) = reasons(end=RECORD.start - 1)
    assert reason == "end (2015-03-20T00:05:20.344Z) is before start (2015-03-20T00:05:20.345Z)"


@pytest.mark.parametrize("path", ["/", "/var/log/a b", "C:\\logs\\a.log", "d:/logs", "/ü/日本"])
def test_absolute_paths_of_both_worlds_are_taken(path: str) -> None:
    assert reasons(path=path) == []


@pytest.mark.parametrize("path", ["", "var/log", "./a", "C:", "~/a", "/a\0b", "/" + "a" * 4096, "/\udcff"])
def test_other_paths_are_refused(path: str) -> None:
    (reason,) = reasons(path=path)
    assert reason.startswith("path")


@pytest.mark.parametrize("id_", ["", "a/b", "..", ".hidden", "a" * 129, "a b", "ä"])
def test_ids_that_lead_elsewhere_are_refused(id_: str) -> None:
    (reason,) = reasons(id=id_)
    assert reason.startswith("id")


@pytest.mark.parametrize("hash_", ["", "A3E75EE4F45F676422E038F2C116D000", "a3e7", "g" * 32])
def test_a_hash_is_32_hex_digits(hash_: str) -> None:
    assert len(reasons(hash=hash_)) == 1


@pytest.mark.parametrize("name", ["create_time", "released"])
@pytest.mark.parametrize("time", [1_426_896_791_333_000, 10**30, -(10**15)])
def test_times_of_the_archive_are_milliseconds_of_the_years_1_to_9999(name: str, time: int) -> None:
    """They may be microseconds of another program, and are for good once they are in the chain."""
    (reason,) = reasons(**{name: time})
    assert name in reason
    assert iso(time) == str(time), "what others have written can be shown"


def test_a_size_that_no_file_has_is_refused() -> None:
    assert len(reasons(size=1 << 63)) == len(reasons(size=-1)) == 1


def test_another_version_is_refused() -> None:
    assert reasons(version=1) == ["version is 1, only 0 is known"]


def test_a_record_is_refused_with_all_reasons_at_once() -> None:
    bad = replace(RECORD, what="A", where="B", work_id="null", end=0, path="x")
    with pytest.raises(RecordRefused) as caught:
        bad.checked()
    assert len(caught.value.reasons) == 5
    assert all(reason in caught.value.message for reason in caught.value.reasons)


def test_the_metadata_are_those_of_datalake() -> None:
    assert RECORD.metadata() == {
        "version": 0,
        "start": 1_426_809_920_345,
        "end": 1_426_895_999_114,
        "path": "/var/log/syslog.1",
        "work_id": None,
        "where": "web-server_02",
        "what": "syslog",
        "id": "6309e115c2914d0f8622973422626954",
        "hash": "a3e75ee4f45f676422e038f2c116d000",
    }


def test_all_fields_come_back_from_a_tree() -> None:
    changed = replace(RECORD, status=Status.WITHDRAWN, released=1, who="ann", why="wrong", work_id="job")
    assert FileRecord.from_dict(changed.to_dict()) == changed


@given(st.data())
def test_a_derived_id_changes_with_every_field_that_it_is_of(data: st.DataObject) -> None:
    fields = {
        "what": "a",
        "where": "b",
        "start": 0,
        "end": None,
        "work_id": None,
        "path": "/a",
        "content": CONTENT,
    }
    others = {
        "what": "b",
        "where": "a",
        "start": 1,
        "end": 0,
        "work_id": "a",
        "path": "/b",
        "content": Multihash.of(b"other", BLAKE3),
    }
    changed = data.draw(st.sets(st.sampled_from(sorted(fields)), min_size=1))
    known = derived_id(**fields)
    assert derived_id(**fields) == known
    assert derived_id(**{**fields, **{name: others[name] for name in changed}}) != known


def test_a_derived_id_never_changes() -> None:
    assert (
        derived_id(what="syslog", where="web1", start=1, end=2, work_id="job", path="/a", content=CONTENT)
        == "ce04b188787421814f800b1bff4f2326"
    )

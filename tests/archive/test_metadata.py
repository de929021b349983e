"""Metadata documents of datalake: what is taken, what is refused, and with which reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.archive.errors import RecordRefused
from odfpy.archive.metadata import MAX_LENGTH, Metadata, metadata_of, parse_metadata

BASIC: dict[str, Any] = {
    "version": 0,
    "start": 1426809600000,
    "end": 1426895999999,
    "path": "/var/log/apache/access.log.1",
    "work_id": None,
    "where": "nebraska",
    "what": "apache",
    "id": "9f8f8b618f48424c8d69a7ed76c88f05",
    "hash": "a3e75ee4f45f676422e038f2c116d000",
}


def of(**changes: Any) -> Metadata:
    return metadata_of(BASIC | changes, "it")


def without(*names: str) -> Metadata:
    return metadata_of({name: value for name, value in BASIC.items() if name not in names}, "it")


def reasons(**changes: Any) -> tuple[str, ...]:
    with pytest.raises(RecordRefused) as caught:
        of(**changes)
    return caught.value.reasons


def test_a_document_is_read_and_written_as_it_is() -> None:
    metadata = parse_metadata(json.dumps(BASIC), "it")
    assert metadata.to_dict() == BASIC


def test_what_can_be_added_may_be_missing() -> None:
    metadata = without("version", "end", "work_id", "id", "hash")
    assert metadata.to_dict() == BASIC | {"end": None, "work_id": None, "id": None, "hash": None}


@pytest.mark.parametrize("name", ["start", "path", "where", "what"])
def test_what_nobody_can_guess_is_needed(name: str) -> None:
    with pytest.raises(RecordRefused, match=f"{name} is missing"):
        without(name)
    assert reasons(**{name: None}) == (f"{name} is missing",)


@pytest.mark.parametrize("version", ["100", 1, "0", True, 0.5])
def test_another_version_is_not_understood(version: object) -> None:
    assert "version" in reasons(version=version)[0]


@pytest.mark.parametrize(
    ("start", "millis"),
    [
        ("2015-03-20", 1426809600000),
        ("2015-03-20T00:00:00Z", 1426809600000),
        ("1426809600.123", 1426809600123),
        (1426809600.123, 1426809600123),
        ("1426809600123", 1426809600123),
        (1426809600123, 1426809600123),
        (1000, 1000),
        (-1000, -1000),
        ("2015-03-20T02:00:00+02:00", 1426809600000),
    ],
)
def test_times_have_many_forms(start: object, millis: int) -> None:
    assert of(start=start, end=None).start == millis


@pytest.mark.parametrize("time", ["bxfl230", "bleeblaaablooo", [], {}, True, float("inf"), 1e300])
def test_what_is_no_time_is_refused(time: object) -> None:
    assert len(reasons(end=time)) == 1
    assert len(reasons(start=time)) == 1


def test_an_end_before_the_start_is_refused() -> None:
    assert "before start" in reasons(start=BASIC["end"], end=BASIC["start"])[0]


def test_an_id_that_is_given_stays() -> None:
    assert of(id="123").id == "123"


@pytest.mark.parametrize("word", ["123#$", "MYFILE", "SAN FRANCISCO", "this.that.com", "", "a\n", "ü", 5, ["a"]])
@pytest.mark.parametrize("name", ["what", "where", "work_id"])
def test_words_have_few_letters(name: str, word: object) -> None:
    assert name in reasons(**{name: word})[0]


@pytest.mark.parametrize("work_id", ["null", "nullc177bfc0"])
def test_a_job_is_not_called_null(work_id: str) -> None:
    assert "null" in reasons(work_id=work_id)[0]


@pytest.mark.parametrize("path", ["./abc.txt", "abc.txt", r"foo\abc.txt", "", "/a\0b", 7, "/\udcff", "/" + "x" * 5000])
def test_a_path_is_absolute(path: object) -> None:
    assert "path" in reasons(path=path)[0]


@pytest.mark.parametrize("path", [r"Z:\\foo\bar.txt", r"Z:\foo\bar.txt", "Z:/foo", "/"])
def test_a_path_may_be_of_windows(path: str) -> None:
    assert of(path=path).path == path


@pytest.mark.parametrize("hash_", ["12345", "A3E75EE4F45F676422E038F2C116D000", 5, "g" * 32])
def test_a_hash_is_one(hash_: object) -> None:
    assert "hash" in reasons(hash=hash_)[0]


def test_all_reasons_are_told_at_once() -> None:
    assert len(reasons(what="A", where=None, start="?", path="x", id="/", hash="-", version=9)) == 7


@pytest.mark.parametrize(
    "text", [None, "{flee floo", "[]", "5", '"x"', "null", b"\xff", "[" * 100_000, "x" * (MAX_LENGTH + 1)]
)
def test_what_is_no_document_is_refused(text: bytes | str | None) -> None:
    with pytest.raises(RecordRefused):
        parse_metadata(text, "it")


def test_words_may_be_patterns_for_the_path() -> None:
    metadata = of(what=r".*/(?P<n>[a-z]+)/[^/]*$~{n}", where="web1", work_id=r".*\.(?P<n>\d)~job-{n}")
    assert (metadata.what, metadata.work_id) == ("apache", "job-1")


def test_a_pattern_that_does_not_match_is_one_reason() -> None:
    assert len(reasons(what="/srv/(?P<n>.*)~{n}")) == 1


def test_further_fields_are_left_out() -> None:
    assert of(colour="green").to_dict() == BASIC


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(BASIC)), inner, max_size=9),
        max_leaves=12,
    )
)
def test_no_document_breaks_it(tree: Any) -> None:
    try:
        metadata = metadata_of(tree, "it")
    except RecordRefused:
        return
    assert isinstance(metadata.start, int)

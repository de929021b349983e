"""Exports of datalake's index: plain lines, and those in the form of DynamoDB."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.archive.imports.exported_records import ExportedRecord, exported_records
from odfpy.errors import NotFound, OdfError

METADATA: dict[str, Any] = {
    "version": 0,
    "start": 1437375600000,
    "end": None,
    "path": "/var/log/nginx-523.txt",
    "work_id": None,
    "where": "nebraska",
    "what": "nginx",
    "id": "91dd2525a5924c6c972e3d67fee8cda9",
    "hash": "a3e75ee4f45f676422e038f2c116d000",
}
PLAIN: dict[str, Any] = {
    "version": 0,
    "url": "s3://datalake/d-nebraska/nginx/1437375600000/91dd2525a5924c6c972e3d67fee8cda9-nginx-523.txt",
    "time_index_key": "16636:nginx",
    "work_id_index_key": "null91dd2525a5924c6c972e3d67fee8cda9:nginx",
    "range_key": "nebraska:91dd2525a5924c6c972e3d67fee8cda9",
    "create_time": 1426896791333,
    "size": 7892341,
    "metadata": METADATA,
}


def typed(value: Any) -> dict[str, Any]:
    """A value as DynamoDB exports it."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, dict):
        return {"M": {name: typed(one) for name, one in value.items()}}
    return {"S": value} if isinstance(value, str) else {"N": str(value)}


FORMS: dict[str, Any] = {
    "plain": PLAIN,
    "typed": typed(PLAIN)["M"],
    "item": {"Item": typed(PLAIN)["M"]},
    "plain item": {"Item": PLAIN},
}


def read(tmp_path: Path, *lines: Any) -> list[ExportedRecord | tuple[str, OdfError]]:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (tmp_path / "export.json").write_text(text)
    return list(exported_records(tmp_path / "export.json"))


@pytest.mark.parametrize("form", FORMS)
def test_a_record_is_read(tmp_path: Path, form: str) -> None:
    (record,) = read(tmp_path, FORMS[form])
    assert isinstance(record, ExportedRecord)
    assert record.key == "d-nebraska/nginx/1437375600000/91dd2525a5924c6c972e3d67fee8cda9-nginx-523.txt"
    assert record.metadata.to_dict() == METADATA
    assert (record.create_time, record.size) == (1426896791333, 7892341)


def test_a_packed_export_is_read(tmp_path: Path) -> None:
    (tmp_path / "export").write_bytes(gzip.compress(json.dumps(PLAIN).encode()))
    assert len(list(exported_records(tmp_path / "export"))) == 1


def test_times_and_sizes_may_be_missing_and_empty_lines_are_none(tmp_path: Path) -> None:
    small = {"url": PLAIN["url"], "metadata": METADATA}
    (record,) = read(tmp_path, "", small, "   ")
    assert isinstance(record, ExportedRecord)
    assert (record.create_time, record.size) == (None, None)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ({}, "is not the URL of an object"),
        (PLAIN | {"url": "s3://datalake"}, "is not the URL of an object"),
        (PLAIN | {"url": 5}, "is not the URL of an object"),
        (PLAIN | {"url": "http://[host/x"}, "is not the URL of an object"),
        ({"Item": {"size": {"N": "1e999999999"}}}, "is not a number"),
        (PLAIN | {"metadata": None}, "not a JSON object"),
        (PLAIN | {"metadata": METADATA | {"what": "A B"}}, "what"),
        (PLAIN | {"metadata": {name: value for name, value in METADATA.items() if name != "id"}}, "id is missing"),
        (PLAIN | {"create_time": "soon"}, "create_time"),
        (PLAIN | {"size": -1}, "size"),
        (PLAIN | {"size": 1.5}, "size"),
        (PLAIN | {"create_time": float("inf")}, "create_time"),
        (PLAIN | {"size": float("nan")}, "size"),
        (typed(PLAIN)["M"] | {"size": {"N": "many"}}, "not a number"),
        (typed(PLAIN)["M"] | {"metadata": {"M": {"start": 5}}}, "form of DynamoDB"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_wrong_line_is_told_and_others_are_read(tmp_path: Path, line: Any, told: str) -> None:
    first, wrong, last = read(tmp_path, PLAIN, line, PLAIN)
    assert isinstance(first, ExportedRecord)
    assert isinstance(last, ExportedRecord)
    assert isinstance(wrong, tuple)
    assert wrong[0].endswith("line 2")
    assert told in wrong[1].message


def test_a_line_without_an_end_is_not_read_into_memory(tmp_path: Path) -> None:
    (tmp_path / "export").write_bytes(b"x" * (5 << 20))
    with pytest.raises(OdfError, match="longer than"):
        list(exported_records(tmp_path / "export"))


@pytest.mark.parametrize("data", [b"\x1f\x8b", b"\x1f\x8b" + bytes(100), gzip.compress(b"x" * 9999, mtime=0)[:30]])
def test_a_damaged_export_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "export").write_bytes(data)
    with pytest.raises(OdfError, match="Cannot read"):
        list(exported_records(tmp_path / "export"))


def test_an_export_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        list(exported_records(tmp_path / "nothing"))


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["S", "N", "M", "L", "url"]), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["url", "metadata", "size", "create_time", "Item"]), VALUES))
def test_no_line_breaks_it(tmp_path_factory: pytest.TempPathFactory, line: dict[str, Any]) -> None:
    (one,) = read(tmp_path_factory.mktemp("export"), line)
    assert isinstance(one, ExportedRecord) or one[1].message

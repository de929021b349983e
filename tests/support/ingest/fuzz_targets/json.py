"""JSON and newline-delimited JSON; the standard library reads them, too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
from support.ingest.fuzz_targets.rows import SCHEMA, check_rows, encoded
from support.ingest.fuzz_targets.target import Target, damaged

from odfpy.chain.read_steps import ReadJson, ReadNdJson, ReadStep

RECORDS = (
    {"id": 1, "x": 1.5, "name": 'a ž "}', "day": "2024-02-29", "ok": True, "more": [{"a": None}]},
    {"id": 2, "x": None, "name": "null", "ok": False},
    {"id": 3, "x": -1e3, "name": "\u2028\n[", "day": "2023-12-31", "ok": None},
)
_NDJSON = tuple(
    "\n".join(json.dumps(record, ensure_ascii=ascii_only, indent=indent) for record in RECORDS)
    for ascii_only in (True, False)
    for indent in (None, 1)
)
JSON_TOKENS = (b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"null", b"true", b"1", b"1e5", b"9" * 20, b"-", b".5", b"\n", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b'"id":1,', b"\\ud800", b"NaN", b" ")  # fmt: skip


def _number(text: str) -> Decimal | float:
    try:
        return Decimal(text)
    except InvalidOperation:  # an excessive exponent
        return float(text)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    keys = Counter(key for key, _ in pairs)
    return members | {key: AssertionError(f"{key!r} occurs twice") for key, count in keys.items() if count > 1}


_DECODER = json.JSONDecoder(parse_float=_number, object_pairs_hook=_members)


def series(content: bytes) -> Iterator[dict[str, Any]]:
    text = content.decode().removeprefix("\ufeff")
    at = 0
    while rest := text[at:].lstrip(" \t\r\n"):
        at = len(text) - len(rest)
        value, at = _DECODER.raw_decode(text, at)
        assert isinstance(value, dict)
        yield value


def whole(content: bytes) -> Any:
    return _DECODER.decode(content.decode().removeprefix("\ufeff"))


def check_records(table: pa.Table, records: Sequence[dict[str, Any]]) -> None:
    check_rows(table, [[record.get(name) for name in table.column_names] for record in records])


def _check_ndjson(step: ReadStep, content: bytes, table: pa.Table) -> None:
    del step
    check_records(table, list(series(content)))


def _check_json(step: ReadStep, content: bytes, table: pa.Table) -> None:
    assert isinstance(step, ReadJson)
    document = whole(content) if content.strip() else []
    for key in step.sub_path.split(".") if step.sub_path and document else ():
        document = document[key]
    check_records(table, document)


_ARRAYS = encoded([json.dumps(RECORDS), json.dumps(RECORDS[:2], ensure_ascii=False, indent=1)])
_NESTED = encoded([json.dumps({"c": 1, "a": {"b": RECORDS, "d": []}}, indent=indent) for indent in (None, 1)])


JSON = Target(
    [
        (ReadJson(), _ARRAYS),
        (ReadJson(schema=SCHEMA), _ARRAYS),
        (ReadJson(sub_path="a.b"), _NESTED),
        (ReadJson(sub_path="a.b", schema=SCHEMA), _NESTED),
    ],
    JSON_TOKENS,
    _check_json,
    damaged,
)
NDJSON = Target(
    [(ReadNdJson(), encoded(_NDJSON)), (ReadNdJson(schema=SCHEMA), encoded(_NDJSON))],
    JSON_TOKENS,
    _check_ndjson,
    damaged,
)

"""Records of datalake's index as exported from DynamoDB: one JSON object for each line, optionally gzipped.

{"url": "s3://lake/6309.../data", "create_time": 1426896791333, "size": 7892341, "metadata": {...}, ...}

Values are plain, or in DynamoDB's typed form (`{"S": "text"}`, `{"N": "1"}`, `{"M": {}}`), and may be wrapped in
`{"Item": ...}`, as in exports to S3. A file has a record for each day that it covers.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from odfpy.archive.errors import RecordRefused
from odfpy.archive.metadata import Metadata, metadata_of
from odfpy.errors import InvalidValue, NotFound, OdfError
from odfpy.http.url import split_url

_MAX_LENGTH: Final = 1 << 22
_GZIP: Final = b"\x1f\x8b"
_MAX_DEPTH: Final = 16
_TYPES: Final = frozenset({"S", "N", "M", "L", "NULL", "BOOL", "SS", "NS", "B", "BS"})


@dataclass(frozen=True, slots=True)
class ExportedRecord:
    """A record of datalake's index.

    Attributes:
        key: key of the object in its bucket.
        metadata: metadata of the file.
        create_time: when the file arrived in the bucket, in milliseconds since 1970; None if the record does not say.
        size: bytes; None if the record does not say.
    """

    key: str
    metadata: Metadata
    create_time: int | None
    size: int | None


def exported_records(file: Path) -> Iterator[ExportedRecord | tuple[str, OdfError]]:
    """Yield the records of an export; for an invalid line, its position and the error.

    Args:
        file: the export.

    Raises:
        NotFound: there is no such file.
        OdfError: the file cannot be read.
    """
    try:
        with file.open("rb") as raw:
            is_packed = raw.read(2) == _GZIP
        with gzip.open(file) if is_packed else file.open("rb") as lines:
            for number in _counted():
                line = lines.readline(_MAX_LENGTH + 1)
                if not line:
                    return
                name = f"{file}, line {number}"
                if len(line) > _MAX_LENGTH:
                    raise OdfError(
                        f"{name} is longer than {_MAX_LENGTH} bytes", hint="One JSON object a line is expected."
                    )
                if line.strip():
                    yield _read(line, name)
    except FileNotFoundError:
        raise NotFound(f"No such file: {file}") from None
    except (OSError, EOFError, gzip.zlib.error) as error:  # type: ignore[attr-defined]
        raise OdfError(f"Cannot read {file}: {error}") from error


def _counted() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


def _read(line: bytes, name: str) -> ExportedRecord | tuple[str, OdfError]:
    try:
        return _record(json.loads(line), name)
    except RecordRefused as error:
        return name, error
    except (ValueError, RecursionError) as error:
        return name, RecordRefused(name, [f"it is not JSON: {error}"])


def _record(tree: Any, name: str) -> ExportedRecord:
    if isinstance(tree, dict) and set(tree) == {"Item"}:
        tree = tree["Item"]
    if not isinstance(tree, dict):
        raise RecordRefused(name, ["it is not a JSON object"])
    if tree and all(_is_typed(value) for value in tree.values()):
        tree = {field: _plain(value, name) for field, value in tree.items()}
    path = _path_in(tree.get("url"))
    if not path.strip("/"):
        raise RecordRefused(name, [f"url {str(tree.get('url'))[:80]!r} is not the URL of an object"])
    metadata = metadata_of(tree.get("metadata"), name)
    if metadata.id is None:
        raise RecordRefused(name, ["id is missing"])
    numbers = {field: _integer(tree.get(field), field, name) for field in ("create_time", "size")}
    return ExportedRecord(unquote(path).lstrip("/"), metadata, **numbers)


def _path_in(url: object) -> str:
    """Return the path in the URL of an object; empty if it is none."""
    try:
        return split_url(url).path if isinstance(url, str) else ""
    except InvalidValue:
        return ""


def _is_typed(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _TYPES


def _plain(value: Any, name: str, depth: int = 0) -> Any:
    """Unwrap a value in DynamoDB's typed form."""
    if not _is_typed(value) or depth > _MAX_DEPTH:
        raise RecordRefused(name, [f"{json.dumps(value)[:80]} is not a value in the form of DynamoDB"])
    ((kind, inner),) = value.items()
    if kind == "M" and isinstance(inner, Mapping):
        return {field: _plain(item, name, depth + 1) for field, item in inner.items()}
    if kind == "L" and isinstance(inner, list):
        return [_plain(item, name, depth + 1) for item in inner]
    if kind == "N":
        return _number(inner, name)
    return None if kind == "NULL" else inner


def _number(text: Any, name: str) -> int | float:
    try:
        number = Decimal(text)
        return int(number) if number == number.to_integral_value() and abs(number) < 1e30 else float(number)
    except (ArithmeticError, TypeError, ValueError):  # also signals of the module decimal
        raise RecordRefused(name, [f"{str(text)[:80]!r} is not a number"]) from None


def _integer(value: Any, field: str, name: str) -> int | None:
    if value is None:
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
    if not is_number or value != int(value) or value < 0:
        raise RecordRefused(name, [f"{field} {str(value)[:80]!r} is not a whole number"])
    return int(value)

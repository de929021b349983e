"""Metadata documents of datalake, which accompany a file in a bundle, a bucket or an export of its index.

{"version": 0, "start": 1426809920345, "end": null, "path": "/var/log/syslog.1", "work_id": null, "where": "web1",
 "what": "syslog", "id": "6309e115c2914d0f8622973422626954", "hash": "a3e75ee4f45f676422e038f2c116d000"}

They are parsed as datalake does: times may be texts of any form, `version`, `end`, `work_id`, `id` and `hash` may be
missing, and unknown fields are ignored. An integer is a time in milliseconds, even one before 1973.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from odfpy.archive.errors import RecordRefused
from odfpy.archive.naming.words import translated
from odfpy.archive.pushing import NewFile
from odfpy.archive.record import (
    VERSION,
    FileRecord,
    document_of,
    reasons_against_hash,
    reasons_against_id,
    reasons_against_path,
    reasons_against_times,
    reasons_against_words,
)
from odfpy.archive.times import parse_time
from odfpy.errors import InvalidValue

MAX_LENGTH: Final = 1 << 20
"""Maximum bytes of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """A document about a file; see `FileRecord`.

    Attributes:
        id: None if the archive assigns one.
        hash: None if the file is not hashed yet.
    """

    what: str
    where: str
    start: int
    end: int | None
    work_id: str | None
    path: str
    id: str | None = None
    hash: str | None = None

    def new_file(self, file: Path, *, create_time: int | None = None) -> NewFile:
        """Return the described file, ready for archiving.

        Args:
            file: path of its bytes.
            create_time: when another archive stored it, in milliseconds.
        """
        return NewFile(
            file=file,
            what=self.what,
            where=self.where,
            start=self.start,
            end=self.end,
            work_id=self.work_id,
            path=self.path,
            id=self.id,
            hash=self.hash,
            create_time=create_time,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the document."""
        return document_of(self)

    def identified(self, id_: str, hash_: str) -> Metadata:
        """Return the metadata with id and hash.

        Args:
            id_: id of the file.
            hash_: hash of its content.
        """
        return replace(self, id=id_, hash=hash_)

    def is_of(self, record: FileRecord) -> bool:
        """Return whether a record has the same metadata."""
        return self.to_dict() == record.metadata()


def parse_metadata(text: bytes | str | None, name: str) -> Metadata:
    """Parse a document.

    Args:
        text: JSON; None if there is none.
        name: name of the file, for messages.

    Raises:
        RecordRefused: the document is invalid, or breaks rules; the message has all reasons.
    """
    if text is None:
        raise RecordRefused(name, ["it has no metadata"])
    if len(text) > MAX_LENGTH:
        raise RecordRefused(name, [f"its metadata has {len(text)} bytes, {MAX_LENGTH} are allowed"])
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordRefused(name, [f"its metadata is not JSON: {error}"]) from None
    return metadata_of(tree, name)


def metadata_of(tree: Any, name: str) -> Metadata:
    """Return the metadata of a parsed document.

    Args:
        tree: its fields; words may be translator patterns.
        name: name of the file, for messages.

    Raises:
        RecordRefused: the metadata is invalid; the message has all reasons.
    """
    if not isinstance(tree, Mapping):
        raise RecordRefused(name, ["its metadata is not a JSON object"])
    path = tree.get("path")
    words: dict[str, Any] = {field: tree.get(field) for field in ("what", "where", "work_id")}
    reasons: list[str] = []
    if isinstance(path, str):
        patterns = {field: word for field, word in words.items() if isinstance(word, str) and "~" in word}
        translated_words, reasons = translated(path, **patterns)
        words |= translated_words
    times = {field: _time(tree.get(field), field, reasons) for field in ("start", "end")}
    reported_fields = {reason.partition(" ")[0].rstrip(":") for reason in reasons}
    # Unreadable values are not missing, and were already reported.
    reasons += [
        contradiction
        for contradiction in _reasons_against(tree, words, times)
        if contradiction not in {f"{name} is missing" for name in reported_fields}
    ]
    if reasons:
        raise RecordRefused(name, reasons)
    start, end = times["start"] or 0, times["end"]  # a missing start was already reported
    return Metadata(**words, start=start, end=end, path=str(path), id=tree.get("id"), hash=tree.get("hash"))


def _reasons_against(tree: Mapping[str, Any], words: Mapping[str, Any], times: Mapping[str, Any]) -> Iterator[str]:
    version = tree.get("version", VERSION)
    if version != VERSION or isinstance(version, bool):
        yield f"version {str(version)[:80]!r} of metadata is not known, only {VERSION}"
    yield from reasons_against_words(**words)
    yield from reasons_against_times(times["start"], times["end"])
    yield from reasons_against_path(tree.get("path"))
    if tree.get("id") is not None:
        yield from reasons_against_id(tree["id"])
    if tree.get("hash") is not None:
        yield from reasons_against_hash(tree["hash"])


def _time(value: object, name: str, reasons: list[str]) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, (bool, float, str)):
        try:
            return parse_time(value)
        except InvalidValue as error:
            reasons.append(f"{name}: {error.message}")
            return None
    reasons.append(f"{name} {str(value)[:80]!r} is not a time")
    return None

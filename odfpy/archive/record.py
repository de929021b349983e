"""The record of an archived file: what it is, where it comes from, and when it happened (archive specification)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final

from odfpy.archive.errors import RecordRefused
from odfpy.archive.times import FIRST, LAST, iso
from odfpy.data.multihash import Multihash

VERSION: Final = 0
"""The version of the records that are written and read."""

_SIZES: Final = 1 << 63

_WORD: Final = re.compile(r"[a-z0-9_-]+")
_ID: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_HASH: Final = re.compile(r"[0-9a-f]{32}")
_WINDOWS_PATH: Final = re.compile(r"[a-zA-Z]:[\\/].*", re.DOTALL)
_MAX_LENGTH: Final = 4096


_DOCUMENT: Final = ("start", "end", "path", "work_id", "where", "what", "id", "hash")


class Status(Enum):
    """The state of a file in the archive.

    Attributes:
        KEPT: it is found by searches, and its bytes are kept.
        WITHDRAWN: it was withdrawn; searches omit it.
        EXPIRED: its retention has ended.
    """

    KEPT = "kept"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """The record of a file: all that the archive knows about it; `reasons_against` tells which rules a record breaks.

    Attributes:
        id: identifies the file in the archive; derived from the other fields by default (`derived_id`).
        what: the process or program that created it: `[a-z0-9_-]+`.
        where: the machine or place that it comes from: `[a-z0-9_-]+`.
        start: time of the first event in it, or its only time; milliseconds since the epoch.
        end: time of the last event in it, None for a file of a single moment; milliseconds since the epoch.
        work_id: a job that it belongs to, `[a-z0-9_-]+` and not beginning with `null`; or None.
        path: its original path: absolute, in POSIX or Windows form.
        hash: BLAKE2b of 16 bytes over the content, in hex, as in datalake.
        object: the content's name in the store: BLAKE3 or SHA3-256.
        size: size of the content in bytes.
        create_time: when the archive stored it; milliseconds since the epoch.
        version: version of the record format.
        status: state of the file.
        released: since when its bytes may be removed, by withdrawal or expiry; milliseconds.
        who: who corrected, withdrew or expired it; None for unchanged records.
        why: reason of the change.
    """

    id: str
    what: str
    where: str
    start: int
    end: int | None = None
    work_id: str | None = None
    path: str
    hash: str
    object: Multihash
    size: int
    create_time: int
    version: int = VERSION
    status: Status = Status.KEPT
    released: int | None = None
    who: str | None = None
    why: str | None = None

    def checked(self) -> FileRecord:
        """Return the record itself after checking it.

        Raises:
            RecordRefused: the record breaks rules; the message has all of them.
        """
        reasons = tuple(self.reasons_against())
        if reasons:
            raise RecordRefused(self.path, reasons)
        return self

    def reasons_against(self) -> Iterator[str]:
        """Yield a sentence for each rule that the record breaks."""
        if self.version != VERSION:
            yield f"version is {self.version!r}, only {VERSION} is known"
        yield from reasons_against_words(what=self.what, where=self.where, work_id=self.work_id)
        yield from reasons_against_times(self.start, self.end)
        yield from reasons_against_path(self.path)
        yield from reasons_against_id(self.id)
        yield from reasons_against_hash(self.hash)
        if not 0 <= self.size < _SIZES:
            yield f"size {self.size} is not from 0 to {_SIZES - 1}"
        for name, value in (("create_time", self.create_time), ("released", self.released)):
            if value is not None and not FIRST <= value <= LAST:
                yield f"{name} {value} is not in the years 1 to 9999, in milliseconds since 1970"

    def metadata(self) -> dict[str, Any]:
        """Return the record in the form of datalake's clients."""
        return document_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON values, with times also as text."""
        rest = {
            "object": str(self.object),
            "size": self.size,
            "create_time": self.create_time,
            "status": self.status.value,
            "released": self.released,
            "who": self.who,
            "why": self.why,
        }
        return {**self.metadata(), **rest, "start_iso": iso(self.start), "end_iso": iso(self.end)}

    @classmethod
    def from_dict(cls, tree: dict[str, Any]) -> FileRecord:
        """Return the record of a tree from `to_dict`; unknown keys are ignored.

        Raises:
            KeyError, TypeError, ValueError, InvalidValue: the tree is invalid.
        """
        known = {field.name: tree[field.name] for field in fields(cls) if field.name in tree}
        known["object"] = Multihash.parse(known["object"])
        known["status"] = Status(known.get("status", Status.KEPT.value))
        return cls(**known)


def document_of(metadata: object) -> dict[str, Any]:
    """Return the document about a file, in the order of datalake's specification.

    Args:
        metadata: object with the fields of such a document.
    """
    return {"version": VERSION, **{name: getattr(metadata, name) for name in _DOCUMENT}}


def derived_id(
    *, what: str, where: str, start: int, end: int | None, work_id: str | None, path: str, content: Multihash
) -> str:
    """Derive the id of a file without an explicit one: 32 hex digits over its content and metadata.

    The same file always has the same id, so repeating a push after a crash changes nothing.

    Args:
        what: see `FileRecord`, also for the other arguments.
        where: origin of the file.
        start: in milliseconds.
        end: in milliseconds, or None.
        work_id: id of the job, or None.
        path: absolute path.
        content: name of the content in the store.
    """
    parts = [what, where, start, end, work_id, path, str(content)]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def reasons_against_words(*, what: object, where: object, work_id: object) -> Iterator[str]:
    """Yield the errors in the name fields of a record; see `FileRecord`."""
    for name, value in (("what", what), ("where", where)):
        if value is None:
            yield f"{name} is missing"
        else:
            yield from _reasons_against_word(name, value)
    if work_id is not None:
        yield from _reasons_against_word("work_id", work_id)
        if isinstance(work_id, str) and work_id.startswith("null"):
            yield f"work_id {work_id[:80]!r} begins with 'null', which is reserved"


def _reasons_against_word(name: str, value: object) -> Iterator[str]:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        yield f"{name} {str(value)[:80]!r} is not made of lower-case letters, digits, '_' and '-'"
    elif len(value) > 255:
        yield f"{name} has {len(value)} characters, 255 are allowed"


def reasons_against_times(start: object, end: object) -> Iterator[str]:
    """Yield the errors in the times of a record, in milliseconds."""
    if start is None:
        yield "start is missing"
    for name, value in (("start", start), ("end", end)):
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            yield f"{name} {str(value)[:80]!r} is not a number of milliseconds"
        elif not FIRST <= value <= LAST:
            yield f"{name} {value} is out of the years 1 to 9999"
    if isinstance(start, int) and isinstance(end, int) and end < start:
        yield f"end ({iso_or_number(end)}) is before start ({iso_or_number(start)})"


def iso_or_number(millis: int) -> str:
    """Format a time for people; as a number if it has no date."""
    return iso(millis) or "" if FIRST <= millis <= LAST else str(millis)


def reasons_against_path(path: object) -> Iterator[str]:
    """Yield the errors in the path of a record."""
    if not isinstance(path, str) or not path:
        yield "path is missing"
    elif not (path.startswith("/") or _WINDOWS_PATH.fullmatch(path)):
        yield f"path {path[:80]!r} is not absolute"
    elif len(path) > _MAX_LENGTH:
        yield f"path has {len(path)} characters, {_MAX_LENGTH} are allowed"
    elif "\0" in path:
        yield "path has a character NUL"
    else:
        try:
            path.encode()
        except UnicodeEncodeError:
            yield f"path {ascii(path)[:80]} is not UTF-8; give another one with --path"


def reasons_against_id(id_: object) -> Iterator[str]:
    """Yield the errors in the id of a record."""
    if not isinstance(id_, str) or not _ID.fullmatch(id_):
        yield f"id {str(id_)[:80]!r} is not 1 to 128 letters, digits, '.', '_' or '-'"


def reasons_against_hash(hash_: object) -> Iterator[str]:
    """Yield the errors in the hash of a record."""
    if not isinstance(hash_, str) or not _HASH.fullmatch(hash_):
        yield f"hash {str(hash_)[:80]!r} is not 32 hex digits (BLAKE2b of 16 bytes)"

"""Preparation of files to be archived: everything that can be done before the lock is taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from odfpy.archive.errors import RecordRefused
from odfpy.archive.files import Content, copy_content
from odfpy.archive.naming.words import translated
from odfpy.archive.pushing import NewFile
from odfpy.archive.record import FileRecord, derived_id
from odfpy.data.multihash import HashAlgorithm, Multihash


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """A file whose bytes are known, and its record as it would be.

    Attributes:
        new: the file, and what was said of it.
        content: its bytes.
        record: follows all rules; whether the archive takes it is still to be decided.
    """

    new: NewFile
    content: Content
    record: FileRecord


def prepare(new: NewFile, to: Path, algorithm: HashAlgorithm, now: int) -> PreparedFile:
    """Copy a file, and make its record.

    Args:
        new: the file, and what is said of it.
        to: the copy.
        algorithm: of the object's name.
        now: the time of the push, in milliseconds.

    Raises:
        RecordRefused: the record breaks rules; told before the file is read where that can be.
        OdfError: the file cannot be read; see `copy_content`.
    """
    draft = draft_of(new, algorithm, now)
    return prepared(new, draft, copy_content(new.file, to, new.object.algorithm if new.object else algorithm))


def draft_of(new: NewFile, algorithm: HashAlgorithm, now: int, *, is_translated: bool = True) -> FileRecord:
    """The record of a file before it was read: its id, its bytes and perhaps its times are still to come.

    Args:
        new: the file, and what is said of it.
        algorithm: of the object's name.
        now: the time of the push, in milliseconds.
        is_translated: whether words may be translator patterns.

    Raises:
        RecordRefused: it breaks rules; the message has all of them.
    """
    path = str(new.file.absolute()) if new.path is None else new.path
    words: dict[str, Any] = {"what": new.what, "where": new.where, "work_id": new.work_id}
    reasons: list[str] = []
    if is_translated:
        words, reasons = translated(path, **words)
    draft = FileRecord(
        **words,
        id=new.id or "0",
        start=0 if new.start is None else new.start,
        end=new.end if new.start is not None else None,
        path=path,
        hash=new.hash or "0" * 32,
        object=new.object or Multihash(algorithm.code, bytes(algorithm.size)),
        size=0,
        create_time=now if new.create_time is None else new.create_time,
    )
    reasons += draft.reasons_against()
    if reasons:
        raise RecordRefused(str(new.file), reasons)
    return draft


def prepared(new: NewFile, draft: FileRecord, content: Content) -> PreparedFile:
    """A file whose bytes were read, with its record.

    Args:
        new: the file, and what was said of it.
        draft: its record before it was read.
        content: its bytes.

    Raises:
        WrongContent: these are not the announced bytes.
        RecordRefused: the record breaks rules now that its times are known.
    """
    content.require(str(new.file), hash=new.hash, object=new.object)
    start = content.modified if new.start is None else new.start
    record = replace(draft, start=start, end=new.end, hash=content.hash, object=content.object, size=content.size)
    name = new.id or derived_id(
        what=record.what,
        where=record.where,
        start=record.start,
        end=record.end,
        work_id=record.work_id,
        path=record.path,
        content=record.object,
    )
    return PreparedFile(new, content, replace(record, id=name).checked())

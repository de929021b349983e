"""Adding of files to a queue: validated immediately, and added atomically."""

from __future__ import annotations

import fcntl
import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from odfpy.archive.errors import CannotCopy, RecordRefused, WrongContent
from odfpy.archive.files import read_unchanged
from odfpy.archive.metadata import Metadata
from odfpy.archive.naming.words import translated
from odfpy.archive.pushing import NewFile
from odfpy.archive.queue.bundle import Bundled, write_bundle
from odfpy.archive.queue.folder import QueueFolder, rename_new
from odfpy.archive.record import (
    derived_id,
    reasons_against_id,
    reasons_against_path,
    reasons_against_times,
    reasons_against_words,
)
from odfpy.data.multihash import BLAKE3, HashAlgorithm
from odfpy.files import TEMPORARY, sync_folder


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A file in a queue.

    Attributes:
        file: the path that was given.
        bundle: path of the waiting bundle.
        metadata: its future metadata in the archive.
        size: size of the content in bytes.
    """

    file: Path
    bundle: Path
    metadata: Metadata
    size: int


def enqueue(queue: QueueFolder, new: NewFile, *, compress: bool = False, algorithm: HashAlgorithm = BLAKE3) -> Enqueued:
    """Add a copy of a file to a queue; the file itself may then be removed.

    Args:
        queue: the queue.
        new: the file and its metadata.
        compress: compress the content with gzip; the metadata is not affected.
        algorithm: hash algorithm of object names in the archive; ids are derived from them.

    Raises:
        RecordRefused: the metadata breaks rules; the message has all reasons.
        NotFound, NotAFile, FileChanged, WrongContent: the file cannot be read consistently.
        QueueFull: the queue accepts no more files.
        CannotCopy: the copy cannot be written; nothing is left in the queue.
    """
    draft = _draft(new)
    temporary = queue.path / f"{TEMPORARY}{secrets.token_hex(8)}"
    try:
        with read_unchanged(new.file, "enqueued") as (source, status):
            queue.require_room(status.st_size)
            if new.start is None:
                draft = replace(draft, start=status.st_mtime_ns // 1_000_000)
                _require(new.file, list(reasons_against_times(draft.start, draft.end)))
            with temporary.open("xb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # otherwise it would be taken for an abandoned file
                metadata, size = _write(file, source, new, draft, algorithm, compress=compress)
                file.flush()
                os.fsync(file.fileno())
        bundle = _named(temporary, queue.path, str(metadata.id))
        sync_folder(queue.path)
    except OSError as error:
        raise CannotCopy(
            f"{new.file}: cannot be copied into the queue {queue.path}: {error.strerror}; nothing was enqueued",
            hint="Check free space and permissions there.",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    return Enqueued(new.file, bundle, metadata, size)


def _draft(new: NewFile) -> Metadata:
    """Return the metadata of a file as far as it is known before the file is read."""
    path = str(new.file.absolute()) if new.path is None else new.path
    words, reasons = translated(path, what=new.what, where=new.where, work_id=new.work_id)
    reported_words = {reason.partition(":")[0] for reason in reasons}
    reasons += [word for word in reasons_against_words(**words) if word.partition(" ")[0] not in reported_words]
    if new.start is not None:
        reasons += reasons_against_times(new.start, new.end)
    reasons += reasons_against_path(path)
    if new.id is not None:
        reasons += reasons_against_id(new.id)
    _require(new.file, reasons)
    return Metadata(**words, start=new.start or 0, end=new.end, path=path, id=new.id)


def _require(file: Path, reasons: list[str]) -> None:
    if reasons:
        raise RecordRefused(str(file), reasons)


def _write(
    file: BinaryIO, source: BinaryIO, new: NewFile, draft: Metadata, algorithm: HashAlgorithm, *, compress: bool
) -> tuple[Metadata, int]:
    """Write the bundle; return its metadata, and the size of its content."""
    sizes = []

    def describe(content: Bundled) -> Metadata:
        for known, actual in ((new.hash, content.hash), (new.object, content.object)):
            if known is not None and known != actual:
                raise WrongContent(f"{new.file}: its bytes have the hash {actual}, not {known}")
        sizes.append(content.size)
        id_ = new.id or derived_id(
            what=draft.what,
            where=draft.where,
            start=draft.start,
            end=draft.end,
            work_id=draft.work_id,
            path=draft.path,
            content=content.object,
        )
        return draft.identified(id_, content.hash)

    return write_bundle(file, source, describe, algorithm, compress=compress), sizes[0]


def _named(temporary: Path, folder: Path, id_: str) -> Path:
    """Rename a bundle to its name, but never replace a waiting one: with explicit ids, it may be another file."""
    bundle = folder / f"{id_}.tar"
    while True:
        try:
            rename_new(temporary, bundle)
        except FileExistsError:
            bundle = folder / f"{id_}-{secrets.token_hex(4)}.tar"
        else:
            return bundle

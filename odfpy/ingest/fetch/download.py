"""Downloads of files: each version once, despite interruptions, complete or not at all.

1. ask      whether the source has a different version than the known or stored one
2. receive  block by block into a stored file; the announced size is displayed, but never relied on
3. repeat   after an interruption: continue if the source proves that the rest belongs to the same version, else restart
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Protocol

from odfpy.data.timestamp import NANOS_PER_SECOND
from odfpy.errors import FetchError, FetchInterrupted
from odfpy.ingest.fetch.context import FetchContext
from odfpy.ingest.fetch.pending import PendingFile
from odfpy.ingest.fetch.retry import wait_or_give_up
from odfpy.ingest.fetch.version import SourceVersion

BLOCK = 1 << 20
"""Bytes per request."""

_FRESH = 24 * 3600 * NANOS_PER_SECOND  # a file without a version is used again for a day


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The point from which to resume a download: offset, proof that the rest matches, and a hash of the URL."""

    offset: int
    proof: str
    place: str | None = None


class PartialFile(Protocol):
    """A file that is being downloaded.

    Attributes:
        version: the version that the source states.
        offset: the offset of its first byte in the file: 0, or the requested offset if proven.
        length: size of the whole file if the source states it.
    """

    @property
    def version(self) -> SourceVersion: ...
    @property
    def offset(self) -> int: ...
    @property
    def length(self) -> int | None: ...

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none only at the end.

        Raises:
            FetchError: the connection ends before the end of the file.
        """

    def close(self) -> None:
        """Abandon the rest."""


class RemoteFile(Protocol):
    """A remote location of a file.

    Attributes:
        shown: its name in messages, without secrets.
    """

    @property
    def shown(self) -> str: ...

    def open(self, unless: SourceVersion, rest: ResumePoint | None) -> PartialFile | None:
        """Return the file, or the rest of it, or None if it has a known version.

        Raises:
            FetchInterrupted: the file is temporarily unavailable.
            FetchError: the file is permanently unavailable.
        """


def kept_for(name: str, context: FetchContext) -> PendingFile:
    """Return the stored part of a source's file that can still be used; nothing on the disk is changed.

    Args:
        name: as for `download`.
        context: the context of the fetch.
    """
    kept = PendingFile(context.kept or context.scratch, name)
    has_versions = kept.version.is_known or not kept.is_complete
    # A source without versions cannot confirm that a stored file is current. For a while it is trusted, so that a
    # failing pull can be fixed and repeated without another download. A clock that went back ends that.
    is_fresh = not context.fetch_uncacheable and 0 <= context.now.nanos - kept.fetched_at.nanos < _FRESH
    is_committed = kept.version.is_same(SourceVersion.of_state(context.known_state))
    if context.force or is_committed or not (has_versions or is_fresh):
        kept.forget()
    return kept


def download(source: RemoteFile, name: str, context: FetchContext) -> PendingFile | None:
    """Return the complete file, if it is new.

    Args:
        source: the remote location.
        name: the identity of the source. It is not stored, and may contain secrets.
        context: the context of the fetch.

    Raises:
        FetchError: the source cannot be read, or exceeds the limit; or the disk is full.
    """
    kept = kept_for(name, context)
    if kept.is_current:
        return kept
    known = SourceVersion.of_state(context.known_state)
    failures = 0
    while True:
        before = kept.received
        try:
            return _attempt(source, kept, known, context)
        except FetchInterrupted as error:
            # A large file over a bad line breaks off often and still arrives: retries are unlimited as long as there is
            # progress.
            failures = 1 if kept.received - before >= BLOCK else failures + 1
            wait_or_give_up(error, failures, source.shown, context)


@contextmanager
def request_file(source: RemoteFile, kept: PendingFile, known: SourceVersion) -> Iterator[PartialFile | None]:
    """Request the file, or the rest of it; None if it is the stored version or the known one.

    A complete but outdated stored file is discarded.

    Args:
        source: where the file is.
        kept: the stored part of the file.
        known: the version that was last ingested.

    Raises:
        FetchError: as for `RemoteFile.open`.
    """
    unless = kept.version if kept.is_complete else known
    proof, place = kept.version.proof, kept.version.place
    arriving = source.open(unless, ResumePoint(kept.received, proof, place) if proof and kept.can_resume else None)
    if arriving is None:
        yield None
        return
    with closing(arriving):
        if arriving.version.is_same(unless):
            yield None
            return
        if kept.is_complete:
            kept.forget()
        yield None if arriving.version.is_same(known) else arriving


def _attempt(source: RemoteFile, kept: PendingFile, known: SourceVersion, context: FetchContext) -> PendingFile | None:
    with request_file(source, kept, known) as arriving:
        if arriving is None:
            return kept if kept.is_complete else None
        try:
            _receive(source, arriving, kept, context)
        except OSError as error:
            kept.clear()
            raise FetchError(
                f"Cannot write the data of {source.shown} to {kept.path.parent}: {error.strerror}",
                hint="Free some space, or change the permissions of the folder; then pull again.",
            ) from error
        except FetchInterrupted:
            raise
        except FetchError:
            kept.clear()
            raise
    return kept


def _receive(source: RemoteFile, arriving: PartialFile, kept: PendingFile, context: FetchContext) -> None:
    """Write received bytes to the stored file.

    Raises:
        FetchError: the download breaks off, or is too large.
        OSError: the disk is full, for example.
    """
    most, length = context.max_bytes, arriving.length
    hint = "`odf config set fetch.maxSize BYTES` allows more."
    if length is not None and length > most:
        raise FetchError(f"{source.shown}: {length} bytes are announced, {most} are allowed", hint=hint)
    if arriving.offset == 0:
        kept.start(arriving.version, length, context.now)
    # One version with two lengths: the proof is worthless, and the parts may not match.
    elif None not in (length, kept.length) and length != kept.length:
        before = kept.length
        kept.clear()
        raise FetchInterrupted(f"{source.shown}: {length} bytes are announced, and {before} were for the same version")
    with kept.writing() as writer:
        while block := arriving.read(BLOCK):
            writer.write(block)
            if kept.received > most:
                raise FetchError(f"{source.shown}: more than the {most} bytes that are allowed", hint=hint)
            if length is not None and kept.received > length:
                raise FetchError(f"{source.shown}: more than the {length} announced bytes")
            if context.progress is not None:
                context.progress(kept.received, length)
    if length is not None and kept.received < length:
        raise FetchInterrupted(f"{source.shown}: interrupted after {kept.received} of {length} bytes")
    kept.finish()

"""Bringing a file here from elsewhere: each version once, in spite of interruptions, whole or not at all.

1. ask      whether the source has another version than the one that is known, or kept from an earlier pull
2. receive  block by block into a kept file; what the source announces is shown, and never relied on
3. repeat   after an interruption: with the rest, if the source proves that it belongs to what is here, else anew
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
"""Bytes that are asked for at once."""

_FRESH = 24 * 3600 * NANOS_PER_SECOND  # a file without a version is used again for a day


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The rest of a file: from where on, and what proves that it belongs to what is before it, at which place."""

    offset: int
    proof: str
    place: str | None = None


class PartialFile(Protocol):
    """A file on its way.

    Attributes:
        version: what the source says of it.
        offset: where in the file the first byte belongs: 0, or the offset that was asked for and is proven.
        length: bytes of the whole file if the source announces them.
    """

    @property
    def version(self) -> SourceVersion: ...
    @property
    def offset(self) -> int: ...
    @property
    def length(self) -> int | None: ...

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; none at the end, and only there.

        Raises:
            FetchError: this is not the end, but there will be no more.
        """

    def close(self) -> None:
        """Give up the rest."""


class RemoteFile(Protocol):
    """Something that has a file.

    Attributes:
        shown: what to call it in messages; without secrets.
    """

    @property
    def shown(self) -> str: ...

    def open(self, unless: SourceVersion, rest: ResumePoint | None) -> PartialFile | None:
        """The file, or the rest of it, or None if it has a certain version.

        Raises:
            FetchInterrupted: not now.
            FetchError: not at all.
        """


def kept_for(name: str, context: FetchContext) -> PendingFile:
    """Return what has been kept of a source and can still be of use; nothing on the disk is changed.

    Args:
        name: as for `download`.
        context: circumstances.
    """
    kept = PendingFile(context.kept or context.scratch, name)
    has_versions = kept.version.is_known or not kept.is_complete
    # A source without versions cannot say whether the kept file is still its own. For a while it is taken for that, so
    # that a failing pull can be mended and tried again without another download. A clock that went back ends it.
    is_fresh = not context.fetch_uncacheable and 0 <= context.now.nanos - kept.fetched_at.nanos < _FRESH
    is_committed = kept.version.is_same(SourceVersion.of_state(context.known_state))
    if context.force or is_committed or not (has_versions or is_fresh):
        kept.forget()
    return kept


def download(source: RemoteFile, name: str, context: FetchContext) -> PendingFile | None:
    """The file, if it is new; it is complete.

    Args:
        source: where it is.
        name: what the source is known by: another name is another source. It is not stored, and may hold secrets.
        context: circumstances.

    Raises:
        FetchError: the source cannot be read, or has more than is allowed; or the disk is full.
    """
    kept = kept_for(name, context)
    if kept.needs_no_asking:
        return kept
    known = SourceVersion.of_state(context.known_state)
    failures = 0
    while True:
        before = kept.received
        try:
            return _attempt(source, kept, known, context)
        except FetchInterrupted as error:
            # A large file over a bad line breaks off often and still arrives: who makes progress is not given up.
            failures = 1 if kept.received - before >= BLOCK else failures + 1
            wait_or_give_up(error, failures, source.shown, context)


@contextmanager
def asked(source: RemoteFile, kept: PendingFile, known: SourceVersion) -> Iterator[PartialFile | None]:
    """Ask the source for the file, or the rest of it; None if that is the kept version or the known one.

    A kept file that is complete but no longer what the source has is forgotten.

    Args:
        source: where the file is.
        kept: the file as far as it has arrived before.
        known: the version that was taken in last.

    Raises:
        FetchError: as for `RemoteFile.open`.
    """
    unless = kept.version if kept.is_complete else known
    proof, place = kept.version.proof, kept.version.place
    arriving = source.open(unless, ResumePoint(kept.received, proof, place) if proof and kept.can_go_on else None)
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
    with asked(source, kept, known) as arriving:
        if arriving is None:
            return kept if kept.is_complete else None
        try:
            _receive(source, arriving, kept, context)
        except OSError as error:
            kept.clear()
            raise FetchError(
                f"Cannot write what {source.shown} sends to {kept.path.parent}: {error.strerror}",
                hint="Make room, or let the folder be written to; then pull again.",
            ) from error
        except FetchInterrupted:
            raise
        except FetchError:
            kept.clear()
            raise
    return kept


def _receive(source: RemoteFile, arriving: PartialFile, kept: PendingFile, context: FetchContext) -> None:
    """Write what arrives to the kept file.

    Raises:
        FetchError: it breaks off, or is too long.
        OSError: the disk is full, or something of that kind.
    """
    most, length = context.max_bytes, arriving.length
    hint = "`odf config set fetch.maxSize BYTES` allows more."
    if length is not None and length > most:
        raise FetchError(f"{source.shown}: {length} bytes are announced, {most} are allowed", hint=hint)
    if arriving.offset == 0:
        kept.start(arriving.version, length, context.now)
    # One version with two lengths: the proof of the version is worth nothing, and the parts may not fit together.
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
                raise FetchError(f"{source.shown}: more than the {length} bytes that were announced")
            if context.progress is not None:
                context.progress(kept.received, length)
    if length is not None and kept.received < length:
        raise FetchInterrupted(f"{source.shown}: broken off after {kept.received} of {length} bytes")
    kept.finish()

"""Versions of a file, identified by the metadata that its source reports."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.chain.events import SourceState
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.ingest.source_state import etag_state, known_etag, known_last_modified, last_modified_state

_SETTLED = 60  # seconds after which a file does not change any more within the second of its modification
_SETTLED_BY_OUR_CLOCK = 24 * 3600  # clocks of different machines may differ


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """The version of a file, as its source states it.

    Attributes:
        etag: the source's name for the version.
        modified: when the file was last modified.
        proof: what the source has to confirm to prove that further bytes belong to those already received; None if
            nothing would prove it.
        place: hash of the URL after redirects; a proof is only valid there.
    """

    etag: str | None = None
    modified: Timestamp | None = None
    proof: str | None = None
    place: str | None = None

    @classmethod
    def of_state(cls, state: SourceState | None) -> SourceVersion:
        """Return the version of a source state; without a state, one that equals no other."""
        return cls(known_etag(state), known_last_modified(state))

    @property
    def is_known(self) -> bool:
        """True if it can be distinguished from other versions."""
        return bool(self.etag) or self.modified is not None

    @property
    def state(self) -> SourceState | None:
        """The source state once this version has been committed."""
        if self.etag:
            return etag_state(self.etag)
        return None if self.modified is None else last_modified_state(self.modified)

    def is_same(self, other: SourceVersion) -> bool:
        """Return whether both are the same version. A version without name and time equals no other."""
        if self.etag or other.etag:
            return self.etag == other.etag
        return self.modified is not None and self.modified == other.modified


def is_settled(modified: Timestamp, now: Timestamp, *, by_its_own_clock: bool) -> bool:
    """Return whether a modification time in whole seconds proves that the file has not changed since.

    Args:
        modified: the modification time stated by the source.
        now: the current time.
        by_its_own_clock: whether the current time is by the clock of the source.
    """
    seconds = _SETTLED if by_its_own_clock else _SETTLED_BY_OUR_CLOCK
    return now.nanos - modified.nanos >= seconds * NANOS_PER_SECOND

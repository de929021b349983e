"""Telling the versions of a file apart, by what its source says of them."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.chain.events import SourceState
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.ingest.source_state import etag_state, known_etag, known_last_modified, last_modified_state

_SETTLED = 60  # seconds after which a file does not change any more within the second of its modification
_SETTLED_BY_OUR_CLOCK = 24 * 3600  # clocks of different machines may differ


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """The version of a file, as its source tells it.

    Attributes:
        etag: the name that the source gives to the version.
        modified: when the file was last modified.
        proof: what the source has to confirm so that further bytes certainly belong to those that are here; None if
            nothing it says would prove that.
        place: where it came from after redirects, as a hash; a proof is worth nothing elsewhere.
    """

    etag: str | None = None
    modified: Timestamp | None = None
    proof: str | None = None
    place: str | None = None

    @classmethod
    def of_state(cls, state: SourceState | None) -> SourceVersion:
        """The version that a source state stands for; one that is like no other for no state."""
        return cls(known_etag(state), known_last_modified(state))

    @property
    def is_known(self) -> bool:
        """True if there is anything to tell it from other versions by."""
        return bool(self.etag) or self.modified is not None

    @property
    def state(self) -> SourceState | None:
        """The source state once this version has been committed."""
        if self.etag:
            return etag_state(self.etag)
        return None if self.modified is None else last_modified_state(self.modified)

    def is_same(self, other: SourceVersion) -> bool:
        """Return whether both are the same version. What has neither name nor time is never the same as anything."""
        if self.etag or other.etag:
            return self.etag == other.etag
        return self.modified is not None and self.modified == other.modified


def is_settled(modified: Timestamp, now: Timestamp, *, by_its_own_clock: bool) -> bool:
    """Return whether a time of modification, in whole seconds, proves by itself that nothing has changed since.

    Args:
        modified: what the source says.
        now: the present.
        by_its_own_clock: whether the source says that, too.
    """
    seconds = _SETTLED if by_its_own_clock else _SETTLED_BY_OUR_CLOCK
    return now.nanos - modified.nanos >= seconds * NANOS_PER_SECOND

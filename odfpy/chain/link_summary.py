"""Summary of the linked objects of a commit, as stored in its block (RFC-017)."""

from __future__ import annotations

import json
from typing import Final

from odfpy.chain.events import AddData, MetadataEvent
from odfpy.data.attributes import ExtraAttributes
from odfpy.values import dataclass

SUMMARY: Final = "opendatafabric.org/linkedObjects"
"""The attribute of an AddData event with the number of objects that its rows link to."""

_IMPLAUSIBLE: Final = 1 << 56
"""Larger numbers are ignored as implausible."""

_MAX_VALUE: Final = (1 << 63) - 1
"""Maximum of sums: a state has 64 bits for each."""


@dataclass(frozen=True, slots=True)
class LinkedObjects:
    """A number of objects that rows link to, counted naively: once for each link.

    Attributes:
        count: number of links.
        size: total size of the linked objects in bytes, counted once for each link.
    """

    count: int = 0
    size: int = 0

    def __add__(self, other: LinkedObjects) -> LinkedObjects:
        return LinkedObjects(min(self.count + other.count, _MAX_VALUE), min(self.size + other.size, _MAX_VALUE))

    @classmethod
    def of(cls, event: MetadataEvent) -> LinkedObjects:
        """Return the summary of an event; empty if it has none, or an invalid one."""
        extra = event.extra if isinstance(event, AddData) else None
        if extra is None or SUMMARY not in extra.entries:
            return cls()
        match extra.to_dict().get(SUMMARY):
            case {"numObjectsNaive": int(count), "sizeNaive": int(size)} if (
                0 <= count < _IMPLAUSIBLE and 0 <= size < _IMPLAUSIBLE
            ):
                return cls(count, size)
        return cls()

    def beside(self, extra: ExtraAttributes | None) -> ExtraAttributes | None:
        """Return the attributes of an event with this summary, replacing an existing one; None if none remain."""
        attributes = json.loads(extra.entries) if extra is not None else {}
        attributes.pop(SUMMARY, None)
        if self.count:
            attributes[SUMMARY] = {"numObjectsNaive": self.count, "sizeNaive": self.size}
        elif extra is None or not attributes:
            return None
        return ExtraAttributes.of(attributes)

"""Entries: rows ordered by the 64-bit fingerprints of their keys.

A fingerprint narrows down a search, but does not identify a key: different keys may share one. The owner of the rows
chooses the hash function: duckdb's for the key index, Spark's for arrangements.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odfpy.values import dataclass

Fingerprints: TypeAlias = npt.NDArray[np.uint64]
Places: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Entries:
    """Rows with the fingerprints of their keys.

    Attributes:
        fingerprints: fingerprints of the keys, ascending.
        rows: one row per fingerprint.
    """

    fingerprints: Fingerprints
    rows: pa.Table

    def between(self, low: int, high: int | None) -> Entries:
        """Return entries with fingerprints from `low` up to, but not including, `high`; None for the end."""
        first = np.searchsorted(self.fingerprints, np.uint64(low))
        last = len(self.fingerprints) if high is None else np.searchsorted(self.fingerprints, np.uint64(high))
        return Entries(self.fingerprints[first:last], self.rows.slice(first, last - first))


def places_of(wanted: Fingerprints, known: Fingerprints) -> Places:
    """Return the positions at which wanted numbers occur among known ones; both are ascending."""
    first = np.searchsorted(known, wanted)
    counts = np.searchsorted(known, wanted, side="right") - first
    before = np.cumsum(counts) - counts
    places: Places = np.repeat(first - before, counts) + np.arange(counts.sum())
    return places

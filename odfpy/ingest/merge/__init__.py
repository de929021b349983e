"""Merge strategies, one module each (ODF specification, "Merge Strategies")."""

from __future__ import annotations

from odfpy.chain.sources import (
    MergeAppend,
    MergeChangelogStream,
    MergeLedger,
    MergeSnapshot,
    MergeStrategy,
    MergeUpsertStream,
)
from odfpy.ingest.merge.append import AppendMerge
from odfpy.ingest.merge.base import Merge, MergeShape, StateNeed
from odfpy.ingest.merge.changelog_stream import ChangelogStreamMerge
from odfpy.ingest.merge.ledger import LedgerMerge
from odfpy.ingest.merge.snapshot import SnapshotMerge
from odfpy.ingest.merge.upsert_stream import UpsertStreamMerge

__all__ = ["MERGES", "Merge", "MergeShape", "StateNeed", "merge_of"]

MERGES: dict[type[MergeStrategy], Merge] = {
    MergeAppend: AppendMerge(),
    MergeLedger: LedgerMerge(),
    MergeSnapshot: SnapshotMerge(),
    MergeChangelogStream: ChangelogStreamMerge(),
    MergeUpsertStream: UpsertStreamMerge(),
}


def merge_of(strategy: MergeStrategy) -> Merge:
    """Return the implementation of a strategy."""
    return MERGES[type(strategy)]

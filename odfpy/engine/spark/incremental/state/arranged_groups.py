"""Arranged partial aggregates: state of many groups, looked up by group in the dataset's arrangement (ADR 0048).

Each pull rewrites the checkpoint: with millions of groups, a pull of a few rows would rewrite all of them. In an
arrangement, a pull looks up the groups that it affects, and appends its own partial aggregates to those of earlier
pulls; a lookup merges those of one group. As soon as there are twice as many partial aggregates as groups, the
arrangement is compacted, like the runs of a log-structured merge tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from odfpy.engine.arrangement import ArrangedRows
from odfpy.engine.spark.analysis.partial_aggregate import PartialAggregate
from odfpy.engine.spark.incremental.properties.plan_info import Fragment, StatefulInput
from odfpy.engine.spark.incremental.state import worth_arranging
from odfpy.engine.spark.incremental.state.arrangement import Arrangement
from odfpy.engine.spark.incremental.state.hashes import entries_of, fingerprints, is_hashable
from odfpy.engine.spark.incremental.state.pull import Pull
from odfpy.engine.spark.plan.catalyst import Node, type_of
from odfpy.engine.spark.process.shared_files import on_cluster
from odfpy.stages import stage
from odfpy.state.fingerprints import Entries

_MAX_NEW: Final = 1_000_000
"""A pull that affects more groups reads and rewrites all of them, since looked-up groups are held in memory."""


def can_be_arranged(pull: Pull, fragment: Fragment, stateful_input: StatefulInput, groups: PartialAggregate) -> bool:
    """Return whether a pull affects only the groups of its new rows, and these can be found by a hash.

    Args:
        pull: the pull.
        fragment: the fragment.
        stateful_input: its stateful input.
        groups: its partial aggregates.
    """
    looks_at_time = bool(stateful_input.rules.all)
    if pull.arrangement is None or looks_at_time or pull.correctable is not None or on_cluster(pull.catalyst.spark):
        return False
    # With other stateful inputs, or fewer keys, a pull also affects groups of which it has no rows.
    keys = fragment.keys.get(stateful_input.number, ())
    return (
        len(fragment.info.stateful_inputs) == 1
        and bool(groups.groupings)
        and all(_is_among(value, keys) and is_hashable(type_of(value)) for value in groups.groupings)
    )


def _is_among(value: Node, keys: Sequence[Node | None]) -> bool:
    return any(key is not None and key.semanticEquals(value) for key in keys)


@dataclass
class ArrangedGroups:
    """The partial aggregates of one stateful input in the arrangement of the dataset.

    Attributes:
        arrangement: the arrangement.
        name: name of the state of the stateful input.
        scratch: a folder for temporary files.
        known: the arranged rows; None if there are none, or if they do not match the checkpoint.
        too_many: whether this pull affects so many groups that all of them are read.
    """

    arrangement: Arrangement
    name: str
    scratch: Path
    known: ArrangedRows | None
    too_many: bool = False

    def look_up(self, hashes: pa.ChunkedArray) -> pa.Table | None:
        """Return the partial aggregates of some groups, and perhaps of a few others; None if they cannot be looked up.

        Args:
            hashes: hashes of the groups.
        """
        if self.known is None:
            return None
        wanted = np.unique(fingerprints(hashes))
        if _are_most(len(wanted), self.known.num_rows):
            self.too_many = True
            return None
        with stage("look up"):
            rows = self.arrangement.look_up(self.name, wanted)
        if rows is None:
            self.known = None
        return rows

    def write_all(self) -> Path | None:
        """Write the partial aggregates of all groups to a file; None if there are none, or if they are damaged."""
        if self.known is None:
            return None
        path = self.scratch / f"all-{self.name}"
        with stage("look up"):
            if not self.arrangement.write_all(self.name, path):
                self.known = None
                return None
        return path

    def extend(self, known: ArrangedRows, new: pa.Table | None, only_appends: bool) -> ArrangedRows:
        """Add the partial aggregates of this pull; the result is empty if that fails.

        Args:
            known: those of earlier pulls.
            new: those of this pull, with their hashes.
            only_appends: whether all rows so far are appended.
        """
        earlier = replace(known, only_appends=only_appends)
        return earlier if new is None else self.arrangement.extended(earlier, entries_of(new))

    def make(self, schema: pa.Schema, parts: Iterator[Entries], only_appends: bool) -> ArrangedRows | None:
        """Arrange all partial aggregates; None if there is no room for them.

        Args:
            schema: schema of the partial aggregates.
            parts: the partial aggregates in the order of their hashes, one for each group (and zone, and value).
            only_appends: whether all rows so far are appended.
        """
        rebuilt = self.arrangement.rebuilt(ArrangedRows(self.name, only_appends), schema, parts)
        return rebuilt if rebuilt.runs else None

    def pays(self, count: int, touched: int) -> bool:
        """Return whether it pays to arrange the groups.

        Args:
            count: the number of groups.
            touched: how many of them this pull has affected.
        """
        before = self.arrangement.known(self.name)
        # If this pull has affected most of them, wait until one affects few again.
        too_many = 0 if before is None or not _are_most(touched, count) else before.too_many
        return worth_arranging.pays(count, too_many)


def _are_most(touched: int, count: int) -> bool:
    return touched > _MAX_NEW or worth_arranging.are_most(touched, count)

"""Partial results of many groups, looked up by group in the arrangement of the dataset (ADR 0048).

The checkpoint is written anew at each pull. With millions of groups, a pull of a few rows would write all of them
again. So they move to the arrangement: a pull looks up the groups that it touches, and adds its own partial results
beside those of earlier pulls. Those of a group are added up when they are looked up. As soon as there are twice as many
as groups, they are put together.
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
"""A pull that touches more groups than that had better read and write all: those that it touches are in memory."""


def can_be_arranged(pull: Pull, fragment: Fragment, stateful_input: StatefulInput, groups: PartialAggregate) -> bool:
    """Return whether the groups of new rows are all that a pull has to look at, and can be found by a hash.

    Args:
        pull: the pull.
        fragment: the fragment.
        stateful_input: its stateful input.
        groups: the partial results of that.
    """
    looks_at_time = stateful_input.complete_when or stateful_input.late_when or stateful_input.drop_when
    if pull.arrangement is None or looks_at_time or pull.correctable is not None or on_cluster(pull.catalyst.spark):
        return False
    # Beside other stateful inputs, or by fewer keys, a pull touches groups that it has no rows of.
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
    """The partial results of one stateful input in the arrangement of the dataset.

    Attributes:
        arrangement: the arrangement.
        name: of the stateful input.
        scratch: a folder for temporary files.
        known: what is arranged; None if nothing is, or nothing that the checkpoint goes with.
        too_many: whether this pull touches so many groups that all of them are read.
    """

    arrangement: Arrangement
    name: str
    scratch: Path
    known: ArrangedRows | None
    too_many: bool = False

    def look_up(self, hashes: pa.ChunkedArray) -> pa.Table | None:
        """The partial results of some groups, and perhaps of a few others; None if that cannot be.

        Args:
            hashes: of the groups.
        """
        if self.known is None:
            return None
        wanted = np.unique(fingerprints(hashes))
        if _are_most(len(wanted), self.known.num_rows):
            self.too_many = True
            return None
        with stage("look up"):
            found = self.arrangement.look_up(self.name, wanted)
        if found is None:
            self.known = None
        return found

    def everything(self) -> Path | None:
        """Write the partial results of all groups to a file; None if there are none, or if they are damaged."""
        if self.known is None:
            return None
        path = self.scratch / f"all-{self.name}"
        with stage("look up"):
            if not self.arrangement.write_all(self.name, path):
                self.known = None
                return None
        return path

    def extend(self, known: ArrangedRows, new: pa.Table | None, only_appends: bool) -> ArrangedRows:
        """The partial results with those of this pull; none if that cannot be.

        Args:
            known: those of before.
            new: those of this pull and their hashes.
            only_appends: whether all rows that there ever were are appended.
        """
        left = replace(known, only_appends=only_appends)
        return left if new is None else self.arrangement.extended(left, entries_of(new))

    def make(self, schema: pa.Schema, parts: Iterator[Entries], only_appends: bool) -> ArrangedRows | None:
        """All partial results, arranged; None if there is no room for them.

        Args:
            schema: of partial results.
            parts: the partial results in the order of their hashes, one for each group (and zones, and values).
            only_appends: whether all rows that there ever were are appended.
        """
        made = self.arrangement.made(ArrangedRows(self.name, only_appends), schema, parts)
        return made if made.runs else None

    def pays(self, count: int, touched: int) -> bool:
        """Return whether groups are worth being arranged.

        Args:
            count: how many there are.
            touched: how many of them this pull has touched.
        """
        before = self.arrangement.known(self.name)
        # A pull has touched most of them: until one touches few again.
        too_many = 0 if before is None or not _are_most(touched, count) else before.too_many
        return worth_arranging.pays(count, too_many)


def _are_most(touched: int, count: int) -> bool:
    return touched > _MAX_NEW or worth_arranging.are_most(touched, count)

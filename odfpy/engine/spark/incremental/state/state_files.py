"""The rows of a stateful input that are kept between pulls, in a few files.

A pull writes its new rows, together with the last files as long as these are not much larger, and leaves the others as
they are: so each row is written again a few times only, files are few, and each is larger than all after it. When all
of them are written as one, what matters no more is left out: what is kept is at most about twice what matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odfpy.engine.checkpoint import KeptRows
from odfpy.engine.spark.incremental.properties.plan_info import StatefulInput
from odfpy.engine.spark.incremental.state.changes import (
    Changes,
    multiset,
    net,
    net_rows,
    positional,
    wide_weight,
    with_wide_weight,
)
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.parallelism import gather

StateFile = tuple[Path, KeptRows]

_FEW_ROWS: Final = 20_000
"""To write so many again costs no more than to have another file."""

_ROWS_IN_ONE_PARTITION: Final = 500_000


@dataclass(frozen=True, slots=True)
class InputState:
    """The state of a stateful input between pulls.

    Attributes:
        name: of what is kept of the stateful input; its files have a number more.
        files: those that stay as they are.
        rows: what is added in another file, columns `c0`, `c1`... and a weight.
        is_append_only: whether all of these have the weight 1.
        again: how many of them have been kept before.
    """

    name: str
    files: tuple[StateFile, ...]
    rows: Node | None = None
    is_append_only: bool = True
    again: int = 0

    def in_few_partitions(self, catalyst: Catalyst) -> Node | None:
        """The rows in as many partitions as are of use, since each of them is a job of its own."""
        if self.rows is None:
            return None
        new = int(catalyst.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        plan = catalyst.coalesced(self.rows, new + self.again // _ROWS_IN_ONE_PARTITION)
        return with_wide_weight(catalyst, plan)

    @property
    def new_name(self) -> str:
        """Name of the file that is added."""
        numbers = [int(Path(rows.name).stem.rpartition("-")[2]) for _, rows in self.files]
        return f"{Path(self.name).stem}-{max(numbers, default=-1) + 1}.parquet"


def files_of(kept: Mapping[str, StateFile], name: str) -> tuple[StateFile, ...]:
    """The files of a stateful input, in the order in which they have come."""
    return tuple(file for found, file in kept.items() if found.rpartition("-")[0] == Path(name).stem)


def num_staying(files: Sequence[StateFile]) -> int:
    """Return how many files stay as they are when rows are added; the others are written again with these."""
    staying, rows = len(files), _FEW_ROWS
    while staying and files[staying - 1][1].count <= 2 * rows:
        staying -= 1
        rows += files[staying][1].count
    return staying


def best(clock: Clock, stateful_input: StatefulInput, rows: Changes) -> Node:
    """Those rows of a stateful input that can still be looked at: columns `c0`, `c1`... and a weight.

    They are known where a row that comes takes nothing away from those before it, as among the first of a partition.
    So one that is not among them never will be, unless rows are taken away. What has been taken away without being
    there is kept, since it takes away what comes later.

    Args:
        clock: the watermarks.
        stateful_input: the stateful input.
        rows: its rows.
    """
    catalyst = clock.catalyst
    if stateful_input.top_rows is None:
        return net(catalyst, rows)
    first = stateful_input.top_rows(multiset(catalyst, rows, stateful_input.columns), clock)
    one = wide_weight(catalyst, catalyst.integer(1))
    found = positional(catalyst, catalyst.project([*stateful_input.columns, one], first))
    if rows.is_append_only:
        return found
    missing = net_rows(catalyst, rows.plan)
    is_missing = catalyst.expression("LessThan", columns(missing)[-1], catalyst.integer(0))
    return gather(catalyst, catalyst.union([net_rows(catalyst, found), catalyst.filter(is_missing, missing)]))

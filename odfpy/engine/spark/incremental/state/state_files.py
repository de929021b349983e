"""Files with the stored rows of a stateful input, managed like the levels of a log-structured merge tree.

A pull merges its new rows with the newest files, as long as these are not much larger, into one file; the older files
stay unchanged. So each row is rewritten only a few times, and each file is larger than all newer ones together. When
all files are merged into one, rows that no longer matter are dropped: the state is at most about twice as large as the
rows that matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odfpy.engine.checkpoint import CheckpointFile
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

StateFile = tuple[Path, CheckpointFile]

_FEW_ROWS: Final = 20_000
"""Rewriting so many rows costs no more than another file does."""

_ROWS_IN_ONE_PARTITION: Final = 500_000


@dataclass(frozen=True, slots=True)
class InputState:
    """The state of a stateful input that the next pull reads.

    Attributes:
        name: name of the state; the names of its files append a number to it.
        files: the unchanged files.
        rows: rows for one more file: columns `c0`, `c1`... and a weight; None for no more file.
        is_append_only: whether all of these rows have the weight 1.
        num_rewritten: how many of these rows were in merged files.
    """

    name: str
    files: tuple[StateFile, ...]
    rows: Node | None = None
    is_append_only: bool = True
    num_rewritten: int = 0

    def in_few_partitions(self, catalyst: Catalyst) -> Node | None:
        """Return the rows, with their weights, in a number of partitions that suits their number."""
        if self.rows is None:
            return None
        new = int(catalyst.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        plan = catalyst.coalesced(self.rows, new + self.num_rewritten // _ROWS_IN_ONE_PARTITION)
        return with_wide_weight(catalyst, plan)

    @property
    def new_name(self) -> str:
        """The name of the additional file."""
        numbers = [int(Path(rows.name).stem.rpartition("-")[2]) for _, rows in self.files]
        return f"{Path(self.name).stem}-{max(numbers, default=-1) + 1}.parquet"


def files_of(files: Mapping[str, StateFile], name: str) -> tuple[StateFile, ...]:
    """Return the files of a stateful input, oldest first."""
    return tuple(file for file_name, file in files.items() if file_name.rpartition("-")[0] == Path(name).stem)


def num_unchanged(files: Sequence[StateFile]) -> int:
    """Return how many of the oldest files stay unchanged when rows are added; newer ones are merged with the rows."""
    staying, rows = len(files), _FEW_ROWS
    while staying and files[staying - 1][1].count <= 2 * rows:
        staying -= 1
        rows += files[staying][1].count
    return staying


def relevant(clock: Clock, stateful_input: StatefulInput, rows: Changes) -> Node:
    """Return the rows of a stateful input that can still matter: columns `c0`, `c1`... and a weight.

    Without `top_rows`, all rows can. With it, such as for the first rows of each partition, a row that is not among the
    first never will be, unless rows are retracted. A retraction without its row is stored, since it cancels the row
    when that comes.

    Args:
        clock: the watermarks.
        stateful_input: the stateful input.
        rows: its rows.
    """
    catalyst = clock.catalyst
    if stateful_input.top_rows is None:
        return net(catalyst, rows)
    first = stateful_input.top_rows(multiset(catalyst, rows, stateful_input.columns), clock)
    weight = wide_weight(catalyst, catalyst.integer(1))
    top_rows = positional(catalyst, catalyst.project([*stateful_input.columns, weight], first))
    if rows.is_append_only:
        return top_rows
    missing = net_rows(catalyst, rows.plan)
    is_missing = catalyst.expression("LessThan", columns(missing)[-1], catalyst.integer(0))
    return gather(catalyst, catalyst.union([net_rows(catalyst, top_rows), catalyst.filter(is_missing, missing)]))

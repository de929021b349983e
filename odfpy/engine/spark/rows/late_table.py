"""Late entries of the inputs' changelogs, excluded or selected when rows are read (`odfpy.engine.lateness.policy`).

Slices whose files show that they have none, which are most, are read unchanged. For the others, a small table has the
event time up to which entries are late, by ranges of offsets, and rows are joined with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.engine.lateness.policy import Late
from odfpy.engine.lateness.slices import late_slices
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.types import spark_schema
from odfpy.engine.spark.process.shared_files import read_parquet
from odfpy.engine.spark.rows.tables import Table

_BUCKET, _FIRST, _LAST, _INPUT, _LIMIT = "bucket", "first", "last", "input", "limit"
_MAX_SHIFT: Final = 62
_FILES: Final = count()
"""Numbers of the files with ranges, which may be several in one folder."""


@dataclass(frozen=True, slots=True)
class LateRange:
    """Offsets of an input, and from which times on entries with these are not late.

    Attributes:
        input: number of the input.
        first: the first offset.
        last: the last one.
        limits: an entry is late if any of its times is at or before the limit for it; in microseconds.
    """

    input: int
    first: int
    last: int
    limits: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class LateTable:
    """Ranges with late entries, as a plan that rows can be joined with.

    Attributes:
        plan: a row for each bucket of offsets that a range has a part in.
        shift: bits of an offset that do not count for its bucket.
    """

    catalyst: Catalyst
    plan: Node
    shift: int

    @classmethod
    def of(cls, catalyst: Catalyst, ranges: Sequence[LateRange], scratch: Path) -> LateTable:
        """Write ranges down.

        Args:
            catalyst: the session.
            ranges: at least one range, all with the same number of limits.
            scratch: a folder for temporary files.
        """
        mean = sum(late_range.last + 1 - late_range.first for late_range in ranges) // len(ranges)
        shift = min(mean.bit_length(), _MAX_SHIFT)
        rows = [
            (bucket, late_range)
            for late_range in ranges
            for bucket in range(late_range.first >> shift, (late_range.last >> shift) + 1)
        ]
        table_columns: dict[str, list[int | None]] = {
            _BUCKET: [bucket for bucket, _ in rows],
            _FIRST: [late_range.first for _, late_range in rows],
            _LAST: [late_range.last for _, late_range in rows],
            _INPUT: [late_range.input for _, late_range in rows],
        }
        table_columns |= {
            f"{_LIMIT}{at}": [late_range.limits[at] for _, late_range in rows] for at in range(len(ranges[0].limits))
        }
        table = pa.table({name: pa.array(values, pa.int64()) for name, values in table_columns.items()})
        path = scratch / f"late-{next(_FILES)}.parquet"
        pq.write_table(table, path)
        schema = spark_schema(table.schema, "late entries")
        return cls(catalyst, catalyst.plan(read_parquet(catalyst.spark, schema, [str(path)])), shift)

    def split(self, plan: Node, times: Sequence[Node], offset: Node, number: Node, *, late: bool) -> Node:
        """Return the late rows of a plan, or the others.

        Args:
            plan: the rows.
            times: expressions over its columns, one for each limit.
            offset: the same for the offset.
            number: the same for the number of the input.
            late: whether to return the late rows.
        """
        catalyst, build = self.catalyst, Builder(self.catalyst)
        bucket, first, last, wanted, *limits = columns(self.plan)
        place = build.cast(offset, "bigint")
        shifted = catalyst.expression("ShiftRight", place, catalyst.integer(self.shift))
        same = [
            catalyst.expression("EqualTo", shifted, bucket),
            catalyst.expression("EqualTo", build.cast(number, "bigint"), wanted),
            catalyst.expression("GreaterThanOrEqual", place, first),
            catalyst.expression("LessThanOrEqual", place, last),
        ]  # fmt: skip
        behind = [
            catalyst.expression(
                "LessThanOrEqual", catalyst.expression("UnixMicros", build.cast(time, "timestamp")), limit
            )
            for time, limit in zip(times, limits, strict=True)
        ]
        same.append(reduce(lambda left, right: catalyst.expression("Or", left, right), behind))
        condition = reduce(lambda left, right: catalyst.expression("And", left, right), same)
        join = catalyst.semi_join if late else build.anti_join
        return join(plan, self.plan, condition)


def chosen(catalyst: Catalyst, late: Late, table: Table, plan: Node, scratch: Path) -> Node:
    """Return the rows of an input that a transform is to see.

    Args:
        catalyst: the session.
        late: the policy for late rows.
        table: the input, with the slices that are read.
        plan: rows of the input, with the same columns and names.
        scratch: a folder for temporary files.
    """
    if late is Late.CORRECTED or not table.data_paths:
        return plan
    slices = late_slices(table.arrivals, frozenset(table.data_paths), table.vocab)
    ranges = [LateRange(0, late_table.rows.start, late_table.rows.end, (late_table.limit,)) for late_table in slices]
    if not ranges:
        return catalyst.filter(catalyst.boolean(False), plan) if late is Late.ONLY else plan
    by_name = {column.name(): column for column in columns(plan)}
    time, offset = by_name[table.vocab.event_time_column], by_name[table.vocab.offset_column]
    late_table = LateTable.of(catalyst, ranges, scratch)
    return late_table.split(plan, [time], offset, catalyst.integer(0), late=late is Late.ONLY)

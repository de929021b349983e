"""Requests for a batch comparison, and answers; without heavy imports, so that commands can load it."""

from __future__ import annotations

from enum import Enum
from typing import Final

from odfpy.data.scalars import U64
from odfpy.dataset.transform import Transform, TransformSql
from odfpy.engine.contract import OutputSoFar, TransformRequest
from odfpy.values import dataclass

JOB: Final = "odfpy.engine.spark.batch.job:compare"
"""The function that answers a `BatchRequest`; see `odfpy.engine.jobs`."""

RELATIVE: Final = 1e-9
"""Two fractions are equal if they differ by no more than this part of the greater one..."""

ABSOLUTE: Final = 1e-12
"""...or by this part of the greatest value of their column: sums that cancel out leave a remainder."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request to compare an output with what the query says about its inputs.

    Attributes:
        run: the transform, as one run over all rows that the inputs had at the moment in question. `query_changed`
            tells whether some of the output comes from earlier queries.
        output: the output of the dataset at that moment.
        most: the maximum number of listed differences; all are counted.
    """

    run: TransformRequest
    output: OutputSoFar
    most: U64


def obstacle_of(transform: Transform) -> str | None:
    """Return why a transform can never be compared, whatever its inputs; None if that depends on the inputs."""
    if isinstance(transform, TransformSql) and transform.engine.lower() == "spark":
        return None
    return "its engine makes rows of entries of the inputs' changelogs, not of what they amount to"


class Kind(Enum):
    """A kind of difference between an output and the expected one."""

    MISSING = "missing"
    EXTRA = "extra"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference. Rows are JSON objects as text, with the data columns.

    Attributes:
        key: the columns that identify the row; empty if the dataset has no key.
        expected: the row of the batch; None if it has none.
        found: the row of the output; None if it has none.
        columns: the columns that differ, where both rows exist.
        count: by how many such rows the counts differ.
    """

    kind: Kind
    key: str
    expected: str | None
    found: str | None
    columns: tuple[str, ...] = ()
    count: U64 = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAnswer:
    """The result of a comparison.

    Attributes:
        obstacle: why the two cannot be compared; the other fields are then empty.
        found: the number of rows in the current state of the output.
        expected: the number of rows of the batch.
        missing: how many rows the output lacks.
        extra: how many rows the output has too many.
        differing: how many rows have the same key but other values.
        differences: the first of them, in the order of the key, or of all columns.
        taken_back: how many rows inputs retract without having them, where it matters: differences may then be due to
            these.
        remarks: notes for the interpretation of differences, one sentence each.
    """

    obstacle: str | None = None
    found: U64 = 0
    expected: U64 = 0
    missing: U64 = 0
    extra: U64 = 0
    differing: U64 = 0
    differences: tuple[Difference, ...] = ()
    taken_back: U64 = 0
    remarks: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """True if nothing differs."""
        return not (self.missing or self.extra or self.differing)

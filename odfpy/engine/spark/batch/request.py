"""Requests to the batch and its answers; light, so that commands can load it."""

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
"""Two fractions are the same if they differ by no more than this part of the greater one..."""

ABSOLUTE: Final = 1e-12
"""...or than this part of the greatest value of their column: sums that come to nothing leave a rest."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Asks whether an output amounts to what the query says of its inputs.

    Attributes:
        run: the transform, as one run over all rows that the inputs had at the moment in question. `query_changed` says
            whether some of the output was made by other queries.
        output: what the dataset had given by then.
        most: so many differences are listed, all are counted.
    """

    run: TransformRequest
    output: OutputSoFar
    most: U64


def obstacle_of(transform: Transform) -> str | None:
    """Why nothing can be compared with a transform, whatever its inputs are; None if that remains to be seen."""
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
    """A difference. Rows are JSON objects as text, with the columns of data.

    Attributes:
        key: the columns by which the row is known; none if the dataset has no key.
        expected: the row that the batch gives; None if it gives none.
        found: the row that the output amounts to; None if there is none.
        columns: those that differ, where both are there.
        count: how many such rows there are too few or too many.
    """

    kind: Kind
    key: str
    expected: str | None
    found: str | None
    columns: tuple[str, ...] = ()
    count: U64 = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAnswer:
    """The outcome of a comparison.

    Attributes:
        obstacle: why the two cannot be compared; then there is nothing else.
        found: rows that the output amounts to.
        expected: rows that the batch gives.
        missing: how many rows the output lacks.
        extra: how many it should not have.
        differing: how many rows of a key have other values.
        differences: the first of them, in the order of the key, or of all columns.
        taken_back: rows that inputs take back without having them, where it matters: then differences may be due to
            these.
        remarks: what has to be known to judge the differences, one sentence each.
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

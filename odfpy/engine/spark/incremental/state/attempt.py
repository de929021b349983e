"""The results of an attempt at a pull, up to the point where it turned out to need history.

The same request comes again with them. The fragments that were done by then are not run a second time: what changes in
them is the same, whether rows of before come from what was kept or from history.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.engine.contract import TransformRequest

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_MAX_BYTES: Final = 1 << 20
_last: list[Attempt] = []
"""Of this process, at most one: whatever comes next is the same request, or this one was given up."""


@dataclass(frozen=True, slots=True)
class FinishedFragment:
    """The changes of a fragment: a Parquet file, its schema, and how many rows it has."""

    content: bytes
    schema: StructType
    count: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """A pull that may turn out to need history.

    Attributes:
        request: the request, without history.
        done: the fragments that are done, by number of the source that they are.
        late: those of which it has turned out that something comes late.
    """

    request: TransformRequest
    done: dict[int, FinishedFragment] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)

    @classmethod
    def begun(cls, request: TransformRequest) -> Attempt:
        """A pull, with what an attempt just before has found."""
        plain = _without_history(request)
        before = _last.pop() if _last else None
        return before if before is not None and before.request == plain else cls(plain)

    def add(self, source: int, path: Path, schema: StructType, count: int) -> None:
        """Remember a fragment, if that takes little memory; it has no file where it has no rows.

        Args:
            source: number of the source that the changes are.
            path: the file.
            schema: the schema of the rows.
            count: number of rows.
        """
        if source not in self.done and (count == 0 or path.stat().st_size <= _MAX_BYTES):
            self.done[source] = FinishedFragment(path.read_bytes() if count else b"", schema, count)

    def interrupt(self) -> None:
        """Leave what has been found to the next attempt."""
        _last[:] = [self]


def _without_history(request: TransformRequest) -> TransformRequest:
    inputs = tuple(replace(source, history_paths=None, arrivals=()) for source in request.query_inputs)
    return replace(request, query_inputs=inputs, output_so_far=None)

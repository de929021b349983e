"""Attempts at a pull: the finished fragments of a pull that stopped because it needs history.

The same request is then repeated with history. Finished fragments are not run again: their changes are the same whether
earlier rows come from state or from history.
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
"""The last attempt of this process, at most one; a request for something else discards it."""


@dataclass(frozen=True, slots=True)
class FinishedFragment:
    """The changes of a finished fragment: a Parquet file, its schema, and its number of rows."""

    content: bytes
    schema: StructType
    count: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """A pull that may turn out to need history.

    Attributes:
        request: the request, without history.
        done: the finished fragments, by number of the source that they form.
        late: the fragments that have late rows.
    """

    request: TransformRequest
    done: dict[int, FinishedFragment] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)

    @classmethod
    def begun(cls, request: TransformRequest) -> Attempt:
        """Begin an attempt, or continue the previous one if it was for the same request."""
        plain = _without_history(request)
        before = _last.pop() if _last else None
        return before if before is not None and before.request == plain else cls(plain)

    def add(self, source: int, path: Path, schema: StructType, count: int) -> None:
        """Remember a finished fragment, if it takes little memory.

        Args:
            source: number of the source that the changes form.
            path: the file with the changes, if there are any.
            schema: the schema of the rows.
            count: number of rows.
        """
        if source not in self.done and (count == 0 or path.stat().st_size <= _MAX_BYTES):
            self.done[source] = FinishedFragment(path.read_bytes() if count else b"", schema, count)

    def interrupt(self) -> None:
        """Keep the results so far for the next attempt."""
        _last[:] = [self]


def _without_history(request: TransformRequest) -> TransformRequest:
    inputs = tuple(replace(source, history_paths=None, arrivals=()) for source in request.query_inputs)
    return replace(request, query_inputs=inputs, output_so_far=None)

"""Recomputing an answer from its parts: in the same way when it is stored and when it is verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from typing_extensions import Self

from odfpy.data.rows.rows_hash import RowsHasher
from odfpy.federation.evidence.rows import kept_batch, kept_schema
from odfpy.federation.execution.execute import rows_of_files
from odfpy.federation.execution.plan import WebPlan

if TYPE_CHECKING:
    from odfpy.engine.cancellation import CancellationToken


class AnswerRows:
    """The rows of an answer, computed from the files of its parts; a context manager that stops the computation at its
    end.

    Attributes:
        schema: their columns.
    """

    def __init__(
        self, plan: WebPlan, files: Mapping[str, Sequence[Path]], memory: int, control: CancellationToken
    ) -> None:
        """Start the computation.

        Args:
            plan: the query.
            files: for each fragment, the files of its parts, in order.
            memory: bytes that it may take.
            control: lets another thread cancel it.

        Raises:
            OdfError: the rest of the query cannot be run.
        """
        self._rows = rows_of_files(plan, files, memory, control)
        self.schema: pa.Schema = kept_schema(self._rows.schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield their batches, once."""
        return map(kept_batch, self._rows)


def counted(rows: Iterable[pa.RecordBatch]) -> tuple[int, str]:
    """Return how many rows there are, and their hash without their order.

    Args:
        rows: in batches.
    """
    with RowsHasher() as hasher:
        for batch in rows:
            hasher.update(batch)
        return hasher.num_rows, str(hasher.finish())

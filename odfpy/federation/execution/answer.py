"""Answers of a web: rows, the relays that supplied them, and the relays that are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow as pa
from typing_extensions import Self

from odfpy.engine.row_stream import RowStream
from odfpy.federation.execution.parts import ReadPart
from odfpy.federation.execution.plan import StartedQuery
from odfpy.federation.relay.question import MissingRelay

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class WebAnswer:
    """The answer to a query: an iterable of Arrow batches. It holds temporary files until it is closed.

    Attributes:
        asked: the started query.
        query: id of the query.
        schema: its columns.
        relays: names of the relays that have supplied rows or were queried for rows; once for each of their sources.
        missing: relays whose rows are not in it.
        parts: the parts that were read, with their sizes.
    """

    def __init__(
        self,
        asked: StartedQuery,
        rows: RowStream,
        relays: tuple[str, ...],
        missing: tuple[MissingRelay, ...],
        parts: Sequence[ReadPart],
        resources: ExitStack,
    ) -> None:
        self.asked = asked
        self.query = asked.query
        self.schema: pa.Schema = rows.schema
        self.relays = relays
        self.missing = missing
        self.parts = tuple(parts)
        self._rows = rows
        self._resources = resources

    @property
    def is_complete(self) -> bool:
        """Return whether all relays have responded."""
        return not self.missing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete its files, and cancel what is still running."""
        self._resources.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield its batches, once."""
        return iter(self._rows)

    def to_arrow(self) -> pa.Table:
        """Return all rows that have not been consumed yet."""
        return pa.Table.from_batches(list(self), schema=self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return the same as a pandas DataFrame."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return the same as a Polars DataFrame; Polars must be installed."""
        from odfpy.extras import needs_extra

        with needs_extra("notebook", "Polars"):
            import polars as pl
        frame = pl.from_arrow(self.to_arrow())
        return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()

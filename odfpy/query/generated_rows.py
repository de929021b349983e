"""Answers without an engine: rows read directly from slices, and totals from the chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from odfpy.engine.cancellation import CancellationToken
from odfpy.query.log_query import LogQuery
from odfpy.query.query import Query
from odfpy.query.scan import Scan
from odfpy.query.slice_rows import scan_of

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.engine.scans import ScanRequest
    from odfpy.query.resolve import Resolved


class GeneratedRows:
    """Rows that are generated as they are read.

    Attributes:
        schema: schema of the rows.
    """

    def __init__(
        self,
        schema: pa.Schema,
        make: Callable[[], Iterator[pa.RecordBatch]],
        query: Query,
        control: CancellationToken,
        *,
        is_cut: bool = False,
    ) -> None:
        """Create a stream; rows are only generated as they are read.

        Args:
            schema: schema of the rows.
            make: generates the rows.
            query: the query, which limits the rows.
            control: cancels the stream.
            is_cut: whether `make` already limits the number of rows.
        """
        self.schema = schema
        self._make = make
        self._control = control
        self._skip, self._limit = (0, None) if is_cut else (query.skip, query.limit)
        self._max_bytes = query.max_bytes

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows.

        Raises:
            QueryCancelled, QueryTimedOut: the query was stopped.
            ResultTooLarge: the rows have more bytes than allowed.
            IntegrityError, ObjectNotFound: a slice cannot be read.
        """
        from odfpy.engine.ipc import within

        self._control.check()
        for batch in within(self._make(), self._skip, self._limit, self._max_bytes):
            yield batch
            self._control.check()

    def close(self) -> None:
        """Stop generating rows."""


def totals(simple: LogQuery, resolved: Resolved) -> tuple[pa.Schema, pa.RecordBatch]:
    """Return the requested totals, from the state of the chain."""
    import pyarrow as pa

    last = resolved.state.last_offset
    values = {"count": resolved.state.num_records, "max": last, "min": None if last is None else 0}
    is_known = {"count": False, "max": True, "min": True}
    schema = pa.schema([pa.field(name, pa.int64(), nullable=is_known[what]) for what, name in simple.totals])
    arrays = [pa.array([values[what]], pa.int64()) for what, _ in simple.totals]
    return schema, pa.record_batch(arrays, schema=schema)


def output_schema(simple: LogQuery, source: pa.Schema, dialect: str) -> pa.Schema | None:
    """Return the schema of an engine's answer in a dialect; None if it would reject the query, or a column does not
    exist.

    Args:
        simple: the query.
        source: the schema of the table.
        dialect: name of the dialect.
    """
    import pyarrow as pa

    wanted = simple.columns or tuple((name, name) for name in source.names)
    if any(source.names.count(name) != 1 for name, _ in wanted):
        return None
    fields = [source.field(name).with_name(shown) for name, shown in wanted]
    if dialect == "spark":
        from odfpy.engine.spark.rows.arrow_types import handed_type

        types = [handed_type(field.type) for field in fields]
        if not all(types):
            return None
        fields = [field.with_type(kind).with_nullable(True) for field, kind in zip(fields, types, strict=True)]
    return pa.schema(fields)


def rows_of_slices(
    scan: Scan, simple: LogQuery, schema: pa.Schema, rows: tuple[int, int], max_bytes: int | None
) -> ScanRequest:
    """Return the request for an interval of offsets, with the columns of a schema.

    Args:
        scan: the slices to read.
        simple: the query.
        schema: the schema of the answer.
        rows: offsets of the first and the last row.
        max_bytes: maximum bytes of a batch, None for no limit.
    """
    names = [name for name, _ in simple.columns] if simple.columns else schema.names
    return scan_of(
        scan.resolved.name,
        scan.resolved.dataset.layout.data,
        scan.slices,
        scan.cut.state.vocab,
        rows,
        names,
        schema,
        is_reversed=simple.descending,
        max_bytes=max_bytes,
    )

"""The input rows of result rows: the query's own plan, extended by identifiers.

DataFusion runs queries row by row only, so each result row comes from exactly one input row. The plan is rebuilt
operator by operator, each with two more columns: the offset of the row in its input, and the number of the reference to
the input through which it came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.vocabulary import OperationType
from odfpy.engine.datafusion.columns import column_origins, unnest_columns
from odfpy.engine.datafusion.failures import datafusion_errors
from odfpy.engine.datafusion.plan import operator
from odfpy.engine.datafusion.session import quoted, rows_in_order
from odfpy.engine.datafusion.transform import Analysis, Reading, analyze_transform, operation_types, readings
from odfpy.engine.output import final_columns
from odfpy.engine.traced_rows import SourceRow, TraceTarget, keys_of, write_answer
from odfpy.engine.tracing import TraceRequest, TraceResponseSuccess
from odfpy.errors import UnsupportedQuery

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext

_OFFSET: Final = "__odf_offset"
_BRANCH: Final = "__odf_branch"
_HIDDEN: Final = (_OFFSET, _BRANCH)


def trace(request: TraceRequest) -> TraceResponseSuccess:
    """Return the input rows that output rows are derived from.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: the queries are at fault.
    """
    inputs = request.query_inputs
    analysis = analyze_transform(request.transform, request.vocab, inputs, request.recorded_schema)
    wanted = TraceTarget.read(request.wanted_path, analysis.layout)
    offsets = {source.query_alias: source.vocab.offset_column for source in inputs}
    # In the order of the output: of equal rows, the first origin is that of the first row.
    ways: defaultdict[int, list[Sequence[SourceRow]]] = defaultdict(list)
    for reading in readings(request.transform, inputs, analysis):
        with datafusion_errors(reading.text):
            frame = _Carrier(reading.context, offsets).carried(reading.frame.logical_plan())
            for rows in rows_in_order(frame):
                for number, source in _find(wanted, rows, reading, analysis):
                    ways[number].append([source])
    written = write_answer(request.output_path, ways)
    names = [source.query_alias for source in inputs]
    return TraceResponseSuccess(written, column_origins(analysis.plan, names, analysis.layout))


def _find(
    wanted: TraceTarget, rows: pa.RecordBatch, reading: Reading, analysis: Analysis
) -> Iterator[tuple[int, SourceRow]]:
    """Yield the wanted rows by their numbers, with their origins."""
    names = rows.schema.names[: -len(_HIDDEN)]
    kinds = operation_types(rows.select(names), analysis.layout)
    beside = pa.record_batch([kinds, *rows.columns[-len(_HIDDEN) :]], names=["kind", *_HIDDEN])
    columns = final_columns(rows.select(names), analysis.layout)
    for at, values in enumerate(wanted.rows.columns):
        if not pa.types.is_nested(values.type) and not pa.types.is_floating(values.type):
            is_wanted = pc.is_in(columns[at], value_set=values.combine_chunks())
            columns, beside = [column.filter(is_wanted) for column in columns], beside.filter(is_wanted)
    for key, row in zip(keys_of(columns), beside.to_pylist(), strict=True):
        for number in wanted.numbers.get((key, OperationType(row["kind"]).weight), ()):
            yield number, (reading.number, row[_OFFSET], row[_BRANCH])


class _Carrier:
    """A builder of the plan of a query, extended by identifiers.

    Attributes:
        offsets: column with the offsets of each input.
    """

    def __init__(self, context: SessionContext, offsets: dict[str, str]) -> None:
        self.context = context
        self.offsets = offsets
        self._branches = 0

    def carried(self, plan: Any) -> DataFrame:
        """Return the rows of a plan, followed by the hidden columns.

        Raises:
            UnsupportedQuery: rebuilding the plan without them would not give the same plan.
        """
        if self._built(plan, hidden=False).logical_plan() != plan:
            raise UnsupportedQuery("Rows cannot be traced through this query", hint="Write it for `engine: spark`.")
        return self._built(plan, hidden=True)

    def _built(self, plan: Any, *, hidden: bool) -> DataFrame:
        from datafusion.expr import Expr

        name, variant = operator(plan)
        if name == "TableScan":
            return self._scan(variant, hidden=hidden)
        first, *others = (self._built(below, hidden=hidden) for below in plan.inputs())
        match name:
            case "Projection":
                return first.select(*map(Expr, variant.projections()), *(self._hidden(first) if hidden else ()))
            case "Filter":
                return first.filter(Expr(variant.predicate()))
            case "SubqueryAlias":
                return first.alias(quoted(variant.alias()))
            case "Union":
                for other in others:
                    first = first.union(other)
                return first
            case "Unnest":
                unnested = unnest_columns(plan)
                lists = [(column.source, column.column, column.depth) for column in unnested if column.depth]
                return first.unnest_columns(
                    *dict.fromkeys(column.source for column in unnested), preserve_nulls=False, recursions=lists
                )
        raise UnsupportedQuery(f"Rows are not traced through {name}", hint="Write it for `engine: spark`.")

    def _scan(self, scan: Any, *, hidden: bool) -> DataFrame:
        from datafusion import literal

        name = str(scan.table_name())
        frame = self.context.table(quoted(name))
        if not hidden:
            return frame
        (offset,) = frame.find_qualified_columns(self.offsets[name])
        own = frame.find_qualified_columns(*frame.schema().names)
        branch = literal(self._branches)
        self._branches += 1
        return frame.select(*own, offset.alias(_OFFSET), branch.alias(_BRANCH))

    @staticmethod
    def _hidden(frame: DataFrame) -> list[Any]:
        return list(frame.find_qualified_columns(*_HIDDEN))

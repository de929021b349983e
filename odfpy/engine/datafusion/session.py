"""DataFusion sessions in which only functions of their arguments exist."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.schemas.arrow import plain_schema
from odfpy.data.schemas.retype import plain_batch
from odfpy.engine.datafusion.ethereum_functions import register_ethereum_functions
from odfpy.engine.datafusion.extremes import are_wrong, with_own_extremes
from odfpy.engine.datafusion.failures import REFUSED
from odfpy.engine.datafusion.json_functions import register_json_functions
from odfpy.engine.datafusion.null_conditions import misreads_nulls
from odfpy.errors import EngineUnavailable, UnsupportedQuery

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext


_MAX_LEVELS: Final = 200
"""How deeply a query may nest. DataFusion's own 50 are few; from several hundred on, it breaks down."""

_used_in: int | None = None
"""The process in which sessions were created: their threads do not exist in a fork of it."""


def new_session(*, deterministic: bool) -> SessionContext:
    """Return a session in which rows keep their order: one partition, so that nothing runs in parallel.

    Args:
        deterministic: leave out the functions that are not.

    Raises:
        EngineUnavailable: this process was forked from one with sessions; a query would wait for ever.
    """
    global _used_in  # noqa: PLW0603  the library keeps its threads in a global, too
    if _used_in not in (None, os.getpid()):
        raise EngineUnavailable(
            "DataFusion does not work in a process that was forked after it had started",
            hint="Use the start method spawn: multiprocessing.get_context('spawn').",
        )
    _used_in = os.getpid()
    from datafusion import SessionConfig, SessionContext

    config = SessionConfig({"datafusion.sql_parser.recursion_limit": str(_MAX_LEVELS)}).with_target_partitions(1)
    # When DataFusion 55 exchanges the sides of a join, it pushes conditions below it by the names of columns. Where
    # both sides have a name, outer joins lose or get rows then: https://github.com/apache/datafusion/issues/21246
    config = config.set("datafusion.optimizer.join_reordering", "false")
    # Names are case-sensitive, as in the reference implementation: `Id` without quotes is not `id`.
    context = SessionContext(config.set("datafusion.sql_parser.enable_ident_normalization", "false"))
    register_json_functions(context)
    register_ethereum_functions(context)
    if deterministic:
        for name in REFUSED:
            context.deregister_udf(name)
    return context


def quoted(name: str) -> str:
    """Return a name exactly as it is, dots and capitals included."""
    return '"' + name.replace('"', '""') + '"'


def name_rows(context: SessionContext, name: str, schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> None:
    """Register rows as a table.

    Args:
        context: the session.
        name: name of the table.
        schema: the schema of the rows.
        batches: the rows.
    """
    rows = list(batches) or [pa.RecordBatch.from_pylist([], schema=schema)]
    context.register_record_batches(quoted(name), [rows])


def run_query(context: SessionContext, query: str) -> DataFrame:
    """Return the result of one query, not computed yet; statements that change something are refused.

    Raises:
        Exception: any exception of DataFusion; use it inside `datafusion_errors`.
    """
    from datafusion import SQLOptions

    options = SQLOptions().with_allow_ddl(allow=False).with_allow_dml(allow=False).with_allow_statements(allow=False)
    frame = context.sql_with_options(query, options)
    plan = frame.optimized_logical_plan()
    if misreads_nulls(plan):
        context.remove_optimizer_rule("push_down_filter")
        frame = context.sql_with_options(query, options)
        plan = frame.optimized_logical_plan()
    if not are_wrong(plan):
        return frame
    try:
        renamed = context.sql_with_options(with_own_extremes(query), options)
        is_right = not are_wrong(renamed.optimized_logical_plan())
    except Exception:  # noqa: BLE001 - whatever it is: the original query could be planned
        is_right = False
    if not is_right:
        raise UnsupportedQuery(
            "DataFusion would find a wrong min or max of fractions here, and no other form of it was found",
            hint="Give min(...) and max(...) names by AS, and name them so further on; or ask Spark.",
        )
    pairs = zip(renamed.schema().names, frame.schema().names, strict=True)
    names = [(name, wanted) for name, wanted in pairs if name != wanted]
    for name, wanted in names:
        renamed = renamed.with_column_renamed(quoted(name), wanted)
    return renamed


def rows_in_order(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a result in plain layout, partition by partition: a UNION ALL has one per part."""
    schema = plain_schema(frame.schema())
    for partition in frame.execute_stream_partitioned():
        for batch in partition:
            rows = batch.to_pyarrow()
            if rows.num_rows:
                yield plain_batch(rows, schema)

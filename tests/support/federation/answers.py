"""Answers: by the fragments of a question, as relays and sources compute them; and by duckdb over all visible cells."""

from __future__ import annotations

import atexit
import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

import datafusion
import duckdb
import pyarrow as pa
import sqlglot
from support.federation.transformations import transformed
from support.federation.worlds import ATTRIBUTES, Hop, Source, World

from odfpy.federation.sql.expressions import Expression
from odfpy.federation.sql.fragment import Fragment
from odfpy.federation.sql.mapping import rewritten
from odfpy.federation.sql.source import source_sql
from odfpy.federation.sql.split import split
from odfpy.federation.sql.splitting.own_names import with_own_names


@dataclass
class Answer:
    """The answer to a question.

    Attributes:
        table: the answer.
        moved: the rows that left the sources.
    """

    table: pa.Table
    moved: list[pa.Table] = field(default_factory=list)


def answered(world: World, question: str, dialect: str = "datafusion") -> Answer:
    """Answer a question with fragments."""
    parts = split(question, world.entities, dialect)
    moved = []
    tables = {}
    for name, fragment in parts.fragments.items():
        answers = [answer_of(source, fragment) for source in world.sources[fragment.entity]]
        moved += answers
        tables[name] = pa.concat_tables([fragment.schema.empty_table(), *answers])
    if dialect == "spark":
        return Answer(run_duckdb(sqlglot.transpile(parts.rest, read="spark", write="duckdb")[0], tables), moved)
    return Answer(run_datafusion(with_own_names(parts.rest), tables), moved)


def answer_of(source: Source, fragment: Fragment) -> pa.Table:
    """Return the answer of a source to a fragment that is sent through its relays."""
    sql = sql_for(source, fragment)
    run = run_datafusion if source.engine == "datafusion" else run_duckdb
    return cast_to(run(sql, {"raw": source.table}), fragment.schema)


def sql_for(source: Source, fragment: Fragment) -> str:
    """Return the SQL for a source, of a fragment that passes all relays as JSON."""
    *between, last = source.hops
    for hop in between:
        sent = rewritten(fragment, hop.entity, expressions_of(hop))
        fragment = Fragment.parse(json.loads(json.dumps(sent.to_json())), hop.schema)
    return source_sql(
        fragment,
        expressions_of(last),
        'SELECT * FROM "raw"',
        source.view,
        ATTRIBUTES,
        source.engine,
        schema=source.schema,
    )


def expressions_of(hop: Hop) -> dict[str, Expression]:
    return {name: transformed(step.template, column) for name, (column, step) in hop.mapping.items()}


def expected(world: World, question: str) -> pa.Table:
    """Return the answer of duckdb over all that the asker may see."""
    return run_duckdb(question, {name: world.visible(name) for name in world.entities})


def run_duckdb(sql: str, tables: dict[str, pa.Table]) -> pa.Table:
    connection = _connection()
    for name, table in tables.items():
        connection.register(name, table)
    try:
        return connection.sql(sql).to_arrow_table()
    finally:
        for name in tables:
            connection.unregister(name)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """Return a shared connection: connecting takes longer than these queries."""
    connection = duckdb.connect(config={"threads": 1})
    atexit.register(_connection.cache_clear)
    return connection


def run_datafusion(sql: str, tables: dict[str, pa.Table]) -> pa.Table:
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    for name, table in tables.items():
        context.register_record_batches(f'"{name}"', [table.to_batches() or [_nothing(table.schema)]])
    return context.sql(sql).to_arrow_table()


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def cast_to(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast the rows to the requested types: a source may use other layouts."""
    assert table.schema.names == schema.names
    return pa.table([table.column(at).cast(one.type) for at, one in enumerate(schema)], schema=schema)


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Return the rows of an answer without order, numbers without their types, doubles to ten digits."""
    columns = [[_plain(value) for value in table.column(at).to_pylist()] for at in range(table.num_columns)]
    return Counter(zip(*columns, strict=True)) if columns else Counter()


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return ("b", value)
    if isinstance(value, int | Decimal):
        value = float(value) if abs(value) < 2**53 else value
    if isinstance(value, float):
        if math.isnan(value):
            return ("n", "nan")
        return ("n", value if math.isinf(value) else float(f"{value:.10g}") + 0.0)
    return value


def cells(tables: Iterable[pa.Table]) -> int:
    """Return how many values left the sources."""
    return sum(table.num_rows * table.num_columns for table in tables)


def all_rows(reader: Any) -> pa.Table:
    """Return all rows of a part that is read at a relay."""
    return pa.Table.from_batches([chunk.data for chunk in reader if chunk.data is not None], reader.schema)

"""The SQL of every merge strategy means the same to duckdb and to Spark."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from support.ingest.ingested import TIME

from odfpy.engine.spark.process.session import request_session
from odfpy.ingest.merge import MERGES, Merge, MergeShape
from odfpy.ingest.merge.base import order_clause, repeated_keys
from odfpy.ingest.merge.snapshot import SnapshotMerge
from odfpy.state.database import database

SHAPES = [
    MergeShape(keys=2, compared=4, compares_event_time=True, carried=2),
    MergeShape(keys=1, compared=0, compares_event_time=True, carried=1),
    MergeShape(keys=1, compared=1, compares_event_time=False),
]

TYPES = {
    "pos": pa.int64(),
    "op": pa.int32(),
    "t": TIME,
    "given": pa.bool_(),
    "k0": pa.float64(),
    "k1": pa.string(),
    "v0": pa.float64(),
    "v1": pa.list_(pa.float64()),
    "v2": pa.struct([("x", pa.float64()), ("y", pa.string())]),
    "v3": pa.list_(pa.struct([("x", pa.int32())])),
    "c0": pa.string(),
    "c1": pa.list_(pa.float64()),
}

FLOATS = [None, 0.0, -0.0, float("nan"), 1.5]


def _value(role: str, rng: random.Random) -> Any:
    def floats() -> list[float | None] | None:
        return rng.choice([None, [], *([rng.choice(FLOATS)] for _ in range(3))])

    match role:
        case "t":
            return datetime(2024, 1, rng.randint(1, 2), tzinfo=timezone.utc)
        case "op":
            return rng.choice([0, 0, 0, 1, 2, 3])
        case "given":
            return rng.random() < 0.7
        case "k0":
            return rng.choice([0.0, -0.0, 1.0, 2.0, 3.0, 4.0, 5.0, float("nan")])
        case "k1":
            return rng.choice(["a", "B", "ž", ""])
        case "v0":
            return rng.choice(FLOATS)
        case "v1" | "c1":
            return floats()
        case "v2":
            return rng.choice([None, {"x": rng.choice(FLOATS), "y": rng.choice([None, "", "é"])}])
        case "v3":
            return rng.choice([None, [], [None], [{"x": None}], [{"x": 1}, {"x": 2}]])
        case _:
            return rng.choice([None, "", "text"])


def _relation(shape: MergeShape, rng: random.Random, *, rows: int, is_new: bool, unique: bool) -> pa.Table:
    """Random rows of `new` or `state`."""
    roles = ["t", *shape.key_columns, *shape.value_columns, *shape.carried_columns]
    roles += ["op", "given"] if is_new else []
    found: dict[Any, dict[str, Any]] = {}
    for number in range(rows):
        row = {role: _value(role, rng) for role in roles}
        key = str([row[key] for key in shape.key_columns]).replace("-0.0", "0.0") if unique else number
        found[key] = row
    positioned = [{"pos": number, **row} for number, row in enumerate(found.values())]
    return pa.Table.from_pylist(positioned, schema=pa.schema([(role, TYPES[role]) for role in ("pos", *roles)]))


def _rows(table: pa.Table) -> list[str]:
    """Rows to compare; duckdb may carry a -0.0 inside a list as 0.0, which equals it."""
    return [repr(row).replace("-0.0", "0.0") for row in table.to_pylist()]


def _on_spark(spark: Any, query: str, relations: dict[str, pa.Table]) -> list[str]:
    session = request_session(spark)
    for name, table in relations.items():
        session.createDataFrame(table).createOrReplaceTempView(name)
    return _rows(session.sql(query).toArrow())


def _on_duckdb(query: str, relations: dict[str, pa.Table]) -> list[str]:
    with database(threads=1) as db:
        for name, table in relations.items():
            db.register(name, table)
        return _rows(db.sql(query).to_arrow_table())


@pytest.mark.spark
@pytest.mark.parametrize("merge", MERGES.values(), ids=lambda merge: type(merge).__name__)
def test_both_engines_merge_alike(spark: Any, merge: Merge) -> None:
    unique = isinstance(merge, SnapshotMerge)
    compared = 0
    for shape in SHAPES:
        query = f"SELECT * FROM ({merge.sql(shape)}) AS merged {order_clause(merge, shape)}"
        for seed in range(2):
            rng = random.Random(f"{type(merge).__name__} {seed}")
            relations = {
                "new": _relation(shape, rng, rows=40, is_new=True, unique=unique),
                "state": _relation(shape, rng, rows=15 * seed, is_new=False, unique=True),
            }
            expected = _on_duckdb(query, relations)
            assert _on_spark(spark, query, relations) == expected
            compared += len(expected)
    assert compared > 20


@pytest.mark.spark
def test_both_engines_find_the_same_repeated_keys(spark: Any) -> None:
    shape = SHAPES[0]
    relations = {"new": _relation(shape, random.Random(1), rows=40, is_new=True, unique=False)}
    query = f"{repeated_keys(shape)} ORDER BY first_pos"
    assert _on_spark(spark, query, relations) == _on_duckdb(query, relations)

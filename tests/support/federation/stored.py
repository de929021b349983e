"""The tables of the contract suite of sources, stored where sources read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from odfpy.testing.sources import TABLES


def duckdb_file(folder: Path) -> Path:
    """Return a database of DuckDB."""
    path = folder / "x.db"
    with duckdb.connect(path) as opened:
        for name, table in TABLES.items():
            opened.register("rows", table)
            opened.execute(f'CREATE TABLE "{name}" AS SELECT * FROM rows')
            opened.unregister("rows")
    return path


def files(place: Path) -> Path:
    """Return a folder of files of all formats."""
    for name, table in TABLES.items():
        pq.write_table(table, place / f"{name}.parquet", row_group_size=10_000)
        csv.write_csv(table, place / f"{name}.csv")
        (place / f"{name}.ndjson").write_text(ndjson(table))
    return place


def ndjson(table: pa.Table) -> str:
    """Return rows as lines of JSON."""
    return "".join(f"{json.dumps(row, default=str)}\n" for row in table.to_pylist())


def in_postgres(connection: Any) -> None:
    """Tables of PostgreSQL.

    Args:
        connection: a connection of psycopg.
    """
    kinds = {
        "int32": "integer",
        "int64": "bigint",
        "double": "double precision",
        "decimal128(15, 2)": "numeric(15, 2)",
        "bool": "boolean",
        "string": "text",
        "date32[day]": "date",
        "timestamp[us]": "timestamp",
    }
    for name, table in TABLES.items():
        columns = [
            '"' + one.name.replace('"', '""').replace("%", "%%") + '" ' + kinds[str(one.type)] for one in table.schema
        ]
        connection.execute(f'CREATE TABLE "{name}" ({", ".join(columns)})'.replace("%%", "%"))
        with connection.cursor() as cursor, cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
            for row in table.to_pylist():
                copy.write_row(tuple(row.values()))
    connection.commit()

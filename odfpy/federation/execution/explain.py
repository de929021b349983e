"""EXPLAIN: the plan of a query over the whole web, as far as the user may see it.

One row for each part: the relay that reads it, the SQL in that relay's schema and, with EXPLAIN ANALYZE, the numbers of
rows and bytes received. Then a row for each missing relay, and one for the work on the client's side. Relays reveal
nothing about rows that they hide: no estimates, no conditions of grants, nothing about their sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from odfpy.federation.execution.parts import ReadPart
from odfpy.federation.relay.question import Answer, MissingRelay

SCHEMA: Final = pa.schema(
    [
        ("step", pa.string()),
        ("relay", pa.string()),
        ("sql", pa.string()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("seconds", pa.float64()),
        ("missing", pa.string()),
    ]
)
_EXPLAIN: Final = re.compile(r"\s*explain\s+(analyze\s+)?", re.IGNORECASE)


def without_explain(sql: str) -> tuple[str, str | None]:
    """Return the query inside an EXPLAIN, and its mode: `plan`, `analyze`, or None if it is not an EXPLAIN.

    Args:
        sql: a query, perhaps prefixed with EXPLAIN or EXPLAIN ANALYZE.
    """
    match = _EXPLAIN.match(sql)
    if match is None:
        return sql, None
    return sql[match.end() :], "analyze" if match[1] else "plan"


def explained(answers: Mapping[str, Answer], read: Sequence[ReadPart], rest: str) -> pa.Table:
    """Return the plan of a query as a table.

    Args:
        answers: answers to its fragments, by name.
        read: the parts that were read; none if the query was not run.
        rest: SQL that assembles the answer.
    """
    sizes = {(read_part.fragment, read_part.part.ticket): read_part for read_part in read}
    rows: list[dict[str, Any]] = []
    for name, answer in answers.items():
        for part in answer.parts:
            row: dict[str, Any] = {"step": name, "relay": part.relay, "sql": part.sql}
            read_part = sizes.get((name, part.ticket))
            if read_part is not None and read_part.missing is not None:
                row["missing"] = read_part.missing.why
            elif read_part is not None:
                row |= {"rows": read_part.rows, "bytes": read_part.bytes, "seconds": round(read_part.seconds, 4)}
            rows.append(row)
        rows += [_missing(name, read_part) for read_part in answer.missing]
    rows.append({"step": "answer", "sql": rest})
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _missing(name: str, missing: MissingRelay) -> dict[str, Any]:
    return {"step": name, "relay": missing.relay, "missing": missing.why}

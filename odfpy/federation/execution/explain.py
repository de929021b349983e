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
    found = _EXPLAIN.match(sql)
    if found is None:
        return sql, None
    return sql[found.end() :], "analyze" if found[1] else "plan"


def explained(answers: Mapping[str, Answer], read: Sequence[ReadPart], rest: str) -> pa.Table:
    """Return the plan of a query as a table.

    Args:
        answers: answers to its fragments, by name.
        read: the parts that were read; none if the query was not run.
        rest: SQL that assembles the answer.
    """
    sizes = {(one.fragment, one.part.ticket): one for one in read}
    rows: list[dict[str, Any]] = []
    for name, answer in answers.items():
        for part in answer.parts:
            row: dict[str, Any] = {"step": name, "relay": part.relay, "sql": part.sql}
            one = sizes.get((name, part.ticket))
            if one is not None and one.missing is not None:
                row["missing"] = one.missing.why
            elif one is not None:
                row |= {"rows": one.rows, "bytes": one.bytes, "seconds": round(one.seconds, 4)}
            rows.append(row)
        rows += [_missing(name, one) for one in answer.missing]
    rows.append({"step": "answer", "sql": rest})
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _missing(name: str, one: MissingRelay) -> dict[str, Any]:
    return {"step": name, "relay": one.relay, "missing": one.why}

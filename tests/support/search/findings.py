"""Findings, minimized, and stored as manifests and data that reproduce them with the command line alone.

Hypothesis has minimized the query. The history is minimized here: pulls, inputs, worlds and rows are removed as long
as the same result is still wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from support.engine.requests import SYMBOLS
from support.queries.cases import Pull, Row, line_of
from support.search.queries import Query

_DDL = {
    pa.string(): "STRING",
    pa.int32(): "INT",
    pa.float64(): "DOUBLE",
    pa.decimal128(8, 2): "DECIMAL(8,2)",
    pa.date32(): "DATE",
    pa.bool_(): "BOOLEAN",
    pa.list_(pa.int32()): "ARRAY<INT>",
}

Wrong = Callable[[Sequence[Pull]], bool]
"""Returns whether a history still reproduces the error."""


# --- A smaller history ------------------------------------------------------------------------------------------------


def smallest(pulls: Sequence[Pull], wrong: Wrong) -> list[Pull]:
    """Minimize a history: nothing more can be removed without making the result correct.

    Args:
        pulls: a history with a wrong result.
        wrong: tests another history.
    """
    found = list(pulls)
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(found):
            if wrong(candidate):
                found, smaller = candidate, True
                break
    return found


def _smaller(pulls: list[Pull]) -> Iterator[list[Pull]]:
    """Histories with less in them: first large pieces, then single rows."""
    for at in range(len(pulls) - 1):
        yield [*pulls[:at], _merged(pulls[at], pulls[at + 1]), *pulls[at + 2 :]]
    changes = [(alias, change) for alias in pulls[0].rows for change in _changes(pulls, alias)]
    size = len(changes) // 2
    while size:
        for start in range(0, len(changes), size):
            yield _without(pulls, changes[start : start + size])
        size //= 2


def _merged(one: Pull, other: Pull) -> Pull:
    return Pull({alias: [*one.rows[alias], *rows] for alias, rows in other.rows.items()}, other.watermarks)


def _changes(pulls: Sequence[Pull], alias: str) -> list[tuple[int, list[int]]]:
    """Return what can be removed at once: a row, or both halves of a correction; by pull and positions."""
    found: list[tuple[int, list[int]]] = []
    for at, pull in enumerate(pulls):
        for position, row in enumerate(pull.rows[alias]):
            if row[0] == "+C":
                found[-1][1].append(position)
            else:
                found.append((at, [position]))
    return found


def _without(pulls: Sequence[Pull], left_out: Sequence[tuple[str, tuple[int, list[int]]]]) -> list[Pull]:
    gone = {(alias, at, position) for alias, (at, positions) in left_out for position in positions}
    return [
        replace(
            pull,
            rows={
                alias: [row for position, row in enumerate(rows) if (alias, at, position) not in gone]
                for alias, rows in pull.rows.items()
            },
        )
        for at, pull in enumerate(pulls)
    ]


# --- Manifests --------------------------------------------------------------------------------------------------------


def write(folder: Path, query: Query, pulls: Sequence[Pull], what: str, detail: str) -> Path:
    """Write a finding down.

    `case.yaml` is a case of the corpus with the original rows; `run.sh` reproduces it with `manifests.yaml` and a file
    of rows for each input and pull.

    Returns:
        The folder of the finding.
    """
    texts = [text for _, text in query.steps]
    place = folder / sha256(json.dumps([texts, what]).encode()).hexdigest()[:12]
    place.mkdir(parents=True, exist_ok=True)
    manifests = [*(_root(alias, fields, query.keys.get(alias)) for alias, fields in query.inputs.items())]
    manifests.append(_derivative(query))
    (place / "manifests.yaml").write_text(
        yaml.safe_dump_all(manifests, sort_keys=False, width=120, explicit_start=True), "utf-8"
    )
    script = [
        "#!/bin/sh",
        f"# {what}",
        "# Shows it in a new workspace beside this file.",
        "set -e",
        'cd "$(dirname "$0")"',
    ]
    script += ["rm -rf workspace && mkdir workspace && cd workspace", "odf init", "odf add ../manifests.yaml"]
    for at, pull in enumerate(pulls):
        for alias, rows in pull.rows.items():
            if rows:
                name = f"{alias}-{at}.ndjson"
                fields, keyed = query.inputs[alias], alias in query.keys
                (place / name).write_text("".join(_line(fields, row, keyed=keyed) for row in rows), "utf-8")
                script.append(f"odf ingest {alias} ../{name}")
            script.append(f"odf pull {alias} --set-watermark {pull.watermarks[alias]}:00Z || true")
        script.append("odf pull found")
    script += ["odf tail found --limit 1000", "odf verify found --against-batch"]
    (place / "run.sh").write_text("\n".join(script) + "\n", "utf-8")
    (place / "run.sh").chmod(0o755)
    (place / "case.yaml").write_text(_case(query, pulls, what), "utf-8")
    (place / "finding.txt").write_text(f"{what}\n\n{detail}\n", "utf-8")
    return place


def _case(query: Query, pulls: Sequence[Pull], what: str) -> str:
    steps = query.steps[0][1] if len(query.steps) == 1 else {alias or "": text for alias, text in query.steps}
    case = {
        "name": "found",
        "about": what
        + (f"; keys: {dict(query.keys)}" if query.keys else "")
        + "".join(f"; temporal table: {one.name} {list(one.primary_key)}" for one in query.temporal),
        "query": steps,
        "inputs": {alias: {f.name: _DDL[f.type].lower() for f in fields} for alias, fields in query.inputs.items()},
        "pulls": [
            {"watermarks": dict(pull.watermarks), **{alias: _table(rows) for alias, rows in pull.rows.items() if rows}}
            for pull in pulls
        ],
    }
    return yaml.safe_dump(case, sort_keys=False, width=120, default_style=None)


def _table(rows: Sequence[Row]) -> str:
    return "\n".join(line_of(row) for row in rows) + "\n"


def _root(alias: str, fields: Sequence[pa.Field], key: tuple[str, ...] | None) -> dict[str, Any]:
    schema = [
        "op INT", "event_time TIMESTAMP", *(f"{field.name} {_DDL[field.type]}" for field in fields),
    ]  # fmt: skip
    source = {
        "kind": "AddPushSource",
        "sourceName": "default",
        "read": {"kind": "NdJson", "ddlSchema": schema},
        "merge": {"kind": "ChangelogStream", "primaryKey": list(key or ("event_time", *(one.name for one in fields)))},
    }
    return _snapshot(alias, "Root", [source])


def _derivative(query: Query) -> dict[str, Any]:
    queries = [{**({"alias": alias} if alias else {}), "query": text} for alias, text in query.steps]
    inputs = [{"datasetRef": alias, "alias": alias} for alias in query.inputs]
    transform: dict[str, Any] = {"kind": "Sql", "engine": "spark", "queries": queries}
    if query.temporal:
        transform["temporalTables"] = [
            {"name": one.name, "primaryKey": list(one.primary_key)} for one in query.temporal
        ]
    return _snapshot("found", "Derivative", [{"kind": "SetTransform", "inputs": inputs, "transform": transform}])


def _snapshot(name: str, kind: str, metadata: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": "DatasetSnapshot", "version": 1, "content": {"name": name, "kind": kind, "metadata": metadata}}


def _line(fields: Sequence[pa.Field], row: Row, *, keyed: bool) -> str:
    """Return a row; without a key, halves of a correction are a retraction and a new row."""
    names = ["op", "event_time", *(field.name for field in fields)]
    symbol = row[0] if keyed else {"-C": "-R", "+C": "+A"}.get(row[0], row[0])
    values: Mapping[str, Any] = dict(zip(names, [SYMBOLS[symbol], *row[1:]], strict=True))
    return json.dumps({name: _plain(value) for name, value in values.items()}) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value

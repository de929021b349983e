"""A dataset whose second slice has another shape: reordered, new and missing columns, structs with new members."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: grown
  kind: Root
  metadata:
    - {kind: AddPushSource, sourceName: default, read: {kind: Parquet}, merge: %s}
    - {kind: SetVocab, eventTimeColumn: day, offsetColumn: at, operationTypeColumn: what, systemTimeColumn: since}
"""
INNER = [("u", pa.uint64()), ("d", pa.decimal128(20, 3))]
WIDER = [*INNER, ("l", pa.list_(pa.field("whatever", pa.string())))]

FIRST: dict[str, tuple[pa.DataType, Any]] = {
    "day": (pa.date32(), date(1969, 12, 31)),
    "u8": (pa.uint8(), 255),
    "u16": (pa.uint16(), 65535),
    "u32": (pa.uint32(), 2**32 - 1),
    "u64": (pa.uint64(), 2**64 - 1),
    "d": (pa.decimal128(38, 10), Decimal("-1234567890.0123456789")),
    "elements": (pa.list_(pa.field("element", pa.uint16())), [1, None, 65535]),
    "anything": (pa.large_list(pa.field("anything", pa.string())), ["x", None]),
    "lists": (pa.list_(pa.list_(pa.field("array", pa.int32()))), [[1, None], [], None]),
    "s": (pa.struct([("a", pa.int64()), ("inner", pa.struct(INNER))]), {"a": -1, "inner": {"u": 2**64 - 1, "d": Decimal("0.005")}}),
    "fine": (pa.timestamp("us", "Asia/Tokyo"), 1_700_000_000_123_999),
    "offset": (pa.uint16(), 65535),  # no system columns here, where these have other names
    "op": (pa.string(), "x"),
    "gone": (pa.float32(), 1.5),
}  # fmt: skip
SECOND: dict[str, tuple[pa.DataType, Any]] = {
    "more": (pa.string_view(), "new"),
    **{name: FIRST[name] for name in reversed(FIRST) if name not in ("gone", "s")},
    "s": (
        pa.struct([("c", pa.float64()), ("inner", pa.struct(list(reversed(WIDER)))), ("a", pa.int64())]),
        {"c": 0.5, "inner": {"l": ["y"], "u": 0, "d": None}, "a": None},
    ),
    "later": (pa.list_(pa.uint64()), [2**64 - 1]),
}


def table(columns: dict[str, tuple[pa.DataType, Any]]) -> pa.Table:
    return pa.table({name: pa.array([value], arrow) for name, (arrow, value) in columns.items()})


def grown(folder: Path, merge: str = "{kind: Append}") -> Workspace:
    """Return a workspace with that dataset, `grown`."""
    workspace = Workspace.init(folder)
    workspace.add(load_snapshots(MANIFEST % merge, "grown.yaml"))
    for number, columns in enumerate((FIRST, SECOND)):
        file = folder / f"{number}.parquet"
        pq.write_table(table(columns), file)
        (result,) = workspace.ingest("grown", [file])
        assert result.num_records == 1
    return workspace


def expected() -> list[dict[str, Any]]:
    """Return the data columns of its two rows, as expected from every reader."""
    first = {name: value for name, (_, value) in FIRST.items()}
    second = {name: value for name, (_, value) in SECOND.items()}
    millis = pa.scalar(1_700_000_000_123, pa.timestamp("ms", "UTC")).as_py()
    inner = {"u": 2**64 - 1, "d": Decimal("0.005"), "l": None}
    return [
        {**first, "fine": millis, "s": {"a": -1, "inner": inner, "c": None}, "more": None, "later": None},
        {**second, "fine": millis, "s": {"a": None, "inner": {"u": 0, "d": None, "l": ["y"]}, "c": 0.5}, "gone": None},
    ]


def data_of(rows: pa.Table) -> list[dict[str, Any]]:
    """Return the data columns of some rows."""
    return rows.drop_columns(["at", "what", "since"]).to_pylist()

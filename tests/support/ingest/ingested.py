"""A dataset that consists only of slices, for testing ingests, and tables written as text."""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfpy.chain.sources import MergeStrategy
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.slice import read_slice
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary, OperationType
from odfpy.ingest.normalize import coerce_inferred_event_time
from odfpy.ingest.pipeline import IngestedData, IngestTarget, ingest_rows
from odfpy.state.current import KeyedState, ScannedState
from odfpy.state.database import SharedDatabase

TIME = pa.timestamp("ms", "UTC")
SYSTEM_TIME = Timestamp.parse("2025-01-01T00:00:00Z")

Row = dict[str, Any]


@cache
def _database() -> SharedDatabase:
    """Return the database of all merges that say nothing of threads: opening one takes longer than a small merge."""
    atexit.register(_database.cache_clear)  # else the bindings complain of an object that is left
    return SharedDatabase()


@dataclass
class Ingested:
    """Slices in a folder, and the schema in force."""

    folder: Path
    strategy: MergeStrategy
    vocabulary: DatasetVocabulary = DEFAULT_VOCABULARY
    schema: DataSchema | None = None
    slices: list[Path] = field(default_factory=list)
    next_offset: int = 0

    def ingest(
        self,
        new: pa.Table,
        at: str = "2024-01-01",
        *,
        inferred: bool = False,
        watermark: Timestamp | None = None,
        state: Callable[[DataSchema], KeyedState] | None = None,
        **options: Any,
    ) -> IngestedData:
        """Ingest new rows, whose source has the event time `at`, and types that were declared or `inferred`."""
        if inferred:
            new = coerce_inferred_event_time(new, self.vocabulary)
        out = self.folder / f"slice-{len(self.slices)}"
        slices = [*self.slices]
        target = IngestTarget(
            vocab=self.vocabulary,
            schema=self.schema,
            next_offset=self.next_offset,
            watermark=watermark,
            state=state or (lambda schema: ScannedState(slices, schema, self.vocabulary)),
            database=None if "threads" in options else _database(),
        )
        result = ingest_rows(
            new,
            target,
            self.strategy,
            system_time=SYSTEM_TIME,
            source_event_time=Timestamp.parse(at),
            out=out,
            **options,
        )
        made = [path for path in self.slices if path.parent == self.folder]
        new_files = [item.path for item in result.slices]
        assert sorted(self.folder.iterdir()) == sorted([*made, *new_files]), "nothing else is left"
        self.schema = result.schema
        for item in result.slices:
            assert item.info.offset_start == self.next_offset
            self.slices.append(item.path)
            self.next_offset = item.info.offset_end + 1
        return result

    def slice(self, number: int) -> pa.Table:
        """Return a slice without offset and system time."""
        table = read_slice(self.slices[number], vocab=self.vocabulary)
        return table.drop_columns([self.vocabulary.offset_column, self.vocabulary.system_time_column])

    def history(self) -> Iterator[Row]:
        """Yield all rows ever, in order of offset."""
        for path in self.slices:
            yield from read_slice(path, vocab=self.vocabulary).to_pylist()


def replay(history: Iterator[Row], keys: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
    """Return the current rows by key, without system columns but event time; check that the history is consistent."""
    state: dict[tuple[Any, ...], Row] = {}
    corrected: tuple[Any, ...] | None = None
    for at, row in enumerate(history):
        operation = OperationType(row.pop("op"))
        assert row.pop("offset") == at
        row.pop("system_time")
        key = tuple(row[name] for name in keys)
        if operation in (OperationType.RETRACT, OperationType.CORRECT_FROM):
            assert repr(state.pop(key)) == repr(row), "-R and -C repeat the old row exactly"
        else:
            assert key not in state, "there is one current row"
            assert (corrected is not None) == (operation is OperationType.CORRECT_TO), "+C follows its -C at once"
            assert corrected in (None, key), "both parts of a correction have one key"
            state[key] = row
        corrected = key if operation is OperationType.CORRECT_FROM else None
    return state


def same(left: Any, right: Any) -> bool:
    """Compare values like merges: NaN equals NaN."""
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (left != left and right != right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


# --- Tables as text --------------------------------------------------------------------------------------------------

COLUMN_TYPES = {
    "op": pa.int32(),
    "event_time": TIME,
    "id": pa.int64(),
    "part": pa.int64(),
    "name": pa.string(),
    "n": pa.int32(),
    "x": pa.float64(),
}
"""Types of columns by name, so that tables in tests need not declare them."""

_SYMBOLS = {operation.symbol: int(operation) for operation in OperationType}


def table(text: str) -> pa.Table:
    """Return a table from lines with columns between bars; `-` is null, operations are +A, -R, -C and +C."""
    header, *lines = [re.split(r"\s*\|\s*", line.strip()) for line in text.strip().splitlines()]
    columns = {
        name: pa.array([_value(name, line[i]) for line in lines], COLUMN_TYPES[name]) for i, name in enumerate(header)
    }
    return pa.table(columns)


def _value(name: str, text: str) -> Any:
    if text == "-":
        return None
    if name == "op":
        return _SYMBOLS[text] if text in _SYMBOLS else int(text)
    if name == "event_time":
        return datetime.fromisoformat(text).replace(tzinfo=None)
    return {"name": str, "x": float}.get(name, int)(text)


def text(rows: pa.Table) -> str:
    """Return a table as text, in the form that `table` reads, with dates for midnights."""
    lines = [list(rows.column_names)]
    lines += [[_text(name, value) for name, value in row.items()] for row in rows.to_pylist()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(" | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name == "op":
        return OperationType(value).symbol
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d" if value.time().isoformat() == "00:00:00" else "%Y-%m-%dT%H:%M:%S")
    return value.isoformat() if isinstance(value, date) else str(value)


def dedented(block: str) -> str:
    """Return a block of text without the indentation of its lines and spaces around bars made alike."""
    lines = [[cell.strip() for cell in line.split("|")] for line in block.strip().splitlines()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(" | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)

"""The second half of ingest makes what the reference implementation made of the same rows."""

from __future__ import annotations

import csv
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from support.fixtures import CASES, KAMU
from support.ingest.ingested import TIME, Ingested

from odfpy.chain.events import AddPushSource
from odfpy.chain.sources import (
    MergeAppend,
    MergeChangelogStream,
    MergeLedger,
    MergeSnapshot,
    MergeStrategy,
    MergeUpsertStream,
)
from odfpy.codec.tree import from_tree
from odfpy.data.schemas.arrow import from_arrow, to_arrow
from odfpy.data.schemas.evolution import is_equivalent
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.slice import read_slice
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.errors import IngestError

# --- Whole datasets --------------------------------------------------------------------------------------------------


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _columns(records: list[dict[str, Any]], fields: list[pa.Field]) -> pa.Table:
    schema = pa.schema(fields)
    values = [[record.get(field.name) for record in records] for field in schema]
    for column, field in zip(values, schema, strict=True):
        if pa.types.is_timestamp(field.type):
            column[:] = [value and _instant(value) for value in column]
        elif pa.types.is_date(field.type):
            column[:] = [value and date.fromisoformat(value) for value in column]
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _json_lines(path: Path, fields: list[pa.Field]) -> pa.Table:
    return _columns([json.loads(line) for line in path.read_text().splitlines()], fields)


def _trades(path: Path) -> pa.Table:
    with path.open() as file:
        records = [
            {**row, "id": int(row["id"]), "side": row["side"].upper(), "amount": Decimal(row["amount"])}
            for row in csv.DictReader(file)
        ]
    fields = [
        pa.field("event_time", pa.timestamp("ms"), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("side", pa.string()),
        pa.field("amount", pa.decimal128(10, 2), nullable=False),
    ]
    return _columns(records, fields)


def _cities(path: Path) -> pa.Table:
    with path.open() as file:
        records = [{**row, "id": int(row["id"]), "population": int(row["population"])} for row in csv.DictReader(file)]
    id_field = pa.field("id", pa.int64(), nullable=False)
    return _columns(records, [id_field, pa.field("city", pa.string()), pa.field("population", pa.int32())])


def _stock(path: Path) -> pa.Table:
    fields = [
        pa.field("op", pa.int32(), nullable=False),
        pa.field("event_time", TIME, nullable=False),
        pa.field("sku", pa.int64(), nullable=False),
        pa.field("stock", pa.int32()),
    ]
    return _json_lines(path, fields)


def _changes(path: Path) -> pa.Table:
    fields = [
        pa.field("op", pa.int32(), nullable=False),
        pa.field("event_time", TIME, nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("v", pa.string(), nullable=False),
    ]
    return _json_lines(path, fields).rename_columns(["op", "t", "id", "v"])


DATASETS = {
    "trades": ("ledger", _trades, MergeLedger(("id",)), DEFAULT_VOCABULARY),
    "cities": ("snapshot", _cities, MergeSnapshot(("id",), ("city", "population")), DEFAULT_VOCABULARY),
    "stock": ("upsert", _stock, MergeUpsertStream(("sku",)), DEFAULT_VOCABULARY),
    "changes": ("changelog", _changes, MergeChangelogStream(("id",)), DatasetVocabulary(event_time_column="t")),
}


def _reference_slices(name: str, vocabulary: DatasetVocabulary) -> list[pa.Table]:
    slices = [read_slice(path, vocab=vocabulary) for path in (KAMU / name / "data").iterdir()]
    return sorted(slices, key=lambda slice_: slice_.column(vocabulary.offset_column)[0].as_py())


@pytest.mark.parametrize("name", DATASETS)
def test_dataset_is_that_of_the_reference(name: str, tmp_path: Path) -> None:
    folder, read, strategy, vocabulary = DATASETS[name]
    dataset = Ingested(tmp_path, strategy, vocabulary)
    expected = _reference_slices(name, vocabulary)
    inputs = sorted((KAMU / "input" / folder).iterdir())
    for path in inputs:
        source_time = path.stem if name in ("trades", "cities") else "2024-01-01"
        dataset.ingest(read(path), source_time)
    assert len(dataset.slices) == len(expected) == len(inputs)
    for path, theirs in zip(dataset.slices, expected, strict=True):
        ours = read_slice(path, vocab=vocabulary)
        assert ours.schema == theirs.schema
        assert ours.drop_columns("system_time") == theirs.drop_columns("system_time")
    assert dataset.schema is not None
    assert is_equivalent(dataset.schema, from_arrow(expected[0].schema))


@pytest.mark.parametrize(("name", "strategy"), [("types", MergeAppend()), ("nested-nulls", MergeAppend())])
def test_columns_of_every_type_pass_through(name: str, strategy: MergeStrategy, tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, strategy)
    inputs = ["types-1", "types-2", "types-big"] if name == "types" else [name]
    expected = _reference_slices(name, DEFAULT_VOCABULARY)
    for stem, theirs in zip(inputs, expected, strict=True):
        dataset.ingest(pq.read_table(KAMU / "input" / f"{stem}.parquet"))
        ours = read_slice(dataset.slices[-1])
        assert ours.drop_columns("system_time") == theirs.drop_columns("system_time")


def test_a_dataset_of_the_reference_is_continued(tmp_path: Path) -> None:
    """The current state is read from slices of the reference."""
    paths = {read_slice(path, ["offset"])["offset"][0].as_py(): path for path in (KAMU / "cities" / "data").iterdir()}
    *earlier, last = sorted(paths)
    expected = read_slice(paths[last])
    slices = [paths[start] for start in earlier]
    dataset = Ingested(tmp_path, MergeSnapshot(("id",), ("city", "population")), slices=slices, next_offset=last)
    dataset.schema = from_arrow(expected.schema)
    new = max((KAMU / "input" / "snapshot").iterdir())
    assert not dataset.ingest(_cities(new), new.stem).schema_changed
    assert read_slice(dataset.slices[-1]).drop_columns("system_time") == expected.drop_columns("system_time")


# --- Small cases -----------------------------------------------------------------------------------------------------

CASE_FILES = [
    path
    for path in sorted(CASES.glob("*.yaml"))
    if path.stem.split("-")[0] in ("append", "event", "ledger", "schema", "snapshot", "upsert")
    or path.stem in ("csv-empty-file", "json-empty-array", "ndjson-epoch-event-time")
]


def _case_rows(text: str, schema: DataSchema | None) -> pa.Table:
    records = [record for line in text.splitlines() if line != "[]" for record in [json.loads(line)]]
    if schema is not None:
        return _columns(records, list(to_arrow(schema)))
    names = list(dict.fromkeys(name for record in records for name in record))
    return pa.table({name: pa.array([record.get(name) for record in records]) for name in names})


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        text = value.isoformat(timespec="milliseconds" if value.microsecond else "seconds")
        return text.replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return value


@pytest.mark.parametrize("path", CASE_FILES, ids=lambda path: path.stem)
def test_case(path: Path, tmp_path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    tree = case["manifest"]["content"]["metadata"][0]
    source = from_tree(AddPushSource, {key: value for key, value in tree.items() if key != "kind"})
    dataset = Ingested(tmp_path, source.merge)
    schema_committed = False
    watermark = None
    for step in case["ingests"]:
        expected = {**step["reference"], **step.get("odfpy", {})}
        new = _case_rows(step["input"], source.read.schema)
        inferred = source.read.schema is None
        if expected["outcome"] == "error":
            with pytest.raises(IngestError):
                dataset.ingest(new, step.get("event_time", "2024-01-01"), inferred=inferred)
            continue
        result = dataset.ingest(new, step.get("event_time", "2024-01-01"), inferred=inferred)
        schema_committed |= result.schema_changed
        if "0.0 and -0.0 may also count as equal" in expected.get("note", "") and schema_committed and result.is_empty:
            continue
        assert result.is_empty == (expected["outcome"] == "up-to-date")
        if result.slices:
            made = dataset.slice(-1)
            rows = read_slice(dataset.slices[-1]).drop_columns("system_time")
            assert rows.column_names == expected["columns"]
            assert [[_plain(value) for value in row.values()] for row in rows.to_pylist()] == expected["rows"]
            assert made.num_rows == result.slices[0].info.num_rows
            watermark = max(filter(None, [watermark, result.slices[-1].info.max_event_time]))
        if "watermark" in expected and "odfpy" not in step:
            assert watermark == Timestamp.parse(expected["watermark"])
    if "SetDataSchema" in case["reference_chain"] and not any("odfpy" in step for step in case["ingests"]):
        assert dataset.schema is not None
        assert is_equivalent(dataset.schema, from_tree(DataSchema, case["reference_schema"]))

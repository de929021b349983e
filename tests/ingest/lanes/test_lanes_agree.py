"""Both lanes make the same slices of the same input, on any number of partitions and parts.

Few Spark jobs, each over rows with everything that might come out differently: every type, nulls, both zeros, NaN,
keys that come again, rows without event time.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.engine_spark import engine_spark

from odfpy.chain.sources import (
    MergeAppend,
    MergeChangelogStream,
    MergeLedger,
    MergeSnapshot,
    MergeStrategy,
    MergeUpsertStream,
    ReadCsv,
    ReadJson,
    ReadNdJson,
    ReadParquet,
    ReadStep,
)
from odfpy.codec.tree import from_tree, to_tree
from odfpy.data import schema as odf
from odfpy.data.schema import DataField, DataSchema, DataType, Option
from odfpy.data.slice import read_slice
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.engine.contract import JobRequest
from odfpy.engine.jobs import result_of, run_job
from odfpy.errors import BadValue, IngestError, OdfError
from odfpy.ingest.lanes.client import JOB, ingested_data
from odfpy.ingest.lanes.request import LaneRequest, LaneResult
from odfpy.ingest.pipeline import IngestedData, ingest_rows
from odfpy.ingest.read import read
from odfpy.state.current import ScannedState

pytestmark = pytest.mark.spark

SYSTEM_TIME, SOURCE_TIME = Timestamp.parse("2025-01-01T00:00:00Z"), Timestamp.parse("2024-01-03T12:00:00Z")

KEYS: list[tuple[str, DataType]] = [("id", odf.UInt64()), ("key", odf.String())]
FLAT: list[tuple[str, DataType]] = [
    ("flag", odf.Bool()),
    ("tiny", odf.UInt8()),
    ("wide", odf.UInt32()),
    ("half", odf.Float16()),
    ("real", odf.Float64()),
    ("price", odf.Decimal(10, 2)),
    ("huge", odf.Decimal(50, 5)),
    ("day", odf.Date()),
    ("moment", odf.Timestamp()),
    ("text", odf.String()),
]
NESTED: list[tuple[str, DataType]] = [
    ("list", odf.List(Option(odf.Float64()))),
    ("struct", odf.Struct((DataField("x", Option(odf.Float64())), DataField("y", Option(odf.UInt16()))))),
]


def schema_of(columns: list[tuple[str, DataType]], *, with_operations: bool) -> DataSchema:
    first = [DataField("op", odf.Int32())] if with_operations else []
    times = [DataField("event_time", Option(odf.Timestamp()))]
    keys = [DataField(name, type_) for name, type_ in KEYS]
    return DataSchema((*first, *times, *keys, *(DataField(name, Option(type_)) for name, type_ in columns)))


def schema_names(schema: DataSchema) -> list[str]:
    return [field.name for field in schema.fields]


def value(name: str, chance: random.Random) -> Any:
    """A value as JSON writes it."""
    if name not in ("id", "key", "op") and chance.random() < 0.2:
        return None
    choices: dict[str, list[Any]] = {
        "op": [0, 0, 1, 3],
        "event_time": ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00.001Z", "1960-02-03T04:05:06Z"],
        "id": [0, 1, 2**63, 2**64 - 1, *range(60)],
        "key": ["", "a", "B", "ž", "é", "\U0001f600"],
        "flag": [True, False],
        "tiny": [0, 127, 128, 255],
        "wide": [0, 2**31, 2**32 - 1],
        "half": [0.5, -0.0, 0.0, 65504.0],
        "real": [0.0, -0.0, 1.5, 1e-300, -7.25],
        "price": ["0.00", "12345678.90", "-0.01"],
        "huge": ["0", "123456789012345678901234567890123456789012345.12345", "-1.5"],
        "day": ["2024-02-29", "0001-01-01", "9999-12-31"],
        "moment": ["2024-02-29T12:00:00.123Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"],
        "text": ["", "plain", 'quoted "text", with\nline break', "ž"],
        "list": [[], [0.0, None], [-0.0, None], [1.5]],
        "struct": [{"x": -0.0, "y": 65535}, {"x": 0.0, "y": None}, {"x": None, "y": 1}],
    }
    return chance.choice(choices[name])


def rows(names: list[str], count: int, seed: str, *, unique: bool) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    found: dict[Any, dict[str, Any]] = {}
    for number in range(count):
        row = {name: value(name, chance) for name in names}
        found[(row["id"], row["key"]) if unique else number] = row
    return list(found.values())


# --- Formats ---------------------------------------------------------------------------------------------------------


def write_csv(path: Path, names: list[str], content: list[dict[str, Any]]) -> None:
    def cell(item: Any) -> str:
        if item is None:
            return "NULL"
        text = str(item).lower() if isinstance(item, bool) else str(item)
        return '"' + text.replace('"', '""') + '"'

    lines = [",".join(names), *(",".join(cell(row[name]) for name in names) for row in content)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_ndjson(path: Path, names: list[str], content: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps({n: row[n] for n in names}) + "\n" for row in content), encoding="utf-8")


def write_json(path: Path, names: list[str], content: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps([{name: row[name] for name in names} for row in content]), encoding="utf-8")


def write_parquet(path: Path, names: list[str], content: list[dict[str, Any]]) -> None:
    """The same by way of NdJson, and NaN, which JSON does not have."""
    lines = path.with_suffix(".ndjson")
    write_ndjson(lines, names, content)
    columns = [column for column in (*FLAT, *NESTED) if column[0] in names]
    table = read(ReadNdJson(schema=schema_of(columns, with_operations="op" in names)), lines)
    real = [float("nan") if at % 7 == 3 else item for at, item in enumerate(table.column("real").to_pylist())]
    at = table.column_names.index("real")
    pq.write_table(table.set_column(at, table.schema.field("real"), pa.array(real)), path, row_group_size=20)


FORMATS: dict[str, tuple[Callable[[DataSchema], ReadStep], Callable[..., None], list[tuple[str, DataType]]]] = {
    "csv": (lambda schema: ReadCsv(header=True, null_value="NULL", schema=schema), write_csv, FLAT),
    "ndjson": (lambda schema: ReadNdJson(schema=schema), write_ndjson, [*FLAT, *NESTED]),
    "json": (lambda schema: ReadJson(schema=schema), write_json, [*FLAT, *NESTED]),
    "parquet": (lambda _: ReadParquet(), write_parquet, [*FLAT, *NESTED]),
}
STRATEGIES: list[MergeStrategy] = [
    MergeAppend(),
    MergeLedger(("id", "key")),
    MergeSnapshot(("id", "key")),
    MergeChangelogStream(("id", "key")),
    MergeUpsertStream(("id", "key")),
]


# --- Lanes -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    before = os.environ.get("PYSPARK_PYTHON"), os.environ.get("PYTHONPATH")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, map(Path, filter(None, sys.path))))
    with engine_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session
    for name, known in zip(("PYSPARK_PYTHON", "PYTHONPATH"), before, strict=True):
        os.environ.pop(name)
        if known is not None:
            os.environ[name] = known


def request_for(step: ReadStep, path: Path, strategy: MergeStrategy, out: Path) -> LaneRequest:
    return LaneRequest(
        read=step,
        path=str(path),
        name=path.name,
        strategy=strategy,
        vocab=DEFAULT_VOCABULARY,
        schema=None,
        slices=(),
        next_offset=0,
        system_time=SYSTEM_TIME,
        source_event_time=SOURCE_TIME,
        watermark=SOURCE_TIME,
        out=str(out),
        part_bytes=4_000,
        slice_rows=50,
        partitions=2,
    )


def on_spark(spark: Any, request: LaneRequest) -> IngestedData:
    job = JobRequest(JOB, json.dumps(to_tree(request)), str(Path(request.out).parent))
    return ingested_data(from_tree(LaneResult, json.loads(result_of(run_job(spark, job)))), request)


def locally(request: LaneRequest) -> IngestedData:
    assert request.read is not None
    return ingest_rows(
        read(request.read, Path(request.path), name=request.name),
        strategy=request.strategy,
        vocab=request.vocab,
        schema=request.schema,
        next_offset=request.next_offset,
        system_time=request.system_time,
        source_event_time=request.source_event_time,
        watermark=request.watermark,
        out=Path(request.out),
        state=lambda schema: ScannedState([Path(path) for path in request.slices], schema, request.vocab),
        slice_rows=request.slice_rows,
    )


def following(request: LaneRequest, after: IngestedData) -> LaneRequest:
    """The same with a dataset that has what came of it."""
    slices = tuple(str(item.path) for item in after.slices)
    rows_now = request.next_offset + sum(item.info.num_rows for item in after.slices)
    return replace(request, schema=after.schema, slices=slices, next_offset=rows_now)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)
def test_both_lanes_make_the_same_slices(spark: Any, tmp_path: Path, strategy: MergeStrategy) -> None:
    """Each format with another number of partitions, on top of what the local lane has made of other rows."""
    with_operations = isinstance(strategy, MergeChangelogStream | MergeUpsertStream)
    unique = isinstance(strategy, MergeSnapshot)
    for (name, (step_for, write, columns)), partitions in zip(FORMATS.items(), (1, 2, 7, 7), strict=True):
        schema = schema_of(columns, with_operations=with_operations)
        first, second = (tmp_path / f"{name}-{turn}" for turn in range(2))
        for path, count in ((first, 90), (second, 130)):
            content = rows(schema_names(schema), count, f"{strategy} {path.name}", unique=unique)
            write(path, schema_names(schema), content)
        before = request_for(step_for(schema), first, strategy, tmp_path / f"{name}-before")
        request = replace(following(before, locally(before)), path=str(second), partitions=partitions)
        local, spark_made = (replace(request, out=str(tmp_path / f"{name}-{lane}")) for lane in ("local", "spark"))
        expected, found = locally(local), on_spark(spark, spark_made)
        assert [item.info for item in found.slices] == [item.info for item in expected.slices], name
        assert (found.schema, found.schema_changed) == (expected.schema, expected.schema_changed)
        assert found.statistics == expected.statistics
        assert len(found.slices) > 1
        for mine, theirs in zip(found.slices, expected.slices, strict=True):
            assert mine.path.read_bytes() == theirs.path.read_bytes()
    assert not list(tmp_path.glob("*.runs")), "nothing else is left"


def test_the_number_of_parts_and_partitions_leaves_no_trace(spark: Any, tmp_path: Path) -> None:
    names = schema_names(schema_of(FLAT, with_operations=False))
    write_csv(tmp_path / "rows.csv", names, rows(names, 300, "parts", unique=False))
    step = FORMATS["csv"][0](schema_of(FLAT, with_operations=False))
    for strategy in (MergeAppend(), MergeLedger(("id", "key"))):
        request = request_for(step, tmp_path / "rows.csv", strategy, tmp_path / "local")
        expected = [item.info for item in locally(request).slices]
        assert len(expected) == 6
        for number, (part_bytes, partitions) in enumerate(((100_000, 1), (20_000, 2), (6_000, 7))):
            out = str(tmp_path / f"{type(strategy).__name__}-{number}")
            found = on_spark(spark, replace(request, part_bytes=part_bytes, partitions=partitions, out=out))
            assert [item.info for item in found.slices] == expected


@pytest.mark.parametrize(
    ("text", "strategy", "error"),
    [
        ("1,a\n" * 500 + "x,a\n", MergeAppend(), BadValue),
        ("1,a\n" * 500 + "2,NULL\n" + "3,a\n" * 500, MergeLedger(("key",)), IngestError),
        ("".join(f"{number},a\n" for number in range(500)) + "7,b\n", MergeSnapshot(("id",)), IngestError),
        ('1,"a"\n' * 500 + '2,"never closed\n' * 3, MergeAppend(), BadValue),
    ],
    ids=["a value does not fit", "a key is null", "a key comes twice", "quotes are not closed"],
)
def test_both_lanes_refuse_with_the_same_words(
    spark: Any, tmp_path: Path, text: str, strategy: MergeStrategy, error: type[OdfError]
) -> None:
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    fields = (DataField("id", odf.Int64()), DataField("key", Option(odf.String())))
    step = ReadCsv(null_value="NULL", schema=DataSchema(fields))
    request = replace(request_for(step, tmp_path / "rows.csv", strategy, tmp_path / "out"), part_bytes=1_000)
    with pytest.raises(error) as expected:
        locally(request)
    with pytest.raises(error) as found:
        on_spark(spark, request)
    assert type(found.value) is type(expected.value)
    assert (found.value.message, found.value.hint) == (expected.value.message, expected.value.hint)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"], "nothing is left"


def test_an_input_without_rows_is_an_empty_state(spark: Any, tmp_path: Path) -> None:
    step = ReadCsv(header=True, schema=DataSchema((DataField("id", odf.Int64()),)))
    (tmp_path / "rows.csv").write_text("id\n1\n2\n", encoding="utf-8")
    (tmp_path / "none.csv").write_text("id\n", encoding="utf-8")
    first = request_for(step, tmp_path / "rows.csv", MergeSnapshot(("id",)), tmp_path / "first")
    second = replace(following(first, locally(first)), path=str(tmp_path / "none.csv"), out=str(tmp_path / "second"))
    found = on_spark(spark, second)
    assert [item.info for item in found.slices] == [item.info for item in locally(second).slices]
    assert read_slice(found.slices[0].path).column("op").to_pylist() == [1, 1]
    empty = replace(first, path=str(tmp_path / "none.csv"), out=str(tmp_path / "third"))
    assert on_spark(spark, empty) == locally(empty)

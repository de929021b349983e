"""Both lanes make the same slices of the same input, on any number of partitions and parts.

Every reader with every merge strategy, over few random rows with everything that might come out differently.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.ingest.lane_inputs import FORMATS, STRATEGIES, Shape
from support.ingest.lane_requests import following, lane_request, locally
from support.queries.cases import INTERPRETED, Tuned

from odfpy.chain.read_steps import ReadCsv, ReadGeoJson, ReadJson, ReadNdGeoJson, ReadNdJson, ReadStep
from odfpy.chain.sources import MergeAppend, MergeLedger, MergeSnapshot, MergeStrategy, MergeUpsertStream
from odfpy.codec.tree import from_tree, to_tree
from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.schema import DataField, DataSchema, Option
from odfpy.data.slices.slice import read_slice
from odfpy.engine.contract import JobRequest
from odfpy.engine.jobs import result_of, run_job
from odfpy.errors import BadValue, IngestError, OdfError, TooManyRetractions
from odfpy.ingest.lanes.client import JOB, ingested_data
from odfpy.ingest.lanes.request import LaneRequest, LaneResult
from odfpy.ingest.lanes.runs import write_table
from odfpy.ingest.lanes.source import SplittableInput
from odfpy.ingest.pipeline import IngestedData
from odfpy.ingest.retractions import RetractionLimit

pytestmark = pytest.mark.spark

TIME = "2024-01-01T00:00:00Z"
FEATURE = '{"type": "Feature", "properties": {"b": 1, "a": "]}"}, "geometry": {"type": "Point", "coordinates": [1, 2]}}'

# --- Lanes -----------------------------------------------------------------------------------------------------------


def request_for(step: ReadStep, path: Path, strategy: MergeStrategy, out: Path) -> LaneRequest:
    return lane_request(step, path, strategy, out, part_bytes=4_000, slice_rows=20, partitions=2)


COMPILED = ("csv", "parquet")
"""Formats whose rows come from plans that Spark compiles, as in the product; it takes longer than to interpret them."""


def on_spark(spark: Any, request: LaneRequest, *, is_compiled: bool = False) -> IngestedData:
    job = JobRequest(JOB, json.dumps(to_tree(request)), str(Path(request.out).parent))
    done = run_job(spark if is_compiled else Tuned(spark, **INTERPRETED), job)
    return ingested_data(from_tree(LaneResult, json.loads(result_of(done))), request)


def cut_into(parts: int, request: LaneRequest) -> LaneRequest:
    """The same, with as many parts of the input, at least, and partitions."""
    sizes = (2_000_000, *(int(20_000 * 0.95**step) for step in range(150)), 1)
    for size in sizes:
        found = replace(request, part_bytes=size, partitions=parts)
        if len(SplittableInput.of(found, Path(request.out).parent).parts) >= parts:
            return found
    raise AssertionError(f"{request.name} has less than {parts} parts")


def numbers_of_parts(name: str, strategy: type[MergeStrategy]) -> tuple[int, ...]:
    """All for an append. The jobs of other strategies are long, so each has one, in turn: every format and every
    strategy meets every number.
    """
    numbers = (1, 2, 7)
    if strategy is MergeAppend:
        return numbers
    return (numbers[(list(FORMATS).index(name) + STRATEGIES.index(strategy)) % 3],)


def assert_same(found: IngestedData, expected: IngestedData) -> None:
    """The same slices, to the last bit, and the same words on them."""
    assert [item.info for item in found.slices] == [item.info for item in expected.slices]
    assert (found.schema, found.schema_changed) == (expected.schema, expected.schema_changed)
    assert found.statistics == expected.statistics
    for mine, theirs in zip(found.slices, expected.slices, strict=True):
        assert mine.path.read_bytes() == theirs.path.read_bytes()


def pairs() -> Iterator[Any]:
    """Each format with each strategy; some show each of them once, the others are slow."""
    for at, name in enumerate(FORMATS):
        for number, strategy in enumerate(STRATEGIES):
            marks = () if at % len(STRATEGIES) == number else (pytest.mark.slow,)
            yield pytest.param(name, strategy, marks=marks, id=f"{name}-{strategy.KIND}")


@pytest.mark.parametrize(("name", "strategy"), list(pairs()))
def test_both_lanes_make_the_same_slices(spark: Any, tmp_path: Path, name: str, strategy: type[MergeStrategy]) -> None:
    """On any number of parts and partitions, on top of what the local lane has made of other rows."""
    form = FORMATS[name]
    # Formats that hold the same columns have the same, so that Spark compiles their queries once.
    shape = Shape.of(strategy, form.columns, random.Random(f"{sorted(form.columns)} {strategy.KIND}"))
    chance = random.Random(f"{name} {strategy.KIND}")
    first, second = tmp_path / "first", tmp_path / "second"
    for path in (first, second):
        form.write(path, shape.schema, shape.rows(30, chance))
    before = request_for(form.step(shape.schema), first, shape.strategy, tmp_path / "before")
    request = replace(following(before, locally(before)), path=str(second), name="second")
    expected = locally(replace(request, out=str(tmp_path / "local")))
    assert sum(item.info.num_rows for item in expected.slices) > 3
    for parts in numbers_of_parts(name, strategy):
        parted = cut_into(parts, replace(request, out=str(tmp_path / f"spark-{parts}")))
        assert_same(on_spark(spark, parted, is_compiled=name in COMPILED), expected)
    assert not list(tmp_path.glob("*.runs")), "nothing else is left"


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (ReadCsv(header=True, infer_schema=True, encoding="utf-16"), "event_time,id,text\n" + f"{TIME},1,ž\n" * 99),
        (ReadJson(), "[" + ",".join([f'{{"event_time": "{TIME}", "id": {at}}}' for at in range(99)]) + "]"),
        (ReadNdJson(encoding="latin-1"), "".join(f'{{"event_time": {at}, "text": "é"}}\n' for at in range(99, 0, -1))),
        (ReadNdJson(), f'{{"event_time": "{TIME}", "n": null, "s": {{"a": 1, "n": null}}}}\n' * 99),
        (ReadCsv(header=True, infer_schema=True), "event_time,id,n\n" + f"{TIME},1,\n" * 99),
        (ReadGeoJson(), f'{{"type": "FeatureCollection", "features": [{", ".join([FEATURE] * 50)}]}}'),
        (ReadNdGeoJson(), f"{FEATURE}\n" * 50),
    ],
    ids=lambda step: type(step).__name__,
)
def test_what_follows_from_the_whole_file_is_the_same(spark: Any, tmp_path: Path, step: ReadStep, text: str) -> None:
    """Inferred types, other encodings, event times that were not declared as such."""
    (tmp_path / "rows").write_bytes(text.encode(getattr(step, "encoding", None) or "utf-8"))
    request = request_for(step, tmp_path / "rows", MergeAppend(), tmp_path / "local")
    found = on_spark(spark, replace(request, part_bytes=1_000, out=str(tmp_path / "spark")))
    assert_same(found, locally(request))
    assert found.statistics.read >= 50


def test_preprocessed_rows_are_taken_in_parts(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(100)), "list": [[at, None] for at in range(100)]})
    write_table(rows, str(tmp_path / "rows"))
    step = ReadCsv()
    request = replace(request_for(step, tmp_path / "rows", MergeSnapshot(("id",)), tmp_path / "spark"), read=None)
    found = on_spark(spark, cut_into(7, request))
    assert_same(found, locally(replace(request, out=str(tmp_path / "local"))))


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (MergeLedger(("key",)), [(0, "3.0", 2)]),
        (MergeSnapshot(("key",)), [(1, "1.0", 1), (0, "3.0", 2), (1, "5.0", 1), (2, "nan", 1), (3, "nan", 2)]),
        (MergeUpsertStream(("key",)), [(0, "3.0", 2), (2, "nan", 1), (3, "nan", 2)]),
    ],
    ids=lambda strategy: getattr(strategy, "KIND", ""),
)
def test_nan_is_found_among_the_numbers_of_the_history(
    spark: Any, tmp_path: Path, strategy: MergeStrategy, expected: list[tuple[int, str, int]]
) -> None:
    """Least and greatest values of Parquet leave NaN out, and who believes them does not find the key."""
    fields = (DataField("key", odf.Float64()), DataField("value", odf.Int64()))
    step = ReadNdJson(schema=DataSchema(fields))
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("".join(f'{{"key": {key}, "value": 1}}\n' for key in ("1", '"NaN"', "5")), encoding="utf-8")
    second.write_text("".join(f'{{"key": {key}, "value": 2}}\n' for key in ('"NaN"', "3")), encoding="utf-8")
    before = request_for(step, first, strategy, tmp_path / "before")
    request = replace(following(before, locally(before)), path=str(second))
    found = on_spark(spark, replace(request, out=str(tmp_path / "spark")))
    assert_same(found, locally(replace(request, out=str(tmp_path / "local"))))
    rows = read_slice(found.slices[0].path).select(["op", "key", "value"]).to_pylist()
    assert [(row["op"], str(row["key"]), row["value"]) for row in rows] == expected


SIMPLE = DataSchema((DataField("id", odf.Int64()), DataField("key", Option(odf.String()))))
CSV = ReadCsv(null_value="NULL", schema=SIMPLE)


@pytest.mark.parametrize(
    ("step", "text", "strategy", "error"),
    [
        (CSV, "1,a\n" * 500 + "x,a\n", MergeAppend(), BadValue),
        (CSV, "1,a\n" * 500 + "2,NULL\n" + "3,a\n" * 500, MergeLedger(("key",)), IngestError),
        (CSV, "".join(f"{row},a\n" for row in range(500)) + "7,b\n", MergeSnapshot(("id",)), IngestError),
        (CSV, '1,"a"\n' * 500 + '2,"never closed\n' * 3, MergeAppend(), BadValue),
        (ReadJson(schema=SIMPLE), "[" + '{"id": 1},\n' * 300 + '{"id": 1.5}]', MergeAppend(), BadValue),
        (ReadJson(schema=SIMPLE), "[" + '{"id": 1},\n' * 300 + '{"id": 2} {}]', MergeAppend(), BadValue),
        (ReadCsv(header=True), "event_time\n" + f"{TIME}\n" * 200 + "soon\n", MergeAppend(), BadValue),
        (replace(CSV, header=True), "Key,id\n" + "1,2\n" * 500, MergeAppend(), IngestError),
    ],
    ids=[
        "a value does not fit",
        "a key is null",
        "a key comes twice",
        "quotes are not closed",
        "an item does not fit",
        "a comma is missing",
        "text is not a time",
        "columns are in other places",
    ],
)
def test_both_lanes_refuse_with_the_same_words(
    spark: Any, tmp_path: Path, step: ReadStep, text: str, strategy: MergeStrategy, error: type[OdfError]
) -> None:
    (tmp_path / "rows").write_text(text, encoding="utf-8")
    request = replace(request_for(step, tmp_path / "rows", strategy, tmp_path / "out"), part_bytes=1_000)
    with pytest.raises(error) as expected:
        locally(request)
    with pytest.raises(error) as found:
        on_spark(spark, request)
    assert type(found.value) is type(expected.value)
    assert (found.value.message, found.value.hint) == (expected.value.message, expected.value.hint)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"], "nothing is left"


def test_an_input_without_rows_is_an_empty_state(spark: Any, tmp_path: Path) -> None:
    step = ReadCsv(header=True, schema=DataSchema((DataField("id", odf.Int64()),)))
    (tmp_path / "rows.csv").write_text("id\n1\n2\n", encoding="utf-8")
    (tmp_path / "none.csv").write_text("id\n", encoding="utf-8")
    first = request_for(step, tmp_path / "rows.csv", MergeSnapshot(("id",)), tmp_path / "first")
    second = replace(following(first, locally(first)), path=str(tmp_path / "none.csv"), out=str(tmp_path / "second"))
    found = on_spark(spark, second)
    assert [item.info for item in found.slices] == [item.info for item in locally(second).slices]
    assert read_slice(found.slices[0].path).column("op").to_pylist() == [1, 1]
    assert on_spark(spark, replace(second, limit=RetractionLimit())).warnings == (
        DataWarning(
            WarningKind.RETRACTIONS,
            "retracted all 2 rows of the current state, such as id = 1; id = 2: the new state has no rows",
            2,
            ("id = 1", "id = 2"),
        ),
    )
    empty = replace(first, path=str(tmp_path / "none.csv"), out=str(tmp_path / "third"))
    assert on_spark(spark, empty) == locally(empty)


def test_times_that_are_cut_are_told_by_both(spark: Any, tmp_path: Path) -> None:
    keyed = DataField("event_time", odf.Timestamp(odf.TimeUnit.MICROSECOND))  # as the coordinator reads it
    step = ReadCsv(schema=DataSchema((keyed,)))
    for name, times in (("rows", ("00.123456", "01", "02.001")), ("again", ("00.123999",))):
        (tmp_path / name).write_text("".join(f"2024-01-01T00:00:{time}Z\n" for time in times), encoding="utf-8")
    first = request_for(step, tmp_path / "rows", MergeLedger(("event_time",)), tmp_path / "first")
    second = replace(following(first, locally(first)), path=str(tmp_path / "again"), out=str(tmp_path / "second"))
    for request, rows in ((replace(first, out=str(tmp_path / "spark")), 3), (second, 0)):
        found = on_spark(spark, request)
        assert sum(item.info.num_rows for item in found.slices) == rows
        (warning,) = found.warnings
        assert (warning.kind, warning.count, warning.examples) == (WarningKind.CUT_TIMES, 1, ("event_time",))
        assert "rows whose keys differ only there get the same key" in warning.message


def test_a_state_that_ends_most_rows_is_refused_by_both(spark: Any, tmp_path: Path) -> None:
    step = ReadCsv(header=True, schema=DataSchema((DataField("id", odf.Int64()),)))
    (tmp_path / "rows.csv").write_text("id\n" + "".join(f"{row}\n" for row in range(40)), encoding="utf-8")
    (tmp_path / "few.csv").write_text("id\n1\n", encoding="utf-8")
    first = request_for(step, tmp_path / "rows.csv", MergeSnapshot(("id",)), tmp_path / "first")
    request = replace(
        following(first, locally(first)),
        path=str(tmp_path / "few.csv"),
        out=str(tmp_path / "second"),
        limit=RetractionLimit(),
    )
    with pytest.raises(
        TooManyRetractions, match="would retract 39 of 40 rows of the current state, such as id = 0"
    ) as here:
        locally(request)
    with pytest.raises(TooManyRetractions) as there:
        on_spark(spark, request)
    assert (there.value.message, there.value.hint) == (here.value.message, here.value.hint)

"""Preprocessing from file to file: the same rows as in memory, wherever the input is cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from odfpy.chain.read_steps import ReadCsv
from odfpy.chain.sources import MergeAppend
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.schema import DataField, DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.dataset.transform import TransformSql
from odfpy.engine import ipc
from odfpy.engine.registry import EngineRegistry
from odfpy.errors import BadValue, InvalidQuery
from odfpy.ingest.lanes.preprocessed import preprocess_input
from odfpy.ingest.lanes.request import LaneRequest
from odfpy.ingest.lanes.source import open_table
from odfpy.ingest.preprocess import preprocess
from odfpy.ingest.read import read

STEP = ReadCsv(schema=DataSchema((DataField("id", odf.Int64()), DataField("x", odf.Float64()))))


@pytest.fixture
def engines(tmp_path: Path) -> EngineRegistry:
    return EngineRegistry.standard(tmp_path / "run")


@pytest.fixture
def request_for_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LaneRequest:
    """5000 rows of about ten bytes, in batches of 700 and parts of 4 kB."""
    monkeypatch.setattr(ipc, "BATCH_ROWS", 700)
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{number},{1e9 / (number + 3)!r}\n" for number in range(5_000)), encoding="utf-8")
    return LaneRequest(
        read=STEP,
        path=str(path),
        name="rows.csv",
        strategy=MergeAppend(),
        vocab=DEFAULT_VOCABULARY,
        schema=None,
        slices=(),
        next_offset=0,
        system_time=Timestamp(0),
        source_event_time=Timestamp(0),
        watermark=None,
        out=str(tmp_path / "data"),
        part_bytes=4_000,
        slice_rows=1_000,
        partitions=1,
    )


@pytest.mark.parametrize(
    "query",
    [
        "select id, x * 2 as x from input where id % 3 <> 1",
        "select sum(x) as total, avg(x) as mean from input",
        "select id from input where id < 0",
        "select id, x from input order by x limit 7",
    ],
)
def test_the_rows_are_those_of_preprocessing_in_memory(
    request_for_rows: LaneRequest, engines: EngineRegistry, tmp_path: Path, query: str
) -> None:
    transform = TransformSql(engine="datafusion", query=query)
    expected, _ = preprocess(transform, read(STEP, Path(request_for_rows.path)), engines)
    following, remarks = preprocess_input(transform, request_for_rows, engines, tmp_path)
    assert following == replace(request_for_rows, read=None, path=following.path)
    found = open_table(following.path)
    assert found.schema == expected.schema
    assert found.equals(expected), "to the last bit of a sum"
    assert remarks == ()
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", "preprocessed"}


def test_errors_are_those_of_reading_and_of_the_query(
    request_for_rows: LaneRequest, engines: EngineRegistry, tmp_path: Path
) -> None:
    with pytest.raises(InvalidQuery, match="nothing_like_it"):
        preprocess_input(
            TransformSql(engine="datafusion", query="select nothing_like_it from input"),
            request_for_rows,
            engines,
            tmp_path,
        )
    with Path(request_for_rows.path).open("a", encoding="utf-8") as file:
        file.write("5000,many\n")
    with pytest.raises(BadValue, match=r"rows\.csv, line 5001"):
        preprocess_input(
            TransformSql(engine="datafusion", query="select id from input"), request_for_rows, engines, tmp_path
        )


def test_even_batches_leave_no_trace_of_how_tables_were_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ipc, "BATCH_ROWS", 4)
    rows = pa.table({"a": range(11)})
    for cuts in ([11], [3, 3, 5], [4, 4, 3], [0, 11, 0]):
        starts = [sum(cuts[:at]) for at in range(len(cuts))]
        found = list(ipc.even_batches(rows.slice(start, size) for start, size in zip(starts, cuts, strict=True)))
        assert [batch.num_rows for batch in found] == [4, 4, 3]
        assert pa.Table.from_batches(found).equals(rows)
    assert list(ipc.even_batches([rows.slice(0, 0)])) == []

"""Datasets that consist only of slices, as inputs of an engine, and requests over them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from support.fixtures import KAMU

from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.slices.slice import read_slice
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary, OperationType
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.transform import SqlQueryStep, TransformSql
from odfpy.engine.contract import (
    AnalyzeRequest,
    Arrival,
    InputSchema,
    SqlTable,
    TransformRequest,
    TransformRequestInput,
    TransformResponse,
    TransformResponseSuccess,
    Watermark,
)

ID = DatasetId(bytes(32))
TIME = pa.timestamp("ms", "UTC")
SYSTEM_TIME = Timestamp.parse("2025-01-01T00:00:00.123456789Z")
SYMBOLS = {kind.symbol: int(kind) for kind in OperationType}

Query = str | Sequence[tuple[str | None, str]]


def required(name: str, data_type: pa.DataType) -> pa.Field:
    return pa.field(name, data_type, nullable=False)


def time(text: str) -> datetime:
    return Timestamp.parse(text).to_datetime()


@dataclass
class Source:
    """An input: its slices, and its name in the query.

    Rows are given as (symbol of the operation type, event time, data columns...).
    """

    folder: Path
    alias: str
    columns: Sequence[pa.Field]
    vocab: DatasetVocabulary = DEFAULT_VOCABULARY
    event_time: pa.DataType = TIME
    row_group: int | None = None
    write: Mapping[str, Any] = field(default_factory=dict)
    slices: list[tuple[str, int, int]] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        names = self.vocab.columns
        types = (pa.int64(), pa.int32(), TIME, self.event_time)
        return pa.schema([*(required(n, t) for n, t in zip(names, types, strict=True)), *self.columns])

    @property
    def end(self) -> int:
        return self.slices[-1][2] + 1 if self.slices else 0

    def add(self, rows: Iterable[tuple[Any, ...]], watermark: str | None = None, *, commit: int = 0) -> Source:
        """Add a slice of rows that arrive when the dataset has a given watermark, or none.

        Args:
            rows: the rows.
            watermark: watermark of the dataset before them.
            commit: their system time, in milliseconds: rows with the same one were committed together.
        """
        rows = list(rows)
        start = self.end
        system = [
            pa.array(range(start, start + len(rows)), pa.int64()),
            pa.array([SYMBOLS[row[0]] for row in rows], pa.int32()),
            pa.array([commit] * len(rows), TIME),
            pa.array([time(row[1]) if isinstance(row[1], str) else row[1] for row in rows]).cast(self.event_time),
        ]
        data = [pa.array([row[2 + at] for row in rows], f.type) for at, f in enumerate(self.columns)]
        # A later slice has a name that sorts first, so that nothing relies on the order of names.
        path = self.folder / f"{self.alias}-{999 - len(self.slices)}"
        group = self.row_group or len(rows)
        pq.write_table(pa.table([*system, *data], schema=self.schema), path, **{"row_group_size": group, **self.write})
        self.slices.append((str(path), start, start + len(rows) - 1))
        if watermark is not None:
            self.arrivals.append(Arrival(str(path), Timestamp.parse(watermark)))
        return self

    def schema_file(self) -> str:
        path = self.folder / f"{self.alias}.schema"
        pq.write_table(self.schema.empty_table(), path)
        return str(path)

    def paths(self) -> tuple[str, ...]:
        return tuple(path for path, _, _ in self.slices)

    def input(
        self,
        start: int = 0,
        end: int | None = None,
        watermark: str | None = None,
        *,
        prev_watermark: str | None = None,
        history: bool = False,
    ) -> TransformRequestInput:
        """Rows `start` to `end`, exclusive; an empty interval is none. With `history`, the slices before are given."""
        stop = self.end if end is None else end
        interval = OffsetInterval(start, stop - 1) if stop > start else None
        paths = tuple(path for path, first, last in self.slices if interval and first < stop and last >= start)
        return TransformRequestInput(
            dataset_id=ID,
            dataset_alias=self.alias,
            query_alias=self.alias,
            vocab=self.vocab,
            offset_interval=interval,
            data_paths=paths,
            schema_file=self.schema_file(),
            explicit_watermarks=(Watermark(Timestamp(0), Timestamp.parse(watermark)),) if watermark else (),
            history_paths=tuple(path for path, first, _ in self.slices if first < start) if history else None,
            prev_offset=start - 1 if start else None,
            prev_watermark=Timestamp.parse(prev_watermark) if prev_watermark else None,
            arrivals=tuple(self.arrivals),
        )

    def analyzed(self) -> InputSchema:
        return InputSchema(self.alias, self.vocab, self.schema_file())

    def table(self) -> SqlTable:
        return SqlTable(self.alias, self.schema_file(), self.paths(), self.vocab)


def queries(query: Query, engine: str = "spark") -> TransformSql:
    steps = [(None, query)] if isinstance(query, str) else query
    return TransformSql(engine=engine, queries=tuple(SqlQueryStep(alias=alias, query=text) for alias, text in steps))


def analyze_request(
    query: Query, *sources: Source, vocab: DatasetVocabulary = DEFAULT_VOCABULARY, engine: str = "spark"
) -> AnalyzeRequest:
    return AnalyzeRequest(queries(query, engine), vocab, tuple(source.analyzed() for source in sources))


def transform_request(
    folder: Path,
    query: Query,
    *inputs: TransformRequestInput,
    next_offset: int = 0,
    vocab: DatasetVocabulary = DEFAULT_VOCABULARY,
    engine: str = "spark",
    system_time: Timestamp = SYSTEM_TIME,
) -> TransformRequest:
    out = folder / "out"
    out.mkdir(exist_ok=True)
    return TransformRequest(
        dataset_id=ID,
        dataset_alias="result",
        system_time=system_time,
        vocab=vocab,
        transform=queries(query, engine),
        query_inputs=inputs,
        next_offset=next_offset,
        new_checkpoint_path=str(out / "checkpoint"),
        new_data_path=str(out / "slice"),
    )


def success(response: TransformResponse) -> TransformResponseSuccess:
    assert isinstance(response, TransformResponseSuccess), response
    return response


def table_of(response: TransformResponse, vocab: DatasetVocabulary = DEFAULT_VOCABULARY) -> pa.Table:
    """Return the slice of a response."""
    (made,) = success(response).slices
    return read_slice(made.path, vocab=vocab)


def rows_of(response: TransformResponse, *columns: str, vocab: DatasetVocabulary = DEFAULT_VOCABULARY) -> list[Any]:
    """Return the rows of the slice of a response as (symbol, columns...); without columns, all that are data."""
    if not success(response).slices:
        return []
    table = table_of(response, vocab)
    names = columns or table.column_names[3:]
    return [
        (OperationType(row[vocab.operation_type_column]).symbol, *(row[name] for name in names))
        for row in table.to_pylist()
    ]


def state(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Return the multiset of a changelog, with negative counts for retractions of missing rows."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for symbol, *values in rows:
        counts[tuple(values)] += OperationType(SYMBOLS[symbol]).weight
    return Counter({row: count for row, count in counts.items() if count})


# --- Datasets of the reference ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordedTransform:
    """One ExecuteTransform of a dataset made by the reference, with the request that repeats it."""

    request: TransformRequest
    logical_hash: str | None
    data_path: Path
    watermark: Timestamp | None


def recorded_transforms(name: str, out: Path, engine: str | None = None) -> list[RecordedTransform]:
    """Return the transforms of a dataset of the reference, oldest first."""
    blocks = _blocks(name)
    transform = next(block["event"] for block in blocks if block["event"]["kind"] == "SetTransform")
    steps = [(step.get("alias"), step["query"]) for step in transform["transform"]["queries"]]
    aliases = [(entry["alias"], _dataset_of(entry["datasetRef"])) for entry in transform["inputs"]]
    found = []
    for block in blocks:
        event = block["event"]
        if event["kind"] != "ExecuteTransform":
            continue
        inputs = [
            _recorded_input(out, alias, dataset, entry)
            for (alias, dataset), entry in zip(aliases, event["queryInputs"], strict=True)
        ]
        request = transform_request(
            out,
            steps,
            *inputs,
            next_offset=event["newData"]["offsetInterval"]["start"],
            engine=engine or transform["transform"]["engine"],
            system_time=Timestamp.parse(block["systemTime"]),
        )
        found.append(
            RecordedTransform(
                request,
                event["newData"]["logicalHash"],
                KAMU / name / "data" / event["newData"]["physicalHash"],
                Timestamp.parse(event["newWatermark"]),
            )
        )
    return found


def _blocks(name: str) -> list[dict[str, Any]]:
    class Text(yaml.SafeLoader):
        """Parses times as text: they have nanoseconds."""

    Text.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith("timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    documents = yaml.load_all((KAMU / name / "log.yaml").read_text("utf-8"), Text)
    return sorted((document["content"] for document in documents), key=lambda block: block["sequenceNumber"])


def _dataset_of(reference: str) -> str:
    for path in KAMU.iterdir():
        log = path / "log.yaml"
        if log.exists() and re.search(rf"datasetId: {reference}\n\s*datasetKind: ", log.read_text("utf-8")):
            return path.name
    raise LookupError(reference)


def _recorded_input(out: Path, alias: str, dataset: str, entry: dict[str, Any]) -> TransformRequestInput:
    seen: list[Watermark] = []
    slices = []
    for block in _blocks(dataset):
        event = block["event"]
        if event.get("newWatermark"):
            seen.append(Watermark(Timestamp.parse(block["systemTime"]), Timestamp.parse(event["newWatermark"])))
        if event.get("newData"):
            slices.append(
                (event["newData"]["offsetInterval"], KAMU / dataset / "data" / event["newData"]["physicalHash"])
            )
            if slices[-1][0]["end"] == entry["newOffset"]:
                break
    start = entry.get("prevOffset", -1) + 1
    schema_file = out / f"{alias}.schema"
    pq.write_table(read_slice(slices[0][1]).schema.empty_table(), schema_file)
    return TransformRequestInput(
        dataset_id=ID,
        dataset_alias=dataset,
        query_alias=alias,
        vocab=DEFAULT_VOCABULARY,
        offset_interval=OffsetInterval(start, entry["newOffset"]),
        data_paths=tuple(str(path) for interval, path in slices if interval["end"] >= start),
        schema_file=str(schema_file),
        explicit_watermarks=tuple(seen),
    )

"""Rows of a query's output with their input rows, and the query over only some rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support.engine.requests import Source, rows_of, transform_request
from support.queries.cases import Case, Pull, line_of

from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.vocabulary import OperationType
from odfpy.dataset.transform import TemporalTable, TransformSql
from odfpy.engine.contract import TransformRequestInput, TransformResponseSuccess
from odfpy.engine.ipc import map_stream
from odfpy.engine.spark.execution import operations
from odfpy.engine.spark.provenance.operation import trace
from odfpy.engine.tracing import INPUT, OFFSET, WANTED, WAY, WEIGHT, TraceRequest, TraceResponseSuccess

Cited = frozenset[tuple[int, int]]


@dataclass
class Traces:
    """A query over inputs that arrived in several pulls, and are processed at once.

    Attributes:
        pulls: number of pulls of the case that have arrived.
    """

    spark: Any
    case: Case
    folder: Path
    temporal: tuple[TemporalTable, ...] = ()
    pulls: int = 0
    _runs: int = 0
    sources: Mapping[str, Source] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sources = {alias: Source(self.folder, alias, fields) for alias, fields in self.case.inputs.items()}

    def arrive(self, pull: Pull) -> None:
        """Add new input."""
        watermarks = self.case.watermarks(self.pulls)
        for alias, rows in pull.rows.items():
            if rows:
                self.sources[alias].add(rows, watermarks[alias] + "Z" if alias in watermarks else None)
        self.pulls += 1

    # --- Runs ---

    def result(self, chosen: Collection[tuple[int, int]] | None = None) -> list[str]:
        """Return the result over all rows of the inputs, or over some."""
        response = operations.transform(self.spark, self._request(chosen))
        assert isinstance(response, TransformResponseSuccess), response
        return [line_of(row) for row in rows_of(response)]

    def _request(self, chosen: Collection[tuple[int, int]] | None = None) -> Any:
        folder = self._folder()
        inputs = [self._input(number, alias, chosen, folder) for number, alias in enumerate(self.sources)]
        request = transform_request(folder, self.case.steps, *inputs)
        return replace(request, transform=self._transform(request.transform))

    def _transform(self, transform: TransformSql) -> TransformSql:
        return replace(transform, temporal_tables=self.temporal or None)

    def _folder(self) -> Path:
        self._runs += 1
        folder = self.folder / f"run-{self._runs}"
        folder.mkdir()
        return folder

    def _input(
        self, number: int, alias: str, chosen: Collection[tuple[int, int]] | None, folder: Path
    ) -> TransformRequestInput:
        source, watermark = self.sources[alias], self.case.watermarks(self.pulls).get(alias)
        whole = source.input(0, watermark=None if watermark is None else watermark + "Z")
        if chosen is None:
            return whole
        offsets = sorted(offset for at, offset in chosen if at == number)
        paths, arrivals = [], []
        for path, first, last in source.slices:
            places = [offset - first for offset in offsets if first <= offset <= last]
            copy = str(folder / f"{alias}-{first}")
            pq.write_table(pq.read_table(path).take(pa.array(places, pa.int64())), copy)
            if places:
                paths.append(copy)
                arrivals += [replace(one, path=copy) for one in source.arrivals if one.path == path]
        interval = OffsetInterval(offsets[0], offsets[-1]) if offsets else None
        return replace(whole, data_paths=tuple(paths), arrivals=tuple(arrivals), offset_interval=interval)

    # --- Traces ---

    def traced(self, *, for_earlier: bool = False) -> list[tuple[str, list[Cited]]] | None:
        """Each row of the result, with all ways in which it is made; None if that does not do `for_earlier` pulls."""
        request = self._request()
        response = operations.transform(self.spark, request)
        assert isinstance(response, TransformResponseSuccess), response
        if not response.slices:
            return []
        table = pq.read_table(response.slices[0].path)
        numbers = pa.array(range(table.num_rows), pa.int64())
        wanted = table.drop_columns(["offset", "op", "system_time"]).append_column(WANTED, numbers)
        weights = pa.array([1] * table.num_rows, pa.int32())
        folder = self._folder()
        pq.write_table(wanted.append_column(WEIGHT, weights), folder / "wanted")
        asked = TraceRequest(
            transform=request.transform,
            vocab=request.vocab,
            query_inputs=request.query_inputs,
            wanted_path=str(folder / "wanted"),
            output_path=str(folder / "answer"),
            has_earlier=for_earlier,
        )
        answer = trace(self.spark, asked)
        assert isinstance(answer, TraceResponseSuccess), answer
        if not answer.is_complete:
            return None
        ways: defaultdict[int, defaultdict[int, set[tuple[int, int]]]] = defaultdict(lambda: defaultdict(set))
        for row in map_stream(str(folder / "answer")).to_pylist():
            ways[row[WANTED]][row[WAY]].add((row[INPUT], row[OFFSET]))
        lines = [line_of(row) for row in rows_of(response)]
        return [(text, [frozenset(way) for way in ways[at].values()]) for at, text in enumerate(lines)]

    def present(self) -> Iterator[tuple[int, int]]:
        """Yield the net rows of the inputs: of equal rows, the last ones."""
        for number, source in enumerate(self.sources.values()):
            rows = [row for path, _, _ in source.slices for row in pq.read_table(path).to_pylist()]
            there: defaultdict[str, list[int]] = defaultdict(list)
            for row in sorted(rows, key=lambda row: row["offset"]):
                there[_content(row)].append(row["offset"] if OperationType(row["op"]).weight > 0 else -1)
            for offsets in there.values():
                gained = [offset for offset in offsets if offset >= 0]
                left = 2 * len(gained) - len(offsets)
                yield from ((number, offset) for offset in (gained[-left:] if left > 0 else ()))


def _content(row: Mapping[str, Any]) -> str:
    hidden = ("offset", "op", "system_time")
    values = (value for name, value in row.items() if name not in hidden)
    return repr([value + 0.0 if isinstance(value, float) else value for value in values])  # -0.0 is 0.0


def without(rows: Sequence[tuple[int, int]], one: tuple[int, int]) -> list[tuple[int, int]]:
    """Return all rows but one."""
    return [row for row in rows if row != one]

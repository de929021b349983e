"""Traces of a derivative's rows to input rows by its engine, and replays of the cited rows only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from odfpy.coordinator.provenance.row_questions import TraceGroup
from odfpy.coordinator.provenance.stored_rows import DatasetRows, RowKey
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.offset_interval import OffsetInterval
from odfpy.engine import contract
from odfpy.engine.registry import Engine
from odfpy.engine.responses import as_error
from odfpy.engine.tracing import (
    BRANCH,
    INPUT,
    OFFSET,
    WANTED,
    WAY,
    WEIGHT,
    ColumnOrigin,
    Tracer,
    TraceRequest,
    TraceResponseSuccess,
)
from odfpy.errors import InternalError
from odfpy.provenance.errors import UnknownProvenance

if TYPE_CHECKING:
    import pyarrow as pa

CitedRows: TypeAlias = frozenset[tuple[int, int]]
"""Rows of inputs, each as number of the input and offset."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """The inputs of a row.

    Attributes:
        rows: the input rows.
        branches: query branches that produced the row, each with the number of the input and of the branch, -1 for any.
    """

    rows: CitedRows
    branches: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class RowTraces:
    """Traces of a derivative's rows by an engine.

    Attributes:
        dataset: the derivative.
        rows: rows of the derivative.
        engine: engine of its query.
    """

    dataset: StoredDataset
    rows: DatasetRows
    engine: Engine

    # --- Derivations of rows ---

    def ways(self, question: TraceGroup) -> tuple[Mapping[int, list[Derivation]], tuple[ColumnOrigin, ...]] | None:
        """Return all derivations of each row, in a fixed order, and the origins of the columns.

        Returns:
            None if rows are traced as of several runs, and the engine cannot trace them together. Rows that changed
            in between are missing in the result.

        Raises:
            UnknownProvenance: the engine does not support traces.
            InvalidQuery, EngineError: the engine rejects the query, or fails.
        """
        if not isinstance(self.engine, Tracer):
            raise UnknownProvenance(
                f"The engine {self.engine.name} of {self.dataset.handle} does not provide provenance",
                hint="Rows of queries for `engine: spark` and `engine: datafusion` can be traced.",
            )
        with self.dataset.workspace_folder.scratch() as scratch:
            request = TraceRequest(
                transform=question.last.set_transform.transform,
                vocab=question.last.before.vocab,
                query_inputs=question.inputs(scratch),
                wanted_path=str(scratch / "wanted"),
                output_path=str(scratch / "made-of"),
                recorded_schema=self.dataset.state.schema,
                has_earlier=bool(question.as_of),
            )
            self._write_wanted(question, scratch / "wanted")
            response = self.engine.trace(request)
            if not isinstance(response, TraceResponseSuccess):
                raise as_error(response)
            if not response.is_complete:
                return None
            return self._ways(question, scratch / "made-of"), response.origins

    def _write_wanted(self, question: TraceGroup, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        signs = {row.offset: question.sign(row) for row in question.rows}
        parts = [part for _, _, part in self.rows.parts(sorted(signs))]
        table = pa.concat_tables(parts, promote_options="default")
        offsets = table.column(question.last.before.vocab.offset_column)
        weights = pa.array([signs[offset] for offset in offsets.to_pylist()], pa.int32())
        names = [name for name in self.rows.columns if name in table.column_names]
        shown = table.select(names).append_column(WANTED, offsets.cast(pa.int64())).append_column(WEIGHT, weights)
        pq.write_table(shown, path)

    @staticmethod
    def _ways(question: TraceGroup, path: Path) -> Mapping[int, list[Derivation]]:
        from odfpy.engine.ipc import map_stream

        by_way: defaultdict[tuple[int, int], set[tuple[int, int, int]]] = defaultdict(set)
        table = map_stream(str(path))
        columns = (table.column(name).to_pylist() for name in (WANTED, WAY, INPUT, OFFSET, BRANCH))
        for offset, way, source, cited, branch in zip(*columns, strict=True):
            known = by_way[offset, way]
            if source >= 0:
                known.add((source, cited, branch))
        ways: defaultdict[int, list[Derivation]] = defaultdict(list)
        newer: set[int] = set()
        for (offset, _), sources in by_way.items():
            rows = frozenset((source, cited) for source, cited, _ in sources)
            if not question.by_rows or _of_run(question, offset, rows):
                ways[offset].append(Derivation(rows, frozenset((source, branch) for source, _, branch in sources)))
            if not question.holds(offset, rows):
                newer.add(offset)
        return {offset: ways for offset, ways in ways.items() if offset not in newer}

    # --- Replays ---

    def replayed(self, question: TraceGroup, cited: Collection[tuple[int, int]]) -> Collection[tuple[RowKey, int]]:
        """Return the result of the query over the cited input rows only: row keys with 1, or -1 for retractions.

        Raises:
            InvalidQuery, EngineError: the engine rejects the query, or fails.
        """
        by_input: defaultdict[int, list[int]] = defaultdict(list)
        for source, offset in sorted(cited):
            by_input[source].append(offset)
        run = question.last
        with self.dataset.workspace_folder.scratch() as scratch:
            given = question.inputs(scratch)
            inputs = tuple(
                _only(item, DatasetRows(run.inputs[number].dataset), by_input[number], scratch / str(number))
                for number, item in enumerate(given)
            )
            request = replace(
                run.request(scratch),
                query_inputs=inputs,
                next_offset=0,
                recorded_schema=self.dataset.state.schema,
                query_changed=False,
            )
            response = self.engine.transform(request)
            if isinstance(response, (contract.TransformResponseInvalidQuery, contract.TransformResponseInternalError)):
                raise as_error(response)
            if not isinstance(response, contract.TransformResponseSuccess):
                raise InternalError("The engine asks for rows of before a first run")
            rows = (row for slice_ in response.slices for row in self.rows.of_table(self._read(slice_.path)))
            return {(row.key, question.sign(row)) for row in rows}

    def _read(self, path: str) -> pa.Table:
        from odfpy.data.slices.slice import read_slice

        return read_slice(path, vocab=self.dataset.state.vocab)


def _of_run(question: TraceGroup, offset: int, cited: Collection[tuple[int, int]]) -> bool:
    """Return whether input rows were new in the run that added a row."""
    run = next(candidate for candidate in question.runs if candidate.has(offset))
    return all(run.is_new(source, row) for source, row in cited)


def _only(
    given: contract.TransformRequestInput, rows: DatasetRows, offsets: Sequence[int], folder: Path
) -> contract.TransformRequestInput:
    """Restrict an input to given rows, in files with the arrival times of their slices."""
    import pyarrow.parquet as pq

    folder.mkdir()
    known = {arrival.path: arrival for arrival in given.arrivals}
    paths, arrivals = [], []
    for number, (_, path, part) in enumerate(rows.parts(offsets)):
        copy = str(folder / str(number))
        pq.write_table(part, copy)
        paths.append(copy)
        if str(path) in known:
            arrivals.append(replace(known[str(path)], path=copy))
    return replace(
        given,
        offset_interval=OffsetInterval(offsets[0], offsets[-1]) if offsets else None,
        data_paths=tuple(paths),
        arrivals=tuple(arrivals),
        history_paths=None,
        prev_offset=None,
        prev_watermark=None,
    )

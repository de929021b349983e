"""Tracing of a workspace's rows to their origins (`odfpy.provenance`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from odfpy.chain.state import ChainState
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.provenance.guarded_rows import GuardedDatasets, RowGuard
from odfpy.coordinator.provenance.row_origins import origins_of
from odfpy.coordinator.provenance.row_questions import TraceGroup, TraceGroups
from odfpy.coordinator.provenance.row_traces import CitedRows, Derivation, RowTraces
from odfpy.coordinator.provenance.stored_rows import DatasetRow, DatasetRows
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transform.analysis import analyze
from odfpy.coordinator.transform.history import TransformRun, runs_of
from odfpy.data.vocabulary import OperationType
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.engine.contract import ROW_BY_ROW, AnalyzeResponseSuccess
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.tracing import ColumnOrigin
from odfpy.errors import OdfError, UsageError, did_you_mean
from odfpy.provenance.errors import NoSuchColumn, NoSuchRow, UnknownProvenance
from odfpy.provenance.hops import provenance_of
from odfpy.provenance.model import Check, ColumnSource, Provenance, Rows, Step, TracedDataset, TracedRow

if TYPE_CHECKING:
    from odfpy.chain.events import SetTransform

Analyze = Callable[[StoredDataset, "SetTransform"], AnalyzeResponseSuccess | None]


@dataclass
class TracedDatasets:
    """The datasets of a workspace, as input of a trace.

    Attributes:
        analyze: returns the engine's analysis of a query.
        check: whether to replay cited rows.
    """

    storage: Storage
    engines: EngineRegistry
    analyze: Analyze
    check: bool = True

    def order(self, dataset_id: DatasetId) -> list[DatasetId]:
        """Return a dataset and all its direct and indirect inputs, each before its own inputs.

        Raises:
            DependencyCycle: the datasets form a cycle.
        """
        lineage = Lineage(self.storage)
        cycle = lineage.cycle_above(dataset_id)
        if cycle is not None:
            raise cycle
        ordered = lineage.in_order([self.storage.get(dataset_id)], with_inputs=True)
        return [dataset.handle.id for dataset in reversed(ordered)]

    def read(self, dataset_id: DatasetId, offsets: Sequence[int]) -> TracedDataset:
        """Return rows of a dataset, with their origins if it is a root dataset."""
        dataset = self.storage.get(dataset_id)
        is_root = dataset.state.kind is DatasetKind.ROOT
        rows = DatasetRows(dataset)
        return TracedDataset(
            id=dataset_id,
            name=str(dataset.handle),
            kind=dataset.state.kind,
            rows=tuple(TracedRow(row.offset, row.operation, row.values, {}, {}) for row in rows.read(offsets)),
            origins=origins_of(dataset, offsets) if is_root else {},
            vocab=dataset.state.vocab,
        )

    def followed(self, dataset_id: DatasetId, offsets: Sequence[int]) -> TracedDataset:
        """Return rows of a dataset, with their input rows if it is derivative.

        Raises:
            UnknownProvenance: the rows were not added by a run of the query, or the query cannot be traced.
            DatasetNotFound, InputDiverged: an input does not exist, or its history has changed.
        """
        dataset = self.storage.get(dataset_id)
        if dataset.state.kind is DatasetKind.ROOT:
            return self.read(dataset_id, offsets)
        return _Hop(self, dataset, sorted(offsets)).traced()


@dataclass
class _Hop:
    """Rows of one derivative."""

    datasets: TracedDatasets
    dataset: StoredDataset
    offsets: Sequence[int]
    _made_by: dict[int, Derivation] = field(default_factory=dict)
    _ways: dict[int, int] = field(default_factory=dict)
    _origins: tuple[ColumnOrigin, ...] = ()
    _searches: int = 3
    _inputs: dict[DatasetId, DatasetRows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = DatasetRows(self.dataset)
        self.questions = TraceGroups(self.rows, runs_of(self.datasets.storage, self.dataset))

    def traced(self) -> TracedDataset:
        run_of = {offset: self._run_of(offset) for offset in self.offsets}
        last = run_of[self.offsets[-1]]
        _ = last.inputs  # raises if inputs no longer exist, before the engine is called
        analysis = self.datasets.analyze(self.dataset, last.set_transform)
        self.steps = () if analysis is None else analysis.steps
        is_temporal = bool(last.set_transform.transform.temporal_tables)
        self.by_rows = not is_temporal and all(step.query_class == ROW_BY_ROW for step in self.steps)
        wanted = self.rows.read(self._with_partners(run_of))
        engine = self.datasets.engines.get(last.set_transform.transform.engine)
        self.traces = RowTraces(self.dataset, self.rows, engine)
        questions = list(self._answered(wanted))
        by_offset = {row.offset: row for row in wanted}
        shown = tuple(self._traced_row(by_offset[offset], by_offset, run_of[offset]) for offset in self.offsets)
        check, remark = self._checked(questions)
        return TracedDataset(
            id=self.dataset.handle.id,
            name=str(self.dataset.handle),
            kind=self.dataset.state.kind,
            rows=shown,
            origins={},
            steps=tuple(Step(step.alias, step.query_class, step.reason, step.query) for step in self.steps),
            columns=tuple(
                dict.fromkeys(self._column(origin, last) for origin in self._origins if self._is_used(origin))
            ),
            check=check,
            remark=remark,
            followed=True,
            vocab=self.dataset.state.vocab,
        )

    def _run_of(self, offset: int) -> TransformRun:
        place = self.questions.place_of(offset)
        if place is None:
            raise UnknownProvenance(
                f"Row {offset} of {self.dataset.handle} was not made by a run of its query",
                hint="Its chain has no ExecuteTransform that brought the row.",
            )
        return self.questions.runs[place]

    def _with_partners(self, run_of: Mapping[int, TransformRun]) -> list[int]:
        """Return the offsets, including those of the other rows of correction pairs, which explain the corrections."""
        operations = {row.offset: row.operation for row in self.rows.read(self.offsets)}
        offsets = set(self.offsets)
        for offset, operation in operations.items():
            other = offset + _PARTNER.get(operation, 0)
            if other != offset and run_of[offset].has(other):
                offsets.add(other)
        return sorted(offsets)

    # --- Derivations of rows ---

    def _answered(self, wanted: Sequence[DatasetRow]) -> Iterator[TraceGroup]:
        """Run the traces, and yield each with the rows that it covers."""
        if self.by_rows:
            for question in self.questions.by_rows(wanted):
                self._ask(question)
                yield question
            return
        left: list[DatasetRow] = []
        for question in self.questions.together(wanted):
            known = question.rows
            if not self._ask(question):
                known = ()
            elif question.as_of:
                known = tuple(row for row in known if row.offset in self._made_by or row.offset not in question.as_of)
            offsets = {row.offset for row in known}
            left += [row for row in question.rows if row.offset not in offsets]
            if known:
                yield replace(question, rows=known)
        for question in self.questions.by_run(left):
            self._ask(question)
            yield question

    def _ask(self, question: TraceGroup) -> bool:
        """Run a trace; return False if the engine cannot trace rows of several runs together."""
        answer = self.traces.ways(question)
        if answer is None:
            return False
        ways, self._origins = answer
        for row in question.rows:
            ways_of_row = ways.get(row.offset, [])
            if ways_of_row:
                # Equal rows are assigned to derivations in order.
                self._ways[row.offset] = len(ways_of_row)
                self._made_by[row.offset] = ways_of_row[self._place(row, question, len(ways_of_row)) % len(ways_of_row)]
        return True

    def _place(self, row: DatasetRow, question: TraceGroup, ways: int) -> int:
        """Return the number of equal rows before a row in the same block."""
        if ways == 1:
            return 0
        run = self._run_of(row.offset)
        data = run.event.new_data
        first = row.offset if data is None else data.offset_interval.start
        return sum(question.sign(equal_row) == question.sign(row) for equal_row in self.rows.equal_before(row, first))

    def _traced_row(self, row: DatasetRow, by_offset: Mapping[int, DatasetRow], run: TransformRun) -> TracedRow:
        made_of = self._made_of(row.offset)
        takes_back = self.rows.last_addition_before(row) if row.operation.weight < 0 else None
        because = () if self.by_rows else self._because_of(row, by_offset, run)
        return TracedRow(
            offset=row.offset,
            operation=row.operation,
            values=row.values,
            made_of=self._rows_of(run, made_of or ()),
            because_of=self._rows_of(run, because),
            takes_back=takes_back,
            ways=self._ways.get(row.offset, 1),
            problem=None if made_of is not None else "its query no longer returns such a row",
        )

    def _made_of(self, offset: int) -> CitedRows | None:
        """Return the input rows of a row, None if unknown."""
        made_by = self._made_by.get(offset)
        return None if made_by is None else made_by.rows

    def _because_of(
        self, row: DatasetRow, by_offset: Mapping[int, DatasetRow], run: TransformRun
    ) -> set[tuple[int, int]]:
        """Return the input rows of a run that caused a correction."""
        if row.operation is OperationType.APPEND:
            return set()
        pair = [row, by_offset.get(row.offset + _PARTNER.get(row.operation, 0), row)]
        now = {cited for each in pair if each.operation.weight > 0 for cited in self._made_of(each.offset) or ()}
        was = {cited for each in pair if each.operation.weight < 0 for cited in self._made_of(each.offset) or ()}
        new = {(source, offset) for source, offset in now if run.is_new(source, offset)}
        return (new | self._taking_back(was, run)) or self._hiding(row, run)

    def _hiding(self, row: DatasetRow, run: TransformRun) -> set[tuple[int, int]]:
        """Find the input row of a run that removed a result row although the row's own input rows are unchanged.

        Examples are the match of a previously unmatched row, and a row that now precedes it in a top-N. The search is a
        bisection for the first new row with which the result row disappears.
        """
        if self._searches == 0 or row.operation.weight > 0:
            return set()
        self._searches -= 1
        firsts = [
            0 if query_input.prev_offset is None else query_input.prev_offset + 1
            for query_input in run.event.query_inputs
        ]
        news = [
            0 if one.new_offset is None else one.new_offset + 1 - first
            for one, first in zip(run.event.query_inputs, firsts, strict=True)
        ]

        def until(count: int) -> tuple[int, ...]:
            return tuple(min(max(count - sum(news[:at]), 0), new) for at, new in enumerate(news))

        def is_gone(count: int) -> bool:
            answer = self.traces.ways(TraceGroup((run,), (row,), by_rows=False, until=until(count)))
            return answer is None or row.offset not in answer[0]

        stays, goes = 0, sum(news)
        if is_gone(stays) or not is_gone(goes):
            return set()  # the watermark has caused it, or an equal row still exists
        while goes - stays > 1:
            middle = (stays + goes) // 2
            stays, goes = (stays, middle) if is_gone(middle) else (middle, goes)
        number = next(at for at, (one, other) in enumerate(zip(until(goes), until(stays), strict=True)) if one != other)
        return {(number, firsts[number] + until(goes)[number] - 1)}

    def _taking_back(self, cited: set[tuple[int, int]], run: TransformRun) -> set[tuple[int, int]]:
        """Return the input rows of a run that retract cited rows."""
        retractions = set()
        for number, item in enumerate(run.inputs):
            rows = self._inputs.setdefault(item.dataset.handle.id, DatasetRows(item.dataset))
            keys = {row.key for row in rows.read(sorted(offset for source, offset in cited if source == number))}
            interval = item.interval
            if keys and interval.new_offset is not None:
                first = 0 if interval.prev_offset is None else interval.prev_offset + 1
                retractions |= {(number, offset) for offset in rows.retractions_of(keys, first, interval.new_offset)}
        return retractions

    def _rows_of(self, run: TransformRun, cited: Sequence[tuple[int, int]] | CitedRows | set[tuple[int, int]]) -> Rows:
        by_input: defaultdict[DatasetId, list[int]] = defaultdict(list)
        for number, offset in sorted(cited):
            by_input[run.event.query_inputs[number].dataset_id].append(offset)
        return {dataset_id: tuple(sorted(set(offsets))) for dataset_id, offsets in by_input.items()}

    def _is_used(self, origin: ColumnOrigin) -> bool:
        """Return whether a column origin applies to the traced rows; it may apply to other UNION branches only."""
        branches = {
            branch for offset in self.offsets if offset in self._made_by for branch in self._made_by[offset].branches
        }
        return (
            not origin.is_one_of or not branches or bool(branches & {(origin.input, -1), (origin.input, origin.branch)})
        )

    def _column(self, origin: ColumnOrigin, run: TransformRun) -> ColumnSource:
        dataset_id = run.event.query_inputs[origin.input].dataset_id
        name = str(self.datasets.storage.get(dataset_id).handle)
        return ColumnSource(origin.column, dataset_id, name, origin.source, origin.is_copy, origin.through)

    # --- The check ---

    def _checked(self, questions: Sequence[TraceGroup]) -> tuple[Check, str | None]:
        """Replay the cited rows, trace by trace; every traced row must be produced again."""
        if not self.datasets.check:
            return Check.SKIPPED, None
        missing = [offset for offset in self.offsets if offset not in self._made_by]
        if missing:
            return Check.IMPOSSIBLE, f"the provenance of row {missing[0]} is unknown"
        for question in questions:
            try:
                lost = self._lost(question, question.rows)
            except OdfError as error:
                return Check.IMPOSSIBLE, error.message
            if lost is not None:
                return Check.REFUTED, f"the cited rows alone do not give row {lost}"
        return Check.CONFIRMED, None

    def _lost(self, question: TraceGroup, rows: Sequence[DatasetRow]) -> int | None:
        """Return the offset of a row that its cited rows alone do not produce; None if there is none.

        All rows are replayed together first. A row that matched no version of a temporal table may then match a version
        that was cited for another row, if the end of that version is not cited. So failed rows are replayed again
        separately.
        """
        cited = {source_row for row in rows for source_row in self._made_of(row.offset) or ()}
        replayed = self.traces.replayed(question, cited)
        lost = [row for row in rows if (row.key, question.sign(row)) not in replayed]
        if not lost:
            return None
        if len(rows) == 1:
            return rows[0].offset
        if len(lost) < len(rows):
            return self._lost(question, lost)
        half = len(rows) // 2
        lost_half = self._lost(question, rows[:half])
        return lost_half if lost_half is not None else self._lost(question, rows[half:])


_PARTNER: Final = {OperationType.CORRECT_FROM: 1, OperationType.CORRECT_TO: -1}


def row_provenance(
    storage: Storage,
    engines: EngineRegistry,
    ref: str,
    offset: int,
    *,
    column: str | None,
    depth: int | None,
    check: bool,
    guard: RowGuard | None = None,
) -> Provenance:
    """Return the provenance of a row; see `Queries.provenance` for errors.

    Args:
        storage: the workspace.
        engines: the engines of the workspace.
        ref: name or id of the dataset.
        offset: offset of the row.
        column: name of a column, None for whole rows.
        depth: maximum number of hops, None for no limit.
        check: whether to replay cited rows.
        guard: limits of the caller, None for no limits.
    """
    dataset = storage.get(ref)
    _check_question(dataset, offset, column, depth)

    def analyzed(of: StoredDataset, transform: SetTransform) -> AnalyzeResponseSuccess | None:
        def state_of(dataset_id: DatasetId) -> ChainState:
            return storage.get(dataset_id).state

        return analyze(storage, engines, transform, of.state, state_of)

    traced = TracedDatasets(storage, engines, analyzed, check)
    datasets = traced if guard is None else GuardedDatasets(traced, storage, guard)
    return provenance_of(datasets, dataset.handle.id, offset, column=column, depth=depth)


def _check_question(dataset: StoredDataset, offset: int, column: str | None, depth: int | None) -> None:
    state = dataset.state
    if depth is not None and depth < 0:
        raise UsageError(
            f"depth must be 0 or more, not {depth}", hint="0 follows nothing; without it, everything is followed."
        )
    if state.num_records == 0:
        raise NoSuchRow(f"{dataset.handle} has no rows", hint="Pull or ingest data first.")
    if not 0 <= offset < state.num_records:
        raise NoSuchRow(
            f"{dataset.handle} has no row of offset {offset}",
            hint=f"Its rows have the offsets 0 to {state.num_records - 1}; `odf tail {dataset.handle}` shows the last.",
        )
    names = [field.name for field in state.schema.fields] if state.schema is not None else []
    if column is not None and column not in names:
        otherwise = f"It has: {', '.join(names)}."
        hint = did_you_mean(column, names, otherwise=otherwise)
        raise NoSuchColumn(f"{dataset.handle} has no column {column!r}", hint=hint)

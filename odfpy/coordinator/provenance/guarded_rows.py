"""Tracing of rows for callers with limited permissions, with a limit on the number of rows.

Of inputs that the caller may not read, only the ids are visible, which are in the chain of the derivative. The engine
still reads these inputs: the rows are derived from them, and the replay needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from odfpy.chain.events import ExecuteTransform
from odfpy.coordinator.provenance.stored_rows import DatasetRows
from odfpy.coordinator.storage.storage import Storage
from odfpy.dataset.identity import DatasetId
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError, QueryCancelled, QueryTimedOut, ResultTooLarge
from odfpy.provenance.errors import UnknownProvenance
from odfpy.provenance.hops import Datasets
from odfpy.provenance.model import Rows, TracedDataset, TracedRow

_LESS = "Use a smaller `depth`; `odf provenance` has no such limit."


@dataclass(frozen=True, slots=True)
class RowGuard:
    """The limits of a caller.

    Attributes:
        may_read: whether the caller may read a dataset; None for a caller who may read everything.
        most_rows: maximum number of rows of all datasets together.
        most_bytes: maximum size of these rows in memory, in bytes.
        control: cancellation of the request.
    """

    may_read: Callable[[DatasetId], bool] | None
    most_rows: int
    most_bytes: int
    control: CancellationToken


class GuardedDatasets:
    """The datasets of a workspace as visible to a caller; implements `Datasets`."""

    def __init__(self, traced: Datasets, storage: Storage, guard: RowGuard) -> None:
        self._traced = traced
        self._storage = storage
        self._guard = guard
        self._rows = guard.most_rows
        self._bytes = guard.most_bytes
        self._known: dict[DatasetId, bool] = {}

    def order(self, dataset_id: DatasetId) -> Sequence[DatasetId]:
        """Implement `Datasets`."""
        try:
            return self._traced.order(dataset_id)
        except OdfError as error:
            if self._guard.may_read is None:
                raise
            raise self._unknown(dataset_id) from error

    def followed(self, dataset_id: DatasetId, offsets: Sequence[int]) -> TracedDataset:
        """Implement `Datasets`."""
        self._admit(dataset_id, offsets)
        try:
            return self._visible(self._traced.followed(dataset_id, offsets))
        except (QueryCancelled, QueryTimedOut, ResultTooLarge):
            raise
        except OdfError as error:
            if all(self._may_read(input_id) for input_id in self._inputs_of(dataset_id)):
                raise
            raise self._unknown(dataset_id) from error  # the error may reveal something about a hidden dataset

    def read(self, dataset_id: DatasetId, offsets: Sequence[int]) -> TracedDataset:
        """Implement `Datasets`."""
        self._admit(dataset_id, offsets)
        return self._traced.read(dataset_id, offsets)

    def _admit(self, dataset_id: DatasetId, offsets: Sequence[int]) -> None:
        self._guard.control.check()
        self._rows -= len(offsets)
        if self._rows < 0:
            raise ResultTooLarge(f"The row was computed from more than {self._guard.most_rows} rows", hint=_LESS)
        self._bytes -= DatasetRows(self._storage.get(dataset_id)).size_of(offsets)
        if self._bytes < 0:
            size = f"{self._guard.most_bytes / 2**20:g} MiB"
            raise ResultTooLarge(f"The rows that the row was computed from take more than {size}", hint=_LESS)

    def _may_read(self, dataset_id: DatasetId) -> bool:
        if self._guard.may_read is None:
            return True
        if dataset_id not in self._known:
            self._known[dataset_id] = self._guard.may_read(dataset_id)
        return self._known[dataset_id]

    def _visible(self, dataset: TracedDataset) -> TracedDataset:
        cited = {item for row in dataset.rows for rows in (row.made_of, row.because_of) for item in rows}
        inputs = dict.fromkeys((*(column.input for column in dataset.columns), *sorted(cited, key=str)))
        hidden = tuple(item for item in inputs if not self._may_read(item))
        if not hidden:
            return dataset
        return replace(
            dataset,
            rows=tuple(self._without(row) for row in dataset.rows),
            columns=tuple(column for column in dataset.columns if column.input not in hidden),
            remark=None,
            hidden=hidden,
        )

    def _without(self, row: TracedRow) -> TracedRow:
        return replace(row, made_of=self._only(row.made_of), because_of=self._only(row.because_of))

    def _only(self, rows: Rows) -> Rows:
        return {input_id: offsets for input_id, offsets in rows.items() if self._may_read(input_id)}

    def _inputs_of(self, dataset_id: DatasetId) -> set[DatasetId]:
        """Return the ids of all datasets from which a dataset was ever derived."""
        events = (hashed.block.event for hashed in self._storage.get(dataset_id).chain.in_order())
        return {
            query_input.dataset_id
            for event in events
            if isinstance(event, ExecuteTransform)
            for query_input in event.query_inputs
        }

    def _unknown(self, dataset_id: DatasetId) -> UnknownProvenance:
        name = self._storage.get(dataset_id).handle
        return UnknownProvenance(
            f"The provenance of rows of {name} is not available", hint="You may not read all of its inputs."
        )

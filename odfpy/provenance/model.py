"""The result of a query for the provenance of a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from typing import Any, Final, TypeAlias

from odfpy.data.amounts import count_of
from odfpy.data.multihash import Multihash
from odfpy.data.rows.html_table import cell, table
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary, OperationType
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.escaping import escape_controls
from odfpy.provenance.values import MAX_ROWS, plain_value, ranges_text, short_text

Rows: TypeAlias = Mapping[DatasetId, tuple[int, ...]]
"""Rows of datasets: their offsets, ascending."""

_MAX_LENGTH: Final = 1_000
"""Maximum length of a row in a notebook."""


class Check(Enum):
    """The outcome of replaying a query with only the cited rows."""

    CONFIRMED = "checked"
    REFUTED = "not confirmed"
    IMPOSSIBLE = "could not be checked"
    SKIPPED = "not checked"


@dataclass(frozen=True, slots=True)
class Origin:
    """The ingest by which a row entered a root dataset.

    Attributes:
        block: hash of the block that added it.
        sequence_number: sequence number of the block.
        system_time: system time of the block.
        source: source of the data: a URL, a path, or the name of a push source; None if it is not recorded.
        file: name of the file, if the source has several.
        state_kind: kind of the source state that the block recorded, such as `odf/etag`.
        state: the state: an ETag, a name or a time.
    """

    block: Multihash
    sequence_number: int
    system_time: Timestamp
    source: str | None = None
    file: str | None = None
    state_kind: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class TracedRow:
    """A row of a dataset with its source rows.

    Attributes:
        offset: offset of the row.
        operation: operation type of the row.
        values: its other columns.
        made_of: the input rows that it is computed from; none for rows of root datasets and rows not traced.
        because_of: for a correction or retraction, the input rows that caused it.
        takes_back: for a correction or retraction, the row of the same dataset that it retracts.
        ways: number of ways in which the same row is computed, of which this is one.
        problem: reason if the source rows cannot be determined.
    """

    offset: int
    operation: OperationType
    values: Mapping[str, Any]
    made_of: Rows
    because_of: Rows
    takes_back: int | None = None
    ways: int = 1
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a query: its alias, its class, the reason for the class, and its text."""

    alias: str | None
    query_class: str
    reason: str
    query: str


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """A source column of another column.

    Attributes:
        column: column of the dataset.
        input: id of the input dataset.
        input_name: local name of the input, which is not among the datasets of a result that cites none of its rows.
        source: column of the input; None for a computed one such as `valid_to`.
        is_copy: whether the values are copied from the input.
        through: the expressions on the way, starting from the output.
    """

    column: str
    input: DatasetId
    input_name: str
    source: str | None
    is_copy: bool
    through: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedDataset:
    """A traced dataset, and its rows that belong to the result.

    Attributes:
        name: local name.
        rows: its rows, in order of offset.
        origins: for a root dataset, the origins of rows, by offset.
        steps: for a derivative, the steps of its query.
        columns: for a traced derivative, the sources of its columns.
        check: outcome of replaying the query with the cited rows.
        remark: details of the outcome.
        followed: whether it is a derivative whose rows were traced.
        vocab: names of its system columns.
        hidden: inputs whose rows the caller may not see.
    """

    id: DatasetId
    name: str
    kind: DatasetKind
    rows: tuple[TracedRow, ...]
    origins: Mapping[int, Origin]
    steps: tuple[Step, ...] = ()
    columns: tuple[ColumnSource, ...] = ()
    check: Check = Check.SKIPPED
    remark: str | None = None
    followed: bool = False
    vocab: DatasetVocabulary = field(default_factory=DatasetVocabulary)
    hidden: tuple[DatasetId, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Provenance:
    """The result: the requested dataset, then its upstream datasets, each before its own inputs.

    Attributes:
        offset: offset of the requested row.
        column: the requested column, None for all.
        datasets: the datasets, starting with the requested one.
    """

    offset: int
    column: str | None
    datasets: tuple[TracedDataset, ...]

    @property
    def row(self) -> TracedRow:
        """The requested row."""
        return next(row for row in self.datasets[0].rows if row.offset == self.offset)

    @property
    def check(self) -> Check:
        """The combined outcome of all checks: the worst one."""
        found = [dataset.check for dataset in self.datasets if dataset.followed]
        order = (Check.REFUTED, Check.IMPOSSIBLE, Check.SKIPPED, Check.CONFIRMED)
        return next((check for check in order if check in found), Check.SKIPPED)

    def dataset(self, dataset_id: DatasetId) -> TracedDataset:
        """Return the dataset with an id."""
        return next(dataset for dataset in self.datasets if dataset.id == dataset_id)

    def __repr__(self) -> str:
        return f"<origins of row {self.offset} of {self.datasets[0].name}: {self.check.value}>"

    def _repr_html_(self) -> str:
        """Return a table of the rows, for notebooks."""
        first = self.datasets[0]
        title = f"<div><b>{cell(first.name)}</b>, row {self.offset}: {escape(self.check.value)}</div>"
        header = ["Dataset", "Offset", "Op", "Event time", "Values", "Made of"]
        return title + table(
            header, (line for dataset in self.datasets for line in self._lines(dataset)), longest=_MAX_LENGTH
        )

    def _lines(self, dataset: TracedDataset) -> Iterator[list[Any]]:
        names = {one.id: one.name for one in self.datasets}
        hidden = (dataset.vocab.event_time_column, dataset.vocab.system_time_column)
        for row in dataset.rows[:MAX_ROWS]:
            data = {name: value for name, value in row.values.items() if name not in hidden}
            values = ", ".join(f"{name}={short_text(value)}" for name, value in data.items())
            of = "; ".join(f"{names.get(one, str(one))} {ranges_text(rows)}" for one, rows in row.made_of.items())
            time = plain_value(row.values.get(hidden[0]))
            yield [dataset.name, row.offset, row.operation.symbol, time, escape_controls(values), of]
        if (more := len(dataset.rows) - MAX_ROWS) > 0:
            yield [dataset.name, f"... and {count_of(more, 'row')} more", "", "", "", ""]

"""The answer to a question for the origin of a row."""

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
"""Rows of datasets: their offsets, in order."""

_MAX_LENGTH: Final = 1_000
"""Letters of a row in a notebook."""


class Check(Enum):
    """The outcome of a replay of only the rows that were cited."""

    CONFIRMED = "checked"
    REFUTED = "not confirmed"
    IMPOSSIBLE = "could not be checked"
    SKIPPED = "not checked"


@dataclass(frozen=True, slots=True)
class Origin:
    """The way by which a row of a root dataset came in.

    Attributes:
        block: the block that added it.
        sequence_number: of the block.
        system_time: of the block.
        source: where the dataset gets its data: a URL, a path, or the name of a push source; None if nobody says.
        file: name of the file, where the source has several.
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
    """A row of a dataset, and what it is made of.

    Attributes:
        offset: of the row.
        operation: what it does.
        values: its other columns.
        made_of: the rows of the inputs that decided it; none for a row of a root dataset, or one not followed.
        because_of: of a correction or retraction, the rows of the inputs that caused it.
        takes_back: of a correction or retraction, the row of the same dataset that it takes back.
        ways: in how many ways the same row is made; this is one of them.
        problem: why it is not known what it is made of.
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
    """One step of a query: what it is called, its class, why it is of that class, its text."""

    alias: str | None
    query_class: str
    reason: str
    query: str


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """A column from which another one comes.

    Attributes:
        column: of the dataset.
        input: the input.
        input_name: what that is called here; an answer that cites no row of it does not have it among its datasets.
        source: its column; None for one that it does not have by itself, such as `valid_to`.
        is_copy: whether the values are those of the input.
        through: the expressions on the way, from the output on.
    """

    column: str
    input: DatasetId
    input_name: str
    source: str | None
    is_copy: bool
    through: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedDataset:
    """A dataset on the way, and those of its rows that have to do with the answer.

    Attributes:
        name: what it is called here.
        rows: in order of offset.
        origins: of a root dataset, how the rows came in, by offset.
        steps: of a derivative, its query.
        columns: of a derivative that was followed, where its columns come from.
        check: what came of replaying the rows that were cited.
        remark: more on that.
        followed: whether it is a derivative of which the rows were traced.
        vocab: what it calls its event time and its system time.
        hidden: of its inputs, those of which whoever asks may not see any rows.
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
    """The answer: the dataset that was asked about, then those that it is derived from, each before its own inputs.

    Attributes:
        offset: the row that was asked about.
        column: the column that was asked about, None for all.
        datasets: the first of them is the one that was asked about.
    """

    offset: int
    column: str | None
    datasets: tuple[TracedDataset, ...]

    @property
    def row(self) -> TracedRow:
        """Return the row that was asked about."""
        return next(row for row in self.datasets[0].rows if row.offset == self.offset)

    @property
    def check(self) -> Check:
        """Return what came of all checks together: the worst of them."""
        found = [dataset.check for dataset in self.datasets if dataset.followed]
        order = (Check.REFUTED, Check.IMPOSSIBLE, Check.SKIPPED, Check.CONFIRMED)
        return next((check for check in order if check in found), Check.SKIPPED)

    def dataset(self, dataset_id: DatasetId) -> TracedDataset:
        """One of the datasets."""
        return next(one for one in self.datasets if one.id == dataset_id)

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

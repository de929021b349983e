"""Changes of a dataset between two moments: by key or, if rows have no key, as added and removed rows.

DataFusion compares the two states in this process, with one query: a full join by the key, or a count of each distinct
row. Differences are streamed in the order of the key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from odfpy.coordinator.reading.projections import table_of
from odfpy.coordinator.reading.struct_members import with_all_members
from odfpy.coordinator.storage.storage import Storage
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.errors import NoSuchKey, ResultTooLarge, did_you_mean
from odfpy.query.dialects import DIALECTS
from odfpy.query.moments import PointInTime

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.engine.cancellation import CancellationToken
    from odfpy.query.service import Answer, QueryService

_DIALECT: Final = DIALECTS["datafusion"]


class Change(Enum):
    """A kind of change of a row."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class RowChange:
    """A difference between two states.

    Attributes:
        key: values of the key columns; empty if rows have no key.
        old: previous values by column; None if the row did not exist.
        new: new values by column; None if the row no longer exists.
        count: number of equal rows with this change; 1 if rows have a key.
    """

    change: Change
    key: Mapping[str, Any]
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return the difference as a JSON tree."""
        return {
            "change": self.change.value,
            "count": self.count,
            "key": self.key or None,
            "old": self.old,
            "new": self.new,
        }


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A data column that exists in one of the states only, or has different types.

    Attributes:
        old: previous type, by the engine's name; None if the column did not exist.
        new: new type; None if the column no longer exists.
    """

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class ComparedPage:
    """A page of differences, with the counts of all differences.

    Attributes:
        rows: the differences of the page.
        counts: number of rows of all differences, by kind of change.
        total: number of differences; equal rows count as one.
    """

    rows: tuple[RowChange, ...]
    counts: Mapping[Change, int]
    total: int


@dataclass(frozen=True)
class Comparison:
    """The differences between two states of a dataset; a context manager, which can be iterated once.

    Attributes:
        key: key columns; empty if whole rows are compared.
        columns: the data columns of both states.
        column_changes: the columns that differ.
    """

    key: tuple[str, ...]
    columns: tuple[str, ...]
    answer: Answer
    column_changes: tuple[ColumnChange, ...] = ()

    def __iter__(self) -> Iterator[RowChange]:
        """Yield the differences in the order of the key; values are as `odf -o json` prints them."""
        for batch in self.answer:
            yield from self._rows(batch)

    def page(self, skip: int, limit: int, most_bytes: int | None = None) -> ComparedPage:
        """Return a page of differences, and count all; only the page is kept in memory.

        Args:
            skip: number of differences to skip.
            limit: maximum number of differences.
            most_bytes: maximum bytes of the page, None for no limit.

        Raises:
            ResultTooLarge: the page exceeds the limit.
        """
        import pyarrow.compute as pc

        counts = dict.fromkeys(Change, 0)
        rows: list[RowChange] = []
        seen = size = 0
        for batch in self.answer:
            numbers = batch.column(0)
            if self.key:
                for value_count in pc.value_counts(numbers).to_pylist():
                    counts[list(Change)[value_count["values"]]] += value_count["counts"]
            else:
                signed = numbers.cast("int64")
                counts[Change.ADDED] += pc.sum(pc.max_element_wise(signed, 0)).as_py() or 0
                counts[Change.REMOVED] -= pc.sum(pc.min_element_wise(signed, 0)).as_py() or 0
            first, last = (min(max(at - seen, 0), batch.num_rows) for at in (skip, skip + limit))
            if last > first:
                part = batch.slice(first, last - first)
                size += part.nbytes
                if most_bytes is not None and size > most_bytes:
                    raise ResultTooLarge(
                        f"The page has more than {most_bytes / 2**20:g} MiB", hint="Ask for fewer rows."
                    )
                rows += self._rows(part)
            seen += batch.num_rows
        return ComparedPage(tuple(rows), counts, seen)

    def _rows(self, batch: pa.RecordBatch) -> Iterator[RowChange]:
        from odfpy.data.rows.plain_values import columns_of, plain

        columns = columns_of(_table(batch))
        for row in zip(*([plain(cell) for cell in column] for column in columns), strict=True):
            yield self._with_key(row) if self.key else self._without(row)

    def _with_key(self, row: Sequence[Any]) -> RowChange:
        change = list(Change)[row[0]]
        old, new = (dict(zip(self.columns, row[start::2], strict=True)) for start in (1, 2))
        key = {name: (old if change is Change.REMOVED else new)[name] for name in self.key}
        return RowChange(
            change, key, None if change is Change.ADDED else old, None if change is Change.REMOVED else new
        )

    def _without(self, row: Sequence[Any]) -> RowChange:
        cells = dict(zip(self.columns, row[1:], strict=True))
        if row[0] > 0:
            return RowChange(Change.ADDED, {}, None, cells, row[0])
        return RowChange(Change.REMOVED, {}, cells, None, -row[0])

    def __enter__(self) -> Comparison:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        self.answer.close()


def compare(
    storage: Storage,
    service: QueryService,
    ref: str,
    old: PointInTime,
    new: PointInTime,
    key: Sequence[str] = (),
    control: CancellationToken | None = None,
) -> Comparison:
    """Find the differences between the states of a dataset at two moments.

    Args:
        storage: the workspace.
        service: the query service of the workspace.
        ref: name or id of the dataset.
        old: system time, block, tag or branch of the old state.
        new: system time, block, tag or branch of the new state.
        key: key columns; the primary key of the dataset if empty. If several rows have the same key, the last one is
            compared.
        control: cancellation of the request by another thread.

    Raises:
        DatasetNotFound, BlockNotFound: the dataset or block does not exist; the hint suggests one.
        NotYetThen: the dataset did not exist at one of the moments.
        NoSuchKey: a key column does not exist.
    """
    from odfpy.query.service import Query

    dataset = storage.get_at(ref)
    state = dataset.state
    primary = state.primary_key or ()
    tables = [table_of(storage, ref, _DIALECT, as_at=text) for text in (old, new)]
    schemas = [service.prepare(Query(_all_of(table), _DIALECT.name)).schema for table in tables]
    comparable = with_all_members(tables, schemas)
    sides = [_Side(table, _columns(schema, state.vocab)) for table, schema in zip(comparable, schemas, strict=True)]
    columns = tuple(dict.fromkeys(name for side in sides for name in side.columns))
    for name in key:
        if not all(name in side.columns for side in sides):
            otherwise = f"Columns: {', '.join(columns)}."
            raise NoSuchKey(
                f"{dataset.handle} has no column {name!r}", hint=did_you_mean(name, columns, otherwise=otherwise)
            )
    # Use the primary key only if both states have it: one of them may be older than the key.
    used_key = tuple(key) or (primary if all(set(primary) <= set(side.columns) for side in sides) else ())
    helper = _helper({name for schema in schemas for name in schema.names})
    if used_key:
        offset = None if set(used_key) == set(primary) else state.vocab.offset_column
        text = _by_key(sides, columns, used_key, offset, helper)
    else:
        text = _by_rows(sides, columns, schemas, helper)
    return Comparison(
        used_key, columns, service.run(Query(text, _DIALECT.name), control), _column_changes(sides, schemas)
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the states.

    Attributes:
        table: the table as SQL, for a FROM clause.
        columns: its data columns.
    """

    table: str
    columns: tuple[str, ...]

    def cell(self, column: str, of: str = "") -> str:
        """Return the SQL of a column, or NULL if this side does not have it."""
        return f"{of}{_q(column)}" if column in self.columns else "NULL"


def _column_changes(sides: Sequence[_Side], schemas: Sequence[pa.Schema]) -> tuple[ColumnChange, ...]:
    """Return the data columns that differ: those of the new state in its order, then those of the old one."""
    old, new = (
        {name: str(schema.field(name).type) for name in side.columns}
        for side, schema in zip(sides, schemas, strict=True)
    )
    names = dict.fromkeys((*new, *old))
    return tuple(
        ColumnChange(column, old.get(column), new.get(column)) for column in names if old.get(column) != new.get(column)
    )


def _helper(taken: Collection[str]) -> str:
    """Return a quoted column name that is in no state."""
    name = "__odf"
    while name in taken:
        name += "_"
    return _q(name)


def _by_key(sides: Sequence[_Side], columns: Sequence[str], key: Sequence[str], offset: str | None, helper: str) -> str:
    """Return a query for the changes: number of the `Change`, then the old and the new value of each column.

    Args:
        sides: the old and the new state.
        columns: data columns.
        key: key columns.
        offset: the column that orders rows with equal keys; None if the key is the primary key.
        helper: a quoted name that no column has.
    """
    tables = []
    for side in sides:
        inner = side.table
        if offset is not None:
            by = ", ".join(map(_q, key))
            inner = (
                f"(SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY {_q(offset)} DESC)"  # noqa: S608
                f" AS {helper} FROM {inner}) WHERE {helper} = 1)"
            )
            inner = f"(SELECT * EXCEPT ({helper}) FROM {inner})"  # noqa: S608
        tables.append(f"(SELECT *, TRUE AS {helper} FROM {inner})")  # noqa: S608
    a, b = (f"{name}." for name in ("a", "b"))
    cells = [(sides[0].cell(name, a), sides[1].cell(name, b)) for name in columns]
    shown = "".join(f', {old} AS "a{at}", {new} AS "b{at}"' for at, (old, new) in enumerate(cells))
    on = " AND ".join(f"(a.{_q(name)} IS NOT DISTINCT FROM b.{_q(name)})" for name in key)
    differ = [
        f"({old} IS DISTINCT FROM {new})" for name, (old, new) in zip(columns, cells, strict=True) if name not in key
    ]
    where = " OR ".join([f"(a.{helper} IS NULL)", f"(b.{helper} IS NULL)", *differ])
    order = ", ".join(f"coalesce(b.{_q(name)}, a.{_q(name)})" for name in key)
    return (
        f"SELECT CASE WHEN a.{helper} IS NULL THEN 0 WHEN b.{helper} IS NULL THEN 1 ELSE 2 END AS {helper}{shown}"  # noqa: S608
        f" FROM {tables[0]} AS a FULL JOIN {tables[1]} AS b ON {on} WHERE {where} ORDER BY {order}"
    )


def _by_rows(sides: Sequence[_Side], columns: Sequence[str], schemas: Sequence[pa.Schema], helper: str) -> str:
    """Return a query for the difference in count of each row, and its cells; `helper` is an unused, quoted name."""
    import pyarrow as pa

    names = ", ".join(map(_q, columns))
    parts = []
    for side, other, count in zip(sides, reversed(sides), (-1, 1), strict=True):
        # An untyped null would take its type from the values of the other state.
        shown = {name: f"(SELECT {_q(name)} FROM {other.table} WHERE FALSE)" for name in columns}  # noqa: S608
        shown |= {name: _q(name) for name in side.columns}
        cells = ", ".join(f"{shown[name]} AS {_q(name)}" for name in columns)
        parts.append(f"SELECT {cells}, {count} AS {helper} FROM {side.table}")  # noqa: S608
    nested = {field.name for schema in schemas for field in schema if pa.types.is_nested(field.type)}
    order = ", ".join(_q(name) for name in columns if name not in nested) or helper
    return (
        f"SELECT * FROM (SELECT sum({helper}) AS {helper}, {names} FROM ({' UNION ALL '.join(parts)})"  # noqa: S608
        f" GROUP BY {names}) WHERE {helper} <> 0 ORDER BY {order}"
    )


def _columns(schema: pa.Schema, vocab: DatasetVocabulary) -> tuple[str, ...]:
    hidden = vocab.changelog_columns
    return tuple(name for name in schema.names if name not in hidden)


def _all_of(table: str) -> str:
    return f"SELECT * FROM {table}"  # noqa: S608  names and constants are quoted


def _q(name: str) -> str:
    return _DIALECT.quoted(name)


def _table(batch: pa.RecordBatch) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([batch])

"""The current state of a dataset by key, looked up in its key index at a cost proportional to the requested keys."""

# ruff: noqa: S608  (SQL is made of roles)

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import duckdb
import pyarrow as pa

from odfpy.data.memory import from_numpy
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.fit import fit_table
from odfpy.data.schemas.schema import DataSchema
from odfpy.state.comparable import comparable
from odfpy.state.current import KeyedState, StateColumn, same_keys
from odfpy.state.entries import KeyColumns, is_superseded
from odfpy.state.fingerprints import Entries
from odfpy.state.key_index import VALUES, KeyIndex, is_living
from odfpy.state.run_file import StateDamaged
from odfpy.state.value_fingerprints import FINGERPRINT


class IndexedState:
    """The state, looked up in a key index; if the index is unusable, in the slices."""

    def __init__(self, index: KeyIndex, schema: DataSchema, scanned: Callable[[], KeyedState]) -> None:
        """Create the state of a dataset.

        Args:
            index: an index that covers all slices of the dataset.
            schema: schema of the dataset; it may have more columns than the index.
            scanned: creates a state that reads the slices.
        """
        self._index = index
        self._schema = to_arrow(schema)
        self._make_scanned = scanned
        self._scanned: KeyedState | None = None
        self._found = fit_table(self._schema.empty_table(), self._schema)

    @property
    def has_failed(self) -> bool:
        """True if the index has failed and the slices are read instead."""
        return self._scanned is not None

    def seen_keys(
        self, db: duckdb.DuckDBPyConnection, keys: Sequence[StateColumn], *, among: str | None = None
    ) -> duckdb.DuckDBPyRelation:
        """Return all keys that ever existed, or those that may be among the requested ones, with fingerprints of their
        values.

        Args:
            db: a connection of duckdb.
            keys: the key columns.
            among: name of the relation with the requested keys, None for all.
        """
        if not self._index.purpose.keeps_rows and self._scanned is None:
            try:
                parts = self._parts(db, keys, among)
            except StateDamaged:
                pass
            else:
                fields = [self._schema.field(key.name).with_nullable(True) for key in keys]
                wanted = pa.schema([*fields, pa.field(VALUES, pa.uint64())])
                rows = pa.concat_tables([wanted.empty_table(), *(fit_table(part.rows, wanted) for part in parts)])
                found = _relation(db, keys, rows, {FINGERPRINT: rows.column(VALUES)})
                return found.project(", ".join((*(key.role for key in keys), FINGERPRINT)))
        return self._data.seen_keys(db, keys, among=among)

    def current_rows(
        self,
        db: duckdb.DuckDBPyConnection,
        keys: Sequence[StateColumn],
        values: Sequence[StateColumn],
        *,
        among: str | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Return keys and values of the current rows; `pos` is an index into the rows looked up so far.

        Args:
            db: a connection of duckdb.
            keys: the key columns.
            values: the other columns.
            among: name of the relation with the requested keys, None for all.
        """
        if self._index.purpose.keeps_rows and self._scanned is None:
            try:
                parts = self._parts(db, keys, among)
            except StateDamaged:
                pass
            else:
                return self._current(db, parts, keys, values, among)
        return self._data.current_rows(db, keys, values, among=among)

    def rows(self, positions: pa.Array) -> pa.Table:
        """Return rows by position, after `current_rows` has looked them up."""
        return self._found.take(positions) if self._scanned is None else self._scanned.rows(positions)

    def check(self) -> None:
        """Read the slices; the index is checked whenever it is read."""
        self._data.check()

    @property
    def _data(self) -> KeyedState:
        if self._scanned is None:
            self._scanned = self._make_scanned()
        return self._scanned

    def _parts(self, db: duckdb.DuckDBPyConnection, keys: Sequence[StateColumn], among: str | None) -> list[Entries]:
        """Return entries that may belong to the requested keys.

        Raises:
            StateDamaged: the index is unusable.
        """
        columns = KeyColumns.of(db, [key.name for key in keys], self._schema)
        if not self._index.runs:
            return []
        if columns.names != self._index.purpose.keys or columns.types != self._index.key_types:
            raise StateDamaged("The index is for other keys")
        if among is None:
            return self._index.entries()
        return self._index.matching(columns.fingerprints_of(db, among, [key.role for key in keys]))

    def _current(
        self,
        db: duckdb.DuckDBPyConnection,
        parts: list[Entries],
        keys: Sequence[StateColumn],
        values: Sequence[StateColumn],
        among: str | None,
    ) -> duckdb.DuckDBPyRelation:
        """Return the last entry of each key, unless it is a retraction."""
        first = self._found.num_rows
        rows = pa.concat_tables([self._found.slice(first), *(fit_table(part.rows, self._schema) for part in parts)])
        self._found = pa.concat_tables([self._found, rows])
        columns = KeyColumns.of(db, [key.name for key in keys], self._schema)
        places = {
            "pos": pa.arange(first, first + rows.num_rows),
            "living": is_living(rows, self._index.purpose.vocabulary),
            "superseded": from_numpy(is_superseded(db, columns, parts)) if parts else pa.array([], pa.bool_()),
        }
        # Filtered last: a retraction is not a current row, but supersedes entries of its key in older runs.
        current = _relation(db, [*keys, *values], rows, places).filter("living AND NOT superseded")
        names = ", ".join(column.role for column in (*keys, *values))
        if among is None:
            return current.project(f"pos, {names}")
        current.create_view("found", replace=True)
        wanted = same_keys(keys, among, "found")
        return db.sql(f"SELECT pos, {names} FROM found WHERE EXISTS (SELECT 1 FROM {among} WHERE {wanted})")


def _relation(
    db: duckdb.DuckDBPyConnection,
    columns: Sequence[StateColumn],
    rows: pa.Table,
    more: Mapping[str, pa.Array | pa.ChunkedArray],
) -> duckdb.DuckDBPyRelation:
    """Return a relation of table columns under their roles, null if the table lacks them, and of additional columns."""
    present = [column for column in columns if column.name in rows.column_names]
    table = pa.table({**more, **{column.role: comparable(rows.column(column.name)) for column in present}})
    casts = (
        f"CAST({column.role if column in present else 'NULL'} AS {column.type}) AS {column.role}" for column in columns
    )
    return db.from_arrow(table).project(", ".join((*more, *casts)))

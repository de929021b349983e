"""The current state of a dataset by key, which merges look up (ODF specification, "Merge Strategies").

The current row of a key is its latest by offset, unless that is a -R, or a -C without its +C. `KeyedState` is the
interface that merges use; `ScannedState` reads the slices themselves, at a cost proportional to the history, and
`IndexedState` (`indexed`) uses an index that is stored beside them.
"""

# ruff: noqa: S608  (SQL is made of roles and quoted names)

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from odfpy.data.memory import from_numpy
from odfpy.data.schemas.arrow import plain_array, plain_type, to_arrow
from odfpy.data.schemas.fit import fit_table
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.parquet_io import open_parquet, reading
from odfpy.data.slices.slice import iter_slice, read_slice, slice_schema, slice_stats
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.errors import IntegrityError
from odfpy.state.comparable import comparable, has_floats, has_wide_decimal
from odfpy.state.database import literal, quoted
from odfpy.values import dataclass

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class StateColumn:
    """A requested column of the state.

    Attributes:
        role: name in the result.
        name: name in the dataset.
        type: requested type in duckdb.
    """

    role: str
    name: str
    type: str


class KeyedState(Protocol):
    """Lookup of a dataset's keys. Relations are lazy, and valid as long as their connection."""

    def seen_keys(
        self, db: duckdb.DuckDBPyConnection, keys: Sequence[StateColumn], *, among: str | None = None
    ) -> duckdb.DuckDBPyRelation:
        """Return all keys that ever existed, each at least once; with fingerprints of their last values if that is
        cheap.

        Args:
            db: the connection on which the relation is made.
            keys: the primary key.
            among: name of a relation with keys under their roles; other keys may be omitted. None for all keys.
        """

    def current_rows(
        self,
        db: duckdb.DuckDBPyConnection,
        keys: Sequence[StateColumn],
        values: Sequence[StateColumn],
        *,
        among: str | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Return keys and values of the current rows, with their `pos` for `rows`.

        Args:
            db: the connection on which the relation is made.
            keys: the primary key.
            values: other columns.
            among: name of a relation with keys under their roles; other keys are omitted. None for all keys.
        """

    def rows(self, positions: pa.Array) -> pa.Table:
        """Return complete rows, exactly as they are in the dataset.

        Args:
            positions: values of `pos`, int64.

        Returns:
            One row per position, in the same order, with the columns of the dataset's schema.
        """

    def check(self) -> None:
        """Read everything that lookups depend on, in order to find the cause of a failure.

        Raises:
            IntegrityError: a file is damaged; the message names it.
            ObjectNotFound: a file is missing.
        """


def same_keys(keys: Sequence[StateColumn], left: str, right: str) -> str:
    """Return the SQL condition that rows of two relations have the same key.

    Args:
        keys: the key columns.
        left: name of one relation.
        right: name of the other.
    """
    return " AND ".join(f"({left}.{key.role} = {right}.{key.role})" for key in keys)


class ScannedState:
    """The state of a dataset, computed from all slices."""

    def __init__(self, slices: Sequence[Path], schema: DataSchema | None, vocabulary: DatasetVocabulary) -> None:
        """Create the state of a dataset.

        Args:
            slices: its data files; together they contain all offsets from 0.
            schema: its schema, None before there is one.
            vocabulary: names of its system columns.
        """
        self._slices = list(slices)
        self._schema = pa.schema([]) if schema is None else to_arrow(schema)
        self._vocabulary = vocabulary

    def seen_keys(
        self,
        db: duckdb.DuckDBPyConnection,
        keys: Sequence[StateColumn],
        *,
        among: str | None = None,  # noqa: ARG002
    ) -> duckdb.DuckDBPyRelation:
        """Return all keys that ever existed, once per row.

        Args:
            db: a connection of duckdb.
            keys: the key columns.
            among: name of the relation with the requested keys, None for all.
        """
        return self._history(db, keys, [])

    def current_rows(
        self,
        db: duckdb.DuckDBPyConnection,
        keys: Sequence[StateColumn],
        values: Sequence[StateColumn],
        *,
        among: str | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Return keys and values of the current rows, with their offset as `pos`.

        Args:
            db: a connection of duckdb.
            keys: the key columns.
            values: the other columns.
            among: name of the relation with the requested keys, None for all.
        """
        offset = StateColumn("pos", self._vocabulary.offset_column, "BIGINT")
        operation = StateColumn("op", self._vocabulary.operation_type_column, "INTEGER")
        self._history(db, keys, [offset, operation, *values]).create_view("history", replace=True)
        wanted = ""
        if among is not None:
            wanted = f"WHERE EXISTS (SELECT 1 FROM {among} WHERE {same_keys(keys, among, 'history')})"
        # Looking up the last offset of each key first reads only the keys; no window function has to carry the values.
        return db.sql(
            f"SELECT pos, {', '.join(column.role for column in (*keys, *values))} FROM history WHERE op IN (0, 3) "
            f"AND pos IN (SELECT MAX(pos) FROM history {wanted} GROUP BY {', '.join(key.role for key in keys)})"
        )

    def rows(self, positions: pa.Array) -> pa.Table:
        """Return rows by offset.

        Raises:
            IntegrityError: a slice is damaged, or does not contain its recorded offsets.
        """
        offsets = positions.to_numpy(zero_copy_only=False)
        order = np.argsort(offsets, kind="stable")
        ascending = offsets[order]
        parts = [fit_table(self._schema.empty_table(), self._schema)]
        for path in self._slices:
            stats = slice_stats(path, vocab=self._vocabulary)
            if stats.offset_start is None or stats.offset_end is None:
                continue
            first, last = np.searchsorted(ascending, [stats.offset_start, stats.offset_end + 1])
            if first < last:
                parts.append(self._take(path, ascending[first:last] - stats.offset_start))
        table = pa.concat_tables(parts)
        found = table.column(self._vocabulary.offset_column).cast(pa.int64())
        if not found.combine_chunks().equals(from_numpy(ascending)):
            raise IntegrityError(
                "The data slices do not hold all offsets from 0 on, in order",
                hint="`odf verify --integrity` shows what is damaged.",
            )
        return table.take(from_numpy(np.argsort(order, kind="stable")))

    def check(self) -> None:
        """Decode all slices."""
        for path in self._slices:
            with reading(path):
                for batch in iter_slice(path, vocab=self._vocabulary):
                    batch.validate(full=True)

    def _take(self, path: Path, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
        """Return rows of a slice by ascending position; only row groups that contain them are read."""
        with open_parquet(path) as file:
            sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            starts = np.concatenate([[0], np.cumsum(sizes)])
            group_of = np.searchsorted(starts, places, side="right") - 1
            groups = np.unique(group_of)
            read = file.read_row_groups(groups.tolist())
        # Positions count from the start of the file, but the table only contains the row groups that were read.
        read_starts = np.concatenate([[0], np.cumsum(np.array(sizes)[groups])])
        among_read = places - starts[group_of] + read_starts[np.searchsorted(groups, group_of)]
        taken = read.take(from_numpy(among_read))
        plain = [
            pa.chunked_array([plain_array(chunk) for chunk in column.chunks], plain_type(column.type))
            for column in taken.columns
        ]
        return fit_table(pa.table(plain, taken.column_names), self._schema)

    # --- History ---

    def _history(
        self, db: duckdb.DuckDBPyConnection, keys: Sequence[StateColumn], more: Sequence[StateColumn]
    ) -> duckdb.DuckDBPyRelation:
        """Return keys and other columns of all rows of the history."""
        columns = [*keys, *more]
        if not self._slices:
            nulls = ", ".join(f"CAST(NULL AS {column.type}) AS {column.role}" for column in columns)
            return db.sql(f"SELECT {nulls} WHERE FALSE")
        files = ", ".join(literal(str(path)) for path in self._slices)
        source = f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)"
        present = set(db.sql(f"SELECT * FROM {source}").columns)
        # A join on keys would skip row groups that contain NaN.
        types = [self._schema.field(key.name).type for key in keys if key.name in self._schema.names]
        is_exact = not any(map(has_floats, types))
        if not is_exact or not self._can_be_scanned({column.name for column in columns}, present):
            return self._loaded(db, columns)
        return db.sql(
            "SELECT "
            + ", ".join(
                f"CAST({quoted(c.name) if c.name in present else 'NULL'} AS {c.type}) AS {c.role}" for c in columns
            )
            + f" FROM {source}"
        )

    def _can_be_scanned(self, wanted: set[str], seen: set[str]) -> bool:
        """Return whether duckdb maps the requested columns correctly: it renames some, since it ignores case."""
        names = self._schema.names
        if len({name.lower() for name in names}) < len(names):
            return False
        if any(has_wide_decimal(self._schema.field(name).type) for name in wanted.intersection(names)):
            return False
        missing = wanted - seen
        return not missing or missing.isdisjoint(name for path in self._slices for name in slice_schema(path).names)

    def _loaded(self, db: duckdb.DuckDBPyConnection, columns: Sequence[StateColumn]) -> duckdb.DuckDBPyRelation:
        """Return columns of all rows, read through Arrow."""
        schema = pa.schema([self._schema.field(column.name) for column in columns])
        parts = []
        for path in self._slices:
            with open_parquet(path) as file:
                present = [name for name in schema.names if name in file.schema_arrow.names]
            parts.append(fit_table(read_slice(path, present, vocab=self._vocabulary), schema))
        table = pa.concat_tables(parts)
        loaded = db.from_arrow(pa.table({column.role: comparable(table.column(column.name)) for column in columns}))
        return loaded.project(", ".join(f"CAST({column.role} AS {column.type}) AS {column.role}" for column in columns))

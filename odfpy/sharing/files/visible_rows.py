"""The visible rows of a file, in the columns and types of clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.sharing.decisions import View, any_of
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.files.kinds import WORDS, kinds_of
from odfpy.sharing.files.schema import shared_column, without_views
from odfpy.sharing.names import folded
from odfpy.sharing.tables.contract import TableFile
from odfpy.sharing.tables.parquet_files import RowsOfFile
from odfpy.sharing.tables.partitions import partition_scalars

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from typing_extensions import Self

BATCH_ROWS: Final = 1 << 20
"""Maximum rows of a batch, and of a row group that is written."""

_FIRST_ROWS: Final = 8192  # enough if one row decides
_CONDITIONS: Final = 256  # maximum number of cached conditions


def visible_rows(file: TableFile, schema: pa.Schema, view: View) -> Iterator[pa.RecordBatch]:
    """Yield the visible rows of a file.

    Args:
        file: a file of a table.
        schema: columns of the table for clients, including partition columns.
        view: the visible part.

    Raises:
        OdfError: the file cannot be read.
    """
    stored = RowsOfFile(file.path, BATCH_ROWS)
    with RowFilter(view, schema, file) as shown:
        for batch in live_batches(stored, file.live, shown.columns(stored.names)):
            yield shown.rows(shown.whole(batch))


def has_visible_row(file: TableFile, view: View) -> bool:
    """Return whether any row of a file is visible; only the columns of the condition are read.

    Args:
        file: a file of a table.
        view: the visible part.

    Raises:
        OdfError: the file cannot be read.
    """
    import pyarrow as pa

    if view.has_all_rows:
        return True
    stored = RowsOfFile(file.path, _FIRST_ROWS)
    with RowFilter(view, pa.schema([]), file) as shown:
        batches = stored.batches(shown.filter_columns(stored.names))
        return any(shown.any_row(shown.whole(batch)) for batch in batches)


def num_visible_rows(file: TableFile, view: View) -> int:
    """Return the number of visible rows of a file; only the columns of the condition are read.

    Args:
        file: a file of a table.
        view: the visible part.

    Raises:
        OdfError: the file cannot be read.
    """
    import pyarrow as pa

    stored = RowsOfFile(file.path, BATCH_ROWS)
    if view.has_all_rows:
        return sum(stored.sizes) if file.live is None else int(file.live.sum())
    with RowFilter(view, pa.schema([]), file) as shown:
        batches = live_batches(stored, file.live, shown.filter_columns(stored.names))
        return sum(shown.num_rows(shown.whole(batch)) for batch in batches)


class RowFilter:
    """Removes hidden rows and columns from batches, and converts the visible ones for clients."""

    def __init__(self, view: View, schema: pa.Schema, file: TableFile) -> None:
        self._view = view
        self._schema = schema
        self._constants = partition_scalars(file.partition_values, file.partition_types)
        self._db: duckdb.DuckDBPyConnection | None = None

    def __enter__(self) -> Self:
        if not self._view.is_all:
            self._db = _duckdb().cursor()
            self._db.execute("SET TimeZone = 'UTC'")
        return self

    def __exit__(self, *_: object) -> None:
        if self._db is not None:
            self._db.close()

    def columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are needed to produce a file from one with the given columns."""
        wanted = [name for name in names if name in self._schema.names or folded(name) in self._view.filter_columns]
        return wanted or list(names)

    def filter_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns that conditions use; one column if they use none, for the row count.

        Args:
            names: columns of the file.
        """
        return [name for name in names if folded(name) in self._view.filter_columns] or list(names[:1])

    def whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the partition columns to the rows of a file: conditions may use them, and clients see them."""
        import pyarrow as pa

        if not self._constants:
            return batch
        columns = {name: batch.column(at) for at, name in enumerate(batch.schema.names)}
        columns |= {name: pa.repeat(value, batch.num_rows) for name, value in self._constants.items()}
        return pa.record_batch(columns)

    def changes(self, stored: RowsOfFile, operations: str) -> pa.Array:
        """Return the kind of change of each visible row of a file, in order.

        If a correction moves a row into the view, or out of it, only one half is visible, and becomes an insert or a
        delete.
        """
        import numpy as np
        import pyarrow as pa

        kinds, shown = [], []
        condition = self._view.condition
        wanted = [name for name in stored.names if name == operations or folded(name) in self._view.filter_columns]
        for read in stored.batches(wanted):
            batch = self.whole(without_views(read))
            kinds.append(kinds_of(batch.column(operations), is_whole=condition is None))
            every = np.ones(batch.num_rows, np.bool_)
            shown.append(every if condition is None else self._true(batch, [condition])[0])
        kind = np.concatenate([np.zeros(0, np.int32), *kinds])
        seen = np.concatenate([np.zeros(0, np.bool_), *shown])
        # The second half of a correction directly follows the first.
        begins = (kind[:-1] == OperationType.CORRECT_FROM) & (kind[1:] == OperationType.CORRECT_TO)
        kind[:-1][begins & ~seen[1:]] = OperationType.RETRACT
        kind[1:][begins & ~seen[:-1]] = OperationType.APPEND
        return pa.array(WORDS).take(pa.array(kind[seen], pa.int32()))

    def any_row(self, batch: pa.RecordBatch) -> bool:
        """Return whether any row of a batch is visible.

        Args:
            batch: the columns of the condition.
        """
        condition = self._view.condition
        return batch.num_rows > 0 and (condition is None or bool(self._true(batch, [condition])[0].any()))

    def num_rows(self, batch: pa.RecordBatch) -> int:
        """Return the number of visible rows of a batch.

        Args:
            batch: the columns of the condition.
        """
        condition = self._view.condition
        return int(batch.num_rows if condition is None else self._true(batch, [condition])[0].sum())

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the visible rows of a batch, converted for clients."""
        import pyarrow as pa

        names = batch.schema.names
        masks: dict[str, npt.NDArray[np.bool_]] = {}
        if not self._view.is_all:
            condition = self._view.condition
            if condition is not None:
                kept = pa.array(self._true(batch, [condition])[0])
                batch = batch.filter(kept)
            masks = self._hidden_cells(batch, names)
        columns = [self._column(batch, field, masks) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _hidden_cells(self, batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, npt.NDArray[np.bool_]]:
        """Return masks of hidden cells, for columns that are not visible in all rows."""
        shown = {name: any_of(found) for name in names if (found := self._view.conditions_of(name))}
        if not shown:
            return {}
        distinct = list(dict.fromkeys(shown.values()))
        true = dict(zip(distinct, self._true(batch, distinct), strict=True))
        return {folded(name): ~true[condition] for name, condition in shown.items()}

    def _true(self, batch: pa.RecordBatch, conditions: list[str]) -> list[npt.NDArray[np.bool_]]:
        """Return for each condition the rows in which it is true.

        Raises:
            CannotShare: a condition cannot be evaluated over these rows.
        """
        import duckdb
        import pyarrow as pa

        assert self._db is not None  # noqa: S101  there is one where something is hidden
        # Only columns of conditions: DuckDB does not support all types of the others.
        named = [name for name in batch.schema.names if folded(name) in self._view.filter_columns]
        if len(set(map(folded, named))) < len(named):  # DuckDB would take either of them
            raise CannotShare(
                "A table has two columns that differ in case only, and a condition on its rows names one of them",
                hint="Rename one of the columns.",
            )
        needed = batch.select(named) if named else pa.record_batch({"n": pa.nulls(batch.num_rows, pa.int8())})
        lacking = self._view.filter_columns.difference(map(folded, batch.schema.names))
        texts = [_in_file(condition, lacking) for condition in conditions]
        columns = [f"coalesce(({text}), FALSE) AS c{number}" for number, text in enumerate(texts)]
        try:
            relation = self._db.from_arrow(pa.Table.from_batches([needed]))
            table = relation.project(", ".join(columns)).to_arrow_table()
        except duckdb.Error as error:  # its message may contain values of hidden rows
            raise CannotShare(
                f"A condition on the rows of a table fails for one of them ({type(error).__name__})",
                hint="Compare columns with constants of their own type, or cast them: what cannot be cast is hidden.",
            ) from error
        return [column.to_numpy() for column in table.columns]

    @staticmethod
    def _column(batch: pa.RecordBatch, field: pa.Field, masks: dict[str, npt.NDArray[np.bool_]]) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        values = shared_column(batch, field)
        hidden = masks.get(folded(field.name))
        if hidden is None:
            return values
        return pc.if_else(pa.array(hidden), pa.scalar(None, field.type), values)


@lru_cache(_CONDITIONS)
def _in_file(condition: str, lacking: frozenset[str]) -> str:
    """Rewrite a condition for a file: failing casts give NULL, which hides the row instead of raising an error.

    Args:
        condition: the condition.
        lacking: case-folded names of columns of the table that an older file lacks: they are NULL.
    """
    from sqlglot import exp, parse_one

    tree = parse_one(f"({condition})", dialect="duckdb")
    for node in list(tree.find_all(exp.Column, exp.Cast)):
        if isinstance(node, exp.Cast):
            node.replace(exp.TryCast(**node.args))
        elif folded(node.name) in lacking:
            node.replace(exp.null())
    return tree.sql("duckdb")


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB database that cannot read files and has no tables; connections to it are cheap."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": False,
        "autoload_known_extensions": False,
        "threads": 1,
    }
    return duckdb.connect(config=settings)


def live_batches(
    stored: RowsOfFile, live: npt.NDArray[np.bool_] | None, columns: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of a file, row group by row group; row groups without live rows are skipped.

    Args:
        stored: the file.
        live: for each row, whether it is live; None if all are.
        columns: names of the columns to read.
    """
    import numpy as np
    import pyarrow as pa

    if live is None:
        yield from map(without_views, stored.batches(columns))
        return
    parts = np.split(live, np.cumsum(stored.sizes)[:-1])
    groups = [number for number, rows in enumerate(parts) if rows.any()]
    rows, place = np.concatenate([np.zeros(0, np.bool_), *(parts[number] for number in groups)]), 0
    for batch in map(without_views, stored.batches(columns, groups)):
        part = rows[place : place + batch.num_rows]
        place += batch.num_rows
        yield batch if part.all() else batch.filter(pa.array(part))

"""Answers that consist of unchanged rows of slices, for engines that read slices themselves."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.engine.sql.ad_hoc import SqlTable
from odfpy.query.plan import plan
from odfpy.query.query import Query
from odfpy.query.resolver import DatasetResolver


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Columns of all rows of a log.

    Attributes:
        table: the log.
        columns: names of its columns, with their names in the result.
    """

    table: SqlTable
    columns: tuple[tuple[str, str], ...]


def stored_rows(resolver: DatasetResolver, query: Query) -> StoredRows | None:
    """Return the log that contains the rows of a query; None if they have to be processed, for example sorted.

    Raises as `odfpy.query.plan.plan` does.
    """
    found = plan(resolver, query)
    if found.is_explained or found.path != "slices" or found.simple is None or found.simple.ordered:
        return None
    (only,) = found.scans
    everything = (0, only.cut.num_rows - 1)
    if not only.slices or found.simple.rows(only.cut.num_rows, query.skip, query.limit) != everything:
        return None
    columns = found.simple.columns or tuple((name, name) for name in only.schema.names)
    return StoredRows(only.table(), columns)

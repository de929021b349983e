"""Ad hoc queries, as the engine contract has them: names and meaning of values are those of `odfpy.engine.contract`."""

from __future__ import annotations

from odfpy.data.scalars import U64
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class Projection:
    """A projection of a changelog (odfpy): its current state, or that at a time (`odfpy.engine.sql.projection`).

    Attributes:
        key: the primary key; None when there is none.
        as_of: the event time at which it is wanted, None for the current state.
        only_appends: whether all rows of the log are known to be `+A`.
    """

    key: tuple[str, ...] | None = None
    as_of: Timestamp | None = None
    only_appends: bool = False


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A dataset as a table of an ad hoc query (odfpy).

    Attributes:
        name: its name in the query.
        schema_file: a Parquet file without rows that has its schema.
        data_paths: slices, in order of offset.
        last_offset: rows after that one are not in the log, though the slices may have them.
        projection: what the table shows of the log, None for the log itself.
    """

    name: str
    schema_file: str
    data_paths: tuple[str, ...]
    vocab: DatasetVocabulary
    last_offset: U64 | None = None
    projection: Projection | None = None


@dataclass(frozen=True, slots=True)
class SqlRequest:
    """An ad hoc read-only query; the result goes to `output_path` as an Arrow IPC stream (odfpy).

    The stream may be read while it grows.

    Attributes:
        limit: maximum number of rows.
        skip: rows to leave out before.
        max_bytes: maximum bytes of rows; a larger result is reported as the fault `too-large` of the query.
        shown: the query as its author wrote it, of the same length: places in it are those of `query`.
    """

    query: str
    tables: tuple[SqlTable, ...]
    output_path: str
    limit: U64 | None = None
    skip: U64 = 0
    max_bytes: U64 | None = None
    shown: str | None = None


@dataclass(frozen=True, slots=True)
class SqlResponseSuccess:
    """The result has been written (odfpy)."""

    num_rows: U64

"""Queries over files that are not slices: Parquet, CSV and NDJSON, as other programs write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.data.scalars import U64
from odfpy.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class FileTable:
    """Files that are one table of a query (odfpy).

    Attributes:
        name: its name in the query.
        format: `parquet`, `csv` or `ndjson`.
        paths: the files.
        schema: names and types of the columns, as Arrow writes them, where they are not to be inferred.
        delimiter: between columns of CSV.
        header: whether the first line of CSV has the names of columns.
    """

    name: str
    format: str
    paths: tuple[str, ...]
    schema: bytes | None = None
    delimiter: str = ","
    header: bool = True

    def arrow_schema(self) -> pa.Schema | None:
        """Return the schema, if it is given."""
        import pyarrow as pa

        return None if self.schema is None else pa.ipc.read_schema(pa.py_buffer(self.schema))


@dataclass(frozen=True, slots=True)
class FilesRequest:
    """A read-only query over files; its rows are streamed to the client (odfpy).

    Attributes:
        query: the query.
        tables: all that it may name.
        max_bytes: maximum bytes of rows.
    """

    query: str
    tables: tuple[FileTable, ...]
    max_bytes: U64 | None = None

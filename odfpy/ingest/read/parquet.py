"""Reading Parquet (ODF specification, "ReadStep: Parquet").

With a schema, columns are selected by name and cast exactly; columns that the schema lacks are ignored, missing ones
are null. Without one, the file defines the columns and their nullability. Equivalent layouts (views, dictionaries,
names of list items) give the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.chain.read_steps import ReadParquet
from odfpy.data.schemas.arrow import from_arrow, to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.parquet_io import INT96_UNIT
from odfpy.errors import IngestError
from odfpy.ingest.read.files import opening
from odfpy.ingest.read.part import WHOLE, FilePart, parts_between
from odfpy.ingest.read.typed import Misfit, fit_table, shorten


def read_parquet(
    step: ReadParquet,  # noqa: ARG001
    schema: DataSchema | None,
    path: Path,
    name: str,
    part: FilePart = WHOLE,
) -> pa.Table:
    """Return the rows of a Parquet file, or of a part of its row groups.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        part: the part to read; all of the file by default.

    Raises:
        BadValue: a value does not fit; the message names the row, counted from 1.
        IngestError: the file cannot be read.
        SchemaError: a column has a type that ODF does not have, or that cannot be converted to the expected one.
    """
    before, table = _read_table(path, name, None if schema is None else schema.names, part)
    repeated = [column for column, count in Counter(table.column_names).items() if count > 1]
    if repeated:
        raise IngestError(f"{name} has the column {shorten(repeated[0])} twice")
    wanted = to_arrow(from_arrow(table.schema) if schema is None else schema)
    absent = pa.chunked_array([pa.nulls(table.num_rows)])
    columns = [table.column(field.name) if field.name in table.column_names else absent for field in wanted]
    try:
        return fit_table(columns, wanted)
    except Misfit as misfit:
        raise misfit.at(f"{name}, row {before + misfit.row + 1}", has_formats=False) from None


def parquet_parts(step: ReadParquet, schema: DataSchema | None, path: Path, name: str, size: int) -> list[FilePart]:  # noqa: ARG001
    """Return parts of approximately `size` uncompressed bytes; errors as above.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        size: approximate bytes of a part.
    """
    with _opened(path, name) as file:
        if file is None:
            return [WHOLE]
        bounds, held = [], 0
        for group in range(file.num_row_groups):
            if held >= size:
                bounds.append(group)
                held = 0
            held += file.metadata.row_group(group).total_byte_size
        return parts_between(bounds)


def column_names(path: Path, name: str) -> tuple[str, ...] | None:
    """Return the names of the columns of a file; None if it has no rows.

    Args:
        path: the file.
        name: name of the file in messages.

    Raises:
        IngestError: the file cannot be read.
    """
    with _opened(path, name) as file:
        return None if file is None or not file.metadata.num_rows else tuple(file.schema_arrow.names)


def _read_table(path: Path, name: str, columns: tuple[str, ...] | None, part: FilePart) -> tuple[int, pa.Table]:
    """Return the number of rows before the part, and its rows."""
    with _opened(path, name) as file:
        if file is None:
            return 0, pa.table({})
        present = file.schema_arrow.names
        wanted = None if columns is None else [column for column in present if column in columns]
        if part == WHOLE:
            return 0, file.read(wanted)
        before = sum(file.metadata.row_group(group).num_rows for group in range(part.start))
        return before, file.read_row_groups(
            list(range(part.start, file.num_row_groups if part.stop is None else part.stop)), wanted
        )


@contextmanager
def _opened(path: Path, name: str) -> Iterator[pq.ParquetFile | None]:
    """Provide the open file, or None if it is empty; convert errors inside the block."""
    with opening(name), path.open("rb") as source:
        if not source.read(1):
            yield None
            return
        source.seek(0)
        try:
            with pq.ParquetFile(
                source, page_checksum_verification=True, coerce_int96_timestamp_unit=INT96_UNIT
            ) as file:
                yield file
        except MemoryError as error:  # also raised by pyarrow; a damaged file may request any amount
            raise IngestError(
                f"Not enough memory to read {name}: {error}",
                hint="Close other programs. The file may also be damaged.",
            ) from error
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise IngestError(
                f"{name} is not a readable Parquet file: {error}",
                hint="If the file is still being written or downloaded, try again when it is complete.",
            ) from error

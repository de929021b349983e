"""Reading datasets: the last rows straight from the slices, anything else by SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.coordinator.slices import newest_blocks, overlapping, schema_file, slice_paths, slices_of
from odfpy.coordinator.storage import Storage, StoredDataset
from odfpy.engine import contract
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.responses import as_error
from odfpy.errors import DatasetNotFound, InvalidValue, SchemaError
from odfpy.query.tables import table_names

if TYPE_CHECKING:
    import pyarrow as pa

_DIALECTS = {"spark": "spark", "datafusion": "postgres"}
DEFAULT_ENGINE = "spark"


def tail(dataset: StoredDataset, num_records: int, skip: int) -> pa.Table:
    """The last rows by offset, in order of offset, with all columns of the schema in force.

    Args:
        dataset: which.
        num_records: how many rows at most.
        skip: rows at the end to leave out first.
    """
    import pyarrow as pa

    from odfpy.data.arrow import to_arrow
    from odfpy.data.slice import read_slice

    state = dataset.state
    if state.schema is None:
        raise SchemaError(f"{dataset.handle} has no data yet, and no schema", hint="Pull or ingest something first.")
    schema = to_arrow(state.schema)
    end = state.num_records - 1 - skip
    start = max(0, end - num_records + 1)
    if end < start:
        return schema.empty_table()
    slices = overlapping(slices_of(newest_blocks(dataset.chain.iter_blocks(), start)), start, end)
    parts = []
    for item, path in zip(slices, slice_paths(dataset.layout.data, slices), strict=True):
        rows = read_slice(path, vocab=state.vocab)
        first = item.data.offset_interval.start
        rows = rows.slice(max(0, start - first), min(end, item.data.offset_interval.end) - max(start, first) + 1)
        parts.append(_with_schema(rows, schema))
    return pa.concat_tables(parts)


def _with_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows of an older slice with the columns of today, absent ones null."""
    import pyarrow as pa

    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def sql(storage: Storage, engines: EngineRegistry, query: str, *, engine: str | None, limit: int | None) -> pa.Table:
    """Run a read-only query; every dataset is a table under its name.

    Raises:
        InvalidQuery: as the engine says.
    """
    import pyarrow as pa

    name = engine or DEFAULT_ENGINE
    runner = engines.get(name)
    with storage.scratch() as scratch:
        tables = []
        for table in table_names(query, _DIALECTS.get(name, name)):
            dataset = _find(storage, table)
            if dataset is None:
                continue  # defined by the query itself, or unknown: the engine says so
            state = dataset.state
            if state.schema is None:
                raise SchemaError(f"{table} has no data yet, and no schema", hint="Pull or ingest something first.")
            paths = slice_paths(dataset.layout.data, slices_of(dataset.chain.in_order()))
            file = schema_file(storage, state.schema)
            tables.append(contract.SqlTable(table, str(file), tuple(map(str, paths)), state.vocab))
        out = scratch / "result"
        response = runner.sql(contract.SqlRequest(query, tuple(tables), str(out), limit))
        if not isinstance(response, contract.SqlResponseSuccess):
            raise as_error(response)
        with pa.OSFile(str(out)) as file, pa.ipc.open_stream(file) as reader:
            return reader.read_all()


def _find(storage: Storage, name: str) -> StoredDataset | None:
    try:
        return storage.look(name)
    except (DatasetNotFound, InvalidValue):
        return None

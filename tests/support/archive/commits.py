"""Archives whose rows are committed directly, without files."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from odfpy import Workspace
from odfpy.archive.record import FileRecord
from odfpy.archive.rows import COLUMNS, archive_manifest, record_schema, table_of
from odfpy.chain.events import AddData, DataSlice, MetadataEvent, SetDataSchema
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.multihash import BLAKE3, Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.slices.writer import SliceWriter
from odfpy.data.vocabulary import OperationType

Row = tuple[OperationType, FileRecord]
APPEND, RETRACT, FROM, TO = OperationType


def new_archive(folder: Path, name: str = "logs") -> StoredDataset:
    """Return an archive without records in a new workspace."""
    workspace = Workspace.init(folder)
    workspace.add([archive_manifest(name)])
    return workspace.storage.get(name)


def commit(dataset: StoredDataset, rows: Sequence[Row]) -> StoredDataset:
    """Return the dataset with rows appended in one block, in their order."""
    return commit_table(dataset, table_of([record for _, record in rows], [op for op, _ in rows]))


def commit_table(dataset: StoredDataset, rows: pa.Table) -> StoredDataset:
    """Return the dataset with rows appended in one block.

    Args:
        dataset: an archive.
        rows: `op` and the columns of records.
    """
    state = dataset.reloaded().state
    events: list[MetadataEvent] = []
    if state.schema is None:
        events.append(SetDataSchema(schema=record_schema(state)))
    first, count, vocab = state.next_offset, rows.num_rows, state.vocab
    system = {
        vocab.offset_column: pa.array(range(first, first + count), pa.int64()),
        vocab.operation_type_column: rows.column("op"),
        vocab.system_time_column: pa.array([state.system_time.millis] * count),
    }
    columns = {**system, **{name: rows.column(name) for name in COLUMNS}}
    schema = to_arrow(record_schema(state))
    table = pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "slice"
        with SliceWriter(path, schema, vocab) as writer:
            writer.write(table)
            info = writer.finish()
        dataset.layout.data.insert_file(path, info.physical_hash)
    interval = OffsetInterval(info.offset_start, info.offset_end)
    data = DataSlice(info.logical_hash, info.physical_hash, interval, info.size)
    events.append(AddData(prev_offset=state.last_offset, new_data=data, new_watermark=state.watermark))
    dataset.chain.commit(dataset.chain.prepare(state, events, state.system_time))
    return dataset.reloaded()


def record(
    id: str,  # noqa: A002 - the field's name
    start: int = 0,
    end: int | None = None,
    what: str = "syslog",
    where: str = "web1",
    **more: object,
) -> FileRecord:
    """Return a record of a file that exists nowhere."""
    content = Multihash.of(id.encode(), BLAKE3)
    rest = {"path": f"/var/log/{id}", "hash": content.digest.hex()[:32], "object": content, "size": len(id)}
    fields = {**rest, "create_time": 1_700_000_000_000, **more}
    return FileRecord(id=id, what=what, where=where, start=start, end=end, **fields)  # type: ignore[arg-type]

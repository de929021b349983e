"""Archives of many records, whose files exist nowhere: the rows alone are committed."""

from __future__ import annotations

import tempfile
from binascii import hexlify
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.archive.rows import COLUMNS, record_schema
from odfpy.archive.times import DAY
from odfpy.chain.events import AddData, DataSlice, MetadataEvent, SetDataSchema
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.slices.writer import SliceWriter

WHATS = 20
WHERES = 500
FIRST = 1_600_000_000_000
"""Start of the first record."""

JOB = 8
"""Records of a job; every second record belongs to one."""

COMMIT = 1_000_000


def many_records(dataset: StoredDataset, count: int, days: int = 1_000) -> StoredDataset:
    """Append records, a million a commit, one after the other in time.

    Three of ten are of one moment, most others of a minute to a day, and one of a hundred thousand lasts ten years.

    Args:
        dataset: an archive without records, or with some that were made like this.
        count: how many records.
        days: over how many days.

    Returns:
        The dataset as it is then.
    """
    for first in range(dataset.state.next_offset, count, COMMIT):
        numbers = np.arange(first, min(first + COMMIT, count))
        dataset = _committed(dataset, _rows(np.random.default_rng(first), numbers, days * DAY / count))
    return dataset


def more_records(dataset: StoredDataset, count: int) -> StoredDataset:
    """Append records in one commit, the next in time after `many_records` with ten million.

    Args:
        dataset: an archive.
        count: how many records.
    """
    first = dataset.state.next_offset
    return _committed(dataset, _rows(np.random.default_rng(first), np.arange(first, first + count), DAY / 10_000))


def _rows(dice: np.random.Generator, numbers: np.ndarray, step: float) -> dict[str, pa.Array]:
    count = len(numbers)
    start = FIRST + (numbers * step).astype(np.int64)
    spans = np.array([0, 60_000, 3_600_000, DAY, 3_650 * DAY])
    span = spans[dice.choice(5, count, p=[0.3, 0.3, 0.3, 0.09999, 0.00001])] * dice.uniform(0.5, 1, count)
    whats, wheres = numbers % WHATS, numbers // WHATS % WHERES
    job = pa.array(numbers // (2 * JOB), pa.int64()).cast(pa.string())
    what = _texts("what", whats)
    time = pa.timestamp("ms", "UTC")
    rows = {
        "start": pa.array(start).cast(time),
        "id": _hex(dice, count, 16),
        "what": what,
        "where": _texts("where", wheres),
        "end": pa.array(start + span.astype(np.int64), mask=span == 0).cast(time),
        "work_id": pc.if_else(pa.array(numbers % 2 == 0), pc.binary_join_element_wise("job", job, "-"), None),
        "path": pc.binary_join_element_wise("/var/log", what, pa.array(numbers).cast(pa.string()), "/"),
        "hash": _hex(dice, count, 16),
        "object": pc.binary_join_element_wise("f1e20", _hex(dice, count, 32), ""),
        "size": pa.array(dice.integers(0, 10**6, count)).cast(pa.uint64()),
        "create_time": pa.array(start + 5_000).cast(time),
        "version": pa.array(np.zeros(count, np.int32)),
        "status": pa.array(["kept"] * count),
    }
    order = pc.sort_indices(rows["id"])  # as the merge of changelogs has them
    nothing = {"released": pa.nulls(count, time), "who": pa.nulls(count, pa.string())}
    nothing["why"] = nothing["who"]
    return {name: rows[name].take(order) if name in rows else nothing[name] for name in COLUMNS}


def _committed(dataset: StoredDataset, rows: dict[str, pa.Array]) -> StoredDataset:
    state = dataset.state
    count, vocab = len(rows["id"]), state.vocab
    events: list[MetadataEvent] = [SetDataSchema(schema=record_schema(state))] if state.schema is None else []
    system = {
        vocab.offset_column: pa.array(np.arange(state.next_offset, state.next_offset + count)),
        vocab.operation_type_column: pa.array(np.zeros(count, np.int32)),
        vocab.system_time_column: pa.array(np.full(count, state.system_time.millis)),
    }
    schema = to_arrow(record_schema(state))
    columns = {**system, **rows}
    with tempfile.TemporaryDirectory(dir=dataset.folder) as scratch:
        path = Path(scratch) / "slice"
        with SliceWriter(path, schema, vocab) as writer:
            writer.write(pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema))
            info = writer.finish()
        dataset.layout.data.insert_file(path, info.physical_hash)
    interval = OffsetInterval(info.offset_start, info.offset_end)
    data = DataSlice(info.logical_hash, info.physical_hash, interval, info.size)
    events.append(AddData(prev_offset=state.last_offset, new_data=data, new_watermark=state.watermark))
    dataset.chain.commit(dataset.chain.prepare(state, events, state.system_time))
    return dataset.reloaded()


def _texts(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers, pa.int64()).cast(pa.string()), "")


def _hex(dice: np.random.Generator, count: int, size: int) -> pa.Array:
    text = hexlify(dice.bytes(count * size))
    offsets = np.arange(count + 1, dtype=np.int32) * (2 * size)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))

"""The dataset of an archive: its manifest, and the conversion of records to rows.

A record is a row with its id. A correction, withdrawal or expiry adds a pair of rows, -C with the old and +C with the
new record. So the changelog has all versions with authors and reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Final

from odfpy.archive.errors import NotAnArchive
from odfpy.archive.record import FileRecord, Status
from odfpy.chain.block import DatasetSnapshot
from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import AddPushSource
from odfpy.chain.state import ChainState
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.schemas.system_columns import data_fields, system_fields
from odfpy.data.vocabulary import OperationType

if TYPE_CHECKING:
    import pyarrow as pa

SOURCE: Final = "records"
"""Name of the archive's push source."""

_FIELDS: Final = """\
- {name: start, type: {kind: Timestamp, unit: Millisecond, timezone: UTC}}
- {name: id, type: String}
- {name: what, type: String}
- {name: where, type: String}
- {name: end, type: {kind: Option, inner: {kind: Timestamp, unit: Millisecond, timezone: UTC}}}
- {name: work_id, type: {kind: Option, inner: String}}
- {name: path, type: String}
- {name: hash, type: String}
- name: object
  type: String
  extra:
    opendatafabric.org/type: {kind: ObjectLink, linkType: {kind: Multihash}}
    org.odfpy/removedColumn: released
    org.odfpy/sizeColumn: size
- {name: size, type: UInt64}
- {name: create_time, type: {kind: Timestamp, unit: Millisecond, timezone: UTC}}
- {name: version, type: Int32}
- {name: status, type: String}
- {name: released, type: {kind: Option, inner: {kind: Timestamp, unit: Millisecond, timezone: UTC}}}
- {name: who, type: {kind: Option, inner: String}}
- {name: why, type: {kind: Option, inner: String}}
"""

_MANIFEST: Final = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: {source}
      read:
        kind: NdJson
        schema:
          fields:
{fields}
      merge: {{kind: ChangelogStream, primaryKey: [id]}}
    - {{kind: SetVocab, eventTimeColumn: start}}
    - kind: SetInfo
      description: An archive of files, found by what, where and when
      keywords: [archive]
"""

COLUMNS: Final = (
    "start", "id", "what", "where", "end", "work_id", "path", "hash", "object", "size", "create_time", "version",
    "status", "released", "who", "why",
)  # fmt: skip
"""Columns of a record, in order."""

_TIMES: Final = frozenset({"start", "end", "create_time", "released"})


def archive_manifest(name: str) -> DatasetSnapshot:
    """Return the manifest of an archive."""
    text = _MANIFEST.format(name=name, source=SOURCE, fields=indent(_FIELDS, " " * 12).rstrip())
    (snapshot,) = load_snapshots(text, name)
    return snapshot


def record_schema(state: ChainState) -> DataSchema:
    """Return the schema of an archive from its first record on, including links."""
    schema = archive_source(state).read.schema
    assert schema is not None  # noqa: S101  `is_archive` has seen to it
    return state.schema or DataSchema((*system_fields(state.vocab), *data_fields(schema, state.vocab)))


def archive_source(state: ChainState) -> AddPushSource:
    """Return the push source of an archive."""
    return next(source for source in state.push_sources if source.source_name == SOURCE)


def is_archive(state: ChainState) -> bool:
    """Return whether a chain is that of an archive: it has the push source of one."""
    return any(source.source_name == SOURCE and _links(source.read.schema) for source in state.push_sources)


def require_archive(state: ChainState, name: object) -> None:
    """Check that a chain is that of an archive.

    Raises:
        NotAnArchive: it is another dataset.
    """
    if not is_archive(state):
        raise NotAnArchive(f"{name} is not an archive of files", hint="`odf archive init NAME` creates one.")


def _links(schema: DataSchema | None) -> bool:
    field = schema.field("object") if schema else None
    return field is not None and field.extra is not None and "ObjectLink" in field.extra.entries


def arrow_schema() -> pa.Schema:
    """Return the Arrow types of `COLUMNS`."""
    import pyarrow as pa

    time = pa.timestamp("ms", "UTC")
    others = {"size": pa.uint64(), "version": pa.int32()}
    return pa.schema([(name, time if name in _TIMES else others.get(name, pa.string())) for name in COLUMNS])


def table_of(records: Sequence[FileRecord], operations: Sequence[OperationType]) -> pa.Table:
    """Convert records to rows.

    Args:
        records: records of the files.
        operations: operation of each row.

    Returns:
        A table of `op` and `COLUMNS`.
    """
    import pyarrow as pa

    arrays = [pa.array([int(op) for op in operations], pa.int32())]
    for field in arrow_schema():
        values = [_plain(getattr(record, field.name)) for record in records]
        arrays.append(
            pa.array(values, pa.int64()).cast(field.type) if field.name in _TIMES else pa.array(values, field.type)
        )
    return pa.table(arrays, names=["op", *COLUMNS])


def _plain(value: object) -> object:
    if isinstance(value, Multihash):
        return str(value)
    return value.value if isinstance(value, Status) else value


def records_of(table: pa.Table) -> Iterator[FileRecord]:
    """Yield the records of rows with `COLUMNS`."""
    import pyarrow as pa

    columns: list[Iterable[object]] = []
    for name in COLUMNS:
        column = table.column(name)
        columns.append((column.cast(pa.int64()) if name in _TIMES else column).to_pylist())
    for values in zip(*columns, strict=True):
        row = dict(zip(COLUMNS, values, strict=True))
        row["object"], row["status"] = Multihash.parse(str(row["object"])), Status(row["status"])
        yield FileRecord(**row)

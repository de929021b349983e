"""A folder of files of rows: cut by number, or partitioned by columns as Hive does it (`cur=EUR/data_0.parquet`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odfpy.data.memory import bytes_of
from odfpy.data.rows.files import RowFile, RowFileInfo, RowFileOptions
from odfpy.errors import CannotExport, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

MAX_OPEN: Final = 100
"""Files that are written at the same time; a partition that comes back after its file was closed gets another one."""

MAX_WAITING: Final = 524_288
"""Rows of all files together that are held in memory, and rows that are held to be parted at once."""

MAX_BYTES: Final = 1 << 27
"""Bytes of rows that are held to be parted at once."""

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder of null, and of an empty text, which is not a name of a folder for readers such as Spark."""

_UNSAFE: Final = re.compile(r"""[\x00-\x1f"#%'*/:=?\\{}\[\]^\x7f]""")
"""What Hive writes as `%2F`. Letters of all languages stay: not every reader takes escapes in names of columns."""

_MAX_NAME_LENGTH: Final = 255
"""Bytes that file systems allow the name of a folder."""


@dataclass(frozen=True, slots=True)
class FileInFolder:
    """A file.

    Attributes:
        path: relative to the folder.
    """

    path: str
    info: RowFileInfo


class RowFolder:
    """A folder that is being written; it ends by `finish` or `discard`."""

    def __init__(
        self,
        folder: Path,
        schema: pa.Schema,
        options: RowFileOptions,
        partition_by: Sequence[str] = (),
        rows_per_file: int | None = None,
        *,
        only: str | None = None,
    ) -> None:
        """Begin.

        Args:
            folder: where, an empty one.
            schema: of the rows.
            options: how files are written.
            partition_by: columns whose values become names of folders; they are left out of the files.
            rows_per_file: rows of a file at most.
            only: name of the file, where there is to be one.

        Raises:
            CannotExport: there are no such columns, or no others, or their values are not names.
        """
        import pyarrow as pa

        for name in partition_by:
            if schema.names.count(name) != 1:
                otherwise = f"Columns: {', '.join(schema.names)}."
                raise CannotExport(
                    f"No column {name!r} to partition by", hint=did_you_mean(name, schema.names, otherwise=otherwise)
                )
        rest = [field for field in schema if field.name not in partition_by]
        if not rest:
            raise CannotExport("All columns are partition columns, so the files would have none")
        self._folder = folder
        self._only = only
        self._keys = list(dict.fromkeys(partition_by))
        self._schema = pa.schema(rest)
        self._options = options
        self._most = rows_per_file
        self._open: dict[str, RowFile] = {}  # the one written to last comes last
        self._begun: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._done: list[FileInFolder] = []
        self._held: list[pa.RecordBatch] = []
        self._held_rows = self._held_bytes = 0
        self._groups(schema.empty_table())

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if not self._keys:
            self._append("", batch)
            return
        self._held.append(batch)
        self._held_rows += batch.num_rows
        self._held_bytes += bytes_of(batch)
        if self._held_rows >= MAX_WAITING or self._held_bytes >= MAX_BYTES:
            self._part()

    def finish(self) -> list[FileInFolder]:
        """Write the rest; gives the files in the order of their names. No rows are one file without any.

        Nothing is flushed to the disk.
        """
        self._part()
        if not self._begun and not self._keys:
            self._file("")
        for place in [*self._open]:
            self._close(place)
        return sorted(self._done, key=lambda one: one.path)

    def discard(self) -> None:
        """Discard the open files, which are not needed after all."""
        for file in self._open.values():
            file.discard()

    def _file(self, place: str) -> RowFile:
        file = self._open.pop(place, None)
        if file is None:
            if len(self._open) >= MAX_OPEN:
                self._close(next(iter(self._open)))
            number = self._begun.get(place, 0)
            self._begun[place] = number + 1
            self._names[place] = self._only or f"{place}data_{number}{self._options.suffix}"
            path = self._folder / self._names[place]
            path.parent.mkdir(parents=True, exist_ok=True)
            file = RowFile(path, self._schema, self._options)
        self._open[place] = file
        return file

    def _close(self, place: str) -> None:
        file = self._open[place]
        self._done.append(FileInFolder(self._names[place], file.finish()))
        del self._open[place]

    def _append(self, place: str, rows: pa.RecordBatch) -> None:
        start = 0
        while start < rows.num_rows:
            file = self._file(place)
            room = rows.num_rows if self._most is None else self._most - file.num_rows
            file.write(rows.slice(start, room))
            start += room
            if self._most is not None and file.num_rows >= self._most:
                self._close(place)

    def _part(self) -> None:
        """Pass the collected rows on to the files of their partitions, in their order."""
        import pyarrow as pa

        if not self._held:
            return
        rows = pa.Table.from_batches(self._held).combine_chunks()
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        groups = self._groups(rows)
        rest = rows.select(self._schema.names)
        for place, found in zip(self._places(groups), groups.column("row_list"), strict=True):
            for batch in rest.take(found.values).to_batches():
                self._append(place, batch)
        while sum(file.waiting for file in self._open.values()) > MAX_WAITING:
            max(self._open.values(), key=lambda file: file.waiting).flush()

    def _groups(self, rows: pa.Table) -> pa.Table:
        """Return the keys of each partition, and the numbers of its rows."""
        import numpy as np
        import pyarrow as pa

        if not self._keys:
            return rows
        numbers = rows.select(self._keys).append_column("row", pa.array(np.arange(rows.num_rows)))
        try:
            return numbers.group_by(self._keys, use_threads=False).aggregate([("row", "list")])
        except pa.ArrowNotImplementedError as error:
            kinds = ", ".join(f"{key} is {rows.schema.field(key).type}" for key in self._keys)
            raise CannotExport(
                f"These columns cannot be names of folders: {kinds}",
                hint="Partition by numbers, text, times or flags.",
            ) from error

    def _places(self, groups: pa.Table) -> list[str]:
        from odfpy.data.rows.plain_values import columns_of

        columns = columns_of(groups.select(self._keys))
        return ["".join(map(_folder, self._keys, row)) for row in zip(*columns, strict=True)]


def _folder(key: str, value: Any) -> str:
    """Return the folder of a value.

    Raises:
        CannotExport: its name would be too long.
    """
    from odfpy.data.rows.plain_values import plain
    from odfpy.data.rows.text import in_cell

    text = "" if value is None else in_cell(plain(value))
    name = f"{_escaped(key)}={_escaped(text) or NULL}"
    if len(name.encode()) > _MAX_NAME_LENGTH:
        raise CannotExport(
            f"{key} has a value that is too long for the name of a folder: {text[:40]}...",
            hint="Partition by another column.",
        )
    return f"{name}/"


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)

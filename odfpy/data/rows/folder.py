"""A folder of files of rows: split by number of rows or partitioned as in Hive (`cur=EUR/data_0.parquet`)."""

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
"""Maximum number of open files. A partition whose file was closed gets another file when more of its rows arrive."""

MAX_WAITING: Final = 524_288
"""Maximum number of rows of all files held in memory, and of rows that are partitioned at once."""

MAX_BYTES: Final = 1 << 27
"""Maximum bytes of rows that are partitioned at once."""

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder for null and for empty text, since readers such as Spark do not accept an empty name."""

_UNSAFE: Final = re.compile(r"""[\x00-\x1f"#%'*/:=?\\{}\[\]^\x7f]""")
"""Characters that Hive escapes, such as `%2F`. Letters stay: some readers do not unescape column names."""

_MAX_NAME_LENGTH: Final = 255
"""Maximum bytes of a folder's name in common file systems."""


@dataclass(frozen=True, slots=True)
class FileInFolder:
    """A file of the folder.

    Attributes:
        path: path relative to the folder.
    """

    path: str
    info: RowFileInfo


class RowFolder:
    """A folder that is being written, until `finish` or `discard`."""

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
        """Prepare the folder.

        Args:
            folder: path of an empty folder.
            schema: schema of the rows.
            options: options of the files.
            partition_by: columns whose values become names of folders; the files do not contain them.
            rows_per_file: maximum number of rows in a file.
            only: name of the file, if there is to be a single one.

        Raises:
            CannotExport: a column to partition by does not exist or cannot be used in names, or no other column is
                left.
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
        self._open: dict[str, RowFile] = {}  # the most recently written one is last
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
        """Write the remaining rows; return the files sorted by name. If there are no rows, there is one empty file.

        Nothing is flushed to the disk.
        """
        self._part()
        if not self._begun and not self._keys:
            self._file("")
        for place in [*self._open]:
            self._close(place)
        return sorted(self._done, key=lambda file: file.path)

    def discard(self) -> None:
        """Discard the open files."""
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
        """Write the collected rows to the files of their partitions, in order."""
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
        """Return the key of each partition, and the numbers of its rows."""
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
    """Return the name of the folder for a value.

    Raises:
        CannotExport: the name would be too long.
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

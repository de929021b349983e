"""A folder of files of rows: cut by number, or partitioned by columns as Hive does it (`cur=EUR/data_0.parquet`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from odfpy.data.row_files import RowFile, RowFileInfo, RowFileOptions
from odfpy.errors import CannotExport, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

MOST_OPEN: Final = 100
"""Files that are written at the same time; a partition that comes back after its file was closed gets another one."""

MOST_WAITING: Final = 524_288
"""Rows of all files together that are held in memory."""

NULL: Final = "__HIVE_DEFAULT_PARTITION__"


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
    ) -> None:
        """Begin.

        Args:
            folder: where, an empty one.
            schema: of the rows.
            options: how files are written.
            partition_by: columns whose values become names of folders; they are left out of the files.
            rows_per_file: rows of a file at most.

        Raises:
            CannotExport: there are no such columns, or no others.
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
            raise CannotExport("All columns are to partition by, and none is left for the files")
        self._folder = folder
        self._keys = list(partition_by)
        self._schema = pa.schema(rest)
        self._options = options
        self._most = rows_per_file
        self._open: dict[str, RowFile] = {}  # the one written to last comes last
        self._begun: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._done: list[FileInFolder] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        for place, rows in self._parts(batch):
            start = 0
            while start < rows.num_rows:
                file = self._file(place)
                room = rows.num_rows if self._most is None else self._most - file.num_rows
                file.write(rows.slice(start, room))
                start += room
                if self._most is not None and file.num_rows >= self._most:
                    self._close(place)
        while sum(file.waiting for file in self._open.values()) > MOST_WAITING:
            max(self._open.values(), key=lambda file: file.waiting).flush()

    def finish(self) -> list[FileInFolder]:
        """Write the rest; gives the files in the order of their names. No rows are one file without any."""
        if not self._begun and not self._keys:
            self._file("")
        for place in [*self._open]:
            self._close(place)
        return sorted(self._done, key=lambda one: one.path)

    def discard(self) -> None:
        """Nobody wants it; to be removed by who began it."""
        for file in self._open.values():
            file.discard()

    def _file(self, place: str) -> RowFile:
        file = self._open.pop(place, None)
        if file is None:
            if len(self._open) >= MOST_OPEN:
                self._close(next(iter(self._open)))
            number = self._begun.get(place, 0)
            self._begun[place] = number + 1
            self._names[place] = f"{place}data_{number}{self._options.suffix}"
            path = self._folder / self._names[place]
            path.parent.mkdir(parents=True, exist_ok=True)
            file = RowFile(path, self._schema, self._options)
        self._open[place] = file
        return file

    def _close(self, place: str) -> None:
        file = self._open[place]
        self._done.append(FileInFolder(self._names[place], file.finish()))
        del self._open[place]

    def _parts(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of each partition, in their order, with the folder of it."""
        if not self._keys:
            yield "", batch
            return
        import pyarrow as pa

        numbers = pa.table({"row": range(batch.num_rows), **{key: batch.column(key) for key in self._keys}})
        groups = numbers.group_by(self._keys, use_threads=False).aggregate([("row", "list")])
        rows = batch.select(self._schema.names)
        for place, found in zip(self._places(groups), groups.column("row_list"), strict=True):
            yield place, rows.take(found.values)

    def _places(self, groups: pa.Table) -> list[str]:
        from odfpy.data.plain_values import columns_of

        columns = columns_of(groups.select(self._keys))
        return [
            "".join(f"{quote(key, safe='')}={_folder_name(value)}/" for key, value in zip(self._keys, row, strict=True))
            for row in zip(*columns, strict=True)
        ]


def _folder_name(value: object) -> str:
    """A value as it may stand in the name of a folder."""
    if value is None:
        return NULL
    return quote(str(value).lower() if isinstance(value, bool) else str(value), safe=" ")

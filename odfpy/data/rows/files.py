"""Exported files of rows: Parquet, CSV or NDJSON, written in a stream and hashed at the same time.

Only a row group of a Parquet file is held in memory, and nothing of other formats.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from odfpy.data.multihash import SHA3_256, Multihash
from odfpy.data.slices.hashing_file import HashingFile
from odfpy.errors import CannotExport, UsageError, did_you_mean, member_named

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP: Final = 122_880
"""Rows per row group, the default of DuckDB."""

_NONE: Final = ("none", "uncompressed")
_SUFFIXES: Final = {"gzip": ".gz", "zstd": ".zst"}
_LEVELS: Final = ("gzip", "zstd", "brotli")
_OTHERS: Final = (
    *(".json", ".tsv", ".txt", ".xls", ".xlsx", ".ods", ".xml", ".orc", ".avro", ".arrow", ".feather"),
    *(".db", ".sqlite", ".duckdb", ".bz2", ".xz", ".zip", ".lz4", ".br"),
)
"""Suffixes of names that indicate another format; any other suffix indicates none."""


class RowFormat(Enum):
    """Formats of exported files."""

    PARQUET = "parquet"
    CSV = "csv"
    NDJSON = "ndjson"

    @property
    def compressions(self) -> tuple[str, ...]:
        """The possible compressions, besides none."""
        return ("zstd", "snappy", "gzip", "brotli", "lz4") if self is RowFormat.PARQUET else ("gzip", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFileOptions:
    """Options of exported files; `of` creates them from the user's input.

    Attributes:
        format: format of the files.
        compression: compression of the pages of a Parquet file, or of the whole file in other formats; None for none.
        level: level of the compression; None for its default.
        row_group: rows per row group of Parquet.
        delimiter: delimiter of CSV values.
        header: whether CSV begins with the names of the columns.
    """

    format: RowFormat
    compression: str | None = None
    level: int | None = None
    row_group: int = ROW_GROUP
    delimiter: str = ","
    header: bool = True

    @property
    def suffix(self) -> str:
        """The suffix of the files' names."""
        packed = "" if self.format is RowFormat.PARQUET else _SUFFIXES.get(self.compression or "", "")
        return f".{self.format.value}{packed}"

    @classmethod
    def of(
        cls, name: str, form: str | None = None, compression: str | None = None, level: int | None = None, **more: Any
    ) -> RowFileOptions:
        """Return options; defaults follow from the name of the file, or else are Parquet compressed by zstd.

        Args:
            name: name of the file.
            form: name of the format; None to derive it from the name of the file.
            compression: name of the codec, None for the default of the format.
            level: level of the codec, None for its default.
            more: other options, by name.

        Raises:
            UsageError: format or compression is unknown, or they do not match each other or the name of the file.
        """
        inner, packed = _parts(name)
        if form is None and (Path(name).suffix.lower() in _OTHERS or (packed and inner in (None, RowFormat.PARQUET))):
            raise UsageError(
                f"{name} is not a name of a Parquet, CSV or NDJSON file",
                hint="End it with .parquet, .csv, .ndjson, .csv.gz or .ndjson.zst, or say --format.",
            )
        kind = inner if form is None else member_named(RowFormat, "file format", form, error=UsageError)
        kind = kind or RowFormat.PARQUET
        if kind is not RowFormat.PARQUET and any(key == "row_group" for key in more):
            raise UsageError(f"--row-group-size is for Parquet, not for {kind.value}")
        if kind is not RowFormat.CSV and ("delimiter" in more or "header" in more):
            raise UsageError(f"--delimiter and --no-header are for CSV, not for {kind.value}")
        default = "zstd" if kind is RowFormat.PARQUET else packed
        chosen = default if compression is None else _compression(kind, compression)
        if level is not None and (kind is not RowFormat.PARQUET or chosen not in _LEVELS):
            raise UsageError("--compression-level is for Parquet with zstd, gzip or brotli")
        return cls(format=kind, compression=chosen, level=level, **more)


def _parts(name: str) -> tuple[RowFormat | None, str | None]:
    """Return format and compression of a file as far as its name shows them."""
    lower = name.lower()
    packed = next((codec for codec, suffix in _SUFFIXES.items() if lower.endswith(suffix)), None)
    ending = Path(lower[: -len(_SUFFIXES[packed])] if packed else lower).suffix
    known = {".parquet": RowFormat.PARQUET, ".csv": RowFormat.CSV, ".ndjson": RowFormat.NDJSON}
    return {**known, ".jsonl": RowFormat.NDJSON}.get(ending), packed


def _compression(kind: RowFormat, text: str) -> str | None:
    lower = text.lower()
    if lower in _NONE:
        return None
    if lower not in kind.compressions:
        words = ("none", *kind.compressions)
        hint = did_you_mean(text, words, otherwise=f"One of: {', '.join(words)}.")
        raise UsageError(f"{kind.value} is not compressed by {text!r}", hint=hint)
    return lower


@dataclass(frozen=True, slots=True)
class RowFileInfo:
    """The result of writing a file of rows.

    Attributes:
        hash: SHA3-256 of the file.
        size: bytes of the file.
    """

    hash: Multihash
    size: int
    num_rows: int


class _Encoder(Protocol):
    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class RowFile:
    """A file that is being written, until `finish` or `discard`.

    Attributes:
        num_rows: number of rows so far.
        waiting: number of those rows that are still in memory.
    """

    def __init__(self, path: Path, schema: pa.Schema, options: RowFileOptions) -> None:
        """Create the file.

        Raises:
            CannotExport: the format does not support a column.
            OSError: the file cannot be created.
        """
        self.num_rows = 0
        self._rows: list[pa.RecordBatch] = []
        self.waiting = 0
        self._group = options.row_group if options.format is RowFormat.PARQUET else 1
        self._file = HashingFile(path)
        try:
            with _explaining_types(options.format):
                self._encoder = _encoder(self._file, schema, options)
        except BaseException:
            self._file.discard()
            raise
        self._format = options.format

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self.num_rows += batch.num_rows
        self._rows.append(batch)
        self.waiting += batch.num_rows
        if self.waiting >= self._group:
            self._flush(self.waiting // self._group * self._group)

    def flush(self) -> None:
        """Write all rows that are held in memory; Parquet gets a smaller row group."""
        self._flush(self.waiting)

    def _flush(self, count: int) -> None:
        import pyarrow as pa

        if not count:
            return
        table = pa.Table.from_batches(self._rows)
        left = table.slice(count)
        self._rows, self.waiting = left.to_batches() if left.num_rows else [], left.num_rows
        with _explaining_types(self._format):
            step = max(self._group, 1) if self._format is RowFormat.PARQUET else count
            for start in range(0, count, step):
                for batch in table.slice(start, min(step, count - start)).combine_chunks().to_batches():
                    self._encoder.write(batch)

    def finish(self) -> RowFileInfo:
        """Write the remaining rows and close the file, without flushing it to the disk.

        Raises:
            OSError: the disk is full, for example.
        """
        self.flush()
        self._encoder.close()
        self._file.finish()
        return RowFileInfo(Multihash(SHA3_256.code, self._file.hasher.digest()), self._file.size, self.num_rows)

    def discard(self) -> None:
        """Discard the file."""
        self._file.discard()
        with suppress(Exception):
            self._encoder.close()


@contextmanager
def _explaining_types(kind: RowFormat) -> Iterator[None]:
    """Convert Arrow's errors about unsupported types."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise CannotExport(
            f"These columns cannot be written as {kind.value}: {str(error).splitlines()[0]}",
            hint="Give the column another type: CAST(... AS STRING), for example.",
        ) from error


def _encoder(file: HashingFile, schema: pa.Schema, options: RowFileOptions) -> _Encoder:
    import pyarrow as pa

    names = schema.names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None and options.format is not RowFormat.CSV:
        raise CannotExport(f"Two columns are called {twice!r}", hint="Give one another name with AS.")
    if options.format is RowFormat.PARQUET:
        return _Parquet(file, schema, options)
    sink = pa.PythonFile(file, "w")
    if options.compression is not None:
        sink = pa.CompressedOutputStream(sink, options.compression)
    return _Csv(sink, schema, options) if options.format is RowFormat.CSV else _Ndjson(sink)


class _Parquet:
    def __init__(self, file: HashingFile, schema: pa.Schema, options: RowFileOptions) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(
            file, schema, compression=options.compression or "none", compression_level=options.level
        )

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch, row_group_size=max(batch.num_rows, 1))

    def close(self) -> None:
        self._writer.close()


class _Csv:
    def __init__(self, sink: Any, schema: pa.Schema, options: RowFileOptions) -> None:
        import pyarrow.csv as pc

        from odfpy.data.rows.text import csv_columns

        self._sink = sink
        self._convert = csv_columns
        choices = pc.WriteOptions(include_header=options.header, delimiter=options.delimiter)
        self._writer = pc.CSVWriter(sink, _render(schema), write_options=choices)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(self._convert(batch))

    def close(self) -> None:
        self._writer.close()
        self._sink.close()


def _render(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a CSV file for a schema."""
    import pyarrow as pa

    from odfpy.data.rows.text import csv_columns

    arrays = [pa.array([], field.type) for field in schema]
    return csv_columns(pa.record_batch(arrays, schema=schema)).schema


class _Ndjson:
    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def write(self, batch: pa.RecordBatch) -> None:
        from odfpy.data.rows.text import ndjson_lines

        lines = ndjson_lines(batch).to_pylist()
        self._sink.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        self._sink.close()

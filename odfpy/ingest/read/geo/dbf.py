"""The attribute table of a shapefile, in dBASE format: fixed-width texts, read exactly as they are written.

| type | type without a schema | texts that represent null |
|---|---|---|
| `C` | String, without spaces at the ends | nothing but spaces |
| `N` without decimals | Int64 | spaces, stars |
| `N` with decimals, `F` | Float64 | spaces, stars |
| `L` | Bool (`T`, `Y`, `1`, `F`, `N`, `0`) | space, `?` |
| `D` | Date | spaces, zeros |

Libraries for this format return null for unreadable values; here these are errors. Rows that are marked as deleted are
skipped.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.errors import BadValue, IngestError

_HEADER = 32
_VERSION = 3
_BATCH = 1 << 20  # bytes
_END = 0x1A
_PADDING = " \0"
_HINT = "The archive may have been created while the shapefile was being written; ask its publisher."
_TYPES = {"C": pa.string(), "N": pa.float64(), "F": pa.float64(), "L": pa.bool_(), "D": pa.date32()}

# Languages in use, by the driver id in the header.
_LANGUAGES = {
    0x01: "cp437", 0x02: "cp850", 0x03: "cp1252", 0x04: "mac_roman", 0x08: "cp865", 0x13: "cp932", 0x4D: "cp936",
    0x4E: "cp949", 0x4F: "cp950", 0x50: "cp874", 0x57: "cp1252", 0x58: "cp1252", 0x59: "cp1252", 0x64: "cp852",
    0x65: "cp866", 0x66: "cp865", 0x67: "cp861", 0x6A: "cp737", 0x6B: "cp857", 0x78: "cp950", 0x79: "cp949",
    0x7A: "cp936", 0x7B: "cp932", 0x7C: "cp874", 0x7D: "cp1255", 0x7E: "cp1256", 0xC8: "cp1250", 0xC9: "cp1251",
    0xCA: "cp1254", 0xCB: "cp1253", 0xCC: "cp1257",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DbfField:
    """A column.

    Attributes:
        kind: letter of the type.
        start: offset in a row.
        width: width in bytes.
        decimals: number of digits after the point.
    """

    name: str
    kind: str
    start: int
    width: int
    decimals: int

    @property
    def type(self) -> pa.DataType | None:
        """The type without a schema; None if shapefiles do not have this kind of column."""
        return pa.int64() if self.kind == "N" and not self.decimals else _TYPES.get(self.kind)


@dataclass(frozen=True, slots=True)
class DbfBatch:
    """A batch of rows.

    Attributes:
        numbers: numbers of the rows in the file, from 0, without deleted rows.
        texts: texts of each column, one per row, in JSON notation.
    """

    numbers: np.ndarray
    texts: dict[str, pa.Array]


class DbfTable:
    """A table in a file.

    Attributes:
        fields: the columns.
        num_rows: number of rows, including deleted ones.
        size: size of the file in bytes.
    """

    def __init__(self, file: BinaryIO, name: str, encoding: str | None) -> None:
        """Read the header.

        Args:
            file: the complete file.
            name: name of the file in errors.
            encoding: encoding of its texts, if known.

        Raises:
            IngestError: the file has another format, or is truncated.
        """
        self._file = file
        self._name = name
        self.size = file.seek(0, 2)
        file.seek(0)
        header = file.read(_HEADER)
        if len(header) < _HEADER or header[0] & 7 != _VERSION:
            raise IngestError(f"{name} is not a table of the kind that shapefiles have (dBASE III)", hint=_HINT)
        self.num_rows = int.from_bytes(header[4:8], "little")
        self._start = int.from_bytes(header[8:10], "little")
        self._width = int.from_bytes(header[10:12], "little")
        descriptors = file.read(max(0, self._start - _HEADER))
        self._check(descriptors)
        self.encoding = encoding or _LANGUAGES.get(header[29]) or "utf-8"
        if encoding is None and header[29] not in _LANGUAGES and not self._is_utf8():
            self.encoding = "latin-1"
        self.fields = self._fields(descriptors)

    def batches(self, names: set[str], start: int = 0, stop: int | None = None) -> Iterator[DbfBatch]:
        """Yield the rows, in their order.

        Args:
            names: columns to read.
            start: number of the first row.
            stop: number of the row after the last one; by default the end.

        Raises:
            BadValue: a text is not in the encoding, or a row is marked neither as active nor as deleted.
        """
        columns = [field for field in self.fields if field.name in names]
        for first, rows in self._blocks(start, self.num_rows if stop is None else stop):
            flags = rows[:, 0]
            unknown = np.flatnonzero((flags != ord(" ")) & (flags != ord("*")))
            if len(unknown):
                raise BadValue(f"{self._name}, row {first + int(unknown[0]) + 1}: the row has no mark", hint=_HINT)
            kept = np.flatnonzero(flags == ord(" "))
            numbers = kept + first
            yield DbfBatch(numbers, {field.name: self._texts(rows[kept], numbers, field) for field in columns})

    def place(self, number: int) -> str:
        """Return the file and row, for errors; rows are counted from 1."""
        return f"{self._name}, row {number + 1}"

    def _check(self, descriptors: bytes) -> None:
        end = self._start + self.num_rows * self._width
        if self._start <= _HEADER or not self._width or b"\r" not in descriptors[::32] or self.size < end:
            raise IngestError(f"{self._name} is truncated or damaged", hint=_HINT)
        self._file.seek(end)
        if self._file.read(1) not in (b"", bytes([_END]), b"\0"):
            raise IngestError(f"{self._name} continues after the {self.num_rows} announced rows", hint=_HINT)

    def _fields(self, descriptors: bytes) -> list[DbfField]:
        fields: list[DbfField] = []
        start = 1
        for at in range(0, len(descriptors), 32):
            part = descriptors[at : at + 32]
            if part[:1] == b"\r":
                break
            if len(part) < 32:
                raise IngestError(f"{self._name} is truncated or damaged", hint=_HINT)
            fields.append(DbfField(self._name_in(part), chr(part[11]), start, part[16], part[17]))
            start += part[16]
        if start > self._width or not all(field.width for field in fields):
            raise IngestError(f"{self._name} has columns that do not fit into its rows", hint=_HINT)
        return fields

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield batches of rows as matrices of bytes, each with the number of its first row."""
        many = max(1, _BATCH // self._width)
        for first in range(start, stop, many):
            self._file.seek(self._start + first * self._width)
            block = self._file.read(min(many, stop - first) * self._width)
            yield first, np.frombuffer(block, "uint8").reshape(-1, self._width)

    def _name_in(self, descriptor: bytes) -> str:
        name = descriptor[:11].split(b"\0")[0]
        try:
            return name.decode(self.encoding).strip(" ")
        except UnicodeDecodeError:  # truncated within a character
            return name.decode("latin-1").strip(" ")

    def _is_utf8(self) -> bool:
        self._file.seek(self._start)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while block := self._file.read(_BATCH):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
        return True

    # --- Texts ---

    def _texts(self, rows: np.ndarray, numbers: np.ndarray, field: DbfField) -> pa.Array:
        cells = np.ascontiguousarray(rows[:, field.start : field.start + field.width])
        raw = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(field.width), len(cells), [None, pa.py_buffer(cells.tobytes())]
        )
        texts = pc.utf8_trim(self._decoded(raw, cells, numbers, field), characters=_PADDING)
        return _normalized(texts, field.kind)

    def _decoded(self, raw: pa.Array, cells: np.ndarray, numbers: np.ndarray, field: DbfField) -> pa.Array:
        if not len(cells) or int(cells.max()) < 0x80:
            return raw.cast(pa.binary()).cast(pa.string())
        texts = []
        for number, value in zip(numbers, raw.to_pylist(), strict=True):
            try:
                texts.append(value.decode(self.encoding))
            except UnicodeDecodeError as error:
                raise BadValue(
                    f"{self.place(int(number))}: column {field.name!r} has bytes that are not {self.encoding}",
                    hint="The encoding is that of the .cpg file of the archive; ask its publisher for a correct one.",
                ) from error
        return pa.array(texts, pa.string())


def _normalized(texts: pa.Array, kind: str) -> pa.Array:
    """Return texts in the notation of the value parser, null where the format represents null."""
    nulls = {"C": "^$", "N": r"^\**$", "F": r"^\**$", "L": r"^\??$", "D": "^0*$"}.get(kind)
    if nulls is not None:
        texts = pc.if_else(pc.match_substring_regex(texts, nulls), pa.scalar(None, pa.string()), texts)
    if kind == "L":
        texts = pc.replace_substring_regex(texts, "^[TtYy1]$", "true")
        texts = pc.replace_substring_regex(texts, "^[FfNn0]$", "false")
    if kind == "D":
        texts = pc.replace_substring_regex(texts, r"^([0-9]{4})([0-9]{2})([0-9]{2})$", r"\1-\2-\3")
    return texts


def codec_of_cpg(content: bytes, name: str) -> str:
    """Return the codec for the content of a .cpg file.

    Raises:
        IngestError: the encoding does not exist.
    """
    text = content.decode("utf-8-sig", "replace").strip(" \0\r\n\t")
    plain = re.sub("[^A-Z0-9]", "", text.upper())
    if match := re.fullmatch(r"(?:ISO)?8859(\d{1,2})", plain):
        guess = f"iso8859-{match[1]}"
    elif plain in ("65001", "CP65001", "UTF8", "CPUTF8"):
        guess = "utf-8"
    elif match := re.fullmatch(r"(?:ANSI|CP|OEM|WINDOWS|MS|IBM)?(\d{3,5})", plain):
        guess = f"cp{match[1]}"
    else:
        guess = text
    try:
        codec = codecs.lookup(guess).name
        "".encode(codec)
    except (LookupError, ValueError) as error:
        raise IngestError(
            f"{name} names the encoding {text[:40]!r}, which is not known", hint="Ask its publisher which one is meant."
        ) from error
    return codec

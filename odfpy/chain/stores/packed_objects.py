"""Compressed objects: their names are the hashes of their content, and their files are smaller.

A file is

    magic     8 bytes, `ODFPACK1`
    frames    Zstandard frames, one per MiB of the content
    ends      8 bytes per frame: its end, as an offset from the beginning of the file
    footer    content size, number of frames (8 bytes each), magic

All numbers are little-endian. Each frame can be read without those before it, so ranges of large objects are cheap to
read. The format is internal: objects are pushed and served uncompressed.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from odfpy.chain.stores.checked_files import CheckedFiles
from odfpy.chain.stores.object_store import LocalObjectStore, StoredObject, copy_hashed
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError, OdfError
from odfpy.files import open_regular

PACKED: Final = "packed"
"""Name of the subfolder for packed objects in the folder of a dataset."""

FRAME: Final = 1 << 20
"""Bytes of content per frame; the last frame may have fewer."""

_MAGIC: Final = b"ODFPACK1"
_FOOTER: Final = struct.Struct("<QQ8s")
_SAMPLE: Final = 64 << 10


class PackedObjectStore(LocalObjectStore):
    """Objects as compressed files of one folder."""

    def open(self, name: Multihash) -> BinaryIO:
        file = super().open(name)
        try:
            return cast("BinaryIO", io.BufferedReader(_Unpacked(file, self.describe(name)), FRAME))
        except BaseException:
            file.close()
            raise

    def size(self, name: Multihash) -> int:
        with super().open(name) as file:
            return _Index(file, self.describe(name)).size

    def stored(self) -> Iterator[StoredObject]:
        for item in super().stored():
            with suppress(OdfError):  # removed meanwhile, or damaged, which is reported when it is read
                yield StoredObject(item.name, self.size(item.name), item.written)

    def local_path(self, name: Multihash) -> Path | None:
        """Return None: no file contains the uncompressed content."""
        del name
        return None

    def insert_stream(self, stream: BinaryIO, name: Multihash, *, size: int | None = None) -> None:
        with self._placing(name) as temporary, temporary.open("xb") as target:
            packer = _Packer(target)
            copy_hashed(stream, packer.write, name, size, str(self.folder))
            packer.finish()
            target.flush()
            os.fsync(target.fileno())

    def insert_file(self, path: Path, name: Multihash) -> None:
        try:
            with open_regular(path) as stream:
                self.insert_stream(stream, name)
            path.unlink()
        except OSError as error:
            raise OdfError(f"Cannot store {path}: {error.strerror}") from error

    def insert_files(self, files: Mapping[Multihash, Path]) -> None:
        for name, path in files.items():
            self.insert_file(path, name)

    def insert_all(self, objects: object) -> bool:
        """Return False: there is no faster way for many objects."""
        del objects
        return False


class PackingObjectStore(LocalObjectStore):
    """Objects as files of a folder, some of them as packed files in another folder.

    Slices are needed as plain files, so only files stored by `insert_files` are packed: those that rows link to.

    Attributes:
        checked: record of files that need not be hashed again before they are read.
    """

    def __init__(
        self, folder: Path, packed: Path, *, packs: Callable[[], bool], checked: CheckedFiles | None = None
    ) -> None:
        """
        Args:
            folder: folder of plain files.
            packed: folder of packed files.
            packs: returns whether to pack files that become smaller; existing files are not changed.
            checked: record of files that need not be hashed again before they are read.
        """
        super().__init__(folder)
        self.checked = checked or CheckedFiles()
        self._packed = PackedObjectStore(packed)
        self._packs = packs

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._packed

    def __iter__(self) -> Iterator[Multihash]:
        yield from super().__iter__()
        yield from (name for name in self._packed if not super(PackingObjectStore, self).__contains__(name))

    def stored(self) -> Iterator[StoredObject]:
        for name in self:
            with suppress(OdfError, FileNotFoundError):  # removed meanwhile
                file = self.file_of(name)
                if file is not None:
                    yield StoredObject(name, self.size(name), file.stat().st_mtime)

    def touch(self, name: Multihash) -> None:
        super().touch(name)
        self._packed.touch(name)

    def open(self, name: Multihash) -> BinaryIO:
        return self._packed.open(name) if self._is_packed(name) else super().open(name)

    def size(self, name: Multihash) -> int:
        return self._packed.size(name) if self._is_packed(name) else super().size(name)

    def describe(self, name: Multihash) -> str:
        return self._packed.describe(name) if self._is_packed(name) else super().describe(name)

    def local_path(self, name: Multihash) -> Path | None:
        return None if self._is_packed(name) else super().local_path(name)

    def file_of(self, name: Multihash) -> Path | None:
        return self._packed.file_of(name) if self._is_packed(name) else super().file_of(name)

    def checked_path(self, name: Multihash) -> Path | None:
        path = self.local_path(name)
        if path is not None:
            self.checked.check(name, path)
        return path

    def insert_stream(self, stream: BinaryIO, name: Multihash, *, size: int | None = None) -> None:
        super().insert_stream(stream, name, size=size)
        self.checked.add(name, self._path(name))

    def insert_file(self, path: Path, name: Multihash) -> None:
        super().insert_file(path, name)
        self.checked.add(name, self._path(name))

    def insert_files(self, files: Mapping[Multihash, Path]) -> None:
        if not files or not self._packs():
            super().insert_files(files)
            return
        packed = {name: path for name, path in files.items() if _file_gets_smaller(path)}
        super().insert_files({name: path for name, path in files.items() if name not in packed})
        self._packed.insert_files(packed)
        for name in packed:
            super().delete(name)  # a plain file would take precedence; it may be the damaged one that is being repaired

    def delete(self, name: Multihash) -> None:
        super().delete(name)
        self._packed.delete(name)

    def clean(self) -> None:
        super().clean()
        self._packed.clean()

    def _is_packed(self, name: Multihash) -> bool:
        return not super().__contains__(name) and name in self._packed


def gets_smaller(sample: bytes) -> bool:
    """Return whether compression reduces content with this beginning by at least a fifth."""
    import pyarrow as pa

    return len(sample) > 0 and len(pa.compress(sample, "zstd", asbytes=True)) * 5 <= len(sample) * 4


def _file_gets_smaller(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return gets_smaller(file.read(_SAMPLE))
    except OSError:
        return False  # the error is reported when the file is moved in


class _Packer:
    """Writer of a packed file; accepts content in pieces of any size."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._waiting = bytearray()
        self._size = 0
        self._ends: list[int] = []
        self._at = target.write(_MAGIC)

    def write(self, data: bytes) -> None:
        """Append content."""
        self._waiting += data
        self._size += len(data)
        while len(self._waiting) >= FRAME:
            self._frame(bytes(self._waiting[:FRAME]))
            del self._waiting[:FRAME]

    def finish(self) -> None:
        """Write the remaining content, the ends of the frames and the footer."""
        if self._waiting:
            self._frame(bytes(self._waiting))
        self._target.write(struct.pack(f"<{len(self._ends)}Q", *self._ends))
        self._target.write(_FOOTER.pack(self._size, len(self._ends), _MAGIC))

    def _frame(self, data: bytes) -> None:
        import pyarrow as pa

        self._at += self._target.write(pa.compress(data, "zstd", asbytes=True))
        self._ends.append(self._at)


class _Index:
    """The positions of the frames of a packed file."""

    def __init__(self, file: BinaryIO, where: str) -> None:
        self._where = where
        length = file.seek(0, os.SEEK_END)
        if length < len(_MAGIC) + _FOOTER.size:
            raise self.damaged()
        file.seek(length - _FOOTER.size)
        size, count, magic = _FOOTER.unpack(file.read(_FOOTER.size))
        self.size = int(size)
        ends_at = length - _FOOTER.size - 8 * count
        if magic != _MAGIC or count != -(-self.size // FRAME) or ends_at < len(_MAGIC):
            raise self.damaged()
        file.seek(ends_at)
        self._ends = (len(_MAGIC), *struct.unpack(f"<{count}Q", file.read(8 * count)))
        if self._ends[-1] != ends_at or any(a >= b for a, b in zip(self._ends, self._ends[1:], strict=False)):
            raise self.damaged()

    def frame(self, number: int) -> tuple[int, int, int]:
        """Return the offset of a frame, its size, and the size of its content."""
        begin, end = self._ends[number : number + 2]
        return begin, end - begin, min(FRAME, self.size - number * FRAME)

    def damaged(self) -> IntegrityError:
        """Return the error for a damaged file."""
        return IntegrityError(
            f"Damaged object: {self._where} is not a packed file",
            hint="`odf verify --repair` fetches it again from another copy of the dataset.",
        )


class _Unpacked(io.RawIOBase):
    """The content of a packed file, frame by frame."""

    def __init__(self, file: BinaryIO, where: str) -> None:
        super().__init__()
        self._file = file
        self._index = _Index(file, where)
        self._at = 0
        self._number = -1
        self._frame = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._index.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self.closed:
            raise ValueError("closed")
        if self._at >= self._index.size:
            return 0
        number, skipped = divmod(self._at, FRAME)
        if number != self._number:
            self._number, self._frame = number, self._read(number)
        data = self._frame[skipped : skipped + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _read(self, number: int) -> bytes:
        import pyarrow as pa

        begin, length, size = self._index.frame(number)
        self._file.seek(begin)
        try:
            data: bytes = pa.decompress(self._file.read(length), size, "zstd", asbytes=True)
        except (OSError, pa.ArrowException) as error:
            raise self._index.damaged() from error
        if len(data) != size:
            raise self._index.damaged()
        return data

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

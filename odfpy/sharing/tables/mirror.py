"""Local copies of the logs of Delta tables in buckets, so that the library only reads files on this machine.

A log may refer to any location. A library with credentials for the store would follow such references; a library
that only has these copies cannot. Log files are immutable, so that only new ones are copied.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Final

from odfpy.files import replace_file
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.tables.local import LocalFolder
from odfpy.sharing.tables.remote import BucketFile, BucketFolder

_LOG: Final = re.compile(r"\d{20}\.([A-Za-z0-9._-]{1,100}\.)?(json|parquet|crc)|_last_checkpoint", re.ASCII)
_SIDECAR: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}\.parquet", re.ASCII)
_VECTOR: Final = re.compile(r"deletion_vector_[A-Za-z0-9-]{1,100}\.bin", re.ASCII)
_MAX_SIZE: Final = 1 << 30
_MAX_TABLES: Final = 100
_AT_ONCE: Final = 16


class _Mirror:
    """The copies of the log of one table."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, str] = {}
        self._lock = Lock()

    def fetched(self, table: BucketFolder) -> LocalFolder:
        """Update the copies to the current log, and return their folder."""
        with self._lock:
            (self._folder / "_delta_log" / "_sidecars").mkdir(parents=True, exist_ok=True)
            current = dict(_wanted(table))
            if sum(file.size for file in current.values()) > _MAX_SIZE:
                raise CannotShare(
                    f"The log of the Delta table {table} has more than {_MAX_SIZE >> 20} MiB",
                    hint="Let its writer remove old commits (`VACUUM`, `cleanup_metadata`).",
                )
            for path in self._known.keys() - current.keys():
                with suppress(FileNotFoundError):
                    (self._folder / path).unlink()
                del self._known[path]
            new = [(path, file) for path, file in current.items() if self._known.get(path) != file.identity]
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                for path, file in pool.map(self._copy, new):
                    self._known[path] = file.identity
        return LocalFolder(self._folder)

    def _copy(self, new: tuple[str, BucketFile]) -> tuple[str, BucketFile]:
        path, file = new
        target = self._folder / path
        replace_file(target, b"".join(file.pieces(0, file.size)))
        os.utime(target, ns=(file.mtime_ns, file.mtime_ns))  # used for commits without a timestamp
        return new


def mirrored_log(table: BucketFolder) -> LocalFolder:
    """Return a folder with copies of a Delta table's log and of its deletion vectors, and nothing else.

    Raises:
        CannotShare: the log cannot be read, or is too large.
    """
    with _LOCK:
        mirror = _MIRRORS.pop(table.url, None)
        if mirror is None:
            name = hashlib.sha256(table.url.encode()).hexdigest()
            mirror = _Mirror(Path(_place(os.getpid()).name, name))
        _MIRRORS[table.url] = mirror
        while len(_MIRRORS) > _MAX_TABLES:
            _, oldest = _MIRRORS.popitem(last=False)
            shutil.rmtree(oldest._folder, ignore_errors=True)  # noqa: SLF001 (of this module)
    return mirror.fetched(table)


_LOCK = Lock()
_MIRRORS: OrderedDict[str, _Mirror] = OrderedDict()


@lru_cache(maxsize=1)
def _place(process: int) -> tempfile.TemporaryDirectory[str]:
    del process  # a forked process must not remove its parent's files
    return tempfile.TemporaryDirectory(prefix="odf-logs-")


def _wanted(table: BucketFolder) -> Iterator[tuple[str, BucketFile]]:
    for folder, names in (("_delta_log/", _LOG), ("_delta_log/_sidecars/", _SIDECAR), ("", _VECTOR)):
        for path, file in table.files(folder):
            if names.fullmatch(file.name):
                yield path, file

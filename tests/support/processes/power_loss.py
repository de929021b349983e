"""The content of a folder after a power loss: only what was flushed to disk, or all of it with torn ends.

A disk may or may not keep unflushed data, independently for each file and folder. These are the two extremes:
everything unflushed is lost, including names; or all names exist, and unflushed content is truncated.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class PowerLoss:
    """Watches what a program flushes. All existing files count as flushed at the beginning.

    Attributes:
        moments: how many times something was flushed.
    """

    def __init__(self, folder: Path, images: Path, wanted: set[int]) -> None:
        """
        Args:
            folder: the watched folder.
            images: target folder for the content after a power loss.
            wanted: flushes (0 is the first) before which the power is to be lost.
        """
        self.moments = 0
        self._folder = folder
        self._images = images
        self._wanted = wanted
        self._files: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._held: dict[int, int] = {}
        self._root = folder.stat().st_ino
        for path in (folder, *folder.rglob("*")):
            if not path.is_socket():
                descriptor = os.open(path, os.O_RDONLY)
                self._flushed(descriptor)
                os.close(descriptor)

    @contextmanager
    def watching(self) -> Iterator[PowerLoss]:
        """Watch this process; an image is made at each requested moment, and at the end."""
        flush = os.fsync

        def fsync(file: int | object) -> None:
            descriptor = file if isinstance(file, int) else file.fileno()
            if self.moments in self._wanted:
                self._lose(str(self.moments))
            self.moments += 1
            flush(descriptor)
            self._flushed(descriptor)

        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "fsync", fsync)
                yield self
            self._lose("end")
        finally:
            for descriptor in self._held.values():
                os.close(descriptor)

    def _flushed(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        # While it is open, no other file gets its inode.
        self._held.setdefault(status.st_ino, os.dup(descriptor))
        if stat.S_ISDIR(status.st_mode):
            with os.scandir(descriptor) as entries:
                self._names[status.st_ino] = {entry.name: (entry.inode(), entry.is_dir()) for entry in entries}
        else:
            self._files[status.st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def _lose(self, name: str) -> None:
        self._write_flushed(self._root, self._images / f"{name}-dropped", is_folder=True)
        self._write_torn(self._images / f"{name}-torn")

    def _write_flushed(self, number: int, path: Path, *, is_folder: bool) -> None:
        if not is_folder:
            path.write_bytes(self._files.get(number, b""))
            return
        path.mkdir(parents=True)
        for name, (child, is_one) in self._names.get(number, {}).items():
            self._write_flushed(child, path / name, is_folder=is_one)

    def _write_torn(self, image: Path) -> None:
        image.mkdir(parents=True)
        for path in sorted(self._folder.rglob("*")):
            copy = image / path.relative_to(self._folder)
            if path.is_dir():
                copy.mkdir()
            elif path.is_file():
                content = path.read_bytes()
                is_flushed = self._files.get(path.stat().st_ino) == content
                copy.write_bytes(content if is_flushed else content[: len(content) // 2])

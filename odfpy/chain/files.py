"""Files that are there as a whole or not at all, also after a power loss."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from odfpy.errors import OdfError

TEMPORARY: Final = ".tmp-"
"""What the names of files begin with that are being written, or that a killed writer has left."""


def replace_file(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write a file as a whole, in the place of one that may be there.

    Args:
        path: the file; its folder is made if need be.
        data: what is in it.
        mode: its permissions, less the umask.

    Raises:
        OdfError: it cannot be written; nothing has changed then.
    """
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}")
    try:
        make_folder(path.parent)
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise OdfError(f"Cannot write {path}: {error.strerror}") from error


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each flushed to disk, so that what is written into it can be found again."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that a rename survives a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Check whether a file system grants leases, which show that a file has no writers; some in containers do not."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def has_leases(folder: Path) -> bool:
    path = folder / ".lease"
    path.write_text("")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        return False
    finally:
        os.close(descriptor)
        path.unlink()
    return True

"""Landlock: a process irrevocably gives up access to files, for itself and its children (Linux 5.13).

Rights refer to the folders that paths name at the moment of the restriction, and to all files below them.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from typing import Final

from odfpy.sandbox.syscalls import gain_nothing, syscall

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE: Final = 1 << 14
_ON_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
# Excludes creating devices, and device control.
_CHANGE: Final = _WRITE_FILE | _TRUNCATE | sum(1 << bit for bit in (4, 5, 7, 8, 9, 10, 12, 13))
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_HANDLED_BY_VERSION: Final = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
_SCOPE_SINCE: Final = 6
_SCOPES: Final = 0b11  # abstract sockets and signals of other processes


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def landlock_version() -> int:
    """Return the Landlock version of this kernel, 0 for none."""
    try:
        return syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION), what="landlock")
    except OSError:
        return 0


def restrict_files(reads: Iterable[str], writes: Iterable[str]) -> None:
    """Give up all rights on files, except below given paths; missing paths are ignored.

    Args:
        reads: files and folders that may be read, and programs that may be run.
        writes: files and folders that may also be modified.

    Raises:
        OSError: this kernel has no Landlock.
    """
    version = landlock_version()
    if version == 0:
        raise OSError("this kernel has no Landlock")
    # Landlock only revokes rights named here, and a kernel rejects names that it does not know.
    handled = _HANDLED_BY_VERSION[min(version, max(_HANDLED_BY_VERSION))]
    ruleset = _Ruleset(handled_access_fs=handled, scoped=_SCOPES if version >= _SCOPE_SINCE else 0)
    size = ctypes.sizeof(ruleset) if version >= _SCOPE_SINCE else 8
    rules = syscall(
        _CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint(0), what="landlock ruleset"
    )
    try:
        for paths, rights in ((reads, _READ), (writes, _READ | _CHANGE)):
            for path in paths:
                _allow(rules, path, rights & handled)
        # The kernel requires this of unprivileged processes: a setuid program under such rules could be misled.
        gain_nothing()
        syscall(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint(0), what="landlock")
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        rule = _PathBeneath(allowed_access=rights if is_folder else rights & _ON_FILES, parent_fd=descriptor)
        syscall(
            _ADD_RULE,
            ctypes.c_int(rules),
            ctypes.c_int(_PATH_BENEATH),
            ctypes.byref(rule),
            ctypes.c_uint(0),
            what=f"landlock {path}",
        )
    finally:
        os.close(descriptor)

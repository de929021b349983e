"""System calls for sandboxes without a function in Python (some before 3.12). Each raises OSError."""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache
from typing import Any, Final

CLONE_NEWNS: Final = 0x0002_0000
CLONE_NEWUTS: Final = 0x0400_0000
CLONE_NEWIPC: Final = 0x0800_0000
CLONE_NEWUSER: Final = 0x1000_0000
CLONE_NEWPID: Final = 0x2000_0000
CLONE_NEWNET: Final = 0x4000_0000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_MOVE, MS_REC, MS_SLAVE, MS_SHARED = 1 << 12, 1 << 13, 1 << 14, 1 << 19, 1 << 20
MNT_DETACH: Final = 2

ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4

_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 22, 24, 38
_SECCOMP_MODE_FILTER: Final = 2
_STEP: Final = 8
_LAST_CAPABILITY: Final = 63
_CAPABILITY_VERSION_3: Final = 0x2008_0522
_KEYCTL_JOIN_SESSION_KEYRING: Final = 1
_MOUNT_SETATTR: Final = 442  # recent calls have the same number on every processor
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
_KCMP: Final = {"x86_64": 312, "aarch64": 272, "riscv64": 272}
_KCMP_VM: Final = 1
_KEYCTL: Final = {"x86_64": 250, "aarch64": 219, "riscv64": 219}


class _Filter(ctypes.Structure):
    """`struct sock_fprog` of Linux."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


class MountAttributes(ctypes.Structure):
    """`struct mount_attr` of Linux."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def syscall(number: int, *arguments: Any, what: str) -> int:
    """Call a system call by its number."""
    return _checked(int(_libc().syscall(ctypes.c_long(number), *arguments)), what)


def unshare(flags: int) -> None:
    """Move this process to new namespaces."""
    _checked(_libc().unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount a file system, bind-mount a part of one (`MS_BIND`), or change mount propagation (`MS_SLAVE`).

    Args:
        source: the device or folder, None for none.
        target: the mount point.
        kind: type of the file system, None for a bind mount.
        flags: `MS_...` flags.
        data: options of the file system.
    """
    texts = [text if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _checked(_libc().mount(*texts[:3], ctypes.c_ulong(flags), texts[3]), f"mount {source or target}")


def restrict_mount(target: str, attributes: int, *, recursive: bool = True) -> None:
    """Restrict a mount, and optionally those below it; existing restrictions remain (Linux 5.12).

    Args:
        target: the folder of the mount.
        attributes: `MOUNT_ATTR_...` flags to set.
        recursive: whether to include mounts below it.
    """
    wanted = MountAttributes(attr_set=attributes)
    syscall(
        _MOUNT_SETATTR,
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE if recursive else 0),
        ctypes.byref(wanted),
        ctypes.c_size_t(ctypes.sizeof(wanted)),
        what=f"restrict {target}",
    )


def unmount(target: str) -> None:
    """Unmount a mount point."""
    # Detached, since a plain unmount fails while a process has a file open in it.
    _checked(_libc().umount2(os.fsencode(target), ctypes.c_int(MNT_DETACH)), f"unmount {target}")


def change_root(folder: str) -> None:
    """Make a mount the root of this mount namespace, and detach the old one.

    Raises:
        OSError: the call is not permitted, or the processor is unknown.
    """
    os.chdir(folder)
    number = _PIVOT_ROOT.get(platform.machine(), -1)
    # The same path for both needs no folder for the old root, which is then on top, at `.`.
    syscall(number, b".", b".", what="pivot_root")
    unmount(".")
    os.chdir("/")


def die_with_parent(signal: int) -> None:
    """Request a signal when the parent process exits."""
    _checked(_libc().prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal), 0, 0, 0), "prctl")


def gain_nothing() -> None:
    """Prevent this process and its children from gaining rights by running programs."""
    _checked(_libc().prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0), "no_new_privs")


def filter_system_calls(steps: bytes) -> None:
    """Install a system call filter in this process and its children, permanently."""
    wanted = _Filter(len(steps) // _STEP, steps)
    _checked(
        _libc().prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(wanted), 0, 0), "seccomp"
    )


def drop_capabilities() -> None:
    """Drop all privileges of a superuser, permanently."""
    for capability in range(_LAST_CAPABILITY + 1):
        if _libc().prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break  # beyond the last capability of this kernel
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _checked(_libc().capset(header, nothing), "capset")


def forget_keyring() -> None:
    """Replace the session keyring, which may hold credentials, by an empty one."""
    number = _KEYCTL.get(platform.machine(), -1)
    syscall(number, ctypes.c_int(_KEYCTL_JOIN_SESSION_KEYRING), None, what="keyctl")


def share_memory(one: int, other: int) -> bool:
    """Return whether two processes share an address space; False if the kernel does not report it."""
    number = _KCMP.get(platform.machine())
    if number is None:
        return False
    try:
        return syscall(number, one, other, _KCMP_VM, 0, 0, what="kcmp") == 0
    except OSError:  # one process has exited, or the call is not permitted here
        return False

"""Seccomp filter for sandboxes: disables system calls that are not needed inside.

It closes gaps of namespaces: sockets outside of any network namespace (AF_VSOCK leads to the host of a virtual
machine), memory that is not limited (unnamed files, System V shared memory), and io_uring, which creates sockets
without passing the filter.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odfpy.sandbox.syscalls import filter_system_calls, gain_nothing

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_X32: Final = 0x4000_0000
USUAL: Final = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
"""Socket families used by Python and Java."""


@dataclass(frozen=True, slots=True)
class _Machine:
    """The system calls of a processor architecture.

    Attributes:
        architecture: number of the architecture (`AUDIT_ARCH_...`).
        socket: number of the call that creates a socket.
        forbidden: numbers of calls that fail as if the kernel did not have them: memfd_create, shmget, msgget, semget,
            keyctl, add_key, request_key. Calls with the same number on every architecture are in `_FORBIDDEN`.
    """

    architecture: int
    socket: int
    forbidden: tuple[int, ...]


# io_uring_setup, memfd_secret.
_FORBIDDEN: Final = (425, 447)
_GENERIC: Final = (279, 194, 186, 190, 219, 217, 218)
_MACHINES: Final = {
    "x86_64": _Machine(0xC000_003E, 41, (319, 29, 68, 64, 250, 248, 249)),
    "aarch64": _Machine(0xC000_00B7, 198, _GENERIC),
    "riscv64": _Machine(0xC000_00F3, 198, _GENERIC),
}


def forbid_odd_calls(families: Sequence[int] = USUAL) -> bool:
    """Disable unneeded system calls in this process and its children.

    Args:
        families: permitted socket families; pairs of connected sockets are always permitted.

    Returns:
        False if it is impossible, since the processor is unknown or the kernel has no filters.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None or ctypes.sizeof(ctypes.c_void_p) != struct.calcsize("Q"):
        return False
    try:
        gain_nothing()
        filter_system_calls(b"".join(_program(machine, families)))
    except OSError:
        return False
    return True


def _program(machine: _Machine, families: Sequence[int]) -> list[bytes]:
    """Return the filter, as Berkeley Packet Filter instructions over `struct seccomp_data`."""
    # Same as on an older kernel: a library continues without the call; killing the process would end Java.
    absent = _ERROR | errno.ENOSYS
    calls = (*machine.forbidden, *_FORBIDDEN)
    return [
        _step(_LOAD, _ARCHITECTURE),
        *_unless(machine.architecture, _KILL),  # calls of other architectures have other numbers
        _step(_LOAD, _NUMBER),
        # The x32 interface has the same architecture but other numbers, which would bypass the list below.
        _step(_IF_AT_LEAST, _X32, 0, 1),
        _step(_RETURN, absent),
        *(step for call in calls for step in _when(call, absent)),
        _step(_IF_EQUAL, machine.socket, 1, 0),
        _step(_RETURN, _ALLOW),
        _step(_LOAD, _FIRST_ARGUMENT),  # the kernel also uses its lower half only
        *(step for family in families for step in _when(family, _ALLOW)),
        _step(_RETURN, _ERROR | errno.EAFNOSUPPORT),
    ]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _when(value: int, result: int) -> list[bytes]:
    return [_step(_IF_EQUAL, value, 0, 1), _step(_RETURN, result)]


def _unless(value: int, result: int) -> list[bytes]:
    return [_step(_IF_EQUAL, value, 1, 0), _step(_RETURN, result)]

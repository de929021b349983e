"""Resource limits of sandboxed processes: limits enforced by the kernel, and a monitor for the others.

The kernel limits single processes. Total memory and written bytes are measured from outside; see `excess`.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odfpy.sandbox.syscalls import share_memory

_KILLED_FIRST: Final = 500
_MAPPING: Final = re.compile(
    r"^([0-9a-f]+-[0-9a-f]+) \S+ \S+ ([0-9a-f]+):([0-9a-f]+) (\d+) +(/.*) \(deleted\)$", re.MULTILINE
)
_IN_MEMORY: Final = ("/memfd:", "/dev/zero", "/SYSV", "/dev/shm/")  # noqa: S108  names in the kernel's list
_FIELD: Final = re.compile(r"^(RssAnon|RssShmem|NSpid):\s+(.*?)(?: kB)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """The limits of a sandbox.

    Attributes:
        memory: maximum memory in bytes, for all processes together and for each.
        disk: maximum bytes in the writable folders.
        disk_reserve: bytes that must stay free on the disk.
        processes: maximum number of processes and threads.
    """

    memory: int
    disk: int | None = None
    disk_reserve: int = 256 << 20
    processes: int = 4096


def memory_of_machine() -> int:
    """Return the memory of this machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def most_memory() -> int:
    """Return the default maximum memory of confined processes, in bytes."""
    return memory_of_machine() * 9 // 10


def limit_this_process(limits: ProcessLimits, *, alone: bool = True) -> None:
    """Make the kernel enforce limits in this process and its children.

    Args:
        limits: the limits.
        alone: whether the process has its own namespaces; otherwise the kernel would count other processes, too.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Not RLIMIT_AS, which counts reserved address space: Java reserves much.
    _lower(resource.RLIMIT_DATA, limits.memory)
    with suppress(OSError):  # for the case that memory runs out nevertheless
        Path("/proc/self/oom_score_adj").write_text(str(_KILLED_FIRST))
    if not alone:
        return
    try:
        Path("/proc/sys/kernel/pid_max").write_text(str(limits.processes))  # per namespace since Linux 6.14
    except OSError:
        if _linux() >= (5, 14):  # older kernels also count processes outside
            _lower(resource.RLIMIT_NPROC, limits.processes)  # does not apply to superusers


def _linux() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])


def _lower(what: int, limit: int) -> None:
    _, hard = resource.getrlimit(what)
    least = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    # Lower the hard limit, too: a process may raise the soft limit itself.
    resource.setrlimit(what, (least, least))


@dataclass(frozen=True, slots=True)
class Member:
    """A process, as reported by the kernel.

    Attributes:
        pid: process id in this namespace.
        inner_pid: process id in the namespace of the sandbox.
        memory: bytes used only by the process, or shared only with its relatives; zero while it shares its parent's
            address space, as processes do until they run a program (`vfork`).
    """

    pid: int
    inner_pid: int
    memory: int


def family_of(pid: int) -> Iterator[Member]:
    """Yield a process and its running descendants."""
    waiting: list[tuple[int, int | None]] = [(pid, None)]
    while waiting:
        number, parent = waiting.pop()
        process = Path("/proc", str(number))
        with suppress(OSError):
            shares = parent is not None and share_memory(number, parent)  # checked first: the state is short-lived
            found = dict(_FIELD.findall((process / "status").read_text("ascii", "replace")))
            memory = sum(int(found.get(name, 0)) << 10 for name in ("RssAnon", "RssShmem"))
            yield Member(number, int(found["NSpid"].split()[-1]), 0 if shares else memory)
            for task in (process / "task").iterdir():
                with suppress(OSError):  # threads may end meanwhile
                    waiting += [(int(child), number) for child in (task / "children").read_text().split()]


def excess(pid: int, folders: Iterable[str], limits: ProcessLimits) -> str | None:
    """Describe the limit that a process and its descendants exceed; None if they exceed none.

    Args:
        pid: the process.
        folders: the writable folders.
        limits: the limits.
    """
    members = list(family_of(pid))
    nameless = _nameless_files(member.pid for member in members)
    memory = sum(member.memory for member in members) + nameless.in_memory
    if memory > limits.memory:
        return f"it used {_size(memory)} of memory, and may use {_size(limits.memory)}"
    for folder in folders:
        with suppress(OSError):
            free = shutil.disk_usage(folder).free
            if free < limits.disk_reserve:
                return f"only {_size(free)} are left on the disk of {folder}"
    if limits.disk is not None and (written := sum(map(_bytes_in, folders)) + nameless.on_disk) > limits.disk:
        return f"it wrote {_size(written)} to the disk, and may write {_size(limits.disk)}"
    return None


@dataclass(frozen=True, slots=True)
class _Nameless:
    """Size of files without a name.

    Attributes:
        on_disk: bytes on disks.
        in_memory: bytes in memory (`memfd_create`), mapped or not.
    """

    on_disk: int
    in_memory: int


def _nameless_files(pids: Iterable[int]) -> _Nameless:
    """Return the size of files that processes hold only by descriptors or mappings; each file is counted once.

    For a file that is only mapped, the kernel reports the mapped bytes, not its size.
    """
    sizes: dict[tuple[int, int], int] = {}
    in_memory: set[tuple[int, int]] = set()
    for pid in pids:
        for descriptor in _entries(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found = os.stat(descriptor)  # noqa: PTH116  called a thousand times per second
                if found.st_nlink or not stat.S_ISREG(found.st_mode):
                    continue
                key = (found.st_dev, found.st_ino)
                sizes[key] = max(sizes.get(key, 0), found.st_blocks * 512)
                if os.readlink(descriptor).startswith("/memfd:"):  # noqa: PTH115
                    in_memory.add(key)
        for key, size in _deleted_mappings(pid).items():
            sizes.setdefault(key, size)
    on_disk = sum(size for key, size in sizes.items() if key not in in_memory)
    return _Nameless(on_disk, sum(sizes.values()) - on_disk)


def _entries(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from (entry.path for entry in entries)


def _deleted_mappings(pid: int) -> dict[tuple[int, int], int]:
    """Return the mapped bytes of deleted files on disks, by device and inode."""
    found: dict[tuple[int, int], int] = {}
    with suppress(OSError):
        for place, major, minor, inode, name in _MAPPING.findall(
            Path("/proc", str(pid), "maps").read_text("utf-8", "replace")
        ):
            if name.startswith(_IN_MEMORY):
                continue  # counted as memory of the process
            start, end = (int(part, 16) for part in place.split("-"))
            key = (os.makedev(int(major, 16), int(minor, 16)), int(inode))
            found[key] = found.get(key, 0) + end - start
    return found


def _bytes_in(folder: str) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_blocks * 512
    return total


def _size(count: int) -> str:
    return f"{count / (1 << 20):.0f} MiB" if count < 1 << 30 else f"{count / (1 << 30):.1f} GiB"

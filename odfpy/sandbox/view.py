"""The view of the machine inside a sandbox."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Programs and libraries, time zones, and other files that the linker and Debian's Java need. No accounts, settings or
# hosts; of /usr neither local additions (/usr/local) nor documentation, sources and data.
_SYSTEM: Final = (
    *(f"/usr/{name}" for name in ("bin", "lib", "lib32", "lib64", "libx32", "share/zoneinfo", "share/javazi")),
    *("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"),
    # The number of processors and the amount of memory, for Java.
    *("/sys/fs/cgroup", "/sys/devices/system/cpu", "/sys/devices/system/node"),
)
_PREFIX_PARTS: Final = ("bin", "lib", "lib64", "pyvenv.cfg")
_LIBRARIES: Final = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class View:
    """The visible files, at their own paths; no other files exist inside.

    Attributes:
        reads: readable files and folders, none inside another.
        folder: the private, writable folder.
        hidden: a folder that is not visible even if it is inside of a readable one.
    """

    reads: tuple[str, ...]
    folder: str
    hidden: str | None = None

    def shows(self, path: str) -> bool:
        """Return whether a file or folder can be read."""
        shown = (*self.reads, self.folder)
        if self.hidden is not None and is_in(path, self.hidden):
            shown = tuple(other for other in shown if is_in(other, self.hidden))
        return any(is_in(path, other) for other in shown)


def is_in(path: str, folder: str) -> bool:
    """Return whether a path is the folder or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def topmost(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that are not inside another one."""
    found: list[str] = []
    for path in sorted(set(paths)):  # a folder sorts before its content
        if not any(is_in(path, other) for other in found):
            found.append(path)
    return tuple(found)


def view_of_python(*more: Path, folder: Path, hidden: Path | None = None) -> View:
    """Return a view in which this Python runs, with its installed packages and the modules of odfpy.

    Args:
        more: further readable files and folders.
        folder: the private folder.
        hidden: see `View`.
    """
    wanted = [*_SYSTEM, *(str(path.absolute()) for path in more), *_python_parts()]
    shown = topmost(path for path in wanted if os.path.exists(path))  # noqa: PTH110
    return View(shown, str(folder.absolute()), str(hidden.absolute()) if hidden else None)


def _python_parts() -> Iterable[str]:
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    prefixes |= {str(Path(prefix).resolve()) for prefix in prefixes}
    yield from (f"{prefix}/{part}" for prefix in prefixes for part in _PREFIX_PARTS)
    link = Path(sys.executable)
    for _ in range(8):  # the program itself may be behind several links
        yield str(link.parent)
        if not link.is_symlink():
            break
        link = link.parent / link.readlink()
    for entry in sys.path:
        # Other folders of the path are working folders, which contain more than modules.
        if Path(entry).name in _LIBRARIES or entry.endswith(".zip"):
            yield str(Path(entry).absolute())
    yield str(Path(__file__).absolute().parents[1])
    yield from os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)

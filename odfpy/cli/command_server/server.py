"""The server: it has imported what commands need, waits for clients, and forks a process for each command.

It runs no part of a command and reads no workspace. So only its code can be outdated, and it checks this before each
fork. It exits after an idle period, with its session, when an imported file changes, when its socket is removed, and
on SIGTERM.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from odfpy.cli.command_server import process_identity
from odfpy.cli.command_server.command import begin, serve_client
from odfpy.cli.command_server.imports import import_all
from odfpy.files import is_same_file

_LOOK_SECONDS: Final = 10.0
_WAITING: Final = 16

Stamp = tuple[int, int, int, int]


def serve(command: Callable[[], NoReturn]) -> NoReturn:
    """Run as a server. In each forked child, run a command.

    The standard input is the lock of the server's socket, held for the server's lifetime.

    Args:
        command: runs the command of the child.
    """
    address = process_identity.address()
    if not _has_lock(address):  # also if its identity differs from that of its starter
        sys.exit("error: only odf can start a command server; see the setting commands.server")
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # inherited from the process that started it
    try:
        own = (process_identity.of_process(os.getpid()), process_identity.of_python())
        connection = _Server(Path(address), idle=float(sys.argv[2])).next_command()
    except BaseException:  # noqa: BLE001 - nobody to tell; the lock stays and marks the failure
        os._exit(1)
    begin(command, serve_client(connection, own))


def _has_lock(address: str) -> bool:
    with suppress(OSError):
        return is_same_file(0, f"{address}.lock")
    return False


class _Server:
    """A listening server, with everything imported.

    Args:
        address: address of its socket.
        idle: seconds without a command after which it exits.
    """

    def __init__(self, address: Path, idle: float) -> None:
        os.write(0, b"%d" % os.getpid())
        self._lock = os.dup(0)
        os.dup2(1, 0)
        os.chdir("/")
        os.umask(0o077)
        self._address = address
        self._idle = idle
        self._leader = _leader()
        self._files = _import_all()
        # Garbage collection in a command would write to every object, and so copy the memory shared by all commands.
        gc.collect()
        gc.freeze()
        address.unlink(missing_ok=True)  # left over from a server that was killed
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(address))
        self._listener.listen(_WAITING)
        self._socket = address.stat()

    def next_command(self) -> socket.socket:
        """Wait for clients. Return the connection to one, in the process forked for it, with all signals blocked.

        Never returns in the server itself.
        """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the server ignores the exit status of its children
        signal.signal(signal.SIGTERM, _leave)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        with suppress(OSError, SystemExit):
            while self._is_asked() and self._files == {path: _stamp(path) for path in self._files}:
                connection, _ = self._listener.accept()
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
                if os.fork() == 0:
                    self._leave_to_the_server()
                    return connection
                connection.close()
                signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self._clear()
        os._exit(0)

    def _leave_to_the_server(self) -> None:
        """Close the server's descriptors, above all the lock: running commands must not hold it."""
        self._listener.close()
        for descriptor in (self._lock, *self._leader):
            os.close(descriptor)

    def _is_asked(self) -> bool:
        """Wait for a client. Return false when the server must exit."""
        deadline = time.monotonic() + self._idle
        while (left := deadline - time.monotonic()) > 0 and self._is_found():
            waited = [self._listener.fileno(), *self._leader]
            ready, _, _ = select.select(waited, [], [], min(left, _LOOK_SECONDS))
            if ready:
                return not {*self._leader} & {*ready}
        return False

    def _is_found(self) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(self._address.stat(), self._socket)
        return False

    def _clear(self) -> None:
        if self._is_found():
            self._address.unlink()
        with suppress(OSError):  # fails if other servers use the folder
            Path(f"{self._address}.lock").unlink()
            self._address.parent.rmdir()


def _leader() -> list[int]:
    """Return a descriptor of the session leader, or none if it has exited and left its processes behind."""
    with suppress(ProcessLookupError):
        return [os.pidfd_open(os.getsid(0))]
    return []


def _leave(*_: object) -> NoReturn:
    raise SystemExit


def _import_all() -> dict[str, Stamp]:
    """Import what commands need. Return the imported files with their stamps."""
    began = time.time_ns()
    import_all()
    loaded = (getattr(module, "__file__", None) for module in sys.modules.values())
    files = {path: _stamp(path) for path in loaded if path}
    if any(changed > began for *_, changed in files.values()):
        os._exit(1)  # the imported version is unknown
    if len([*Path("/proc/self/task").iterdir()]) > 1:
        os._exit(1)  # a thread would be missing in every fork
    return files


def _stamp(path: str) -> Stamp:
    """Return a value that changes when a file is replaced."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a thousand of them, before each command
    except OSError:
        return (0, 0, 0, 0)
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)

"""Start or stop a server according to the setting `commands.server`, at the end of an ordinary command."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.cli.command_server import WORD, process_identity
from odfpy.files import config_files, try_lock

if TYPE_CHECKING:
    from odfpy.cli.session import Session

_TRY_AGAIN_SECONDS: Final = 600.0


def follow_setting(session: Session) -> None:
    """Start or stop the server for later commands. Does nothing if the command has not used a workspace."""
    if "workspace" not in vars(session):
        return
    idle = _wanted(session)
    with suppress(OSError):  # commands also work without a server
        if idle is not None:
            start(idle)
        elif process_identity.is_private(process_identity.folder()):
            stop()


def _wanted(session: Session) -> int | None:
    """Return the idle seconds after which a server exits; None if there must be no server."""
    if not _may_be_set(session.workspace.storage.root):  # the common case; avoid loading the settings
        return None
    from odfpy.settings.sections import CommandsSection

    chosen = session.workspace.config.section(CommandsSection)
    return chosen.idle_timeout if chosen.server else None


def _may_be_set(root: Path) -> bool:
    """Return whether a settings file or an environment variable may have settings of commands."""
    if any(name.startswith("ODF_COMMANDS_") for name in os.environ):
        return True
    for file in config_files(root):
        with suppress(OSError):
            lines = file.read_bytes().splitlines()
            if any(b"commands" in line and not line.lstrip().startswith(b"#") for line in lines):
                return True
    return False


def start(idle: int) -> None:
    """Start a server for processes like this one, unless one is running or cannot be started. Does not wait for it.

    Args:
        idle: seconds without a command after which it exits.

    Raises:
        OSError: the system does not allow it.
    """
    if not process_identity.is_common() or os.getsid(0) == os.getpid():  # the session ends with this process
        return
    Path(process_identity.folder()).mkdir(mode=0o700, exist_ok=True)
    if not process_identity.is_private(process_identity.folder()):
        return
    address = process_identity.address()
    with _locked(address, os.O_CREAT) as lock:
        if lock is not None and not _has_failed(address, lock):
            _launch(lock, idle)


def stop() -> None:
    """Stop the server for processes like this one, if there is one.

    Raises:
        OSError: the system does not allow it.
    """
    import signal

    if (pid := running()) is not None:
        os.kill(pid, signal.SIGTERM)


def running() -> int | None:
    """Return the process id of the server for processes like this one, or None.

    Raises:
        OSError: the system does not report it.
    """
    try:
        with _locked(address := process_identity.address()) as lock:
            if lock is None:
                return int(Path(f"{address}.lock").read_bytes() or 0) or None
    except FileNotFoundError:
        pass
    return None


def description() -> str:
    """Describe the server for processes like this one, for people."""
    if sys.platform != "linux":
        return "not available: command servers need Linux"
    try:
        pid = running()
        if pid is None:
            return "none runs"
        status = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError as error:
        return f"not available: {error.strerror}"
    kilobytes = status.partition("VmRSS:")[2].split()[0]
    return f"process {pid}, {int(kilobytes) // 1024} MiB"


@contextmanager
def _locked(address: str, flags: int = 0) -> Iterator[int | None]:
    """Take the lock of a server. Yields None if there is a server.

    Args:
        address: address of the server.
        flags: further flags for opening the lock.
    """
    lock = os.open(f"{address}.lock", os.O_RDWR | flags, 0o600)
    try:
        yield lock if try_lock(lock) else None
    finally:
        os.close(lock)


def _has_failed(address: str, lock: int) -> bool:
    """Return whether a server failed to start recently: its process id is in the lock, but it never listened."""
    before = os.fstat(lock)
    if before.st_size and not Path(address).exists():
        return time.time() - before.st_mtime < _TRY_AGAIN_SECONDS
    os.ftruncate(lock, 0)
    return False


def _launch(lock: int, idle: int) -> None:
    """Start the server in the same way as this program was started, so that it has the same identity."""
    os.posix_spawn(
        sys.executable,
        [sys.executable, *process_identity.program(), WORD, str(idle)],
        {**os.environ, **process_identity.QUIET},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, lock, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
        setpgroup=0,  # so that Ctrl-C does not reach it
    )

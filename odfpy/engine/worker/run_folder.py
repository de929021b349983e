"""The run folder `.odf/run`: what the engine stores there, and how processes find each other.

    engine.lock     locked by the worker as long as it lives; holds its process id
    engine.sock     where it listens
    engine.secret   the secret that clients send first, readable by the owner only
    engine.log      what the worker and its Java process print
    engine-worker-*/ scratch of the worker that lives, removed with it
    clients/*/      what a process hands to the worker; its name has the process id
    engine.folders  folders that a worker confined by Landlock alone needs access to from its start

The lock ends with its process, so whatever is in the folder while nobody holds the lock is left over, and may be
removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from odfpy.errors import EngineUnavailable
from odfpy.values import dataclass

_SCRATCH_PREFIX = "engine-worker-"
_CLIENTS = "clients"
_MAX_LOG_SIZE = 4 << 20
_PRIVATE_FILE = 0o600
_LOCK_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The engine's files in a run folder.

    Attributes:
        path: the folder.
    """

    path: Path

    @property
    def log(self) -> Path:
        """Return the path of the log."""
        return self.path / "engine.log"

    @property
    def socket_path(self) -> Path:
        """Return the path of the socket."""
        return self.path / "engine.sock"

    @property
    def _lock_file(self) -> Path:
        return self.path / "engine.lock"

    @property
    def _secret_file(self) -> Path:
        return self.path / "engine.secret"

    @property
    def _folders_file(self) -> Path:
        return self.path / "engine.folders"

    def create(self) -> None:
        """Make the folder if it does not exist.

        Raises:
            EngineUnavailable: it cannot be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EngineUnavailable(f"The engine needs the folder {self.path}: {error.strerror}") from error

    # --- Who lives ---

    def hold(self) -> int | None:
        """Lock this folder as its only worker; return a descriptor to keep open, or None if there is a worker.

        Raises:
            EngineUnavailable: the folder cannot be written to.
        """
        try:
            descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE)
        except OSError as error:
            raise EngineUnavailable(f"Cannot start an engine in {self.path}: {error.strerror}") from error
        if not _lock(descriptor):
            os.close(descriptor)
            return None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._sweep()
        return descriptor

    def release(self, descriptor: int) -> None:
        """Stop being the worker; everything but the log is removed."""
        # Before the lock is released: the next holder makes files of the same names, which have to stay. So do those of
        # a worker that has begun in a new folder of this name.
        if not self.has_lost_lock(descriptor):
            self._sweep()
        os.ftruncate(descriptor, 0)
        os.close(descriptor)

    def holder(self) -> int | None:
        """Return the process id of the worker; 0 when it has just begun; None when there is none."""
        try:
            descriptor = os.open(self._lock_file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            # A shared lock, so that two processes that check at the same time do not take each other for the worker.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(os.pread(descriptor, 20, 0) or 0)
        finally:
            os.close(descriptor)
        return None

    def sweep_if_abandoned(self) -> None:
        """Remove the files of a worker that was killed, if no other worker has begun."""
        with suppress(EngineUnavailable):
            descriptor = self.hold()
            if descriptor is not None:
                self.release(descriptor)

    def hang_up(self, descriptor: int) -> None:
        """Remove the socket, so that nobody waits for an answer of a worker that ends.

        Args:
            descriptor: descriptor of the worker's lock.
        """
        if not self.has_lost_lock(descriptor):
            self.socket_path.unlink(missing_ok=True)

    def has_lost_lock(self, lock: int) -> bool:
        """Return whether the lock file is no longer the holder's, because the folder was removed."""
        try:
            return not os.path.samestat(self._lock_file.stat(), os.fstat(lock))
        except OSError:
            return True

    def _sweep(self) -> None:
        for path in (self.socket_path, self._secret_file):
            path.unlink(missing_ok=True)
        for path in self.path.glob(f"{_SCRATCH_PREFIX}*"):
            shutil.rmtree(path, ignore_errors=True)
        for path in (self.path / _CLIENTS).glob("*"):
            if not _is_alive(path.name.partition("-")[0]):
                shutil.rmtree(path, ignore_errors=True)

    # --- Files of the living ---

    def make_scratch(self) -> Path:
        """Make a new folder for the worker's temporary files."""
        path = self.path / f"{_SCRATCH_PREFIX}{os.getpid()}"
        path.mkdir(mode=0o700)
        return path

    @contextmanager
    def client_scratch(self) -> Iterator[Path]:
        """Make a folder for files that this process exchanges with the worker; it is removed after the block.

        If the process is killed within the block, the folder is removed when the next worker begins or ends.

        Raises:
            EngineUnavailable: it cannot be made.
        """
        clients = self.path.absolute() / _CLIENTS
        try:
            clients.mkdir(parents=True, exist_ok=True)
            # A cancelled engine may write to it for a moment longer.
            folder = TemporaryDirectory(prefix=f"{os.getpid()}-", dir=clients, ignore_cleanup_errors=True)
        except OSError as error:
            raise EngineUnavailable(f"The engine needs a folder in {self.path}: {error.strerror}") from error
        with folder as path:
            yield Path(path)

    def note_more_folders(self, reads: Iterable[str], writes: Iterable[str]) -> None:
        """Grant the next worker access to some folders.

        Args:
            reads: folders that it may read.
            writes: folders that it may also write to.
        """
        self._folders_file.write_text(json.dumps({"reads": sorted(reads), "writes": sorted(writes)}), "utf-8")

    def take_more_folders(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the folders noted for this worker: those to read, and those to write to."""
        try:
            noted = json.loads(self._folders_file.read_text("utf-8"))
            folders = tuple(noted["reads"]), tuple(noted["writes"])
        except (OSError, ValueError, KeyError, TypeError):
            return (), ()
        self._folders_file.unlink()
        return folders

    def make_secret(self) -> str:
        """Write a new secret to its file."""
        secret = secrets.token_hex(32)
        # O_EXCL: never into an existing file, whose permissions may have been chosen by others.
        descriptor = os.open(self._secret_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
        with os.fdopen(descriptor, "w") as file:
            file.write(secret)
        return secret

    def read_secret(self) -> str:
        """Return the secret of the running worker.

        Raises:
            OSError: there is none.
        """
        return self._secret_file.read_text()

    def open_log(self) -> int:
        """Return a descriptor to append to the log; a log that has become long is rotated."""
        with suppress(OSError):
            if self.log.stat().st_size > _MAX_LOG_SIZE:
                self.log.replace(self.log.with_suffix(".log.1"))
        try:
            return os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _PRIVATE_FILE)
        except OSError as error:
            raise EngineUnavailable(f"Cannot write {self.log}: {error.strerror}") from error

    def listen(self) -> socket.socket:
        """Return the listening socket."""
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short_address(self.socket_path) as address:
            server.bind(address)
        self.socket_path.chmod(_PRIVATE_FILE)
        server.listen(64)
        return server

    def connect(self) -> socket.socket:
        """Return a connection to the worker.

        Raises:
            OSError: there is no listener.
        """
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _short_address(self.socket_path) as address:
                client.connect(address)
        except BaseException:
            client.close()
            raise
        return client


def _is_alive(pid: str) -> bool:
    """Return whether a process with that id exists."""
    try:
        os.kill(int(pid), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except OSError:
        pass  # it belongs to another user
    return True


def _lock(descriptor: int) -> bool:
    """Lock a file, with some retries, since a process that checks the lock holds it for an instant."""
    for attempt in range(_LOCK_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.001 * attempt)
        else:
            return True
    return False


@contextmanager
def _short_address(path: Path) -> Iterator[str]:
    """Return a short name for a socket: addresses have at most 107 bytes, but workspaces may be deep in the tree."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)

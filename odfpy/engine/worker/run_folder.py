"""The run folder `.odf/run`: what the engine keeps there, and how processes find each other.

    engine.lock     locked by the worker as long as it lives; holds its process id
    engine.sock     where it listens
    engine.secret   what a client has to say first, readable by the owner only
    engine.log      what the worker and its Java process print
    engine-worker-*/ scratch of the worker that lives, removed with it
    clients/*/      what a process hands to the worker; its name has the process id
    engine.folders  what a worker that is confined by Landlock alone must be let into when it starts

The lock ends with its process, so whatever is found while nobody holds it is left over and may be removed.
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
    """The engine's files in a folder.

    Attributes:
        path: the folder.
    """

    path: Path

    @property
    def log(self) -> Path:
        """The log."""
        return self.path / "engine.log"

    @property
    def socket_path(self) -> Path:
        """The socket."""
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
        """Make the folder if it is not there.

        Raises:
            EngineUnavailable: it cannot be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EngineUnavailable(f"The engine needs the folder {self.path}: {error.strerror}") from error

    # --- Who lives ---

    def hold(self) -> int | None:
        """Become the one worker of this folder: a descriptor to keep open, or None when there is a worker already.

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
        """Not be the worker any more; everything but the log is removed."""
        # Before the lock goes: whoever gets it next makes files of the same names, and these have to stay. So do those
        # of a worker that has begun in a new folder of this name.
        if not self.has_lost(descriptor):
            self._sweep()
        os.ftruncate(descriptor, 0)
        os.close(descriptor)

    def holder(self) -> int | None:
        """Process id of the worker; 0 when it has just begun; None when there is none."""
        try:
            descriptor = os.open(self._lock_file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            # Shared, so that two who look at the same time do not take each other for the worker.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(os.pread(descriptor, 20, 0) or 0)
        finally:
            os.close(descriptor)
        return None

    def sweep_if_abandoned(self) -> None:
        """Remove what a worker left that was killed, if no other worker has begun."""
        with suppress(EngineUnavailable):
            descriptor = self.hold()
            if descriptor is not None:
                self.release(descriptor)

    def hang_up(self, descriptor: int) -> None:
        """Remove the socket, so that nobody waits for an answer of a worker that ends.

        Args:
            descriptor: of the worker's lock.
        """
        if not self.has_lost(descriptor):
            self.socket_path.unlink(missing_ok=True)

    def has_lost(self, lock: int) -> bool:
        """Return whether the lock's file is no longer that of the holder, because somebody removed the folder."""
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
        """A new folder for the worker's temporary files."""
        path = self.path / f"{_SCRATCH_PREFIX}{os.getpid()}"
        path.mkdir(mode=0o700)
        return path

    @contextmanager
    def client_scratch(self) -> Iterator[Path]:
        """A folder for what this process hands to the worker and gets back; gone after the block.

        What a process leaves that was killed in the block goes when the next worker begins or ends.

        Raises:
            EngineUnavailable: it cannot be made.
        """
        clients = self.path.absolute() / _CLIENTS
        try:
            clients.mkdir(parents=True, exist_ok=True)
            # A cancelled engine may write to it for a moment more.
            folder = TemporaryDirectory(prefix=f"{os.getpid()}-", dir=clients, ignore_cleanup_errors=True)
        except OSError as error:
            raise EngineUnavailable(f"The engine needs a folder in {self.path}: {error.strerror}") from error
        with folder as path:
            yield Path(path)

    def note_more_folders(self, reads: Iterable[str], writes: Iterable[str]) -> None:
        """Have the next worker let into some folders.

        Args:
            reads: those that it may read.
            writes: those that it may write to as well.
        """
        self._folders_file.write_text(json.dumps({"reads": sorted(reads), "writes": sorted(writes)}), "utf-8")

    def take_more_folders(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what has been noted for this worker: folders to read, and folders to write to."""
        try:
            noted = json.loads(self._folders_file.read_text("utf-8"))
            found = tuple(noted["reads"]), tuple(noted["writes"])
        except (OSError, ValueError, KeyError, TypeError):
            return (), ()
        self._folders_file.unlink()
        return found

    def make_secret(self) -> str:
        """Put a new secret into its file."""
        secret = secrets.token_hex(32)
        # O_EXCL: never into a file that already exists, of which somebody else may have chosen the rights.
        descriptor = os.open(self._secret_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
        with os.fdopen(descriptor, "w") as file:
            file.write(secret)
        return secret

    def read_secret(self) -> str:
        """The secret of the worker that lives.

        Raises:
            OSError: there is none.
        """
        return self._secret_file.read_text()

    def open_log(self) -> int:
        """A descriptor to append to the log; a log that has become long starts anew, and the old one is kept."""
        with suppress(OSError):
            if self.log.stat().st_size > _MAX_LOG_SIZE:
                self.log.replace(self.log.with_suffix(".log.1"))
        try:
            return os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _PRIVATE_FILE)
        except OSError as error:
            raise EngineUnavailable(f"Cannot write {self.log}: {error.strerror}") from error

    def listen(self) -> socket.socket:
        """The listening socket."""
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short_address(self.socket_path) as address:
            server.bind(address)
        self.socket_path.chmod(_PRIVATE_FILE)
        server.listen(64)
        return server

    def connect(self) -> socket.socket:
        """A connection to the worker.

        Raises:
            OSError: nobody listens.
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
    """Return whether there is a process of that id."""
    try:
        os.kill(int(pid), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except OSError:
        pass  # it belongs to somebody else
    return True


def _lock(descriptor: int) -> bool:
    """Lock a file; tried a few times, since whoever just looks whether it is locked holds it for an instant."""
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
    """Another name of a socket: addresses end at 107 bytes, and workspaces may be deep in the tree."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)

"""Folder of a workspace.

.odf/version                    version of this layout
.odf/config.yaml                settings
.odf/datasets/<id>/             a dataset, in the layout of repositories
.odf/datasets/<id>/info/alias   the local name of the dataset
.odf/keys/<id>                  private keys, mode 0600
.odf/approved/<id>              approved sources
.odf/repos/                     named repositories
.odf/cache/                     data that can be rebuilt
.odf/run/                       locks, the engine's socket, scratch files
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.chain_cache import ChainCache
from odfpy.coordinator.storage.key_store import KeyStore
from odfpy.dataset.identity import DatasetId
from odfpy.errors import IntegrityError, OdfError, UnsupportedVersion, UsageError, WorkspaceNotFound
from odfpy.files import cache_folder, try_lock

if TYPE_CHECKING:
    from typing_extensions import Self

    from odfpy.coordinator.storage.signing import Signing

ODF_FOLDER = ".odf"
LAYOUT_VERSION = "1"
_TIMES, _PAUSE_SECONDS = 20, 0.05
"""Number of attempts, and delay between them, to remove a folder that is still being written to."""


class WorkspaceFolder:
    """The folder of a workspace: its paths, its key store, and its signing.

    Attributes:
        root: the root folder of the workspace.
        odf: the folder `.odf` in the root.
        lock_patience: maximum seconds to wait for another process that writes to the same dataset.
        chain_cache: cached states of the datasets' chains.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.odf = root / ODF_FOLDER
        self.lock_patience = 0.0
        self.chain_cache = ChainCache()

    @classmethod
    def find(cls, folder: Path) -> Self:
        """Return the workspace of a folder, in the folder itself or the nearest parent that has one.

        Raises:
            WorkspaceNotFound: there is no workspace, or the folder does not exist.
            UnsupportedVersion: the workspace was created by a newer release.
            IntegrityError: the version file is damaged or missing.
            UsageError: the path is not valid text.
        """
        if not os.path.isdir(folder):  # noqa: PTH112  the method of Path fails for impossible names
            raise WorkspaceNotFound(
                f"There is no folder {str(folder)[:100]!r} that a workspace could be in",
                hint="Name an existing folder. `odf init FOLDER` creates a folder with a workspace.",
            )
        start = folder.resolve()
        for candidate in (start, *start.parents):
            version = candidate / ODF_FOLDER / "version"
            if version.is_file():
                _check_version(candidate, _version_in(version))
                require_text(candidate)
                return cls(candidate)
            if version.parent.joinpath("datasets").is_dir():
                raise version_missing(candidate)
        raise WorkspaceNotFound(
            f"No workspace in {start} or any folder above it", hint="Create one here with `odf init`."
        )

    @property
    def run(self) -> Path:
        """Return the folder of locks, sockets and scratch files."""
        return self.odf / "run"

    def lock_of(self, folder: Path) -> Path:
        """Return the path of the writer's lock of a dataset, by its folder; the push lock is beside it."""
        return self.run / "locks" / folder.name

    @property
    def engine_run(self) -> Path:
        """Return the run folder of the engine, or one in the user's cache if the workspace is read-only."""
        return self._written_by_user("run")

    @property
    def batch_run(self) -> Path:
        """Return the run folder of engines for batch verifications."""
        return self._written_by_user("run-batch")

    def _written_by_user(self, name: str) -> Path:
        """Return a folder in the workspace, or one in the user's cache if the workspace is read-only."""
        path = self.odf / name
        nearest = path if path.exists() else self.odf
        if os.access(nearest, os.W_OK | os.X_OK):
            return path
        place = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return cache_folder() / place / name

    @property
    def cache(self) -> Path:
        """Return the folder of data that can be recomputed."""
        return self.odf / "cache"

    @property
    def readers_cache(self) -> Path:
        """Return the folder for caches of readers: `cache`, or a folder of the user if the workspace is read-only."""
        return self._written_by_user("cache")

    @property
    def incoming(self) -> Path:
        """Return the folder of unfinished copies from other locations; each has a lock with its name."""
        return self.cache / "incoming"

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Create an empty folder on the file system of the datasets; remove it after the block.

        If the workspace is read-only, the folder may be on another file system, since nothing can be committed.
        """
        with ExitStack() as ending:
            try:
                folder, lock = self._new_scratch()
                ending.callback(os.close, lock)
                ending.callback(_remove, folder)
                self.sweep()
            except PermissionError as error:
                raise OdfError(f"No permission to write {error.filename or self.scratches}") from error
            yield folder

    def _new_scratch(self) -> tuple[Path, int]:
        """Return a new scratch folder, and the descriptor of its lock."""
        while True:
            folder = self.scratches / f"{os.getpid()}-{secrets.token_hex(4)}"
            folder.mkdir(parents=True)
            with suppress(FileNotFoundError):  # another process took it for a leftover
                lock = os.open(folder, os.O_RDONLY)
                with suppress(OSError):  # without locks, the process id in the name must suffice
                    fcntl.flock(lock, fcntl.LOCK_EX)
                if folder.exists():
                    return folder, lock
                os.close(lock)

    def sweep(self) -> None:
        """Remove the scratch folders of killed processes."""
        for folder in self.abandoned():
            with _unheld(folder) as is_unheld:  # keep the lock during the removal: the folder may be new
                if is_unheld:
                    shutil.rmtree(folder, ignore_errors=True)

    def abandoned(self) -> list[Path]:
        """Return the scratch folders of killed processes, and remains of deleted datasets."""
        try:
            folders = sorted(self.scratches.iterdir())
        except OSError:  # missing or unreadable
            return []
        owners = [(folder, folder.name.partition("-")[0]) for folder in folders]
        # If a new process has the same id, an abandoned folder looks used, and stays until a later sweep.
        left = [folder for folder, owner in owners if not owner.isdigit() or not Path("/proc", owner).exists()]
        # Containers that share a workspace do not see each other's processes, but do see the locks.
        abandoned_folders = []
        for folder in left:
            with _unheld(folder) as is_unheld:
                abandoned_folders += [folder] if is_unheld else []
        return abandoned_folders

    @property
    def scratches(self) -> Path:
        """Return the parent folder of scratch folders."""
        return self.engine_run / "scratch"

    # --- Datasets ---

    def entries(self) -> list[Path]:
        """Return the folders of all datasets, including damaged ones.

        Raises:
            OdfError: the folders cannot be listed.
        """
        folder = self.odf / "datasets"
        try:
            with os.scandir(folder) as entries:
                return [Path(entry.path) for entry in entries if not entry.name.startswith(".")]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OdfError(f"Cannot read {folder}: {error.strerror}") from error

    def dataset_folder(self, dataset_id: DatasetId) -> Path:
        """Return the folder of a dataset, which need not exist."""
        return self.odf / "datasets" / dataset_id.multibase

    def cache_of(self, dataset_id: DatasetId) -> Path:
        """Return the folder for data of a dataset that can be recomputed."""
        return self.cache / dataset_id.multibase

    @property
    def keys(self) -> KeyStore:
        """Return the store of the datasets' private keys."""
        return KeyStore(self.odf / "keys")

    @cached_property
    def signing(self) -> Signing:
        """Return the signing of commits."""
        from odfpy.coordinator.storage.signing import Signing  # only needed for writing

        return Signing(self.root)


def require_text(root: Path) -> None:
    """Check that the path of a workspace is valid text.

    Arrow, duckdb and Java take paths as text, and would report other paths as damaged.

    Raises:
        UsageError: the path is not UTF-8.
    """
    try:
        os.fsencode(root).decode()
    except UnicodeDecodeError:
        raise UsageError(
            f"The path of a workspace has to be UTF-8, and {str(root)!a} is not",
            hint="Give the folder another name.",
        ) from None


@contextmanager
def _unheld(folder: Path) -> Iterator[bool]:
    """Yield whether no process holds the lock of a folder; if so, hold the lock during the block."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        yield True
        return
    try:
        try:
            is_unheld = try_lock(lock)
        except OSError:  # a file system without locks
            is_unheld = True
        yield is_unheld
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, even if interrupted, or if a cancelled engine still writes to it for a moment."""
    try:
        for _ in range(_TIMES):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(_PAUSE_SECONDS)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def version_missing(folder: Path) -> IntegrityError:
    """Return the error for a folder with `.odf` but without its version file."""
    version = folder / ODF_FOLDER / "version"
    return IntegrityError(f"The workspace in {folder} is damaged: {version} is missing", hint=_mend(version))


def _check_version(folder: Path, version: str) -> None:
    if version == LAYOUT_VERSION:
        return
    message = f"The workspace in {folder} has layout version {version!r}, this release knows {LAYOUT_VERSION}"
    if version.isdecimal() and int(version[:9]) > int(LAYOUT_VERSION):
        raise UnsupportedVersion(message, hint="Use a newer release of odfpy.")
    raise IntegrityError(message, hint=_mend(folder / ODF_FOLDER / "version"))


def _mend(version: Path) -> str:
    return (
        f"If this release created it: echo {LAYOUT_VERSION} > {shlex.quote(str(version))}."
        " If other files are missing, too, restore the folder from a backup."
    )


def _version_in(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise OdfError(f"Cannot read {file}: {error.strerror}") from error

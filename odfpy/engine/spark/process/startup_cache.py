"""A cache of loaded and linked classes that halves a cold start (JEP 483, 514 and 515: Java's AOT cache).

It is a file of some 200 MB in the user's cache folder, made once per installation by a training run of its own, which
has the lowest priority and never stands in the way of a command. A cache belongs to one Java, one exact class path and
one set of options; `AOTMode=on` makes Java say so instead of silently going without.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odfpy import __version__
from odfpy.engine.spark.process.java import JavaRuntime
from odfpy.engine.spark.process.jvm import class_path, java_command
from odfpy.sandbox.python import python_command, python_environment

CACHE_SINCE: Final = 25
"""The first Java that makes such a cache in one training run."""

NEEDED_SPACE: Final = 2 << 30
"""Bytes that have to be free, to make it."""

_KEPT_SECONDS: Final = 30 * 86_400
_RETRY_SECONDS: Final = 3_600
_PROBE_SECONDS: Final = 120
_LOWEST_PRIORITY: Final = 19


@dataclass(frozen=True, slots=True)
class StartupCache:
    """The cache of one installation.

    Attributes:
        path: its file, which need not exist.
    """

    path: Path

    @classmethod
    def of(
        cls, java: JavaRuntime, home: Path, environ: Mapping[str, str], memory: str | None = None
    ) -> StartupCache | None:
        """The cache of an installation, or None when this Java cannot have one.

        Args:
            java: the runtime.
            home: Spark's folder.
            environ: where XDG_CACHE_HOME or HOME say where caches are kept.
            memory: greatest heap, on whose size the form of references depends.
        """
        folder = _cache_folder(environ)
        if java.feature < CACHE_SINCE or folder is None:
            return None
        parts = [__version__, java.version, str(java.home), *java_command(java, home, Path(), memory=memory)]
        for jar in class_path(home):
            stat = jar.stat()
            parts.append(f"{stat.st_size} {stat.st_mtime_ns}")
        return cls(folder / f"{hashlib.sha3_256(chr(0).join(parts).encode()).hexdigest()[:16]}.aot")

    @property
    def log(self) -> Path:
        """Return what the training printed."""
        return self.path.with_suffix(".log")

    # --- Use ---

    @property
    def options(self) -> tuple[str, ...]:
        """Options of Java that use the cache, or end at once when it does not fit; none when there is no cache."""
        if not self.path.exists():
            return ()
        with suppress(OSError):
            os.utime(self.path)  # it is in use: not to be cleared away
        return (f"-XX:AOTCache={self.path}", "-XX:AOTMode=on")

    def discard(self) -> None:
        """Remove a cache that does not fit or is suspected of being damaged."""
        self.path.unlink(missing_ok=True)

    # --- Making ---

    @property
    def is_wanted(self) -> bool:
        """True if there is none, there is space for one, and no attempt failed lately."""
        try:
            if self.path.exists() or time.time() - self._failed.stat().st_mtime < _RETRY_SECONDS:
                return False
        except FileNotFoundError:
            pass
        try:
            return self.has_room
        except OSError:
            return False

    @property
    def has_room(self) -> bool:
        """True if there is space for one.

        Raises:
            OSError: there is no folder for it, and none can be made.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self.path.parent).free > NEEDED_SPACE

    def start_training(self, memory: str | None, priority: int = _LOWEST_PRIORITY) -> subprocess.Popen[bytes]:
        """Begin to make it, in a separate process that outlives this one.

        Args:
            memory: greatest heap of the engines that are to use it.
            priority: how nice the process is to others.
        """
        command = python_command("odfpy.engine.worker.training", str(self.path), *([memory] if memory else ()))
        kept = {name: value for name, value in os.environ.items() if name != "TMPDIR"}  # of the worker, goes
        environment = python_environment(kept)
        with self.log.open("wb") as log:
            training = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.path.parent,
                start_new_session=True,
            )
        os.setpriority(os.PRIO_PROCESS, training.pid, priority)
        return training

    @contextmanager
    def attempt(self) -> Iterator[Path | None]:
        """One attempt to make it: the path to write to, or None when another process is at it or it is there.

        What is there in the end, and works, becomes the cache.
        """
        descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        draft = self.path.with_suffix(".draft")
        try:
            # Looked at under the lock: whoever had it before may just have made the cache.
            if not _lock(descriptor) or self.path.exists():
                yield None
                return
            self._failed.touch()  # until it has succeeded: an attempt that is killed has failed too
            try:
                yield draft
            finally:
                for leftover in self.path.parent.glob(f"{draft.name}*"):
                    leftover.unlink(missing_ok=True)
            self._clear_old()
        finally:
            os.close(descriptor)

    def accept(self, draft: Path, java: JavaRuntime, home: Path, memory: str | None = None) -> bool:
        """Make a draft the cache if Java can use it.

        Args:
            draft: the file that was made.
            java: the Java runtime.
            home: the folder of Spark.
            memory: greatest heap that it was made with: in a large one, references have another form.
        """
        options = (f"-XX:AOTCache={draft}", "-XX:AOTMode=on")
        command = java_command(java, home, self.path.parent, memory=memory, options=options)
        probe = [*command[: command.index("-cp") + 2], "-version"]
        if not draft.exists():
            return False
        if subprocess.run(probe, stdin=subprocess.DEVNULL, timeout=_PROBE_SECONDS, check=False).returncode:
            return False
        draft.replace(self.path)
        self._failed.unlink(missing_ok=True)
        return True

    @property
    def _failed(self) -> Path:
        return self.path.with_suffix(".failed")

    def _clear_old(self) -> None:
        for other in self.path.parent.iterdir():
            if other != self.path and time.time() - other.stat().st_mtime > _KEPT_SECONDS:
                other.unlink(missing_ok=True)


def _cache_folder(environ: Mapping[str, str]) -> Path | None:
    chosen, home = Path(environ.get("XDG_CACHE_HOME", "")), Path(environ.get("HOME", ""))
    folder = chosen if chosen.is_absolute() else home / ".cache"
    return folder / "odfpy" / "engine" if folder.is_absolute() else None


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

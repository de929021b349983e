"""Start of a worker: its program, the fingerprint of the installation, and its environment."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from odfpy import __version__
from odfpy.codec.tree import to_tree
from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.cluster import CLUSTER_VARIABLES
from odfpy.engine.spark.process.java import JAVA_HOME, JavaRuntime
from odfpy.engine.spark.process.jvm import spark_home
from odfpy.engine.worker.run_folder import RunFolder
from odfpy.errors import EngineUnavailable
from odfpy.sandbox.python import PROGRAM, module_folders, python_command

# All other environment variables stay outside: credentials, proxies, settings of Spark, Hadoop and Java.
_INHERITED: Final = frozenset(
    ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "XDG_CACHE_HOME")
)
_LOG_LINES: Final = 3
_OURS: Final = re.compile(r"(\S+Z )?engine [0-9]+: ")
_CODE: Final = (
    "chain",
    "codec",
    "data",
    "dataset",
    "engine",
    "ethereum",
    "http",
    "ingest",
    "sandbox",
    "settings",
    "state",
)
"""The folders of modules that a worker may import; those right in the package count, too."""

_FRESH_SECONDS: Final = 1.0

_children: set[int] = set()
_seen: dict[tuple[EngineSettings, JavaRuntime], tuple[float, str]] = {}


def fingerprint(settings: EngineSettings, java: JavaRuntime) -> str:
    """Return a fingerprint of the worker's environment: settings, programs, libraries, code."""
    package = Path(__file__).parents[2]
    worker_settings = replace(settings, job_seconds=None)  # how long a client waits does not concern the worker
    parts = [json.dumps(to_tree(worker_settings)), PROGRAM, str(java.home), java.version, str(spark_home())]
    parts += [] if settings.properties is None else [_stamp_of(settings.properties)]
    parts += [f"{package} {__version__}", *(f"{path} {stamp}" for path, stamp in sorted(_stamps(package)))]
    return hashlib.sha3_256("\n".join(parts).encode()).hexdigest()


def recent_fingerprint(settings: EngineSettings, java: JavaRuntime) -> str:
    """Return the same, up to a second old: checking all modules takes a twentieth of the time of a small job."""
    now, key = time.monotonic(), (settings, java)
    seen = _seen.get(key)
    if seen is None or now - seen[0] > _FRESH_SECONDS:
        _seen.clear()
        seen = _seen[key] = now, fingerprint(settings, java)
    return seen[1]


def _stamp_of(path: str) -> str:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return "none"  # the engine reports it when it starts
    return f"{status.st_mtime_ns} {status.st_size}"


def _stamps(package: Path) -> list[tuple[str, int]]:
    """Return every module of the code that runs in the worker, with its modification time."""
    stamps = []
    for part in ("", *_CODE):
        for folder, below, names in os.walk(package / part):
            if not part:
                below.clear()
            for name in names:
                if name.endswith((".py", ".so", ".java")):
                    path = os.path.join(folder, name)  # noqa: PTH118  half the time of a client would go into Path
                    stamps.append((path, os.stat(path).st_mtime_ns))  # noqa: PTH116
    return stamps


def scrubbed_environment(environ: Mapping[str, str], java: JavaRuntime, *, is_cluster: bool = False) -> dict[str, str]:
    """Return the environment of a worker: what programs need to find their files, and nothing else.

    Args:
        environ: the environment of this process.
        java: the Java runtime.
        is_cluster: whether tasks run on a cluster.
    """
    names = _INHERITED.union(CLUSTER_VARIABLES if is_cluster else ())
    kept = {name: value for name, value in environ.items() if name in names}
    if java.source == JAVA_HOME:
        kept[JAVA_HOME] = str(java.home)
    return {
        **kept,
        "PYSPARK_PYTHON": PROGRAM,
        "PYTHONPATH": os.pathsep.join(module_folders()),
        "PYTHONSAFEPATH": "1",  # for Spark's Python, from 3.11 on; earlier ones start in an empty folder
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "TZ": "UTC",
    }


def launch(run: RunFolder, settings: EngineSettings, java: JavaRuntime) -> int:
    """Start a worker, which outlives this process; return its process id.

    Args:
        run: the run folder.
        settings: settings of the engine.
        java: the Java runtime.

    Raises:
        EngineUnavailable: it cannot be started.
    """
    reap()  # workers that have ended by themselves
    arguments = [str(run.path.absolute()), fingerprint(settings, java), json.dumps(to_tree(settings))]
    log = run.open_log()
    try:
        pid = os.posix_spawn(
            PROGRAM,
            python_command("odfpy.engine.worker.worker", *arguments),
            scrubbed_environment(os.environ, java, is_cluster=settings.is_cluster),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,
        )
    except OSError as error:
        raise EngineUnavailable(f"The engine cannot be started: {error}") from error
    finally:
        os.close(log)
    _children.add(pid)
    return pid


def exit_code(pid: int) -> int | None:
    """Return the exit code of a worker that this process started, or None while it runs."""
    _children.discard(pid)
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    if ended:
        return os.waitstatus_to_exitcode(status)
    _children.add(pid)
    return None


def reap() -> None:
    """Reap ended workers that this process started, so that they leave no zombies."""
    for pid in tuple(_children):
        with suppress(OSError):
            exit_code(pid)


def log_tail(run: RunFolder) -> str:
    """Return the end of the log, for a message."""
    try:
        lines = run.log.read_text("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_LOG_LINES:])


def java_log_tail(run: RunFolder) -> str:
    """Return the last line that Java has printed at a failed start; empty if it printed nothing."""
    try:
        lines = run.log.read_text("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    while lines and _OURS.match(lines[-1]):  # written by the worker
        lines.pop()
    begin = next((at for at in range(len(lines), 0, -1) if _OURS.match(lines[at - 1])), 0)  # of an earlier worker
    return lines[-1].strip() if lines[begin:] else ""

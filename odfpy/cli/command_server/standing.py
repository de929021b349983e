"""The standing of a process: what the system or Python gives it once and for all, and a fork cannot change.

A server runs commands only for processes that have the same standing as itself. The rest (folder, environment, open
files, umask, signals) goes over with each command.
"""

# Nothing is imported here that takes time, as pathlib does: every command begins with it.

from __future__ import annotations

import os
import stat
import sys
import zlib
from typing import Final

QUIET: Final = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Variables by which libraries start no threads when they are loaded: threads are not forked."""

_OPEN_TO_OTHERS: Final = 0o077
_STATUS: Final = (
    "Uid:",
    "Gid:",
    "Groups:",
    "Cap",
    "NoNewPrivs:",
    "Seccomp",
    "Cpus_allowed:",
    "Mems_allowed:",
)
_FILES: Final = ("limits", "cgroup", "oom_score_adj", "attr/current")
# Python, the system's linker and libraries read these when they are loaded (measured, see the ADR).
_READ_AT_START: Final = (
    "PYTHON",
    "LANG",
    "LC_",
    "LD_",
    "GLIBC_",
    "MALLOC_",
    "MIMALLOC_",
    "JE_",
    "OPENSSL_",
    "SSLKEYLOGFILE",
    "OPENBLAS_",
    "GOTO_",
    "OMP_",
    "NPY_",
    "NUMPY_",
    "NVPL_",
    "GFORTRAN_",
    "ARROW_",
    "PYARROW_",
    "DUCKDB_",
    "RUST_",
    "TYPER_",
)
# With these, Python tells about imports, or about its end.
_TALKATIVE: Final = (
    "PYTHONDEBUG",
    "PYTHONDEVMODE",
    "PYTHONDUMPREFS",
    "PYTHONDUMPREFSFILE",
    "PYTHONFAULTHANDLER",
    "PYTHONINSPECT",
    "PYTHONMALLOCSTATS",
    "PYTHONPROFILEIMPORTTIME",
    "PYTHONTRACEMALLOC",
    "PYTHONVERBOSE",
    "PYTHONWARNINGS",
)


def of_process(pid: int) -> str:
    """Return the standing of a process of this user, as the system has it.

    Raises:
        OSError: it has ended, or the system tells nothing of it.
    """
    home = f"/proc/{pid}"
    status = [line for line in _text(f"{home}/status").splitlines() if line.startswith(_STATUS)]
    places = [f"{home}/root", *(f"{home}/ns/{name}" for name in sorted(os.listdir(f"{home}/ns")))]  # noqa: PTH208
    found = [os.stat(place) for place in places]  # noqa: PTH116
    numbers = (os.getsid(pid), os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid))
    return "\n".join(
        [
            *status,
            *(_text(f"{home}/{name}") for name in _FILES),
            *(f"{one.st_dev}:{one.st_ino}" for one in found),
            str(numbers),
        ]
    )


def of_python() -> str:
    """Return what this Python was started with."""
    chosen = (name for name in sorted(os.environ) if name.startswith(_READ_AT_START) and name not in QUIET)
    variables = [f"{name}={os.environ[name]}" for name in chosen]
    return "\n".join([sys.version, sys.executable, str(sys.flags), *sys.path, *variables])


def program() -> list[str]:
    """Return what Python was started with, without the arguments of `odf`: a script, usually."""
    return sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]


def is_common() -> bool:
    """Tell whether a fork can be like this process: it is `odf` without options of Python, profilers or the like.

    It must know its session, too, which is not so if the session's leader is outside of its container.
    """
    words = tuple(program())
    return (
        sys.platform == "linux"
        and os.getsid(0) != 0
        and (words == ("-m", "odfpy") or (len(words) == 1 and not words[0].startswith("-")))
        and "" not in sys.path  # the current folder; all others are absolute
        and not any(name in os.environ for name in _TALKATIVE)
    )


def folder() -> str:
    """Return the folder of this user's servers, which need not be there, nor be private."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return f"{runtime}/odf-commands" if runtime.startswith("/") else f"/tmp/odf-commands-{os.getuid()}"  # noqa: S108


def is_private(path: str) -> bool:
    """Tell whether a folder is there, and nobody else can have put anything into it."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & _OPEN_TO_OTHERS


def address() -> str:
    """Return where the server for processes of this standing listens; different ones may have the same by chance.

    Raises:
        OSError: the system tells nothing of this process.
    """
    standing = f"{of_process(os.getpid())}\n{of_python()}".encode("utf-8", "surrogateescape")
    return f"{folder()}/{os.getsid(0)}-{zlib.crc32(standing):08x}"


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            return file.read()
    except OSError as error:  # not every kernel has all of them
        return f"{error.errno}"

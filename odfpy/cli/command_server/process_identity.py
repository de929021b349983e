"""The identity of a process: attributes that the system or Python fixes at its start, and that a fork cannot change.

A server runs commands only for processes with the same identity as its own. Everything else (folder, environment,
open files, umask, signals) is sent with each command.
"""

# Import nothing slow here (not even pathlib): every command begins with it.

from __future__ import annotations

import os
import stat
import sys
import zlib
from typing import Final

QUIET: Final = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Variables that keep libraries from starting threads on load: a fork does not copy threads."""

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
# Prefixes of variables that Python, the system's linker and libraries read when loaded (measured, see the ADR).
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
# With these variables, Python prints messages on imports or on exit.
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
    """Return the identity of a process of this user, as the system reports it.

    Raises:
        OSError: the process has exited, or the system does not report it.
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
    """Return the start options of this Python."""
    chosen = (name for name in sorted(os.environ) if name.startswith(_READ_AT_START) and name not in QUIET)
    variables = [f"{name}={os.environ[name]}" for name in chosen]
    return "\n".join([sys.version, sys.executable, str(sys.flags), *sys.path, *variables])


def program() -> list[str]:
    """Return the command line of Python without the arguments of `odf`; usually a script."""
    return sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]


def is_common() -> bool:
    """Return whether a fork can replace this process: it is `odf` without Python options, profilers or the like.

    Its session must be known, too; it is unknown if the session leader is outside of its container.
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
    """Return the folder of this user's servers. It may be missing, or not private."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return f"{runtime}/odf-commands" if runtime.startswith("/") else f"/tmp/odf-commands-{os.getuid()}"  # noqa: S108


def is_private(path: str) -> bool:
    """Return whether a folder exists, belongs to this user, and denies access to all others."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & _OPEN_TO_OTHERS


def address() -> str:
    """Return the address of the server for processes of this identity. Different identities can have the same address.

    Raises:
        OSError: the system does not report this process.
    """
    process_identity = f"{of_process(os.getpid())}\n{of_python()}".encode("utf-8", "surrogateescape")
    return f"{folder()}/{os.getsid(0)}-{zlib.crc32(process_identity):08x}"


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            return file.read()
    except OSError as error:  # missing in some kernels
        return f"{error.errno}"

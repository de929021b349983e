"""The restricted view of the machine for a command from a manifest.

Its environment only contains the search path for programs, and settings that make programs behave the same everywhere.
Its working, home and temporary folder are a new one. If the kernel permits user namespaces, which some distributions
and most containers forbid, it also has no network, and all processes that it starts end with it. If the kernel has
Landlock, it can only read programs, libraries and the files named in the command, and write to its folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from odfpy.sandbox.landlock import landlock_version
from odfpy.sandbox.python import python_script
from odfpy.sandbox.view import topmost, view_of_python

# The first process of a namespace is not killed by signals from within, including its own: it would continue after a
# crash, and exit normally. So it is a shell that only waits, and reports a signal by its exit code.
_WAITING = ("/bin/sh", "-c", 'unset PWD OLDPWD SHLVL; "$@"; exit $?', "sh")
_NAMESPACES = ("unshare", "--user", "--map-current-user", "--net", "--pid", "--fork", "--kill-child", "--", *_WAITING)
_TETHER = ("setpriv", "--pdeathsig", "KILL", "--")
_PATIENCE = 20.0
_BESIDE_PROGRAMS = ("", "/../lib", "/../lib64", "/../libexec", "/../share")


@cache
def isolation() -> tuple[str, ...]:
    """Return a command prefix that disables the network; empty if that is impossible."""
    return _if_possible(_NAMESPACES)


@cache
def tether() -> tuple[str, ...]:
    """Return a command prefix that ends a command when this process is killed; empty if that is impossible."""
    return _if_possible(_TETHER)


def only_files(command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return a command prefix that restricts access to files; empty if the kernel has no Landlock.

    Args:
        command: program and arguments; absolute paths among these can be read.
        folder: the writable folder.
    """
    if landlock_version() == 0:
        return ()
    named = [word for word in command if word.startswith("/")]
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    programs = [f"{entry}{beside}" for entry in path if entry.startswith("/") for beside in _BESIDE_PROGRAMS]
    reads = topmost([*view_of_python(folder=folder).reads, *programs, *named])
    return (*python_script(Path(__file__).with_name("locked.py"), str(folder), *reads), "--")


def _if_possible(prefix: tuple[str, ...]) -> tuple[str, ...]:
    program = shutil.which(prefix[0])
    if program is None:
        return ()
    try:
        trial = subprocess.run((program, *prefix[1:], "true"), capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return ()
    return (program, *prefix[1:]) if trial.returncode == 0 else ()


def environment(folder: Path) -> dict[str, str]:
    """Return the environment variables of a command.

    Args:
        folder: the writable folder.
    """
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }

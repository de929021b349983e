"""What a command from a manifest gets to see: little.

Its environment has the path to programs and what makes programs behave alike everywhere, nothing else. Its folder, its
home and its place for temporary files is a fresh one. Where the kernel lets us (user namespaces, which some
distributions and most containers forbid), it is also without network, and all that it starts ends with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

_NAMESPACES = ("--user", "--map-current-user", "--net", "--pid", "--fork", "--kill-child")
_PATIENCE = 20.0


@cache
def isolation() -> tuple[str, ...]:
    """What to put before a command so that it has no network; nothing where that is not possible."""
    program = shutil.which("unshare")
    if program is None:
        return ()
    prefix = (program, *_NAMESPACES, "--")
    try:
        trial = subprocess.run((*prefix, "true"), capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return ()
    return prefix if trial.returncode == 0 else ()


def environment(folder: Path) -> dict[str, str]:
    """The variables that a command sees.

    Args:
        folder: where it may write.
    """
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }

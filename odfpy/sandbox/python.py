"""Starting Python: a child finds its modules where this process has found its own, and never in the current folder.

`python -m` looks for modules in the current folder before it looks anywhere else, and so would a `json.py` in a folder
that somebody has cloned be run by whatever starts Python there. `-P` and PYTHONSAFEPATH, which forbid it, came with
Python 3.11. What is given to `-c` runs before the first module is looked up that could lie in that folder, in every
version.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PROGRAM: Final = sys.executable
"""The Python that runs this."""

# The entry for the current folder is the empty one, which PYTHONSAFEPATH leaves out; `sys` is built in.
_RUN: Final = (
    "import sys; sys.path[:] = filter(None, sys.path); from runpy import run_module; "
    "run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_PATH: Final = "PYTHONPATH"


def python_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours as a program; for an environment of `python_environment`."""
    return [sys.executable, "-c", _RUN, module, *arguments]


def python_script(script: Path, *arguments: str) -> list[str]:
    """The command that runs a file of ours by itself: it sees the standard library only, in any environment."""
    return [sys.executable, "-I", "-S", str(script), *arguments]


def python_environment(environ: Mapping[str, str], **more: str) -> dict[str, str]:
    """An environment in which Python, however it is started, finds its modules as this process does.

    Args:
        environ: the environment.
        more: further variables.
    """
    return {**environ, **more, _PATH: os.pathsep.join(module_folders())}


def module_folders() -> list[str]:
    """Return where this process finds modules, without the current folder and what is named from there.

    A person may work in the folder that holds this package: then it stays, behind all others.
    """
    ours = str(Path(__file__).absolute().parents[2])
    here = _current_folder()
    folders = [entry for entry in sys.path if os.path.isabs(entry) and entry not in here]  # noqa: PTH117
    return folders if ours in folders else [*folders, ours]


def _current_folder() -> list[str]:
    try:
        return [os.getcwd(), str(Path.cwd().resolve())]  # noqa: PTH109
    except OSError:  # it has been removed
        return []

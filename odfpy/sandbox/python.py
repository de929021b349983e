"""Starting Python: a child finds its modules at the same paths as this process, and never in the current folder.

`python -m` searches the current folder for modules first. So a `json.py` in a cloned folder would be executed by any
Python started there. `-P` and PYTHONSAFEPATH prevent this, but only since Python 3.11. Code passed with `-c` runs, in
every version, before any module is imported that could be in that folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PROGRAM: Final = sys.executable
"""The current Python interpreter."""

# The empty entry of the path is the current folder; PYTHONSAFEPATH omits it. `sys` is built in.
_RUN: Final = (
    "import sys; sys.path[:] = filter(None, sys.path); from runpy import run_module; "
    "run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_PATH: Final = "PYTHONPATH"


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of odfpy as a program, in an environment from `python_environment`."""
    return [sys.executable, "-c", _RUN, module, *arguments]


def python_script(script: Path, *arguments: str) -> list[str]:
    """Return the command that runs a file of odfpy with only the standard library."""
    return [sys.executable, "-I", "-S", str(script), *arguments]


def python_environment(environ: Mapping[str, str], **more: str) -> dict[str, str]:
    """Return an environment in which Python finds its modules at the same paths as this process.

    Args:
        environ: the base environment.
        more: further variables.
    """
    return {**environ, **more, _PATH: os.pathsep.join(module_folders())}


def module_folders() -> list[str]:
    """Return the module folders of this process, without the current folder and paths relative to it.

    If the current folder contains this package, it is retained as the last one.
    """
    ours = str(Path(__file__).absolute().parents[2])
    here = _current_folder()
    folders = [entry for entry in sys.path if os.path.isabs(entry) and entry not in here]  # noqa: PTH117
    return folders if ours in folders else [*folders, ours]


def _current_folder() -> list[str]:
    try:
        return [os.getcwd(), str(Path.cwd().resolve())]  # noqa: PTH109
    except OSError:  # the folder was removed
        return []

"""Names of runs, and lists of the runs of an arrangement, for code that moves files without reading them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_RUN: Final = re.compile(r"run-[0-9a-f]{16}")
_LIST: Final = "runs"


def new_run_name() -> str:
    """Return a unique name for a run."""
    return f"run-{secrets.token_hex(8)}"


def is_run_name(name: str) -> bool:
    """Return whether a name is valid for a run, and so cannot lead out of its folder."""
    return _RUN.fullmatch(name) is not None


def list_runs(folder: Path, names: Iterable[str]) -> None:
    """Write the names of an arrangement's runs to the list in a folder; the runs themselves may be elsewhere."""
    (folder / _LIST).write_text("\n".join(sorted(names)), encoding="utf-8")


def listed_runs(folder: Path) -> list[str] | None:
    """Return the names in the list of a folder; None if there is no list, or it is invalid.

    Raises:
        OSError: the list cannot be read.
    """
    try:
        names = (folder / _LIST).read_text(encoding="utf-8").split()
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return None
    return names if all(map(is_run_name, names)) else None

"""Names of runs, and lists of those of an arrangement, for those who move files and do not read them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_RUN: Final = re.compile(r"run-[0-9a-f]{16}")
_LIST: Final = "runs"


def new_run_name() -> str:
    """Return a name that no other run has."""
    return f"run-{secrets.token_hex(8)}"


def is_run_name(name: str) -> bool:
    """Return whether a run may have that name, which leads nowhere else."""
    return _RUN.fullmatch(name) is not None


def list_runs(folder: Path, names: Iterable[str]) -> None:
    """Write down which runs an arrangement has, wherever they are."""
    (folder / _LIST).write_text("\n".join(sorted(names)), encoding="utf-8")


def listed_runs(folder: Path) -> list[str] | None:
    """Return which runs are written down in a folder; None if there is no such list, or none that can be believed.

    Raises:
        OSError: it cannot be read.
    """
    try:
        names = (folder / _LIST).read_text(encoding="utf-8").split()
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return None
    return names if all(map(is_run_name, names)) else None

"""The history of the SQL shell: earlier input, recalled with the arrow keys, also in later sessions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

LINES: Final = 1000


class History:
    """A history file. Several shells may append complete entries to it at the same time.

    Attributes:
        file: path of the history.
    """

    def __init__(self, file: Path) -> None:
        """Set up line editing for `input` and load existing entries. A file that cannot be written is ignored."""
        import readline

        self.file = file
        readline.set_history_length(LINES)
        readline.set_auto_history(False)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
            readline.read_history_file(file)

    def add(self, entries: Sequence[str]) -> None:
        """Append entries; none of them has line breaks."""
        import readline

        for entry in entries:
            readline.add_history(entry)
        with suppress(OSError):
            readline.append_history_file(len(entries), self.file)

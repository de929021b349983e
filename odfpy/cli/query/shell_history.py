"""The history of the SQL shell: earlier input, brought back by the arrow keys, also the next time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

LINES: Final = 1000


class History:
    """A history; there may be several shells, each adds to the file what is whole, as soon as it is.

    Attributes:
        file: where it is kept.
    """

    def __init__(self, file: Path) -> None:
        """Give `input` line editing, and what there is already. A file that cannot be written is done without."""
        import readline

        self.file = file
        readline.set_history_length(LINES)
        readline.set_auto_history(False)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
            readline.read_history_file(file)

    def add(self, entries: Sequence[str]) -> None:
        """Remember what was typed; none of it has line breaks."""
        import readline

        for entry in entries:
            readline.add_history(entry)
        with suppress(OSError):
            readline.append_history_file(len(entries), self.file)

"""Cache of the files in which a view shows at least one row, determined once per file and view.

<folder>/shown/<hash of the view>     a line for each file: `<identity> 1` or `<identity> 0`
"""

from __future__ import annotations

import fcntl
import hashlib
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Final

from odfpy.files import make_folder
from odfpy.sharing.decisions import View
from odfpy.sharing.files.visible_rows import has_visible_row
from odfpy.sharing.tables.contract import TableFile

_MAX_VIEWS: Final = 256


class ShownFiles:
    """The cache of the results. Safe for threads and processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "shown"
        self._known: OrderedDict[str, tuple[int, dict[str, bool]]] = OrderedDict()
        self._lock = Lock()

    def shows(self, file: TableFile, view: View) -> bool:
        """Return whether a view shows a row of a file.

        Raises:
            OdfError: the file cannot be read.
        """
        name = hashlib.sha256(view.identity).hexdigest()
        found = self._of(name).get(file.identity)
        if found is None:
            found = has_visible_row(file, view)
            make_folder(self._folder)
            with (self._folder / name).open("ab") as known:
                fcntl.flock(known, fcntl.LOCK_EX)
                known.write(f"{file.identity} {int(found)}\n".encode())
        return found

    def _of(self, name: str) -> dict[str, bool]:
        """Return the entries of a view; only lines that were appended since the last call are read."""
        with self._lock:
            end, known = self._known.get(name, (0, {}))
            try:
                with (self._folder / name).open("rb") as file:
                    file.seek(end)
                    data = file.read()
            except FileNotFoundError:  # nothing was recorded yet, or `odf gc` has removed it
                end, known, data = 0, {}, b""
            whole = data[: data.rfind(b"\n") + 1]
            for line in whole.decode().splitlines():
                identity, _, shows = line.rpartition(" ")
                known[identity] = shows == "1"
            self._known[name] = (end + len(whole), known)
            self._known.move_to_end(name)
            if len(self._known) > _MAX_VIEWS:
                self._known.popitem(last=False)  # evicted; it can be read from the file again
            return known

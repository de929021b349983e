"""Files in which somebody sees a row, and those in which they do not: found out once for each file and view.

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
    """Memory of what was found out. Used by several threads and processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "shown"
        self._known: OrderedDict[str, tuple[int, dict[str, bool]]] = OrderedDict()
        self._lock = Lock()

    def shows(self, file: TableFile, view: View) -> bool:
        """Return whether somebody with a view sees a row of a file.

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
        """The lines of a view; a file that has grown is read on from where it was left."""
        with self._lock:
            end, known = self._known.get(name, (0, {}))
            try:
                with (self._folder / name).open("rb") as file:
                    file.seek(end)
                    data = file.read()
            except FileNotFoundError:  # nothing was found out yet, or `odf gc` has removed it
                end, known, data = 0, {}, b""
            whole = data[: data.rfind(b"\n") + 1]
            for line in whole.decode().splitlines():
                identity, _, shows = line.rpartition(" ")
                known[identity] = shows == "1"
            self._known[name] = (end + len(whole), known)
            self._known.move_to_end(name)
            if len(self._known) > _MAX_VIEWS:
                self._known.popitem(last=False)  # it is read again from the file
            return known

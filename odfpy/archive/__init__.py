"""An archive of files: stored unchanged, found by what, where and when, with proof that they are unmodified.

>>> from odfpy.archive import open_archive
>>> archive = open_archive("logs")
>>> archive.push(["/var/log/syslog.1"], what="syslog", where="web1", start="2024-03-01")
>>> for record in archive.list("syslog", start="2024-03-01", end="2024-03-02"):
...     print(record.path, archive.open(record).read()[:80])
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.archive.archive import Archive
from odfpy.archive.pushing import NewFile, Pushed, PushOutcome
from odfpy.archive.question import Page, Question
from odfpy.archive.record import FileRecord, Status

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

__all__ = [
    "Archive",
    "FileRecord",
    "NewFile",
    "Page",
    "PushOutcome",
    "Pushed",
    "Question",
    "Status",
    "open_archive",
]


def open_archive(
    name: str | None = None, *, workspace: str | Path | Workspace = ".", token: str | None = None
) -> Archive:
    """Open an archive in a workspace or on a server.

    Args:
        name: name of its dataset, or `http(s)://HOST/NAME` for one of `odf serve`; by default the archive that the
            setting `archive.name` names, or the only one of the workspace.
        workspace: the workspace, or a folder inside it.
        token: access token for a server; by default the one stored by `odf login`.

    Raises:
        NotAnArchive: the dataset is not an archive, or there are several to choose from.
        DatasetNotFound: there is no such dataset.
    """
    from odfpy.archive.opening import open_by_name

    return open_by_name(name, workspace, token)

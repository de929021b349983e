"""Opening of the archive that a name, URL or setting refers to."""

from __future__ import annotations

from pathlib import Path

from odfpy.archive.archive import Archive
from odfpy.archive.errors import NotAnArchive
from odfpy.archive.local import LocalArchive
from odfpy.archive.rows import is_archive
from odfpy.coordinator.storage.results import ProgressSink, silent
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError
from odfpy.settings.sections import ArchiveSection


def open_by_name(
    name: str | None, workspace: str | Path | Workspace, token: str | None = None, progress: ProgressSink = silent
) -> Archive:
    """Open an archive whose pushes report to `progress`; see `odfpy.archive.open_archive`."""
    if name is not None and is_url(name):
        return _remote(name, token, progress)
    opened = workspace if isinstance(workspace, Workspace) else Workspace.open(workspace)
    chosen = name or opened.config.section(ArchiveSection).name
    if chosen is None:
        return _only(opened, progress)
    return (
        _remote(chosen, token, progress)
        if is_url(chosen)
        else LocalArchive(opened, opened.storage.get(chosen), progress)
    )


def is_url(name: str) -> bool:
    """Return whether a name is the URL of an archive on a server."""
    return name.startswith(("http://", "https://", "odf+http://", "odf+https://"))


def _remote(url: str, token: str | None, progress: ProgressSink) -> Archive:
    from odfpy.archive.remote.archive import RemoteArchive

    return RemoteArchive(url.removeprefix("odf+"), token, progress)


def _only(workspace: Workspace, progress: ProgressSink) -> Archive:
    archives = []
    for dataset in workspace.storage.datasets():
        try:
            if is_archive(dataset.state):
                archives.append(dataset)
        except OdfError:  # a damaged dataset must not affect other archives
            continue
    if len(archives) == 1:
        return LocalArchive(workspace, archives[0], progress)
    if not archives:
        raise NotAnArchive(
            f"The workspace {workspace.root} has no archive of files", hint="`odf archive init NAME` creates one."
        )
    names = ", ".join(str(dataset.handle) for dataset in archives)
    raise NotAnArchive(
        f"The workspace {workspace.root} has several archives: {names}",
        hint="Select one with --archive, or set a default: odf config set archive.name NAME",
    )

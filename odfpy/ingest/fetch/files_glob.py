"""Fetching the files of a folder, each once (ODF specification, "FetchStep: FilesGlob").

A file is identified by its name, or by its path below the first folder with a wildcard. The source state is the name of
the last file, so files are ingested strictly in order: one that appears later but sorts earlier is not ingested.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from odfpy.chain.source_places import fixed_part
from odfpy.chain.sources import EventTimeFromMetadata, EventTimeFromSystemTime, FetchFilesGlob, SourceOrdering
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError
from odfpy.ingest.event_time import event_time_of, modified_at
from odfpy.ingest.fetch.context import FetchContext, FetchedFile
from odfpy.ingest.source_state import etag_state, known_etag
from odfpy.ingest.templates import expand


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file that matches the pattern of a source, with its name."""

    name: str
    path: Path


def fetch_files_glob(step: FetchFilesGlob, context: FetchContext) -> Iterator[FetchedFile]:
    """Yield the files after the last one, in order. Files are not copied.

    Raises:
        FetchError: there is no such folder, no file matches and none ever did, or a file has no event time.
        InvalidValue: the pattern or the format of the event time is invalid.
    """
    files = _matching(step, context)
    last = known_etag(context.known_state)
    if not files and last is None:
        raise FetchError(
            f"No file matches {step.path!r} in {context.root}",
            hint="Paths start from the workspace's folder; ** stands for any number of folders.",
        )
    for file in _in_order(files, last, step, context):
        yield FetchedFile(
            path=file.path,
            name=file.name,
            state=etag_state(file.name),
            event_time=_event_time(file, step, context),
        )


def files_taken_in(step: FetchFilesGlob, context: FetchContext, last: str) -> list[FolderFile]:
    """Return the files up to and including the last ingested one, in order, whether they were ingested or not.

    Args:
        step: the fetch step.
        context: the context of the fetch.
        last: name of the last ingested file.

    Raises:
        FetchError, InvalidValue: as above.
    """
    files = _matching(step, context)
    later = set(_in_order(files, last, step, context))
    return _in_order([file for file in files if file not in later], None, step, context)


def dangling_links(step: FetchFilesGlob, context: FetchContext) -> list[str]:
    """Return the names of matching links that are dangling; raises as `files_taken_in`."""
    return sorted(file.name for file in _paths(step, context) if file.path.is_symlink() and not file.path.exists())


def _matching(step: FetchFilesGlob, context: FetchContext) -> list[FolderFile]:
    files = [file for file in _paths(step, context) if file.path.is_file()]
    for file in files:  # a link, or .. after a wildcard, may lead elsewhere
        context.options.bounds.require_file(file.path, context.root)
    return files


def _paths(step: FetchFilesGlob, context: FetchContext) -> Iterator[FolderFile]:
    """Yield all matches, files or links, including dangling ones."""
    pattern = expand(step.path, context.environment)
    folder = context.root / fixed_part(pattern)
    context.options.bounds.require_file(folder, context.root)
    _check_readable(folder, step.path)
    # `a/**/b/**` matches some paths in several ways, and yields them once for each.
    for path in dict.fromkeys(_matches(pattern, str(context.root))):
        whole = Path(path)
        if whole.is_symlink() or whole.is_file():
            yield FolderFile(_name(whole, folder), whole)


def _matches(pattern: str, root: str) -> Iterator[str]:
    """Yield paths that match a pattern, like `glob`, which however follows cycles of links some forty times."""
    parts = PurePosixPath(pattern).parts
    if "**" not in parts:
        yield from (os.path.join(root, path) for path in glob.iglob(pattern, root_dir=root))  # noqa: PTH118, PTH207
        return
    at = parts.index("**")
    before, after = str(PurePosixPath(*parts[:at])), str(PurePosixPath(*parts[at + 1 :] or "*"))
    for base in _matches(before, root) if at else (root,):
        for found in _folders_in(base, (os.path.realpath(base),)):
            yield from _matches(after, found)


def _folders_in(folder: str, above: tuple[str, ...]) -> Iterator[str]:
    """Yield a folder and all below it except hidden ones; `above` are its ancestors, with links resolved."""
    yield folder
    try:
        with os.scandir(folder) as entries:
            below = sorted(
                (entry.name, entry.is_symlink()) for entry in entries if entry.is_dir() and entry.name[0] != "."
            )
    except OSError:
        return
    for name, is_link in below:
        path = os.path.join(folder, name)  # noqa: PTH118
        real = os.path.realpath(path) if is_link else os.path.join(above[-1], name)  # noqa: PTH118
        if real not in above:
            yield from _folders_in(path, (*above, real))


def _in_order(
    files: list[FolderFile], last: str | None, step: FetchFilesGlob, context: FetchContext
) -> list[FolderFile]:
    if step.order is not SourceOrdering.BY_EVENT_TIME:
        return sorted((file for file in files if last is None or file.name > last), key=lambda file: file.name)
    keys = {file: (_event_time(file, step, context), file.name) for file in files}
    after = None
    if last is not None:
        known = next((file for file in files if file.name == last), FolderFile(last, Path(last)))
        after = (_event_time(known, step, context), last)
    return sorted((file for file in files if after is None or keys[file] > after), key=lambda file: keys[file])


def _event_time(file: FolderFile, step: FetchFilesGlob, context: FetchContext) -> Timestamp:
    source = step.event_time or EventTimeFromSystemTime()
    modified = None
    if isinstance(source, EventTimeFromMetadata):
        try:
            modified = modified_at(file.path.stat().st_mtime_ns, file.name)
        except FileNotFoundError as error:
            raise FetchError(
                f"File {file.name!r} was removed, so the time after which files are new is unknown",
                hint="Restore it, order the files by name, or take the event time from the path.",
            ) from error
    return event_time_of(source, path=file.name, modified=modified, now=context.now)


def _check_readable(folder: Path, shown: str) -> None:
    """Check that a folder is readable: an unreadable one, like an unmounted share, would seem empty."""
    try:
        next(folder.iterdir(), None)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FetchError(
            f"The folder of {shown!r} does not exist",
            hint="Check that its disk or share is mounted. Paths start from the workspace's folder.",
        ) from error
    except OSError as error:
        raise FetchError(
            f"The folder of {shown!r} cannot be read: {error.strerror}", hint="Check its permissions, and the disk."
        ) from error


def _name(path: Path, folder: Path) -> str:
    name = path.relative_to(folder).as_posix()
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise FetchError(f"File name {name!a} is not UTF-8", hint="Rename the file.") from error
    return name

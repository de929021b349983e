"""The files named by a command, with the metadata given by its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.cli.archive.options import origin_of, required
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.archive.pushing import NewFile
    from odfpy.cli.session import Session


def files_to_push(
    session: Session,
    files: Sequence[str | Path],
    *,
    what: str | None,
    where: str | None,
    start: str | None,
    end: str | None,
    work_id: str | None,
    path: str | None,
    hash: str | None = None,  # noqa: A002 - the field's name
) -> list[NewFile]:
    """Return the files to archive.

    Args:
        session: the session of the command.
        files: paths of the files.
        what: value of `--what`; the other arguments are the values of the options of the same name.
        where: value of `--where`; by default the setting `archive.where`.
        start: time of the first event: a time, or mtime.
        end: time of the last event: a time, mtime, or None.
        work_id: id of the job.
        path: path to record; for a single file only.
        hash: expected hash; for a single file only.

    Raises:
        UsageError: an option is missing, or an option for a single file is given with several.
    """
    from odfpy.archive.files import new_files

    if len(files) > 1 and (path is not None or hash is not None):
        raise UsageError(f"{'--path' if hash is None else '--hash'} takes exactly one file")
    found = new_files(
        files,
        what=required(what, "--what"),
        where=origin_of(session, where),
        start=required(start, "--start", "Give a date, now, or mtime for when the file was modified last."),
        end=end,
        work_id=work_id,
    )
    return [replace(one, path=path, hash=hash) for one in found]

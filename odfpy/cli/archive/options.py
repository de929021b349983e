"""Options shared by several `odf archive` commands, and the archive they refer to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from odfpy.cli.grammar import complete_names
from odfpy.cli.stdin import lines_of_stdin
from odfpy.cli.user import user_name
from odfpy.errors import OdfError, UsageError, did_you_mean

if TYPE_CHECKING:
    from odfpy.archive import Archive, FileRecord
    from odfpy.archive.local import LocalArchive
    from odfpy.cli.session import Session

ArchiveName = Annotated[
    str | None,
    typer.Option(
        "--archive",
        "-a",
        help="The archive: a name, or the URL of an archive on a server.",
        metavar="NAME",
        autocompletion=complete_names,
    ),
]
What = Annotated[
    str | None,
    typer.Option(help="The process or program that created it, or EXTRACT~FORMAT of the path.", metavar="WHAT"),
]
Where = Annotated[
    str | None,
    typer.Option(help="The machine or location that it comes from, or EXTRACT~FORMAT.", metavar="WHERE"),
]
Start = Annotated[
    str | None, typer.Option(help="Time of the first event in it: any date, now, or mtime.", metavar="TIME")
]
End = Annotated[str | None, typer.Option(help="Time of the last event in it: any date, now, or mtime.", metavar="TIME")]
WorkId = Annotated[str | None, typer.Option(help="The job that it belongs to, or EXTRACT~FORMAT.", metavar="ID")]
RecordedPath = Annotated[
    str | None, typer.Option("--path", help="Record this path instead of that of the file.", metavar="PATH")
]
ListFormat = Annotated[
    str,
    typer.Option(
        "--format",
        help="Print url, http, json, json-pretty or human.",
        metavar="FORM",
        autocompletion=lambda: list(_FORMATS),
    ),
]
Why = Annotated[str, typer.Option(help="The reason, which is recorded.", metavar="TEXT")]
Who = Annotated[str | None, typer.Option(help="Name to record; by default the user's name.", metavar="NAME")]


def archive_of(session: Session, name: str | None) -> Archive:
    """Return the archive of a command.

    Args:
        session: the session of the command.
        name: value of `--archive`.
    """
    from odfpy.archive.opening import is_url, open_by_name

    here = "." if name is not None and is_url(name) else session.workspace
    return open_by_name(name, here, progress=session.progress)


def local(archive: Archive) -> LocalArchive:
    """Return the archive if it is in a workspace.

    Raises:
        UsageError: the archive is on a server.
    """
    from odfpy.archive.local import LocalArchive

    if not isinstance(archive, LocalArchive):
        raise UsageError(
            f"{archive.name} is on a server, which only accepts new files",
            hint="Run this in the workspace of the archive: odf -w FOLDER archive ...",
        )
    return archive


def origin_of(session: Session, where: str | None) -> str:
    """Return the origin of files: the value of `--where`, or of the setting.

    Raises:
        UsageError: neither is set.
    """
    from odfpy.errors import WorkspaceNotFound
    from odfpy.settings.sections import ArchiveSection

    try:
        found = where or session.workspace.config.section(ArchiveSection).where
    except WorkspaceNotFound:
        found = where
    if found is None:
        raise UsageError("--where is missing", hint="Pass it, or set a default: odf config set archive.where NAME")
    return found


def required(text: str | None, option: str, hint: str | None = None) -> str:
    """Return the value of a required option. Required options can be given in any order.

    Args:
        text: the value; None if the option is missing.
        option: name of the option, for messages.
        hint: advice for the user.

    Raises:
        UsageError: the option is missing.
    """
    if text is None:
        raise UsageError(f"{option} is missing", hint=hint)
    return text


def acting_user(who: str | None) -> str:
    """Return the name of the acting user: the value of `--who`, or the name of the system user.

    Raises:
        UsageError: neither is known.
    """
    return required(who or user_name(), "--who", "The number of this user has no name.")


def lines_or(texts: list[str] | None) -> Iterator[str]:
    """Yield the given arguments, or the lines of standard input."""
    for text in texts or lines_of_stdin():
        if stripped := text.strip():
            yield stripped


def record_at(archive: Archive, url: str) -> FileRecord:
    """Return the record of a URL or of a bare id.

    Raises:
        NoSuchFile: there is no such file.
        UsageError: the URL leads to another archive.
    """
    from odfpy.archive.addresses import file_id_of

    return archive.get(file_id_of(url, archive.name, archive.is_at))


# --- Forms of records ------------------------------------------------------------------------------------------------


def printer(form: str, archive: Archive) -> Callable[[FileRecord], str]:
    """Return a function that formats a record in one of the forms of `--format`.

    Raises:
        UsageError: the form is unknown.
    """
    make = _FORMATS.get(form)
    if make is None:
        hint = did_you_mean(form, _FORMATS, otherwise=f"One of: {', '.join(_FORMATS)}")
        raise UsageError(f"Unknown format {form!r}", hint=hint)
    return lambda record: make(_result(record, archive))


def _result(record: FileRecord, archive: Archive) -> dict[str, Any]:
    from odfpy.archive.times import iso

    url = archive.url(record)
    metadata = {**record.metadata(), "start_iso": iso(record.start), "end_iso": iso(record.end)}
    rest: dict[str, Any] = {"http_url": url} if url.startswith("http") else {}
    if record.status.value != "kept":
        rest |= {"status": record.status.value, "who": record.who, "why": record.why}
    return {"url": url, **rest, "create_time": record.create_time, "size": record.size, "metadata": metadata}


def _human(result: dict[str, Any]) -> str:
    lines: Iterable[tuple[str, Any]] = ((key, value) for key, value in result.items() if key != "metadata")
    metadata = result["metadata"]
    times = {"start": metadata["start_iso"], "end": metadata["end_iso"]}
    shown = {key: times.get(key, value) for key, value in metadata.items() if not key.endswith("_iso")}
    return "".join(f"{key}: {'null' if value is None else value}\n" for key, value in [*lines, *shown.items()])


_FORMATS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "url": lambda result: str(result["url"]),
    "http": lambda result: str(result.get("http_url") or _no_http()),
    "json": json.dumps,
    "json-pretty": lambda result: json.dumps(result, sort_keys=True, indent=4),
    "human": _human,
}


def _no_http() -> str:
    raise OdfError(
        "An archive of a workspace has no HTTP URLs",
        hint="`odf serve` provides them: odf archive list --archive http://HOST/NAME ...",
    )

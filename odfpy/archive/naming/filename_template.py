"""Names for fetched files, built from their records: `{what}/{where}-{start_iso}-{id}`.

Records are untrusted, so every name is checked: it must be a path below the target folder. In addition,
`odfpy.archive.target_folder` writes nowhere else.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from odfpy.archive.naming.format_text import FormatText
from odfpy.archive.times import iso
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.archive.record import FileRecord

DEFAULT: Final = "{id}"
"""The default name of a fetched file."""

FIELDS: Final = (
    *("id", "what", "where", "start", "start_iso", "end", "end_iso", "work_id", "path", "name", "hash", "version"),
)
"""The fields of a template."""

_MAX_NAME_LENGTH: Final = 255
_MAX_PATH_LENGTH: Final = 4095
_SEPARATORS: Final = re.compile(r"[\\/]")
_DRIVE: Final = re.compile(r"([A-Za-z]):[\\/]")


class CannotName(UsageError, code="E862"):
    """A template gives no valid name for a file, or one outside of the folder."""


class FilenameTemplate:
    """A template for the names of fetched files, relative to a folder.

    >>> FilenameTemplate("{what}/{where}-{name}").name_of(record)
    'syslog/web1-syslog.1'
    """

    def __init__(self, text: str = DEFAULT) -> None:
        """
        Args:
            text: template with `FIELDS` in braces; slashes separate folders.

        Raises:
            CannotName: the template is invalid, or leads out of the folder for any record.
        """
        try:
            self._text = FormatText(text)
            self._text.require(FIELDS, f"The fields are {', '.join(FIELDS)}.")
        except UsageError as error:
            raise CannotName(error.message, hint=error.hint) from None
        # With a plain word for each field, any error is the template's own.
        _checked(self._text.fill(dict.fromkeys(self._text.fields, "x")), f"The template {text!r}")

    def name_of(self, record: FileRecord) -> str:
        """Return the name of a file: a relative path with `/` between folders.

        Args:
            record: record of the file.

        Raises:
            CannotName: the name would be outside of the folder, or invalid for file systems.
        """
        what = f"The file {record.id!r}"
        values = _values_of(record)
        for field in self._text.fields:
            if field != "path" and ("/" in values[field] or values[field] in {".", ".."}):
                raise CannotName(f"{what}: its {field} {values[field][:80]!r} cannot be part of a name", hint=_HINT)
        return _checked(self._text.fill(values), what)


_HINT: Final = "Use {id}, or another template."


def _values_of(record: FileRecord) -> dict[str, str]:
    # Format `start_iso` like datalake: in UTC, without a zone.
    times = {"start_iso": iso(record.start), "end_iso": iso(record.end)}
    written = {name: None if time is None else time.removesuffix("Z") for name, time in times.items()}
    # A path may contain folders; it is taken relative to the target folder. A Windows drive becomes one more folder.
    path = _DRIVE.sub(r"\1/", record.path, count=1).replace("\\", "/") if _DRIVE.match(record.path) else record.path
    name = _SEPARATORS.split(record.path)[-1] if _DRIVE.match(record.path) else record.path.rpartition("/")[2]
    tree = {**record.metadata(), **written, "path": path.lstrip("/"), "name": name}
    return {name: str(value) for name, value in tree.items()}


def _checked(name: str, what: str) -> str:
    """Return the name without empty parts, after checking that it stays below the folder."""
    if name.startswith("/"):
        raise CannotName(f"{what}: the name {name[:80]!r} is an absolute path", hint="Name the folder with --to.")
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if not parts or name.endswith("/") or parts[-1] != name.rpartition("/")[2]:
        raise CannotName(f"{what}: {name[:80]!r} is not the name of a file", hint=_HINT)
    if ".." in parts:
        raise CannotName(f"{what}: the name {name[:80]!r} is outside of the folder", hint=_HINT)
    wrong = next((character for character in name if unicodedata.category(character) in {"Cc", "Cs"}), None)
    if wrong is not None:
        raise CannotName(f"{what}: the name {ascii(name)[:80]} has the character {wrong!a}", hint=_HINT)
    if len(name.encode()) > _MAX_PATH_LENGTH or any(len(part.encode()) > _MAX_NAME_LENGTH for part in parts):
        raise CannotName(
            f"{what}: the name {name[:80]!r}... is too long",
            hint=f"A name has {_MAX_NAME_LENGTH} bytes at most, and a path {_MAX_PATH_LENGTH}.",
        )
    return "/".join(parts)

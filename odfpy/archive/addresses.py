"""Addresses of files: `odf://ARCHIVE/ID` in a workspace, `http(s)://.../v0/archive/files/ID/data` on a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from odfpy.errors import UsageError

SCHEME: Final = "odf://"
FILES: Final = "/v0/archive/files/"
DATA: Final = "/data"


def file_id_of(address: str, archive: str, is_at: Callable[[str], bool]) -> str:
    """Return the id of the file at an address; an id is returned as it is.

    Args:
        address: a URL or an id.
        archive: the name of the archive that is searched, for messages.
        is_at: returns whether an address belongs to that archive.

    Raises:
        UsageError: the address belongs to another archive, or to none.
    """
    if "://" not in address:
        return address
    base, slash, last = address.rpartition("/")
    if address.startswith(SCHEME):
        name = last
    elif address.endswith(DATA) and FILES in address:
        base, _, name = base.rpartition("/")
    else:
        raise UsageError(
            f"{address} is not the address of a file in an archive",
            hint=f"`odf archive list` prints them: {SCHEME}ARCHIVE/ID, or http://HOST/ARCHIVE{FILES}ID{DATA}",
        )
    if not slash or not is_at(base):
        raise UsageError(
            f"{address} is in another archive than {archive}", hint=f"Name it: --archive {archive_of_address(address)}"
        )
    return unquote(name)


def archive_of_address(address: str) -> str | None:
    """Return the archive of an address, in the form of `--archive`; None for an id."""
    if address.startswith(SCHEME):
        return address.removeprefix(SCHEME).rpartition("/")[0] or None
    if "://" in address and FILES in address:
        return address.partition(FILES)[0]
    return None

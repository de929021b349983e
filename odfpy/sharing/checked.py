"""Tables of files, tried before they are shared: what cannot be shown is found out by whoever shares it."""

from __future__ import annotations

from pathlib import Path

from odfpy.sharing.files.schema import shared_schema
from odfpy.sharing.model import SourceKind, TableSource
from odfpy.sharing.tables.opener import open_files
from odfpy.sharing.tables.remote import is_remote


def shared_files(kind: SourceKind, location: str) -> TableSource:
    """A table of files as the source of a shared table, once all of it can be shared.

    Args:
        kind: what it is.
        location: path or URL of a folder or metadata file; or `catalog:namespace.table`.

    Raises:
        CannotShare: it is not there, or something of it cannot be shared.
        SchemaError: a column has a type that cannot be shared.
    """
    if is_remote(location):
        location = location.rstrip("/")
    elif kind is not SourceKind.ICEBERG or Path(location).exists():
        location = str(Path(location).absolute())  # links stay: whoever sets one chooses anew what it leads to
    table = open_files(kind, location)
    latest = table.latest
    shared_schema(table.schema(latest))
    for _ in table.files(latest):
        pass
    return TableSource(kind, location)

"""The index of a repository: one file that lists its datasets, for readers that cannot list a folder.

    <repository>/odf-index.json    {"kind": "RepositoryIndex", "version": 1, "datasets": [{"id", "name", "head"}, ...]}

A push to a folder or bucket adds its dataset. Readers only use the index as a hint: they verify the id of each dataset,
and read the head from `refs/head`. Other implementations ignore the file (docs/adr/0034-repository-index.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import InvalidValue, OdfError, TransferError
from odfpy.files import locked_folder, replace_file
from odfpy.http.url import without_user
from odfpy.repository.locations.open import in_bucket, is_writable, normalize_url
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.repository.bucket.client import Bucket

INDEX_FILE: Final = "odf-index.json"
_KIND: Final = "RepositoryIndex"
_VERSION: Final = 1
_MAX_SIZE: Final = 16 << 20
_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A dataset in an index.

    Attributes:
        name: name of the dataset in the repository.
        head: head of the dataset when the entry was written.
    """

    id: DatasetId
    name: DatasetAlias
    head: Multihash


Index = Mapping[str, IndexEntry]
"""Entries by name of the dataset."""


def read_index(repository: str) -> Index | None:
    """Return the index of a repository on an http or https server, None if there is no readable one.

    Raises:
        TransferError: the server is unreachable.
    """
    from odfpy.http.client import HttpClient
    from odfpy.repository.credentials import authorization

    client = HttpClient(TransferError, authorize=authorization)
    url = f"{repository.rstrip('/')}/{INDEX_FILE}"
    with client.get(url, {"Cache-Control": "no-cache"}, max_size=_MAX_SIZE) as answer:
        return _parsed(answer.readall()) if answer.status == 200 else None


def has_index(repository: str) -> bool:
    """Return whether a folder or bucket has an index, which pushes update."""
    url = normalize_url(repository)
    if not is_writable(url):
        return False
    if not in_bucket(url):
        return (_folder_at(url) / INDEX_FILE).is_file()
    bucket, key = _object_at(url)
    try:
        bucket.ask(key, bucket.client.size, key)
    except FileNotFoundError:
        return False
    return True


def enter(repository: str, entry: IndexEntry) -> None:
    """Add a dataset to the index of a folder or bucket; do nothing for other repositories.

    Args:
        repository: path or URL of the repository.
        entry: the new entry; it replaces an entry of the same name.

    Raises:
        OdfError: the index cannot be written.
    """
    url = normalize_url(repository)
    if not is_writable(url):
        return
    if in_bucket(url):
        _enter_in_bucket(url, entry)
    else:
        _enter_in_folder(_folder_at(url), entry)


def _enter_in_folder(folder: Path, entry: IndexEntry) -> None:
    path = folder / INDEX_FILE
    try:
        # The lock keeps concurrent pushes from overwriting each other's entries.
        with locked_folder(folder):
            known = _parsed(path.read_bytes()) if path.exists() else None
            there = {name: one for name, one in (known or {}).items() if (folder / name / "refs" / "head").is_file()}
            if there.get(str(entry.name)) != entry or known != there:
                replace_file(path, _written({**there, str(entry.name): entry}))
    except OSError as error:
        raise OdfError(f"Cannot write {path}: {error.strerror}") from error


def _enter_in_bucket(url: str, entry: IndexEntry) -> None:
    from odfpy.repository.bucket.errors import Conflict

    bucket, key = _object_at(url)
    for _ in range(_ROUNDS):
        try:
            content = bucket.ask(key, bucket.client.content, key, _MAX_SIZE)
        except FileNotFoundError:
            content = None
        known = _parsed(content.data) if content else None
        if known is not None and known.get(str(entry.name)) == entry:
            return
        try:
            version = content.version if content else None
            bucket.write_if(key, _written({**(known or {}), str(entry.name): entry}), version)
        except Conflict:
            continue  # another push has added a dataset, whose entry must be retained
        return
    raise OdfError(f"{without_user(url)}/{INDEX_FILE}: other processes keep writing to it")


def _folder_at(url: str) -> Path:
    return Path(unquote(urlsplit(url).path))


def _object_at(url: str) -> tuple[Bucket, str]:
    """Return the bucket of a repository, and the key of its index."""
    from odfpy.repository.bucket.location import open_bucket, parse_bucket_url

    place = parse_bucket_url(url)
    return open_bucket(place), f"{place.folder}{INDEX_FILE}"


def _written(index: Index) -> bytes:
    datasets = [{"id": str(one.id), "name": name, "head": str(one.head)} for name, one in sorted(index.items())]
    return f"{json.dumps({'kind': _KIND, 'version': _VERSION, 'datasets': datasets}, indent=1)}\n".encode()


def _parsed(data: bytes) -> Index | None:
    """Parse an index, None if the file is something else."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    match tree:
        case {"kind": kind, "version": version, "datasets": [*items]} if (kind, version) == (_KIND, _VERSION):
            entries = [entry for item in items if (entry := _entry(item)) is not None]
            return {str(entry.name): entry for entry in entries}
    return None


def _entry(item: Any) -> IndexEntry | None:
    try:
        dataset_id, name, head = (str(item[key]) for key in ("id", "name", "head"))
        return IndexEntry(DatasetId.parse(dataset_id), DatasetAlias.parse(name), Multihash.parse(head))
    except (InvalidValue, KeyError, TypeError):
        return None

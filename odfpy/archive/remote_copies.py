"""Bytes that a partial copy of an archive lacks, read from the remotes that it was pulled from or pushed to.

A partial copy has all records and some files. Other files are read from the first remote that has them. Every byte is
verified, so that remotes need not be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import ObjectNotFound, OdfError
from odfpy.repository.locations.open import in_bucket, open_dataset
from odfpy.repository.registry import Aliases, RepositoryRegistry, resolve_remote


def open_remote_copy(dataset: StoredDataset, name: Multihash, offset: int) -> BinaryIO:
    """Open an object as a stream from an offset.

    Args:
        dataset: the dataset whose remotes are searched.
        name: name of the object.
        offset: offset of the first byte.

    Raises:
        ObjectNotFound: no remote has it; the message has the reasons.
    """
    reasons = []
    for url in _urls(dataset):
        try:
            return open_dataset(url).data.open_at(name, offset)
        except OdfError as error:
            reasons.append(error.message)
    raise ObjectNotFound("; ".join(reasons) or "it has no repository that it was pulled from or pushed to")


def presign_remote_copy(dataset: StoredDataset, name: Multihash, seconds: int) -> str | None:
    """Return a temporary URL of a bucket from which anybody can read the object; None if there is none.

    Args:
        dataset: the dataset whose remotes are searched.
        name: name of the object.
        seconds: lifetime of the URL.
    """
    from odfpy.repository.bucket.location import open_bucket, parse_bucket_url

    for url in filter(in_bucket, _urls(dataset)):
        with suppress(OdfError, FileNotFoundError):  # the next remote may have it
            location = parse_bucket_url(url)
            bucket, key = open_bucket(location), f"{location.folder}data/{name}"
            bucket.ask(key, bucket.client.size, key)
            signed = bucket.ask(key, bucket.client.presigned, key, seconds)
            if signed is not None:
                return signed
    return None


def _urls(dataset: StoredDataset) -> Iterator[str]:
    aliases = Aliases.of(dataset.folder)
    registry = RepositoryRegistry(dataset.workspace_folder.odf / "repos")
    for location in dict.fromkeys([*aliases.list("pull"), *aliases.list("push")]):
        with suppress(OdfError):  # the repository is no longer configured
            yield resolve_remote(location, registry)

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
from odfpy.repository.places.open import in_bucket, open_dataset
from odfpy.repository.registry import Aliases, RepositoryRegistry, resolve_remote


def open_elsewhere(dataset: StoredDataset, name: Multihash, offset: int) -> BinaryIO:
    """The object as a stream from a byte on.

    Args:
        dataset: whose places are asked.
        name: name of the object.
        offset: the first byte that is wanted.

    Raises:
        ObjectNotFound: no place has it; the message has the reasons.
    """
    reasons = []
    for url in _urls(dataset):
        try:
            return open_dataset(url).data.open_at(name, offset)
        except OdfError as error:
            reasons.append(error.message)
    raise ObjectNotFound("; ".join(reasons) or "it has no repository that it was pulled from or pushed to")


def presigned_elsewhere(dataset: StoredDataset, name: Multihash, seconds: int) -> str | None:
    """A URL of a bucket by which anybody can read the object for a while; None if no bucket has it, or gives none.

    Args:
        dataset: whose places are asked.
        name: name of the object.
        seconds: how long the URL is good for.
    """
    from odfpy.repository.bucket.place import open_bucket, parse_place

    for url in filter(in_bucket, _urls(dataset)):
        with suppress(OdfError, FileNotFoundError):  # the next place may have it
            place = parse_place(url)
            bucket, key = open_bucket(place), f"{place.folder}data/{name}"
            bucket.ask(key, bucket.client.size, key)
            signed = bucket.ask(key, bucket.client.presigned, key, seconds)
            if signed is not None:
                return signed
    return None


def _urls(dataset: StoredDataset) -> Iterator[str]:
    aliases = Aliases.of(dataset.folder)
    registry = RepositoryRegistry(dataset.workspace_folder.odf / "repos")
    for place in dict.fromkeys([*aliases.list("pull"), *aliases.list("push")]):
        with suppress(OdfError):  # a repository that was forgotten
            yield resolve_remote(place, registry)

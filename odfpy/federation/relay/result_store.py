"""The result store, a folder or a bucket, which holds the files of results. Each result has its own folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from odfpy.chain.stores.object_store import LocalObjectStore, ObjectStore
from odfpy.repository.bucket.location import open_bucket, parse_bucket_url
from odfpy.repository.bucket.stores import BucketObjectStore

_SCHEMES: Final = ("s3://", "gs://", "az://", "s3+http://", "s3+https://")


class ResultStore:
    """Storage of the files of results, named by their hashes."""

    def __init__(self, place: str) -> None:
        """
        Args:
            place: path of a folder, or a URL.

        Raises:
            InvalidValue, TransferError: the URL is invalid, or the library of the store is not installed.
        """
        self._place = place.rstrip("/")
        self._bucket = None
        if place.startswith(_SCHEMES):
            location = parse_bucket_url(place)
            self._bucket, self._prefix = open_bucket(location), location.folder

    def get(self, result: str) -> ObjectStore:
        """Return the files of a result.

        Args:
            result: id of the result.
        """
        if self._bucket is not None:
            return BucketObjectStore(self._bucket, f"{self._prefix}{result}/")
        return LocalObjectStore(Path(self._place) / result)

    def remove(self, result: str) -> None:
        """Remove all files of a result that is no longer being written.

        Args:
            result: id of the result.

        Raises:
            OdfError: the store refuses.
        """
        store = self.get(result)
        for name in list(store):
            store.delete(name)
        if isinstance(store, LocalObjectStore):
            store.clean()
            with suppress(OSError):  # it never existed
                store.folder.rmdir()

"""Side files in a bucket: small files next to the chain of a dataset, such as signatures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from odfpy.chain.stores.side_files import check_path
from odfpy.repository.bucket.client import Bucket
from odfpy.repository.bucket.errors import StoreRefuses
from odfpy.repository.side_files import RemoteSideFiles


class BucketSideFiles(RemoteSideFiles):
    """Small files, as objects in a folder of a bucket."""

    def __init__(self, bucket: Bucket, folder: str) -> None:
        """
        Args:
            bucket: the bucket.
            folder: folder of the dataset; empty, or with a slash at its end.
        """
        self._bucket = bucket
        self._folder = folder

    def read(self, path: str, limit: int) -> bytes | None:
        key = self._key(path)
        try:
            return self._bucket.ask(key, self._bucket.client.get, key, 0, limit + 1)
        except (FileNotFoundError, StoreRefuses):  # without list permission, requests for missing objects are refused
            return None

    def write(self, path: str, data: bytes) -> None:
        key = self._key(path)
        self._bucket.demand(key, self._bucket.client.put, key, data)

    def delete(self, path: str) -> None:
        key = self._key(path)
        with suppress(FileNotFoundError):
            self._bucket.ask(key, self._bucket.client.delete, key)

    def names(self, folder: str) -> Iterator[str]:
        return iter(sorted(self._bucket.list(f"{self._key(folder)}/").objects))

    def describe(self, path: str) -> str:
        return self._bucket.where(self._key(path))

    def _key(self, path: str) -> str:
        return f"{self._folder}{check_path(path)}"

"""Azure Blob Storage, by adlfs: az://container/folder, in the account configured by the environment."""

from __future__ import annotations

import io
from datetime import datetime, timedelta, timezone
from typing import Any

from odfpy.repository.bucket.client import (
    ListedObject,
    ListPage,
    MultipartUpload,
    ObjectContent,
    ObjectHead,
    required_word,
)
from odfpy.repository.bucket.errors import Cause, cause_of

HINT = "Account and key come from AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and _KEY."

_AT_ONCE = 1 << 20  # larger request bodies have to be streams, which only blocks can be


def azure_client(container: str) -> AzureClient:
    """Create the client of a container; nothing is requested yet."""
    import fsspec

    files = fsspec.filesystem("az", skip_instance_cache=True, use_listings_cache=False)
    # The library's own retry delays, a quarter of a minute and more, are too long for interactive programs.
    patience = files.service_client._config.retry_policy  # noqa: SLF001 (adlfs does not let it be given)
    patience.initial_backoff, patience.increment_base = 1, 2
    return AzureClient(files, files.service_client.get_container_client(container))


class AzureClient:
    """The client of a container of Azure Blob Storage."""

    tries = 1  # the library retries itself

    def __init__(self, files: Any, container: Any) -> None:
        self._files = files  # closes the connections when it is garbage-collected
        self._container = container
        self.loop = files.loop

    async def get(self, key: str, start: int, end: int) -> bytes:
        """Return a range of bytes of an object.

        Args:
            key: name of the object in the bucket.
            start: offset of the first byte.
            end: offset after the last byte.
        """
        try:
            stream = await self._container.download_blob(key, offset=start, length=end - start)
            return bytes(await stream.readall())
        except Exception as error:
            if cause_of(error)[0] is Cause.PAST_END:
                return b""
            raise

    async def size(self, key: str) -> int:
        """Return the size of an object."""
        return int((await self._container.get_blob_client(key).get_blob_properties()).size)

    async def presigned(self, key: str, seconds: int) -> str | None:
        """Return a URL by which anyone can read an object for a limited time, with a shared access signature."""
        from azure.storage.blob import BlobSasPermissions, generate_blob_sas

        signing = getattr(self._container.credential, "account_key", None)
        if signing is None:
            return None
        signature = generate_blob_sas(
            self._container.account_name,
            self._container.container_name,
            key,
            account_key=signing,
            permission=BlobSasPermissions(read=True),
            expiry=datetime.now(timezone.utc) + timedelta(seconds=seconds),
        )
        return f"{self._container.get_blob_client(key).url}?{signature}"

    async def put(self, key: str, data: bytes) -> None:
        """Create or replace an object."""
        if len(data) <= _AT_ONCE:
            await self._container.upload_blob(key, data, overwrite=True)
        else:
            await (await self.begin(key)).finish(data)

    async def begin(self, key: str) -> MultipartUpload:
        """Begin a block upload."""
        return _AzureUpload(self._container.get_blob_client(key))

    async def delete(self, key: str) -> None:
        """Delete an object."""
        await self._container.delete_blob(key)

    async def list(self, prefix: str, page: str | None, *, folders: bool) -> ListPage:
        """Return a page of the objects whose keys have a prefix.

        Args:
            prefix: prefix of the keys.
            page: `ListPage.next` of the previous page, None for the first.
            folders: whether to list only objects without a slash after the prefix, and to summarize the others as
                folders.
        """
        if folders:
            blobs = self._container.walk_blobs(name_starts_with=prefix, delimiter="/")
        else:
            blobs = self._container.list_blobs(name_starts_with=prefix)
        pages = blobs.by_page(continuation_token=page)
        objects: list[ListedObject] = []
        prefixes: list[str] = []
        async for items in pages:
            async for item in items:
                if folders and item.name.endswith("/"):
                    prefixes.append(item.name)
                else:
                    written = item.last_modified.timestamp()
                    objects.append(ListedObject(item.name, int(item.size), written, item.etag))
            break
        return ListPage(objects, prefixes, pages.continuation_token or None)

    async def head(self, key: str) -> ObjectHead:
        """Return the metadata of an object."""
        answer = await self._container.get_blob_client(key).get_blob_properties()
        metadata = {name.lower(): str(value) for name, value in (answer.metadata or {}).items()}
        return ObjectHead(int(answer.size), answer.last_modified.timestamp(), metadata)

    async def content(self, key: str, limit: int) -> ObjectContent:
        """Return the first bytes of an object, and its ETag."""
        stream = await self._container.download_blob(key, offset=0, length=limit)
        return ObjectContent(bytes(await stream.readall()), required_word(stream.properties.etag))

    async def replace(self, key: str, data: bytes, version: str | None) -> None:
        """Replace an object if it still has an ETag.

        Args:
            key: name of the object in the bucket.
            data: new content.
            version: the expected version, None if there must be no object.
        """
        if version is None:
            await self._container.upload_blob(key, data, overwrite=False)
        else:
            await self._container.upload_blob(key, data, overwrite=True, **_if(version))

    async def remove(self, key: str, version: str) -> None:
        """Delete an object if it still has an ETag."""
        await self._container.delete_blob(key, **_if(version))

    async def has_conditions(self, key: str, data: bytes) -> bool:
        """Return True: Azure always honors conditions."""
        del key, data
        return True


def _if(version: str) -> dict[str, Any]:
    from azure.core import MatchConditions

    return {"etag": version, "match_condition": MatchConditions.IfNotModified}


class _AzureUpload:
    """A block upload; the blocks become an object when they are committed."""

    goes_on = False

    def __init__(self, blob: Any) -> None:
        self._blob = blob
        self._names: list[str] = []

    async def part(self, data: bytes) -> None:
        name = f"{len(self._names):08}"
        await self._blob.stage_block(name, io.BytesIO(data), len(data))
        self._names.append(name)

    async def finish(self, last: bytes) -> None:
        from azure.storage.blob import BlobBlock

        await self.part(last)
        await self._blob.commit_block_list([BlobBlock(name) for name in self._names])

    async def abort(self) -> None:
        """Do nothing: Azure discards unlisted blocks after a week."""

"""Google Cloud Storage, by gcsfs: gs://bucket/folder."""

from __future__ import annotations

import importlib
import io
import re
from contextlib import suppress
from datetime import datetime
from typing import Any

from odfpy.repository.bucket.client import (
    ListedObject,
    ListPage,
    MultipartUpload,
    ObjectContent,
    ObjectHead,
    required_word,
)
from odfpy.repository.bucket.errors import Cause, NoSuchBucket, cause_of

HINT = "Credentials come from GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login` or a role."

_OBJECT = "b/{}/o/{}"
_KEPT = re.compile(r"bytes=0-(\d{1,18})", re.ASCII)
"""Header `Range` of the response to an incomplete upload: the bytes that the store has received."""


def gcs_client(bucket: str) -> GcsClient:
    """Create the client of a bucket; nothing is requested yet."""
    # Use the class for the JSON API. The class that gcsfs registers sends additional gRPC requests for each bucket, to
    # support buckets with appendable objects.
    kind = importlib.import_module("gcsfs.core").GCSFileSystem
    return GcsClient(bucket, kind(skip_instance_cache=True, use_listings_cache=False))


class GcsClient:
    """The client of a bucket of Google Cloud Storage."""

    tries = 1  # gcsfs retries itself

    def __init__(self, bucket: str, files: Any) -> None:
        self.bucket = bucket
        self._files = files
        self.loop = files.loop

    async def get(self, key: str, start: int, end: int) -> bytes:
        """Return a range of bytes of an object.

        Args:
            key: name of the object in the bucket.
            start: offset of the first byte.
            end: offset after the last byte.
        """
        try:
            return await self._media(key, headers={"Range": f"bytes={start}-{end - 1}"})
        except Exception as error:
            if cause_of(error)[0] is Cause.PAST_END:
                return b""
            raise

    async def size(self, key: str) -> int:
        """Return the size of an object."""
        return int((await self._about(key))["size"])

    async def presigned(self, key: str, seconds: int) -> str | None:
        """Return a URL by which anyone can read an object for a limited time; None without a private key."""
        if not hasattr(self._files.credentials.credentials, "sign_bytes"):
            return None
        return str(self._files.sign(f"{self.bucket}/{key}", expiration=seconds, version="v4"))

    async def put(self, key: str, data: bytes) -> None:
        """Create or replace an object."""
        if data:
            await self._upload(key, data)
        else:  # not every server accepts a request without a body for an empty object
            await (await self.begin(key)).finish(data)

    async def begin(self, key: str) -> MultipartUpload:
        """Begin a resumable upload."""
        headers, _ = await self.call("POST", self._upload_url(), uploadType="resumable", name=key, json={"name": key})
        return _GcsUpload(self, headers["Location"])

    async def delete(self, key: str) -> None:
        """Delete an object."""
        await self.call("DELETE", _OBJECT, self.bucket, key)

    async def list(self, prefix: str, page: str | None, *, folders: bool) -> ListPage:
        """Return a page of the objects whose keys have a prefix.

        Args:
            prefix: prefix of the keys.
            page: `ListPage.next` of the previous page, None for the first.
            folders: whether to list only objects without a slash after the prefix, and to summarize the others as
                folders.
        """
        delimiter = "/" if folders else None
        answer = await self.call(
            "GET", "b/{}/o", self.bucket, prefix=prefix, delimiter=delimiter, pageToken=page, json_out=True
        )
        objects = [
            ListedObject(item["name"], int(item["size"]), _seconds(item["updated"]), str(item["generation"]))
            for item in answer.get("items") or ()
        ]
        return ListPage(objects, answer.get("prefixes") or (), answer.get("nextPageToken"))

    async def head(self, key: str) -> ObjectHead:
        """Return the metadata of an object."""
        answer = await self._about(key)
        metadata = {name.lower(): str(value) for name, value in (answer.get("metadata") or {}).items()}
        return ObjectHead(int(answer["size"]), _seconds(answer["updated"]), metadata)

    async def content(self, key: str, limit: int) -> ObjectContent:
        """Return the first bytes of an object, and its generation."""
        try:
            generation = required_word((await self._about(key)).get("generation"))
        except FileNotFoundError:
            await self._require_bucket()
            raise
        data = await self._media(key, generation=generation, headers={"Range": f"bytes=0-{limit - 1}"})
        return ObjectContent(data, generation)

    async def replace(self, key: str, data: bytes, version: str | None) -> None:
        """Replace an object if it still has a generation.

        Args:
            key: name of the object in the bucket.
            data: new content.
            version: the expected version, None if there must be no object.
        """
        await self._upload(key, data, ifGenerationMatch=version or "0")

    async def remove(self, key: str, version: str) -> None:
        """Delete an object if it still has a generation."""
        await self.call("DELETE", _OBJECT, self.bucket, key, ifGenerationMatch=version)

    async def has_conditions(self, key: str, data: bytes) -> bool:
        """Return True: the store always honors conditions."""
        del key, data
        return True

    async def call(self, method: str, path: str, *names: str, **arguments: Any) -> Any:
        """Call the JSON API."""
        return await self._files._call(method, path, *names, **arguments)  # noqa: SLF001 (`call` is for other threads)

    async def _about(self, key: str) -> dict[str, Any]:
        answer: dict[str, Any] = await self.call("GET", _OBJECT, self.bucket, key, json_out=True)
        return answer

    async def _require_bucket(self) -> None:
        # gcsfs does not distinguish a missing bucket from a missing object; without list permission, neither can we.
        with suppress(OSError):
            try:
                await self.call("GET", "b/{}/o", self.bucket, maxResults="1", json_out=True)
            except FileNotFoundError:
                raise NoSuchBucket(self.bucket) from None

    async def _media(self, key: str, **arguments: Any) -> bytes:
        _, data = await self.call("GET", _OBJECT, self.bucket, key, alt="media", **arguments)
        return bytes(data)

    async def _upload(self, key: str, data: bytes, **conditions: str) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        query = {"uploadType": "media", "name": key, **conditions}
        await self.call("POST", self._upload_url(), headers=headers, data=_Body(data), **query)

    def _upload_url(self) -> str:
        return f"{self._files._location}/upload/storage/v1/b/{self.bucket}/o"  # noqa: SLF001 (honours the environment)


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


class _GcsUpload:
    """A resumable upload."""

    goes_on = False

    def __init__(self, client: GcsClient, location: str) -> None:
        self._client = client
        self._location = location
        self._count = 0

    async def part(self, data: bytes) -> None:
        await self._send(data, "*")

    async def finish(self, last: bytes) -> None:
        await self._send(last, str(self._count + len(last)))

    async def abort(self) -> None:
        await self._client.call("DELETE", self._location)

    async def _send(self, data: bytes, total: str) -> None:
        """Send bytes; repeat those that the server has not stored.

        Raises:
            ConnectionResetError: the server has stored none of them, or has lost earlier ones.
        """
        start, end = self._count, self._count + len(data)
        while True:
            rest = data[self._count - start :]
            headers = {"Content-Range": f"bytes {self._count}-{end - 1}/{total}"} if rest else {}
            answer, _ = await self._client.call("PUT", self._location, headers=headers, data=_Body(rest))
            kept = _KEPT.fullmatch(answer.get("Range", ""))
            if kept is None and total != "*":  # complete
                break
            count = int(kept[1]) + 1 if kept is not None else 0
            if not self._count < count <= end:
                raise ConnectionResetError(f"The store has kept {count} of {end} bytes")
            self._count = count
            if count == end and total == "*":
                break
        self._count = end


class _Body(io.BytesIO):
    """The body of a request, which can be sent repeatedly."""

    def close(self) -> None:
        # Never closed: aiohttp closes a body after sending it, and gcsfs could not repeat the request.
        self.seek(0)

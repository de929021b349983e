"""S3 and compatible servers, by s3fs.

s3://bucket/folder                     Amazon S3, or the server that AWS_ENDPOINT_URL names
s3+http://host:port/bucket/folder      a server
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from odfpy.repository.bucket.client import (
    ListedObject,
    ListPage,
    MultipartUpload,
    ObjectContent,
    ObjectHead,
    required_word,
)
from odfpy.repository.bucket.errors import Cause, cause_of

HINT = "Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role."

QUIET: Final = 60.0
"""Seconds without a new part after which an upload is considered interrupted."""

_NO_UPLOAD: Final = "NoSuchUpload"
_NO_VERSION = '"00000000000000000000000000000000"'


def s3_client(bucket: str, endpoint: str | None) -> S3Client:
    """Create the client of a bucket; nothing is requested yet.

    Args:
        bucket: name of the bucket.
        endpoint: URL of a server, None for the environment's configuration.
    """
    import fsspec

    config: dict[str, Any] = {
        "connect_timeout": 10,
        "read_timeout": 60,
        "max_pool_connections": 32,
        "retries": {"mode": "standard", "max_attempts": 3},
    }
    if endpoint is not None:
        # Not every server supports checksums in trailers, or a host name for each bucket. The content is protected by
        # hashes anyway.
        config |= {"s3": {"addressing_style": "path"}, "request_checksum_calculation": "when_required"}

    def make(*, anonymous: bool) -> Any:
        # Signature version 2, the default for presigned URLs, is not accepted in every region.
        signed = {} if anonymous else {"signature_version": "s3v4"}
        return fsspec.filesystem(
            "s3",
            anon=anonymous,
            endpoint_url=endpoint,
            config_kwargs=config | signed,
            skip_instance_cache=True,
            use_listings_cache=False,
        )

    return S3Client(bucket, make)


class S3Client:
    """The client of a bucket of S3."""

    tries = 4

    def __init__(self, bucket: str, make: Callable[..., Any]) -> None:
        self._bucket = bucket
        self._make = make
        self._files = make(anonymous=False)
        self._is_anonymous = False
        self.loop = self._files.loop

    async def get(self, key: str, start: int, end: int) -> bytes:
        """Return a range of bytes of an object.

        Args:
            key: name of the object in the bucket.
            start: offset of the first byte.
            end: offset after the last byte.
        """
        try:
            return await self._read(await self.call("get_object", Key=key, Range=f"bytes={start}-{end - 1}"))
        except Exception as error:
            if cause_of(error)[0] is Cause.PAST_END:
                return b""
            raise

    async def size(self, key: str) -> int:
        """Return the size of an object."""
        return int((await self.call("head_object", Key=key))["ContentLength"])

    async def presigned(self, key: str, seconds: int) -> str | None:
        """Return a URL by which anyone can read an object for a limited time; it contains the id of the access key."""
        if self._is_anonymous:
            return None
        try:
            client = await self._files.get_s3(self._bucket)
            asked = {"Bucket": self._bucket, "Key": key}
            return str(await client.generate_presigned_url("get_object", Params=asked, ExpiresIn=seconds))
        except Exception as error:
            if cause_of(error)[0] is Cause.NO_CREDENTIALS:
                return None
            raise

    async def put(self, key: str, data: bytes) -> None:
        """Create or replace an object."""
        await self.call("put_object", Key=key, Body=data)

    async def begin(self, key: str) -> MultipartUpload:
        """Begin a multipart upload, or resume an interrupted one if it can be listed."""
        upload, parts = await self._broken_off(key)
        if upload is None:
            upload = (await self.call("create_multipart_upload", Key=key))["UploadId"]
        return _S3Upload(self, {"Key": key, "UploadId": upload}, parts)

    async def _broken_off(self, key: str) -> tuple[str | None, dict[int, str]]:
        """Return the newest unfinished upload of an object, with the ETags of its parts."""
        try:
            answer = await self.call("list_multipart_uploads", Prefix=key)
            known = [one for one in answer.get("Uploads", ()) if one["Key"] == key]
            if not known:
                return None, {}
            newest = max(known, key=lambda one: one["Initiated"])
            upload, last = newest["UploadId"], newest["Initiated"]
            parts: dict[int, str] = {}
            page: dict[str, Any] = {}
            while True:
                answer = await self.call("list_parts", Key=key, UploadId=upload, **page)
                parts |= {one["PartNumber"]: one["ETag"] for one in answer.get("Parts", ())}
                last = max([last, *(one["LastModified"] for one in answer.get("Parts", ()))])
                if not answer.get("IsTruncated"):
                    # Another client may be writing this upload, and would fail if it were completed here.
                    return (str(upload), parts) if _time_of(answer) - last.timestamp() >= QUIET else (None, {})
                page = {"PartNumberMarker": answer["NextPartNumberMarker"]}
        except Exception as error:
            # Listing uploads may be unsupported or not permitted: start a new one.
            if cause_of(error)[0] in (Cause.PASSING, Cause.UNREACHABLE, Cause.NO_BUCKET, Cause.NO_CREDENTIALS):
                raise
            return None, {}

    async def delete(self, key: str) -> None:
        """Delete an object."""
        await self.call("delete_object", Key=key)

    async def list(self, prefix: str, page: str | None, *, folders: bool) -> ListPage:
        """Return a page of the objects whose keys have a prefix.

        Args:
            prefix: prefix of the keys.
            page: `ListPage.next` of the previous page, None for the first.
            folders: whether to list only objects without a slash after the prefix, and to summarize the others as
                folders.
        """
        options = {} if page is None else {"ContinuationToken": page}
        if folders:
            options["Delimiter"] = "/"
        answer = await self.call("list_objects_v2", Prefix=prefix, **options)
        objects = [
            ListedObject(item["Key"], int(item["Size"]), item["LastModified"].timestamp(), item["ETag"])
            for item in answer.get("Contents", ())
        ]
        prefixes = [item["Prefix"] for item in answer.get("CommonPrefixes", ())]
        return ListPage(objects, prefixes, answer["NextContinuationToken"] if answer.get("IsTruncated") else None)

    async def head(self, key: str) -> ObjectHead:
        """Return the metadata of an object."""
        answer = await self.call("head_object", Key=key)
        metadata = {name.lower(): str(value) for name, value in answer.get("Metadata", {}).items()}
        return ObjectHead(int(answer["ContentLength"]), answer["LastModified"].timestamp(), metadata)

    async def content(self, key: str, limit: int) -> ObjectContent:
        """Return the first bytes of an object, and its ETag."""
        answer = await self.call("get_object", Key=key)
        return ObjectContent(await self._read(answer, limit), required_word(answer.get("ETag")))

    async def replace(self, key: str, data: bytes, version: str | None) -> None:
        """Replace an object if it still has an ETag.

        Args:
            key: name of the object in the bucket.
            data: new content.
            version: the expected version, None if there must be no object.
        """
        condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
        await self.call("put_object", Key=key, Body=data, **condition)

    async def remove(self, key: str, version: str) -> None:
        """Delete an object if it still has an ETag."""
        await self.call("delete_object", Key=key, IfMatch=version)

    async def has_conditions(self, key: str, data: bytes) -> bool:
        """Return whether the server rejects a write whose condition is never met."""
        try:
            await self.call("put_object", Key=key, Body=data, IfMatch=_NO_VERSION)
        except Exception as error:
            cause = cause_of(error)[0]
            if cause is Cause.UNSUPPORTED:
                await self.put(key, data)
                return False
            if cause in (Cause.CONFLICT, Cause.NO_OBJECT):
                return True
            raise
        return False

    async def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of botocore's client for the bucket; without credentials, call it anonymously."""
        try:
            return await self._files._call_s3(method, Bucket=self._bucket, **arguments)  # noqa: SLF001 (s3fs has no other)
        except Exception as error:
            if self._is_anonymous or cause_of(error)[0] is not Cause.NO_CREDENTIALS:
                raise
        self._files, self._is_anonymous = self._make(anonymous=True), True  # the bucket may be public
        return await self.call(method, **arguments)

    @staticmethod
    async def _read(answer: Any, limit: int | None = None) -> bytes:
        body = answer["Body"]
        async with body:  # older releases of aiobotocore return an object whose `read` takes no limit
            if limit is None:
                return bytes(await body.read())
            data = bytearray()
            while len(data) < limit and (piece := await body.read(limit - len(data))):  # a read may return fewer bytes
                data += piece
            return bytes(data)


def _time_of(answer: Mapping[str, Any]) -> float:
    """Return the time of a response by the server's clock, to compare it with other times of the server."""
    date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date", "")
    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return time.time()


class _S3Upload:
    """A multipart upload."""

    goes_on = True

    def __init__(self, client: S3Client, upload: dict[str, str], there: Mapping[int, str]) -> None:
        self._client = client
        self._upload = upload
        self._there = there
        self._parts: list[dict[str, Any]] = []
        self._size = 0

    async def part(self, data: bytes) -> None:
        self._parts.append(await self._sent(data))
        self._size += len(data)

    async def finish(self, last: bytes) -> None:
        try:
            # Not added to the list: a retry of `finish` would otherwise send it twice.
            parts = [*self._parts, await self._sent(last)]
            await self._client.call("complete_multipart_upload", **self._upload, MultipartUpload={"Parts": parts})
        except Exception as error:
            # If an earlier attempt succeeded and only its response was lost, the object exists.
            if cause_of(error)[1] != _NO_UPLOAD or not await self._is_there(self._size + len(last)):
                raise

    async def _sent(self, data: bytes) -> dict[str, Any]:
        number = len(self._parts) + 1
        # The ETag of a part is the MD5 of its bytes, unless the store encrypts with its own key: then it differs, and
        # the part is sent again.
        known = self._there.get(number)
        if known is not None and known.strip('"') == hashlib.md5(data, usedforsecurity=False).hexdigest():
            return {"PartNumber": number, "ETag": known}
        answer = await self._client.call("upload_part", **self._upload, PartNumber=number, Body=data)
        return {"PartNumber": number, "ETag": answer["ETag"]}

    async def _is_there(self, size: int) -> bool:
        try:
            return await self._client.size(self._upload["Key"]) == size
        except Exception as error:
            if cause_of(error)[0] is Cause.NO_OBJECT:
                return False
            raise

    async def abort(self) -> None:
        await self._client.call("abort_multipart_upload", **self._upload)

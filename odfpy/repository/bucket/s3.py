"""S3, and servers that speak its protocol, by s3fs.

s3://bucket/folder                     the store of Amazon, or the one that AWS_ENDPOINT_URL names
s3+http://host:port/bucket/folder      a server
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odfpy.repository.bucket.client import Listing, MultipartUpload, ObjectContent, required_word
from odfpy.repository.bucket.errors import Cause, cause_of

HINT = "Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role."

_NO_VERSION = '"00000000000000000000000000000000"'


def s3_client(bucket: str, endpoint: str | None) -> S3Client:
    """A bucket; nothing is asked yet.

    Args:
        bucket: its name.
        endpoint: URL of a server, None for what the environment says.
    """
    import fsspec

    config: dict[str, Any] = {
        "connect_timeout": 10,
        "read_timeout": 60,
        "max_pool_connections": 32,
        "retries": {"mode": "standard", "max_attempts": 3},
    }
    if endpoint is not None:
        # Not every server takes checksums in trailers, or has a host name for each bucket. The hash protects the bytes.
        config |= {"s3": {"addressing_style": "path"}, "request_checksum_calculation": "when_required"}

    def make(*, anonymous: bool) -> Any:
        # The older signature, which presigned URLs have by default, is not taken in every region.
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
    """A bucket of S3."""

    tries = 4

    def __init__(self, bucket: str, make: Callable[..., Any]) -> None:
        self._bucket = bucket
        self._make = make
        self._files = make(anonymous=False)
        self._is_anonymous = False
        self.loop = self._files.loop

    async def get(self, key: str, start: int, end: int) -> bytes:
        """Some bytes of an object.

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
        """Bytes of an object."""
        return int((await self.call("head_object", Key=key))["ContentLength"])

    async def presigned(self, key: str, seconds: int) -> str | None:
        """A URL by which anybody can read an object for a while; it names the id of the key that has signed it."""
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
        """Make or replace an object."""
        await self.call("put_object", Key=key, Body=data)

    async def begin(self, key: str) -> MultipartUpload:
        """Begin a multipart upload."""
        answer = await self.call("create_multipart_upload", Key=key)
        return _S3Upload(self, {"Key": key, "UploadId": answer["UploadId"]})

    async def delete(self, key: str) -> None:
        """Remove an object."""
        await self.call("delete_object", Key=key)

    async def list(self, folder: str) -> Listing:
        """Return what is directly in a folder."""
        objects: dict[str, int] = {}
        folders: list[str] = []
        written: dict[str, float] = {}
        versions: dict[str, str] = {}
        page: dict[str, Any] = {}
        while True:
            answer = await self.call("list_objects_v2", Prefix=folder, Delimiter="/", **page)
            objects |= {item["Key"][len(folder) :]: int(item["Size"]) for item in answer.get("Contents", ())}
            written |= {
                item["Key"][len(folder) :]: item["LastModified"].timestamp() for item in answer.get("Contents", ())
            }
            versions |= {item["Key"][len(folder) :]: item["ETag"] for item in answer.get("Contents", ())}
            folders += [item["Prefix"][len(folder) : -1] for item in answer.get("CommonPrefixes", ())]
            if not answer.get("IsTruncated"):
                return Listing(objects, tuple(folders), written, versions)
            page = {"ContinuationToken": answer["NextContinuationToken"]}

    async def content(self, key: str, limit: int) -> ObjectContent:
        """The first bytes of an object, and its ETag."""
        answer = await self.call("get_object", Key=key)
        return ObjectContent(await self._read(answer, limit), required_word(answer.get("ETag")))

    async def replace(self, key: str, data: bytes, version: str | None) -> None:
        """Write if the ETag is still that.

        Args:
            key: name of the object in the bucket.
            data: the new content.
            version: the version that must still be there, None for no object.
        """
        condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": version}
        await self.call("put_object", Key=key, Body=data, **condition)

    async def remove(self, key: str, version: str) -> None:
        """Remove if the ETag is still that."""
        await self.call("delete_object", Key=key, IfMatch=version)

    async def has_conditions(self, key: str, data: bytes) -> bool:
        """Return whether a condition that cannot hold keeps the server from writing."""
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
        """Call a method of botocore's client for the bucket; without credentials, as somebody unknown."""
        try:
            return await self._files._call_s3(method, Bucket=self._bucket, **arguments)  # noqa: SLF001 (s3fs has no other)
        except Exception as error:
            if self._is_anonymous or cause_of(error)[0] is not Cause.NO_CREDENTIALS:
                raise
        self._files, self._is_anonymous = self._make(anonymous=True), True  # perhaps everybody may
        return await self.call(method, **arguments)

    @staticmethod
    async def _read(answer: Any, limit: int | None = None) -> bytes:
        body = answer["Body"]
        async with body:  # older releases of aiobotocore give another object here, whose `read` takes no limit
            return bytes(await (body.read() if limit is None else body.read(limit)))


class _S3Upload:
    """A multipart upload."""

    def __init__(self, client: S3Client, upload: dict[str, str]) -> None:
        self._client = client
        self._upload = upload
        self._parts: list[dict[str, Any]] = []

    async def part(self, data: bytes) -> None:
        number = len(self._parts) + 1
        answer = await self._client.call("upload_part", **self._upload, PartNumber=number, Body=data)
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"]})

    async def finish(self, last: bytes) -> None:
        await self.part(last)
        await self._client.call("complete_multipart_upload", **self._upload, MultipartUpload={"Parts": self._parts})

    async def abort(self) -> None:
        await self._client.call("abort_multipart_upload", **self._upload)

"""The stores of a dataset in a bucket.

Object stores do not show incomplete uploads; here, an upload is only completed if its hash is correct. References are
moved by conditional writes, so that only one of two concurrent writers succeeds.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.object_store import CHUNK, ObjectStore, ObjectTooLarge, StoredObject, copy_hashed
from odfpy.chain.stores.ref_store import RefStore, check_name, is_name, lost_race, parse_reference
from odfpy.data.multihash import Multihash
from odfpy.errors import HashMismatch, InvalidValue, ObjectNotFound, OdfError
from odfpy.repository.bucket.client import PART, Bucket, MultipartUpload, ObjectContent
from odfpy.repository.bucket.errors import Conflict
from odfpy.repository.bucket.side_files import BucketSideFiles

_MAX_REFERENCE = 4096
_ROUNDS = 10


def dataset_in(bucket: Bucket, folder: str) -> DatasetLayout:
    """Return the dataset in a folder of a bucket; `folder` is empty or ends in a slash."""
    return DatasetLayout(
        BucketRefStore(bucket, f"{folder}refs/"),
        BucketObjectStore(bucket, f"{folder}blocks/"),
        BucketObjectStore(bucket, f"{folder}data/"),
        BucketObjectStore(bucket, f"{folder}checkpoints/"),
        BucketSideFiles(bucket, folder),
    )


class BucketObjectStore(ObjectStore):
    """Objects of a dataset, in a folder of a bucket."""

    def __init__(self, bucket: Bucket, folder: str) -> None:
        self._bucket = bucket
        self._folder = folder

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, Multihash):
            return False
        try:
            self.size(name)
        except ObjectNotFound:
            return False
        return True

    def __iter__(self) -> Iterator[Multihash]:
        return (item.name for item in self.stored())

    def stored(self) -> Iterator[StoredObject]:
        listing = self._bucket.list(self._folder)
        for text, item in listing.objects.items():
            try:
                name = Multihash.parse(text)
            except InvalidValue:
                continue
            if str(name) == text:
                yield StoredObject(name, item.size, item.written)

    def open(self, name: Multihash) -> BinaryIO:
        return self.open_at(name, 0)

    def open_at(self, name: Multihash, start: int) -> BinaryIO:
        reader = _Reader(self._bucket, self._key(name), start)
        try:
            reader.fetch()
        except FileNotFoundError:
            raise self._missing(name) from None
        return cast("BinaryIO", reader)

    def size(self, name: Multihash) -> int:
        key = self._key(name)
        try:
            return self._bucket.ask(key, self._bucket.client.size, key)
        except FileNotFoundError:
            raise self._missing(name) from None

    def describe(self, name: Multihash) -> str:
        return self._bucket.where(self._key(name))

    def insert_stream(self, stream: BinaryIO, name: Multihash, *, size: int | None = None) -> None:
        writer = _Writer(self._bucket, self._key(name))
        try:
            copy_hashed(stream, writer.write, name, size, self._bucket.where(self._folder))
            writer.commit()
        except (HashMismatch, ObjectTooLarge):
            writer.discard()
            raise
        finally:
            writer.abandon()

    def insert_file(self, path: Path, name: Multihash) -> None:
        try:
            with path.open("rb") as stream:
                self.insert_stream(stream, name)
            path.unlink()
        except OSError as error:
            raise OdfError(f"Cannot store {path}: {error.strerror}") from error

    def delete(self, name: Multihash) -> None:
        key = self._key(name)
        try:
            with suppress(FileNotFoundError):
                self._bucket.ask(key, self._bucket.client.delete, key)
        except Conflict as error:
            raise self._bucket.refused_change(key) from error

    def _key(self, name: Multihash) -> str:
        return f"{self._folder}{name}"

    def _missing(self, name: Multihash) -> ObjectNotFound:
        return ObjectNotFound(f"Missing object: {self.describe(name)}")


class _Reader(io.RawIOBase):
    """Stream of an object that is read in parts."""

    def __init__(self, bucket: Bucket, key: str, start: int) -> None:
        super().__init__()
        self._bucket = bucket
        self._key = key
        self._start = start
        self._part = memoryview(b"")
        self._is_last = False

    def fetch(self) -> None:
        """Request the next part."""
        end = self._start + PART
        part = self._bucket.ask(self._key, self._bucket.client.get, self._key, self._start, end)
        self._is_last = len(part) < PART
        self._start += len(part)
        self._part = memoryview(part)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.closed:
            raise ValueError("closed")
        if not self._part and not self._is_last:
            self.fetch()
        count = min(len(buffer), len(self._part))
        buffer[:count] = self._part[:count]
        self._part = self._part[count:]
        return count


class _Writer:
    """Writer of an object, in parts or in one request if it is small. The object does not exist before `commit`."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket = bucket
        self._key = key
        self._waiting = bytearray()
        self._upload: MultipartUpload | None = None

    def write(self, data: bytes) -> None:
        """Buffer bytes; at least one byte is retained for the last request."""
        self._waiting += data
        while len(self._waiting) > PART:
            if self._upload is None:
                self._upload = self._bucket.demand(self._key, self._bucket.client.begin, self._key)
            with self._bucket.sending:
                self._bucket.demand(self._key, self._upload.part, self._first_part())
            del self._waiting[:PART]

    def commit(self) -> None:
        """Complete the upload, which creates the object."""
        with self._bucket.sending if len(self._waiting) > CHUNK else nullcontext():
            if self._upload is None:
                self._bucket.demand(self._key, self._bucket.client.put, self._key, bytes(self._waiting))
            else:
                self._bucket.demand(self._key, self._upload.finish, bytes(self._waiting))
                self._upload = None

    def _first_part(self) -> bytes:
        # A direct slice would copy twice. The view must be released before the buffer shrinks: a bytearray with views
        # cannot shrink.
        with memoryview(self._waiting) as waiting:
            return bytes(waiting[:PART])

    def abandon(self) -> None:
        """Discard an uncommitted upload, unless it can be resumed."""
        if self._upload is not None and not self._upload.goes_on:
            self.discard()

    def discard(self) -> None:
        """Discard an uncommitted upload."""
        if self._upload is not None:
            upload, self._upload = self._upload, None
            with suppress(OdfError, FileNotFoundError, Conflict):  # invisible; the first error is reported
                self._bucket.ask(self._key, upload.abort)


class BucketRefStore(RefStore):
    """References of a dataset, in a folder of a bucket."""

    def __init__(self, bucket: Bucket, folder: str) -> None:
        self._bucket = bucket
        self._folder = folder

    def get(self, name: str) -> Multihash | None:
        return self._parsed(name, self._content(name))

    def compare_and_swap(self, name: str, expected: Multihash | None, new: Multihash) -> None:
        content = self._expect(name, expected)
        for _ in range(_ROUNDS):
            try:
                version = content.version if content else None
                is_certain = self._bucket.write_if(self._key(name), str(new).encode("ascii"), version)
            except Conflict:
                if self.get(name) == new:
                    return  # by this process, if a response was lost; or by another one with the same intention
                # The expected value in another version, for example if another process wrote the same value: retry.
                content = self._expect(name, expected)
            else:
                # Without conditions, only another read detects a concurrent write.
                if not is_certain and (found := self.get(name)) != new:
                    raise lost_race(self.describe(name), expected, found)
                return
        raise lost_race(self.describe(name), expected, self.get(name))

    def delete(self, name: str, expected: Multihash) -> None:
        content = self._expect(name, expected)
        for _ in range(_ROUNDS):
            if content is None:
                return  # by this process, if a response was lost; or by another one with the same intention
            key = self._key(name)
            try:
                self._bucket.ask(key, self._bucket.client.remove, key, content.version)
            except (Conflict, FileNotFoundError):
                content = self._content(name)
                if content is not None:
                    self._expect(name, expected)
            else:
                return
        raise lost_race(self.describe(name), expected, self.get(name))

    def names(self) -> Iterator[str]:
        listing = self._bucket.list(self._folder)
        return iter(sorted(name for name in listing.objects if is_name(name)))

    def describe(self, name: str) -> str:
        return self._bucket.where(self._key(check_name(name)))

    def _expect(self, name: str, expected: Multihash | None) -> ObjectContent | None:
        content = self._content(name)
        found = self._parsed(name, content)
        if found != expected:
            raise lost_race(self.describe(name), expected, found)
        return content

    def _content(self, name: str) -> ObjectContent | None:
        key = self._key(check_name(name))
        try:
            return self._bucket.ask(key, self._bucket.client.content, key, _MAX_REFERENCE)
        except FileNotFoundError:
            return None

    def _parsed(self, name: str, content: ObjectContent | None) -> Multihash | None:
        return parse_reference(content.data, self.describe(name)) if content else None

    def _key(self, name: str) -> str:
        return f"{self._folder}{name}"

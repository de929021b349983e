"""URLs of buckets and of folders in them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from odfpy.chain.layout import DatasetLayout
from odfpy.errors import InvalidValue, TransferError
from odfpy.extras import needs_extra
from odfpy.repository.bucket.client import Bucket, BucketClient
from odfpy.repository.bucket.stores import dataset_in

_ENVIRONMENT = ("AWS_", "AZURE_", "GOOGLE_", "STORAGE_EMULATOR_HOST", "HOME")

for _library in ("adlfs", "aiobotocore", "azure", "botocore", "fsspec", "gcsfs", "google", "s3fs"):
    # Send the libraries' logs to configured handlers only, not as tracebacks to a terminal where odfpy reports the
    # error.
    logging.getLogger(_library).addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class BucketLocation:
    """A folder of a bucket, parsed from a URL.

    Attributes:
        scheme: kind of the store.
        server: host and port for `s3+http` and `s3+https`, else empty.
        bucket: name.
        folder: prefix of the keys of all its objects; empty, or ending in a slash.
    """

    scheme: str
    server: str
    bucket: str
    folder: str

    @property
    def url(self) -> str:
        """Return the URL of the bucket."""
        return f"{self.scheme}://{self.server}/{self.bucket}" if self.server else f"{self.scheme}://{self.bucket}"

    @property
    def endpoint(self) -> str | None:
        """Return the URL of the server, if one is named."""
        return f"{self.scheme.removeprefix('s3+')}://{self.server}" if self.server else None


def parse_bucket_url(url: str) -> BucketLocation:
    """Parse a URL.

    Raises:
        InvalidValue: the URL has no bucket, or contains unsupported parts.
    """
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (checks it)
    except ValueError:
        raise InvalidValue(f"Not a URL of a bucket or a folder in it: {scheme}://...") from None
    if "@" in parts.netloc:
        raise InvalidValue(
            f"The URL must not contain keys: {scheme}://...@{parts.netloc.rpartition('@')[2]}",
            hint="odf stores URLs. Pass keys in the environment, see docs/repositories.md.",
        )
    names = rest.rstrip("/").split("/")
    server = names.pop(0) if scheme.startswith("s3+") else ""
    if (
        parts.query
        or parts.fragment
        or not all(names)
        or not names
        or (scheme.startswith("s3+") and not parts.hostname)
    ):
        form = f"{scheme}://host:port/bucket/folder" if scheme.startswith("s3+") else f"{scheme}://bucket/folder"
        raise InvalidValue(
            f"Not a URL of a bucket or a folder in it: {url!r}", hint=f"Its form is {form}, with no ? or #."
        )
    bucket, *folders = names
    return BucketLocation(scheme, server, bucket, "".join(f"{name}/" for name in folders))


def open_bucket(location: BucketLocation) -> Bucket:
    """Return the bucket of a folder, with shared connections. No request is sent yet.

    Raises:
        TransferError: the library for the store is not installed, or rejects its settings.
    """
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_ENVIRONMENT)))
    with _LOCK:
        return _bucket(location.scheme, location.endpoint, location.bucket, location.url, (os.getpid(), settings))


def bucket_dataset(url: str) -> DatasetLayout:
    """Return the dataset at the URL of a folder of a bucket.

    Raises:
        InvalidValue, TransferError: see `parse_bucket_url` and `open_bucket`.
    """
    location = parse_bucket_url(url)
    return dataset_in(open_bucket(location), location.folder)


_LOCK = threading.Lock()


@lru_cache(maxsize=16)
def _bucket(scheme: str, endpoint: str | None, bucket: str, url: str, context: object) -> Bucket:
    del context  # part of the cache key: another process or other settings need other connections
    make, extra, hint = _kind(scheme, endpoint)
    with needs_extra(extra, f"{scheme}:// repositories", TransferError):
        try:
            return Bucket(url, make(bucket), hint)
        except ImportError as error:  # fsspec's message suggests a command instead of naming the package
            raise (error.__cause__ or error) from None
        except Exception as error:  # noqa: BLE001 (each library has its own errors, whose texts may contain keys)
            message = f"{url} cannot be used ({type(error).__name__})"
            raise TransferError(message, hint=f"Check that the settings are complete. {hint}") from None


def _kind(scheme: str, endpoint: str | None) -> tuple[Callable[[str], BucketClient], str, str]:
    if scheme == "gs":
        from odfpy.repository.bucket import gcs

        return gcs.gcs_client, "gcs", gcs.HINT
    if scheme == "az":
        from odfpy.repository.bucket import azure

        return azure.azure_client, "azure", azure.HINT
    from odfpy.repository.bucket import s3

    return lambda bucket: s3.s3_client(bucket, endpoint), "s3", s3.HINT

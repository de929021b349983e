"""Objects in stores, through fsspec: S3, Google Cloud Storage, Azure.

Credentials are looked up as by the store's own tools: the environment, a profile, the machine's role. The
libraries of the stores are extras of the distribution, and retry by themselves if a store does not respond.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError, FetchInterrupted, InvalidValue
from odfpy.extras import needs_extra
from odfpy.ingest.fetch.download import ResumePoint
from odfpy.ingest.fetch.version import SourceVersion, is_settled

_BLOCK = 8 << 20
_MODIFIED = ("LastModified", "last_modified", "updated", "mtime", "modified", "created")
_FORBIDDEN = (401, 403)  # answers of web servers
_PASSING = ("FileExpired", "ClientPayloadError", "IncompleteRead", "ReadTimeoutError", "ConnectionResetError")


@dataclass(frozen=True, slots=True)
class _Store:
    """A kind of store.

    Attributes:
        protocol: fsspec's name for it.
        extra: the extra that installs its library.
        hint: where account and credentials can be given.
    """

    protocol: str
    extra: str
    hint: str


_AWS = "Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or a role."
_GOOGLE = "Credentials come from GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login` or a role."
_AZURE = "Account and key come from AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and _KEY."

STORES = {
    "s3": _Store("s3", "s3", _AWS),
    "s3a": _Store("s3", "s3", _AWS),
    "gs": _Store("gs", "gcs", _GOOGLE),
    "gcs": _Store("gs", "gcs", _GOOGLE),
    "az": _Store("az", "azure", _AZURE),
    "abfs": _Store("abfs", "azure", _AZURE),
    "abfss": _Store("abfs", "azure", _AZURE),
}
"""Kinds of stores by the scheme of their URLs."""

for _library in ("adlfs", "aiobotocore", "azure", "botocore", "fsspec", "gcsfs", "s3fs"):
    # Their logs go to configured handlers, not as tracebacks to a terminal, where we report each error once.
    logging.getLogger(_library).addHandler(logging.NullHandler())


def object_source(url: str, scheme: str, shown: str, *, now: Timestamp, timeout: float) -> ObjectSource:
    """Return the object at a URL.

    Args:
        url: address of the object.
        scheme: scheme of the URL.
        shown: the URL as messages show it, without secrets.
        now: the time of this fetch.
        timeout: seconds to wait for an answer.

    Raises:
        FetchError: the library of the store is not installed, or cannot make sense of the URL.
    """
    import fsspec

    store = STORES[scheme]
    with needs_extra(store.extra, f"{scheme}: sources"):
        try:
            kind = fsspec.get_filesystem_class(store.protocol)
        except ImportError as error:  # fsspec's advice hides the name of the package
            raise (error.__cause__ or error) from None
    settings: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
    if store.protocol == "s3":
        settings["config_kwargs"] = {"connect_timeout": timeout, "read_timeout": timeout}
    try:
        path = str(kind._strip_protocol(url))  # noqa: SLF001 (as fsspec itself does with a URL)
        settings |= kind._get_kwargs_from_urls(url)  # noqa: SLF001
        files = kind(**settings)
    except Exception as error:  # noqa: BLE001 (each library has errors of its own)
        raise FetchError(
            f"{shown} cannot be used: {type(error).__name__}",
            hint=f"Check the URL. {store.hint}",
        ) from None
    anonymous = (lambda: kind(**settings, anon=True)) if store.protocol == "s3" else None
    return ObjectSource(files, path, shown, now=now, anonymous=anonymous)


class ObjectFile:
    """An object that is read in blocks; complete only if it still has the same version at the end."""

    def __init__(self, source: ObjectSource, version: SourceVersion, size: int, offset: int) -> None:
        self.version = version
        self.offset = offset
        self.length = size
        self._source = source
        self._file = source.files.open(source.path, "rb", block_size=_BLOCK, cache_type="readahead")
        self._file.seek(offset)

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        with self._source.errors():
            data = bytes(self._file.read(size))
            if not data and self._source.look() != (self.version, self.length):
                raise FetchInterrupted(f"{self._source.shown}: has changed while it was read")
            return data

    def close(self) -> None:
        """Discard the rest."""
        self._file.close()


class ObjectSource:
    """An object of a store.

    Attributes:
        shown: the URL for messages.
        files: the store.
        path: path of the object in the store.
    """

    def __init__(
        self,
        files: Any,
        path: str,
        shown: str,
        *,
        now: Timestamp,
        anonymous: Callable[[], Any] | None = None,
    ) -> None:
        self.shown = shown
        self.files = files
        self.path = path
        self._now = now
        self._anonymous = anonymous

    def close(self) -> None:
        """Close the connections."""
        client = getattr(self.files, "_s3", None)
        if client is not None:
            with suppress(Exception):
                self.files.close_session(self.files.loop, client)

    def open(self, unless: SourceVersion, rest: ResumePoint | None) -> ObjectFile | None:
        """Request the object; see `download.RemoteFile`."""
        with self.errors():
            try:
                version, size = self.look()
            except Exception as error:
                if self._anonymous is None or type(error).__name__ != "NoCredentialsError":
                    raise
                self.files, self._anonymous = self._anonymous(), None  # it may be public
                version, size = self.look()
            if version.is_same(unless):
                return None
            offset = rest.offset if rest is not None and rest.proof == version.proof else 0
            return ObjectFile(self, version, size, offset)

    def look(self) -> tuple[SourceVersion, int]:
        """Return the current version and size of the object."""
        info = self.files.info(self.path)
        if info.get("type", "file") != "file":
            raise FetchError(f"{self.shown} is not an object, but a folder", hint="Name one object.")
        etag = info.get("ETag") or info.get("etag")
        modified = _time_of(info)
        size = int(info["size"])
        proof = None
        if etag:
            proof = f"{etag} {size}"
        elif modified is not None and is_settled(modified, self._now, by_its_own_clock=False):
            proof = f"{modified} {size}"
        return SourceVersion(str(etag) if etag else None, modified, proof), size

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Convert errors of libraries; their texts may contain the path, and with it secrets."""
        try:
            yield
        except FetchError:
            raise
        except FileNotFoundError:
            raise FetchError(f"{self.shown}: there is no such object", hint="Check bucket and path.") from None
        except Exception as error:  # noqa: BLE001 (each library has errors of its own)
            if isinstance(error, PermissionError) or getattr(error, "status_code", None) in _FORBIDDEN:
                raise FetchError(
                    f"{self.shown}: no permission to read it",
                    hint="Check the credentials, and whether they allow this object.",
                ) from None
            name = type(error).__name__
            failure = FetchInterrupted if name in _PASSING or isinstance(error, TimeoutError) else FetchError
            raise failure(
                f"{self.shown}: cannot be read ({name})",
                hint="Check the URL, the credentials and the network connection.",
            ) from None


def _time_of(info: dict[str, Any]) -> Timestamp | None:
    """Return when an object was last modified; each store has its own name for it."""
    value = next((info[name] for name in _MODIFIED if info.get(name)), None)
    try:
        if isinstance(value, datetime):
            return Timestamp.from_datetime(value if value.tzinfo else value.replace(tzinfo=timezone.utc))
        return Timestamp.parse(value) if isinstance(value, str) else None
    except InvalidValue:
        return None

"""Opening a dataset at a location, by the scheme of its URL.

/path, ./path, ~/path, file:///path   a folder, readable and writable
http://host/path, https://host/path   a static file server, read-only
odf+http://host/path, odf+https://    a node: readable like a file server; supports the Smart Transfer Protocol, too
s3://, s3+http://, gs://, az://       a folder of a bucket, readable and writable
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from odfpy.chain.layout import DatasetLayout
from odfpy.errors import InvalidValue, did_you_mean
from odfpy.http.url import split_url, without_user

_FILE = "file"
_SMART = "odf+"
_PATH_BEGINNINGS = ("/", "./", "../", "~")


def open_dataset(url: str) -> DatasetLayout:
    """Return the stores of the dataset at a path or URL. The location is only accessed when they are read.

    Raises:
        InvalidValue: the text is neither a path nor a URL.
        TransferError: the library for the kind of location is not installed, or lacks settings.
    """
    url = normalize_url(url)
    return _OPENERS[_scheme(url)](url)


def normalize_url(text: str) -> str:
    """Convert a path or URL to a URL without a trailing slash that does not depend on the working directory.

    Raises:
        InvalidValue: the text is neither a path nor a URL.
    """
    if not text.strip() or not text.isprintable():
        raise InvalidValue(f"Not a path or URL: {without_user(text)!r}")
    scheme = _scheme(text)
    if scheme == _FILE:
        return _local_path(text).as_uri()
    if scheme not in _OPENERS:
        known = list(_OPENERS)
        raise InvalidValue(
            f"Unsupported URL scheme: {scheme}:// in {without_user(text)!r}",
            hint=did_you_mean(scheme, known, otherwise=f"Kinds: {', '.join(known)}"),
        )
    if in_bucket(text):
        from odfpy.repository.bucket.location import parse_bucket_url

        parse_bucket_url(text)
        return text.rstrip("/")
    parts = split_url(text)
    if parts.query or parts.fragment or not parts.hostname:
        raise InvalidValue(
            f"Not a URL of a dataset or repository: {without_user(text)!r}", hint="It needs a host, and no ? or #."
        )
    return text.rstrip("/")


def in_bucket(url: str) -> bool:
    """Return whether a URL is in an object store."""
    return _scheme(url) in _BUCKETS


def is_writable(url: str) -> bool:
    """Return whether objects at a URL can be written directly, as in folders and buckets."""
    return _scheme(url) == _FILE or in_bucket(url)


def is_path(text: str) -> bool:
    """Return whether a text is a path, by its first characters."""
    return text in (".", "..") or text.startswith(_PATH_BEGINNINGS)


def _scheme(text: str) -> str:
    return text.partition("://")[0].lower() if "://" in text and not is_path(text) else _FILE


def _local_path(text: str) -> Path:
    if not text.lower().startswith("file:"):
        try:
            return _without_up(Path(text).expanduser().absolute())
        except RuntimeError as error:
            raise InvalidValue(f"Not a path: {text!r} ({error})") from error
    parts = split_url(text)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith("/") or "\0" in path:
        raise InvalidValue(f"Not a file URL: {text!r}", hint="file URLs have three slashes: file:///folder/name")
    if parts.query or parts.fragment:
        raise InvalidValue(f"Not a file URL: {text!r}", hint="Write %3F for a question mark and %23 for a hash.")
    return _without_up(Path(path))


def _without_up(path: Path) -> Path:
    """Return the path with `..` resolved, so that it is unique; paths without `..` are not resolved."""
    return path.resolve() if ".." in path.parts else path


def smart_base(url: str) -> str | None:
    """Return the http or https URL of a dataset on a node (Smart Transfer Protocol), None for other locations."""
    return url[len(_SMART) :] if url.lower().startswith(_SMART) else None


def _open_folder(url: str) -> DatasetLayout:
    return DatasetLayout.local(_local_path(url))


def _open_server(url: str) -> DatasetLayout:
    from odfpy.repository.locations.http import http_dataset  # avoids loading TLS if no network is needed

    return http_dataset(smart_base(url) or url)


def _open_bucket(url: str) -> DatasetLayout:
    from odfpy.repository.bucket.location import bucket_dataset

    return bucket_dataset(url)


_BUCKETS = ("s3", "s3+http", "s3+https", "gs", "az")
_OPENERS: dict[str, Callable[[str], DatasetLayout]] = {
    _FILE: _open_folder,
    "http": _open_server,
    "https": _open_server,
    "odf+http": _open_server,
    "odf+https": _open_server,
    **dict.fromkeys(_BUCKETS, _open_bucket),
}

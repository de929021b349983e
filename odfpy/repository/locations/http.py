"""Reading a dataset from any static file server (ODF specification, "Simple Transfer Protocol", RFC-007).

    <base>/refs/head            hash of the last block
    <base>/blocks/<hash>        metadata
    <base>/data/<hash>          slices
    <base>/checkpoints/<hash>   engine states

The server needs no knowledge of datasets, and is not trusted: readers verify every object against its hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NoReturn, cast

from odfpy.chain.encoding import MAX_BLOCK_SIZE
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.chain.stores.ref_store import RefStore, check_name, parse_reference
from odfpy.chain.stores.side_files import check_path
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError, ObjectNotFound, TransferError
from odfpy.http.client import HttpClient, HttpResponse
from odfpy.http.resume import ResumableDownload, TransferInterrupted
from odfpy.http.url import without_user
from odfpy.repository.credentials import advice, authorization
from odfpy.repository.side_files import RemoteSideFiles

_OK = 200
_ABSENT = (404, 410)
_REFUSED = (401, 403)
_MAX_REFERENCE = 4096
_FEW = 4

SIDE_FILES = "info"
"""Path for requesting many side files at once: POST `{"paths": [...]}` returns `{"files": {...}}`."""

MAX_SIDE_FILES = 500
"""Maximum number of files in one request."""

MAX_SIDE_FILES_SIZE = 32 * 1024 * 1024
"""Maximum size of a response in bytes."""


def http_dataset(base: str, client: HttpClient | None = None) -> DatasetLayout:
    """Return the dataset at an http or https URL, read-only.

    Args:
        base: URL of the dataset's folder; a user name and password in it are sent with each request.
        client: HTTP client to use; its errors must be `TransferError`, and `TransferInterrupted` for downloads that can
            be retried. The default client sends stored access tokens.
    """
    client = client or HttpClient(TransferError, interrupted=TransferInterrupted, authorize=authorization)
    base = base.rstrip("/")
    return DatasetLayout(
        HttpRefStore(f"{base}/refs", client),
        HttpObjectStore(f"{base}/blocks", client, limit=MAX_BLOCK_SIZE),
        HttpObjectStore(f"{base}/data", client),
        HttpObjectStore(f"{base}/checkpoints", client),
        HttpSideFiles(base, client),
    )


class HttpRefStore(RefStore):
    """References of a dataset on a server."""

    def __init__(self, base: str, client: HttpClient) -> None:
        self._base = base
        self._client = client

    def get(self, name: str) -> Multihash | None:
        url = f"{self._base}/{check_name(name)}"
        with self._client.get(url, {"Cache-Control": "no-cache"}, max_size=_MAX_REFERENCE) as answer:
            if answer.status in _ABSENT:
                return None
            _require_ok(answer)
            try:
                return parse_reference(answer.readall(), answer.shown)
            except IntegrityError as error:
                raise IntegrityError(error.message, hint="Check that it is the URL of a dataset.") from error

    def compare_and_swap(self, name: str, expected: Multihash | None, new: Multihash) -> None:
        del expected, new
        _refuse_write(self.describe(name))

    def delete(self, name: str, expected: Multihash) -> None:
        del expected
        _refuse_write(self.describe(name))

    def names(self) -> Iterator[str]:
        raise TransferError(
            f"{without_user(self._base)}: a static file server cannot list its references",
            hint="Give its name.",
        )

    def describe(self, name: str) -> str:
        return without_user(f"{self._base}/{check_name(name)}")


class HttpSideFiles(RemoteSideFiles):
    """Side files of a dataset on a server."""

    writable = False

    def __init__(self, base: str, client: HttpClient) -> None:
        self._base = base
        self._client = client

    def read(self, path: str, limit: int) -> bytes | None:
        with self._client.get(f"{self._base}/{check_path(path)}", {"Cache-Control": "no-cache"}) as answer:
            # Servers that forbid anonymous listing of a folder answer 403 for missing files, not 404.
            if answer.status in (*_ABSENT, *_REFUSED):
                return None
            _require_ok(answer)
            data = bytearray()
            while len(data) <= limit and (chunk := answer.read(limit + 1 - len(data))):
                data += chunk
            return bytes(data)

    def read_all(self, paths: Sequence[str], limit: int) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for start in range(0, len(paths), MAX_SIDE_FILES):
            batch = paths[start : start + MAX_SIDE_FILES]
            from_node = self._read_by_node(batch) if len(batch) >= _FEW else None
            found |= super().read_all(batch, limit) if from_node is None else from_node
        return found

    def _read_by_node(self, paths: Sequence[str]) -> dict[str, bytes] | None:
        """Return the existing files among many with one request; None for servers without that extension."""
        question = json.dumps({"paths": [check_path(path) for path in paths]}).encode()
        headers = {"Content-Type": "application/json"}
        with self._client.post(f"{self._base}/{SIDE_FILES}", question, headers, max_size=MAX_SIDE_FILES_SIZE) as answer:
            if answer.status != _OK:
                return None
            try:
                files = json.loads(answer.readall())["files"]
                return {path: files[path].encode() for path in paths if path in files}
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                return None  # an HTML page

    def write(self, path: str, data: bytes) -> None:
        del data
        _refuse_write(self.describe(path))

    def delete(self, path: str) -> None:
        _refuse_write(self.describe(path))

    def names(self, folder: str) -> Iterator[str]:
        raise TransferError(f"{self.describe(folder)}: a static file server cannot list its files")

    def describe(self, path: str) -> str:
        return without_user(f"{self._base}/{check_path(path)}")


class HttpObjectStore(ObjectStore):
    """Objects of a dataset on a server."""

    writable = False

    def __init__(self, base: str, client: HttpClient, *, limit: int | None = None) -> None:
        """
        Args:
            base: URL of the folder of the objects.
            client: HTTP client to use.
            limit: maximum size of an object.
        """
        self._base = base
        self._client = client
        self._limit = limit

    def __contains__(self, name: object) -> bool:
        return isinstance(name, Multihash) and self._head(name) is not None

    def __iter__(self) -> Iterator[Multihash]:
        raise TransferError(f"{without_user(self._base)}: a static file server cannot list its objects")

    def open(self, name: Multihash) -> BinaryIO:
        return self.open_at(name, 0)

    def open_at(self, name: Multihash, start: int) -> BinaryIO:
        def ask(headers: dict[str, str]) -> HttpResponse:
            return self._client.get(self._url(name), headers, max_size=self._limit)

        def require(answer: HttpResponse) -> None:
            if answer.status in _ABSENT:
                answer.close()
                raise self._missing(name)
            _require_ok(answer)

        return cast("BinaryIO", ResumableDownload(ask, require, self.describe(name), start))

    def size(self, name: Multihash) -> int:
        answer = self._head(name)
        if answer is None:
            raise self._missing(name)
        if answer.length is None:
            raise TransferError(f"{answer.shown}: the server does not say how large it is")
        return answer.length

    def describe(self, name: Multihash) -> str:
        return without_user(self._url(name))

    def insert_stream(self, stream: BinaryIO, name: Multihash, *, size: int | None = None) -> None:
        del stream, size
        _refuse_write(self.describe(name))

    def insert_file(self, path: object, name: Multihash) -> None:
        del path
        _refuse_write(self.describe(name))

    def delete(self, name: Multihash) -> None:
        _refuse_write(self.describe(name))

    def _head(self, name: Multihash) -> HttpResponse | None:
        with self._client.head(self._url(name)) as answer:
            if answer.status in _ABSENT:
                return None
            _require_ok(answer)
            return answer

    def _url(self, name: Multihash) -> str:
        return f"{self._base}/{name}"

    def _missing(self, name: Multihash) -> ObjectNotFound:
        return ObjectNotFound(f"Missing object: {self.describe(name)}")


def _require_ok(answer: HttpResponse) -> None:
    if answer.status == _OK:
        return
    answer.close()
    hint = advice(answer.url) if answer.status in _REFUSED else None
    raise TransferError(f"{answer.shown}: the server answers with status {answer.status}", hint=hint)


def _refuse_write(where: str) -> NoReturn:
    raise TransferError(
        f"{where}: repositories over plain http and https are read-only",
        hint="Where `odf serve` runs, push to odf+https://... instead; otherwise to a folder that the server serves.",
    )

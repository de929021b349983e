"""Requests to the server of an archive, and the interpretation of its error responses."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final, TypeVar
from urllib.parse import urlencode

from odfpy.archive.errors import InvalidCursor, NoSuchFile, NotAnArchive
from odfpy.codec.errors import error_class
from odfpy.errors import DatasetNotFound, OdfError, TransferError, UsageError
from odfpy.http.client import HttpClient, HttpResponse
from odfpy.http.resume import PASSING, RETRIES, WINDOW, TransferInterrupted
from odfpy.http.url import Origin, parse_url, without_user
from odfpy.repository.credentials import advice, authorization
from odfpy.repository.peer_errors import AccessRefused

T = TypeVar("T")

_MAX_ANSWER: Final = 64 * 1024**2
_MAX_REFUSAL: Final = 64 * 1024
_PATIENCE: Final = 300.0
_MAX_WAIT: Final = 5.0
_REFUSED: Final = (401, 403)
_OK: Final = range(200, 300)
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_BY_CODE: Final[Mapping[str, type[OdfError]]] = {
    "NoSuchFile": NoSuchFile,
    "InvalidCursor": InvalidCursor,
    "NoSuchArchive": NotAnArchive,
}


class ArchiveServer:
    """A server, restricted to one archive; thread-safe.

    Attributes:
        base: URL of the archive, without user.
        was_there: whether it has ever responded.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        """
        Args:
            url: url of the archive, or of the server for its default archive.
            token: access token; by default the one stored by `odf login`.

        Raises:
            UsageError: the URL is invalid.
        """
        target = parse_url(url, UsageError)
        self.base = without_user(url).partition("?")[0].partition("#")[0].rstrip("/")
        self.was_there = False
        self._origin = target.origin
        self._token = None if token is None else f"Bearer {token}"
        self._user = target.authorization
        # Long, since a server verifies a whole file before it responds to its last bytes.
        self._client = HttpClient(
            TransferError, interrupted=TransferInterrupted, authorize=self._authorization, timeout=_PATIENCE
        )

    # --- Asking ---

    def ask(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """Send a query and return the JSON response; retry if the connection breaks.

        Args:
            path: path below the archive.
            parameters: query parameters.
        """
        url = f"{self.base}{path}" + (f"?{urlencode(parameters)}" if parameters else "")
        return self.persistently(lambda: self._tree(self._client.get(url, max_size=_MAX_ANSWER)))

    def ask_with(self, path: str, tree: Any) -> Any:
        """Send a query with a JSON body. Like all requests to an archive, it can be repeated."""
        body = json.dumps(tree, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json"}
        return self.persistently(lambda: self._tree(self.send("POST", path, body, len(body), headers, _MAX_ANSWER)))

    def head(self, path: str) -> HttpResponse:
        """Return the headers of a response.

        Raises:
            OdfError: the server rejects the request.
        """
        return self.accepted(self._client.head(f"{self.base}{path}"))

    def content(self, path: str, headers: Mapping[str, str]) -> HttpResponse:
        """Return the archived bytes of a file unchanged, even if they are marked as compressed."""
        return self._client.get(f"{self.base}{path}", headers, encodings=("gzip",))

    def send(
        self,
        method: str,
        path: str,
        body: bytes | BinaryIO,
        size: int,
        headers: Mapping[str, str],
        max_size: int = _MAX_REFUSAL,
    ) -> HttpResponse:
        """Send bytes once and return any response.

        Args:
            method: HTTP method.
            path: path below the archive.
            body: the bytes, or a stream of them.
            size: number of bytes.
            headers: additional headers.
            max_size: maximum bytes of the response.
        """
        shown = self._user or self._authorization(self._origin)
        fields = {**headers, **({"Authorization": shown} if shown else {})}
        return self._client.send(method, f"{self.base}{path}", body, size, fields, max_size=max_size)

    def accepted(self, answer: HttpResponse) -> HttpResponse:
        """Return the response unless it is an error; close it then.

        Raises:
            TransferInterrupted: a retry may help.
            OdfError: the server rejects the request.
        """
        self.was_there = True
        if answer.status in _OK:
            return answer
        with answer:
            raise refusal_of(answer)

    def persistently(self, work: Callable[[], T]) -> T:
        """Run a repeatable operation, with retries where they may help.

        Raises:
            OdfError: retries do not help.
        """
        patience = Backoff(self)
        while True:
            try:
                return work()
            except TransferError as error:
                patience.wait(error)

    def _tree(self, answer: HttpResponse) -> Any:
        with self.accepted(answer):
            try:
                return json.loads(answer.readall())
            except (ValueError, RecursionError) as error:
                raise no_archive_at(answer.shown) from error

    def _authorization(self, origin: Origin) -> str | None:
        if origin != self._origin:
            return None
        return self._token or authorization(origin)


def no_archive_at(url: str) -> TransferError:
    """Return the error for a server that does not follow the protocol."""
    return TransferError(
        f"{url}: this is not an answer of an archive of files",
        hint="Check that it is the URL of an archive, http://HOST/NAME.",
    )


def refusal_of(answer: HttpResponse) -> OdfError:
    """Return the error of an error response."""
    tree = _body(answer)
    message = str(tree.get("message") or f"the server answers with status {answer.status}")
    message, _, hint = message.partition("\n")
    text = f"{answer.shown}: {message}"
    if answer.status in _REFUSED:
        return AccessRefused(text, hint=advice(answer.url))
    # 502 comes from a proxy while the server starts; 409 means that another request is running.
    if answer.status in (*PASSING, _CONFLICT):
        return TransferInterrupted(text, hint=hint or None)
    kind = _BY_CODE.get(str(tree.get("code")))
    if kind is not None:
        exact = error_class(str(tree.get("error")))
        return (exact if exact is not None and issubclass(exact, kind) else kind)(message, hint=hint or None)
    if answer.status == _NOT_FOUND:
        return DatasetNotFound(text, hint=hint or "Check that it is the URL of an archive, http://HOST/NAME.")
    kind = UsageError if answer.status == _BAD_REQUEST else TransferError
    return kind(text, hint=hint or None)


def _body(answer: HttpResponse) -> dict[str, Any]:
    try:
        body = json.loads(answer.read(_MAX_REFUSAL))
    except (ValueError, RecursionError, OdfError):
        return {}
    return body if isinstance(body, dict) else {}


# --- Again -----------------------------------------------------------------------------------------------------------


class Backoff:
    """Exponential delays between retries, until there was no progress for a minute."""

    def __init__(self, server: ArchiveServer) -> None:
        self._server = server
        self.restart()

    def restart(self) -> None:
        """Reset the delays after progress."""
        self._since = time.monotonic()
        self._failures = 0

    def wait(self, error: OdfError) -> None:
        """Wait for the next retry.

        Raises:
            OdfError: no retries are left.
        """
        # A server that responded before, but refuses connections now, is restarting.
        is_gone = self._server.was_there and isinstance(error.__cause__, ConnectionRefusedError)
        if not isinstance(error, TransferInterrupted) and not is_gone:
            raise error
        self._failures += 1
        # A server that never responded speaks another protocol, such as HTTPS: waiting would not help.
        is_stranger = self._failures > RETRIES and not self._server.was_there
        if is_stranger or time.monotonic() - self._since > WINDOW:
            raise TransferError(
                f"{error.message} (tried {self._failures} times)", hint=error.hint or "Run the command again."
            ) from error
        threading.Event().wait(min(0.1 * 2 ** (self._failures - 1), _MAX_WAIT))

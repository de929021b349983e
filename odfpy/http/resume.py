"""Downloads that are resumed after a broken connection.

Content is identified by its hash, so the caller detects if a server resumes with other content. A server without
support for `Range` sends everything again, and the bytes that were already read are skipped.
"""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from odfpy.errors import TransferError
from odfpy.http.client import HttpResponse

RETRIES: Final = 3
"""Maximum number of consecutive retries."""

WINDOW: Final = 60.0
"""Seconds without progress after which there are no more retries, since servers that stall can take long."""

PROGRESS: Final = 8 << 20
"""Number of received bytes after which the count of retries is reset."""

PASSING: Final = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which a retry may succeed."""

_PARTIAL = 206
_CHUNK = 64 * 1024
_RANGE = re.compile(r"bytes ([0-9]{1,18})-")


class TransferInterrupted(TransferError, code="E614"):
    """A connection was lost or timed out; a retry may succeed."""


class ResumableDownload(io.RawIOBase):
    """The content of a document, over as many connections as needed. Must be closed after use.

    Errors are those of the client, and `TransferError` after the last attempt has failed.
    """

    def __init__(
        self,
        ask: Callable[[dict[str, str]], HttpResponse],
        require: Callable[[HttpResponse], None],
        where: str,
        start: int = 0,
    ) -> None:
        """
        Args:
            ask: requests the document, with additional headers; raises `TransferInterrupted` if a retry may succeed.
            require: raises an error and closes the response, unless its status is 200.
            where: location of the document, for messages.
            start: offset of the first byte.
        """
        super().__init__()
        self._ask = ask
        self._require = require
        self._where = where
        self._count = start
        self._failures = 0
        self._good_at = start
        self._good_since = time.monotonic()
        self._given_up = threading.Event()
        self._answer: HttpResponse | None = None
        self._connect()

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Read at least one byte except at the end, and at most `size`; without a size, read the rest."""
        if size is None or size < 0:
            return self.readall()
        while True:
            try:
                data = self._connected().read(size)
            except TransferInterrupted as error:
                self._wait(error)
                self._connect()
                continue
            self._count += len(data)
            if self._count - self._good_at >= PROGRESS:
                # Only real progress resets the count of failures: otherwise a server that disconnects after each byte
                # would be retried forever.
                self._good_at, self._good_since, self._failures = self._count, time.monotonic(), 0
            return data

    def readinto(self, buffer: Any) -> int:
        """Read at least one byte, except at the end."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Discard the rest. A thread that is waiting for it is woken, and gets an error."""
        self._given_up.set()
        if self._answer is not None:
            self._answer.close()
        super().close()

    def _connected(self) -> HttpResponse:
        assert self._answer is not None  # noqa: S101 - set by the constructor
        return self._answer

    def _connect(self) -> None:
        while True:
            try:
                self._answer = self._reached()
            except TransferInterrupted as error:
                self._wait(error)
                continue
            if self._given_up.is_set():  # closed in the meantime
                self._answer.close()
            return

    def _reached(self) -> HttpResponse:
        """Return a response positioned at the next byte."""
        answer = self._ask({"Range": f"bytes={self._count}-"} if self._count else {})
        if answer.status in PASSING:
            answer.close()
            raise TransferInterrupted(f"{self._where}: the server answers with status {answer.status}")
        if self._count and answer.status == _PARTIAL:
            begin = _RANGE.match(answer.headers.get("Content-Range", ""))
            # RFC 9110 lets a server send another range than requested, which would corrupt the content.
            if begin is None or int(begin[1]) != self._count:
                answer.close()
                raise TransferError(f"{self._where}: the server does not resume at byte {self._count}, as requested")
            return answer
        self._require(answer)
        # A server without range support sends everything again: skip what was already read. Objects are named by their
        # hash, so changed content is detected at the end.
        left = self._count
        while left:
            passed = answer.read(min(left, _CHUNK))
            if not passed:
                answer.close()
                raise TransferError(f"{self._where}: the server has only {self._count - left} bytes of it now")
            left -= len(passed)
        return answer

    def _wait(self, error: TransferInterrupted) -> None:
        self._failures += 1
        is_over = self._failures > RETRIES or time.monotonic() - self._good_since > WINDOW
        if is_over or self._given_up.wait(0.1 * 4 ** (self._failures - 1)):
            times = f" (tried {self._failures} times)" if self._failures > 1 else ""
            raise TransferError(f"{error.message}{times}", hint=error.hint or "Run the command again.") from error

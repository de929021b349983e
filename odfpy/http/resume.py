"""A download that goes on where it was when the connection breaks.

What is downloaded is known by its hash, so that a server that goes on with something else is found out by whoever
reads. A server that cannot go on (no `Range`) sends all again, and what came before is passed over.
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
"""How often another try is made, one after the other."""

WINDOW: Final = 60.0
"""Seconds without progress after which no other try is made, however few there were: servers that stall take long."""

PROGRESS: Final = 8 << 20
"""Bytes after which a connection counts as good again."""

PASSING: Final = (408, 425, 429, 500, 502, 503, 504)
"""Answers after which another try may succeed."""

_PARTIAL = 206
_CHUNK = 64 * 1024
_RANGE = re.compile(r"bytes ([0-9]{1,18})-")


class TransferInterrupted(TransferError, code="E614"):
    """A connection broke off, or nothing came in time; another try may succeed."""


class ResumableDownload(io.RawIOBase):
    """The bytes of a document, over as many connections as it takes. Close it after use.

    Errors are those of the client, and `TransferError` where all tries have failed.
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
            ask: for the document, with more headers; its errors are `TransferInterrupted` where another try may help.
            require: raises an error unless the answer has the status 200; it closes the answer then.
            where: the document is, for messages.
            start: the first byte that is wanted.
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
        """Always."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, at least one except at the end, at most `size`; without a size, all the rest."""
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
                # Only real progress makes up for failures: a server that breaks off after each byte would be asked for
                # ever.
                self._good_at, self._good_since, self._failures = self._count, time.monotonic(), 0
            return data

    def readinto(self, buffer: Any) -> int:
        """The next bytes, at least one except at the end."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Give up what is left. A thread that waits for it is woken, and gets an error."""
        self._given_up.set()
        if self._answer is not None:
            self._answer.close()
        super().close()

    def _connected(self) -> HttpResponse:
        assert self._answer is not None  # noqa: S101 - set when this was made
        return self._answer

    def _connect(self) -> None:
        while True:
            try:
                self._answer = self._reached()
            except TransferInterrupted as error:
                self._wait(error)
                continue
            if self._given_up.is_set():  # meanwhile
                self._answer.close()
            return

    def _reached(self) -> HttpResponse:
        """An answer whose next byte is the one that is wanted."""
        answer = self._ask({"Range": f"bytes={self._count}-"} if self._count else {})
        if answer.status in PASSING:
            answer.close()
            raise TransferInterrupted(f"{self._where}: the server answers with status {answer.status}")
        if self._count and answer.status == _PARTIAL:
            begin = _RANGE.match(answer.headers.get("Content-Range", ""))
            # RFC 9110 lets a server send another range than the one asked for; taken as ours, it would be mixed up
            # bytes.
            if begin is None or int(begin[1]) != self._count:
                answer.close()
                raise TransferError(f"{self._where}: the server does not go on at byte {self._count}, as it was asked")
            return answer
        self._require(answer)
        # The server sends all of it again, since it knows no ranges: what has been handed on is passed over. Objects
        # are named by their hash, so that other bytes this time are found out in the end.
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

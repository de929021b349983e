"""Lines of standard input for an event loop; waiting for input does not prevent the process from exiting.

A thread that waits for input cannot be interrupted. This one is a daemon thread and holds no lock of Python's streams,
so that the process exits on Ctrl-C while it waits.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

_PIECE: Final = 64 * 1024
_WAITING: Final = 16


class StandardInput:
    """The lines of a file descriptor as they arrive, until its end."""

    def __init__(self, descriptor: int, longest: int) -> None:
        """Start to read; must be called in the event loop.

        Args:
            descriptor: the descriptor.
            longest: maximum bytes per line; a longer line becomes an empty line, which no protocol accepts as a
                message.
        """
        self._descriptor = descriptor
        self._longest = longest
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(_WAITING)
        threading.Thread(target=self._read, name="standard input", daemon=True).start()

    def end(self) -> None:
        """End the input now; must be called in the event loop."""
        self._lines.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            self._room.release()
            yield line

    def _read(self) -> None:
        begun, is_too_long = bytearray(), False
        with suppress(RuntimeError):  # the loop has stopped
            while piece := self._piece():
                *ended, rest = piece.split(b"\n")
                for end in ended:
                    line = b"" if is_too_long or len(begun) + len(end) > self._longest else bytes(begun) + end
                    begun, is_too_long = bytearray(), False
                    self._put(line.decode("utf-8", "replace"))
                if is_too_long or len(begun) + len(rest) > self._longest:
                    begun, is_too_long = bytearray(), True
                else:
                    begun += rest
            if begun:
                self._put(begun.decode("utf-8", "replace"))
            self._put(None)

    def _piece(self) -> bytes:
        try:
            return os.read(self._descriptor, _PIECE)
        except OSError:  # the terminal has been closed
            return b""

    def _put(self, line: str | None) -> None:
        self._room.acquire()
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line)

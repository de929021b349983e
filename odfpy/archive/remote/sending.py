"""Uploads of files to a server: small ones in batches, large ones resumed after an interruption.

Nothing is copied: a file is hashed, then uploaded, and the server verifies the hash. So a file that changes in between
is detected there.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from odfpy.archive.errors import FileChanged
from odfpy.archive.files import Content
from odfpy.archive.remote.server import ArchiveServer, Backoff
from odfpy.chain.stores.object_store import ObjectTooLarge
from odfpy.data.multihash import Multihash
from odfpy.errors import TransferError
from odfpy.files import open_regular

SMALL: Final = 1 << 20
"""Maximum bytes of a file that is sent together with others."""

_BATCH: Final = 16 << 20
_MAX_IN_BATCH: Final = 5000
_FEW: Final = 256 * 1024
_OFFSET: Final = "Upload-Offset"
_COMPLETE: Final = "Upload-Complete"
_LIMIT: Final = "Upload-Limit"
_LIMIT_IN: Final = re.compile(r"max-size=([0-9]{1,18})")
_MEDIA_TYPE: Final = "application/vnd.odf.objects"
_WRONG_CONTENT: Final = 422


class Sender:
    """A client that uploads files to an archive, each content once."""

    def __init__(self, server: ArchiveServer) -> None:
        self._server = server
        self._sent: set[Multihash] = set()
        self._waiting: dict[Multihash, bytes] = {}
        self._size = 0

    def add(self, content: Content, data: bytes | None) -> None:
        """Send a file, now or with others; `flush` sends the rest.

        Args:
            content: the file, hashed.
            data: its bytes, if they were read.

        Raises:
            FileChanged: the file has changed since it was hashed.
            OdfError: the server rejects it.
        """
        if content.object in self._sent:
            return
        if data is None:
            self._send(content)
        else:
            self._waiting[content.object] = data
            self._size += len(data)
        self._sent.add(content.object)
        if self._size >= _BATCH or len(self._waiting) >= _MAX_IN_BATCH:
            self.flush()

    def flush(self) -> None:
        """Send what is waiting.

        Raises:
            OdfError: the server rejects it.
        """
        if self._size > _FEW:  # otherwise asking takes as long as sending
            asked = self._server.ask_with("/v0/archive/missing", {"objects": [str(name) for name in self._waiting]})
            lacking = set(_texts(asked, "missing"))
            self._waiting = {name: data for name, data in self._waiting.items() if str(name) in lacking}
        if self._waiting:
            body = b"".join(part for name, data in self._waiting.items() for part in (_line(name, data), data))

            def send() -> None:
                headers = {"Content-Type": _MEDIA_TYPE}
                path = "/v0/archive/objects"
                self._server.accepted(self._server.send("POST", path, body, len(body), headers)).skip()

            self._server.persistently(send)
        self._waiting, self._size = {}, 0

    def _send(self, content: Content) -> None:
        """Send one file from the offset that the server asks for, however often the connection breaks."""
        path = f"/v0/archive/objects/{content.object}"
        patience, last, is_new = Backoff(self._server), -1, False
        while True:
            try:
                offset, is_complete, most = self._progress(path)
                if is_complete:
                    return
                if content.size > most:
                    raise ObjectTooLarge(
                        f"{content.path}: it has {content.size} bytes, the server takes {most}",
                        hint="The operator of the server can change this limit: serve.maxObject.",
                    )
                if offset > content.size:
                    is_new, offset = True, 0  # other content was sent under this name
                if offset > last:
                    patience.restart()
                last = offset
                if self._append(path, content, offset, is_new=is_new):
                    return
                # The received bytes have another hash, and the server dropped them: their first part may come from
                # another client, and be wrong.
                if offset == 0:
                    raise FileChanged(
                        f"{content.path}: it has changed while it was sent; nothing of it was archived",
                        hint="Push it when it is complete, or push a copy.",
                    )
                last = -1
            except TransferError as error:
                patience.wait(error)

    def _progress(self, path: str) -> tuple[int, bool, int]:
        """Return the number of bytes that the server has, whether they are complete, and the maximum size of a file."""
        with self._server.head(path) as answer:
            offset = answer.headers.get(_OFFSET, "")
            if not offset.isdecimal() or len(offset) > 18:
                raise TransferError(f"{answer.shown}: the server does not report how much of the file it has")
            limit = _LIMIT_IN.fullmatch(answer.headers.get(_LIMIT, ""))
            return int(offset), answer.headers.get(_COMPLETE) == "?1", int(limit[1]) if limit else sys.maxsize

    def _append(self, path: str, content: Content, offset: int, *, is_new: bool) -> bool:
        """Send the rest of a file; return whether the whole content had the right hash."""
        headers = {"Content-Type": "application/octet-stream"}
        if not is_new:
            headers |= {_OFFSET: str(offset), _COMPLETE: "?1"}
        left = content.size - offset
        with _opened(content.path) as file:
            file.seek(offset)
            body = cast("BinaryIO", _Exactly(file, left, content.path))
            answer = self._server.send("PUT" if is_new else "PATCH", path, body, left, headers)
        if answer.status == _WRONG_CONTENT:
            answer.skip()
            return False
        self._server.accepted(answer).skip()
        return True


class _Exactly(io.RawIOBase):
    """A stream of exactly the announced number of bytes of a file."""

    def __init__(self, file: BinaryIO, count: int, path: Path) -> None:
        super().__init__()
        self._file = file
        self._left = count
        self._path = path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        data = self._file.read(min(len(view), self._left))
        if not data and self._left:
            raise FileChanged(
                f"{self._path}: it was truncated while it was sent; nothing of it was archived",
                hint="Push it when it is complete, or push a copy.",
            )
        view[: len(data)] = data
        self._left -= len(data)
        return len(data)


def _opened(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except OSError as error:
        raise FileChanged(f"{path}: it can no longer be read: {error.strerror}") from error


def _line(name: Multihash, data: bytes) -> bytes:
    return f"{name} {len(data)}\n".encode()


def _texts(tree: Any, key: str) -> list[str]:
    texts = tree.get(key) if isinstance(tree, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TransferError("The server does not answer like an archive", hint="It may be another release.")
    return texts

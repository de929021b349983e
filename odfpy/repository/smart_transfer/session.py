"""Conversations: each side is a generator of steps, without any network I/O (sans-I/O).

The driver executes each step and sends the outcome to the generator; when the peer closes the connection, it throws
`PeerClosed` into the generator. The generator's return value is the outcome. Datasets are read and written directly.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from odfpy.chain.block import HashedBlock
from odfpy.chain.required_signers import RequiredSigners
from odfpy.chain.revocations import ExpiredKey, RevokedKey
from odfpy.data.hash_set import HashSet
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.errors import DatasetLocked
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.objects import ObjectOfBlock
from odfpy.repository.peer_errors import ConnectionLost, PeerFailed, ProtocolViolation, RemoteCollision
from odfpy.repository.smart_transfer.messages import (
    Confirmed,
    Internal,
    InvalidHead,
    InvalidInterval,
    NameCollision,
    RefCollision,
    SeedBlockOverwriteRestricted,
    TransferUrl,
    closing_reason,
    decode,
    decode_result,
    encode,
    encode_error,
)
from odfpy.repository.transfer.linked import LinkedResult

M = TypeVar("M")
R = TypeVar("R")

NORMAL = 1000
FAILED = 1011
"""Codes of a close frame (RFC 6455, 7.4.1): success, and failure of the server with a message as reason."""

AnyError: TypeAlias = (
    Internal | InvalidHead | InvalidInterval | NameCollision | RefCollision | SeedBlockOverwriteRestricted
)
"""Any error message; the two sides do not distinguish in which phase it may occur."""


# --- Steps ---


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message. The outcome is None."""

    text: str


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for a message. The outcome is its text, or None after `within` seconds without a message."""

    within: float | None = None


@dataclass(frozen=True, slots=True)
class Located:
    """A file with its download or upload URL."""

    item: ObjectOfBlock
    url: TransferUrl


@dataclass(frozen=True, slots=True)
class Fetch:
    """Download files into the dataset. The outcome is None, after all files have arrived."""

    files: tuple[Located, ...]


@dataclass(frozen=True, slots=True)
class FetchLinked:
    """Download linked objects into the dataset. The outcome is `FetchedLinks`.

    Attributes:
        items: the objects.
        urls: URLs sent by the server; None to request each object as from a file server.
    """

    items: tuple[ObjectOfBlock, ...]
    urls: Mapping[Multihash, TransferUrl] | None


@dataclass(frozen=True, slots=True)
class FetchedLinks:
    """The downloaded objects, and those that the server lacks."""

    result: LinkedResult
    missing: HashSet


@dataclass(frozen=True, slots=True)
class TakeSignatures:
    """Fetch the signatures of blocks that will be stored. The outcome is `CollectedSignatures`.

    Attributes:
        blocks: the blocks, oldest first.
        dataset_id: id of the dataset.
        required: required signers of the head.
        head: the new head; the last of the blocks, if there are any.
    """

    blocks: tuple[HashedBlock, ...]
    dataset_id: DatasetId
    required: RequiredSigners | None
    head: HashedBlock


@dataclass(frozen=True, slots=True)
class StartUploads:
    """Start to upload files in the background. The outcome is None."""

    files: tuple[Located, ...]


@dataclass(frozen=True, slots=True)
class ReceiveWhileUploading:
    """Wait for a message, or for the end of the uploads. The outcome is `UploadProgress`."""


@dataclass(frozen=True, slots=True)
class UploadProgress:
    """The first of two events: a message, or the end of the uploads.

    Attributes:
        text: text of the message; None if all files are uploaded.
        count: number of uploaded files.
        seconds: seconds since the start of the uploads.
    """

    text: str | None
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FetchHead:
    """Request the server's head outside of the conversation. The outcome is a hash or None."""


@dataclass(frozen=True, slots=True)
class FetchCapabilities:
    """Request the extensions that the server's handshake announced. The outcome is a set of words."""


Step: TypeAlias = (
    Send
    | Receive
    | Fetch
    | FetchLinked
    | TakeSignatures
    | StartUploads
    | ReceiveWhileUploading
    | FetchHead
    | FetchCapabilities
)
Conversation: TypeAlias = Generator[Step, Any, R]


class PeerClosed(ConnectionLost, code="E627"):
    """The other side has closed the connection.

    Attributes:
        close_code: code of the close frame; 1006 if there was none.
        reason: reason in the close frame.
    """

    close_code: int
    reason: str

    def __init__(self, close_code: int, reason: str = "", *, hint: str | None = None) -> None:
        said = f": {reason[:200]}" if reason.isprintable() and reason else ""
        super().__init__(f"The other side closed the connection (code {close_code}){said}", hint=hint or _AGAIN)
        self.close_code = close_code
        self.reason = reason


class Refusal(PeerFailed, code="E628"):
    """The server rejects the request, and reports the reason in a close frame.

    Attributes:
        said: the error message.
    """

    said: str

    def __init__(self, error: AnyError) -> None:
        super().__init__(f"Refused: {closing_reason(error)}")
        self.said = encode_error(error)

    @property
    def error(self) -> AnyError:
        """Return the error message."""
        found: AnyError = decode_result(Confirmed, AnyError, self.said)[1]
        return found


_AGAIN = "Run the command again: complete objects are not sent again."
_LOOK = "Its log has details. `odf verify` checks the dataset here."
_ENDED = (
    "Create another key, and commit again with it: `odf key revoke me --reason superseded`. Nothing was changed there."
)
_HINTS = {
    RevokedKey.code: _ENDED,
    ExpiredKey.code: _ENDED,
    DatasetLocked.code: "Run the command again in a moment. Nothing was changed there.",
    DatasetsDiverged.code: "The operator of the server decides who may overwrite datasets: `odf token new --scope`.",
}
"""Hints by error code, which is the first word of a reason from an odfpy server."""


# --- Sending and receiving messages ---


def send(message: Any) -> Conversation[None]:
    """Send a message."""
    yield Send(encode(message))


def receive(type_: type[M]) -> Conversation[M]:
    """Wait for a message of a class.

    Raises:
        ProtocolViolation: another message was received.
        PeerFailed, PeerClosed: the peer has aborted.
    """
    return decode(type_, (yield from receive_text()))


def receive_text() -> Conversation[str]:
    """Wait for any message.

    Raises:
        PeerFailed, PeerClosed: the peer has aborted.
    """
    try:
        text: str = yield Receive()
    except PeerClosed as closed:
        raise refusal_error(_said_with(closed)) from None
    return text


def receive_while_uploading() -> Conversation[UploadProgress]:
    """Wait for a message, or until all files are uploaded.

    Raises:
        PeerFailed, PeerClosed: the server has aborted.
        OdfError: an upload has failed.
    """
    try:
        news: UploadProgress = yield ReceiveWhileUploading()
    except PeerClosed as closed:
        raise refusal_error(_said_with(closed)) from None
    return news


def receive_result(type_: type[M], *, past: str | None = None) -> Conversation[tuple[M | None, AnyError | None]]:
    """Wait for a success or error message; a close frame may also report an error.

    Args:
        type_: class of a success.
        past: text of a message that may arrive first, and is ignored.

    Raises:
        ProtocolViolation: another message was received.
        PeerClosed: the peer has closed the connection.
    """
    try:
        text = yield Receive()
        while text == past and text is not None:
            text = yield Receive()
    except PeerClosed as closed:
        return None, _said_with(closed)
    return decode_result(type_, AnyError, text)


def refusal_error(error: AnyError | None) -> Exception:
    """Return the exception for an error message, for cases that the conversation does not handle itself."""
    match error:
        case Internal():
            place = error.phase.value
            return PeerFailed(
                f"The server failed in the phase {place}: {error.error_message[:1000]}",
                hint=_HINTS.get(error.error_message.partition(" ")[0], _LOOK),
            )
        case RefCollision():
            return RemoteCollision(
                f"The server has the dataset {error.dataset_id} under another name",
                hint="Push it under its name there.",
            )
        case NameCollision():
            return RemoteCollision(
                f"The server has another dataset called {error.dataset_alias}",
                hint="Push it under another name: --to REPOSITORY/NAME.",
            )
    return PeerFailed(f"The server refuses: {type(error).__name__}")


def _said_with(closed: PeerClosed) -> AnyError:
    """Return the error message in a close frame.

    Raises:
        PeerClosed: the frame contains none.
    """
    if closed.close_code == FAILED:
        with suppress(ProtocolViolation):
            error: AnyError | None = decode_result(Confirmed, AnyError, closed.reason)[1]
            if error is not None:
                return error
    raise closed


def head_text(head: Multihash | None) -> str:
    """Format a head for messages."""
    return str(head) if head else "none"

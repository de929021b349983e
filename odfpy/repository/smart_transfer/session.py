"""Conversations: each side is a generator of steps, which knows of no network (sans-I/O).

Whoever runs it does what a step says and sends the outcome in; when the other side closes the connection, it throws
`PeerClosed` in. The generator's return value is the outcome of the conversation. It reads and writes datasets itself.
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
"""Codes of a closing frame (RFC 6455, 7.4.1): all is done; the server has failed, and the reason is a message."""

AnyError: TypeAlias = (
    Internal | InvalidHead | InvalidInterval | NameCollision | RefCollision | SeedBlockOverwriteRestricted
)
"""Whatever a message can say no with. Which of them may come where is the other side's business: no is no."""


# --- Steps ---


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message. Yields None."""

    text: str


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for a message. Yields its text, or None when `within` seconds have gone without one."""

    within: float | None = None


@dataclass(frozen=True, slots=True)
class Located:
    """A file, and where to get or put it."""

    item: ObjectOfBlock
    url: TransferUrl


@dataclass(frozen=True, slots=True)
class Fetch:
    """Get files into the dataset. Yields None once all files have been fetched."""

    files: tuple[Located, ...]


@dataclass(frozen=True, slots=True)
class FetchLinked:
    """Get objects that rows link to into the dataset. Yields `FetchedLinks`.

    Attributes:
        items: the objects.
        urls: where the server says that they are; None where it is asked for each as any file server is.
    """

    items: tuple[ObjectOfBlock, ...]
    urls: Mapping[Multihash, TransferUrl] | None


@dataclass(frozen=True, slots=True)
class FetchedLinks:
    """The objects that have come, and those that are not there."""

    result: LinkedResult
    missing: HashSet


@dataclass(frozen=True, slots=True)
class TakeSignatures:
    """Get the signatures of blocks that are going to be stored. Yields `CollectedSignatures`.

    Attributes:
        blocks: oldest first.
        dataset_id: of the dataset.
        required: by whom the last one must be signed.
    """

    blocks: tuple[HashedBlock, ...]
    dataset_id: DatasetId
    required: RequiredSigners | None


@dataclass(frozen=True, slots=True)
class StartUploads:
    """Begin to put files where they go. Yields None at once."""

    files: tuple[Located, ...]


@dataclass(frozen=True, slots=True)
class ReceiveWhileUploading:
    """Wait for a message, or for the end of what was begun. Yields `UploadProgress`."""


@dataclass(frozen=True, slots=True)
class UploadProgress:
    """The first event of several: a message, or the end of the uploads.

    Attributes:
        text: the message; None when all files are where they go.
        count: how many of them are.
        seconds: since it was begun.
    """

    text: str | None
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FetchHead:
    """Ask the server where its head is, outside of the conversation. Yields a hash or None."""


@dataclass(frozen=True, slots=True)
class FetchCapabilities:
    """Ask what the server's handshake says that it takes beside the protocol. Yields a set of words."""


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
        close_code: of the closing frame; 1006 when there was none.
        reason: of the closing frame.
    """

    close_code: int
    reason: str

    def __init__(self, close_code: int, reason: str = "", *, hint: str | None = None) -> None:
        said = f": {reason[:200]}" if reason.isprintable() and reason else ""
        super().__init__(f"The other side has closed the connection (code {close_code}){said}", hint=hint or _AGAIN)
        self.close_code = close_code
        self.reason = reason


class Refusal(PeerFailed, code="E628"):
    """The server gives up, and the client is to be told why, in a closing frame.

    Attributes:
        said: what to say, as a message.
    """

    said: str

    def __init__(self, error: AnyError) -> None:
        super().__init__(f"Refused: {closing_reason(error)}")
        self.said = encode_error(error)

    @property
    def error(self) -> AnyError:
        """Return what to say."""
        found: AnyError = decode_result(Confirmed, AnyError, self.said)[1]
        return found


_AGAIN = "Run the command again: what has arrived whole is not sent again."
_LOOK = "Its log says more. Is there something to correct here? `odf verify` checks a dataset."
_ENDED = (
    "Make another key and commit once more with it: `odf key revoke me --reason superseded`. Nothing was changed there."
)
_HINTS = {
    RevokedKey.code: _ENDED,
    ExpiredKey.code: _ENDED,
    DatasetLocked.code: "Run the command again in a moment. Nothing was changed there.",
    DatasetsDiverged.code: "Who may overwrite what is there decides whoever runs the server: `odf token new --scope`.",
}
"""What to try, by the code that servers of ours begin their reasons with."""


# --- Saying and hearing messages ---


def send(message: Any) -> Conversation[None]:
    """Send a message."""
    yield Send(encode(message))


def receive(type_: type[M]) -> Conversation[M]:
    """Wait for a message of a kind.

    Raises:
        ProtocolViolation: another one came.
        PeerFailed, PeerClosed: none will come.
    """
    return decode(type_, (yield from hear_text()))


def hear_text() -> Conversation[str]:
    """Wait for a message, of whatever kind.

    Raises:
        PeerFailed, PeerClosed: none will come.
    """
    try:
        text: str = yield Receive()
    except PeerClosed as closed:
        raise refusal_error(_said_with(closed)) from None
    return text


def receive_while_uploading() -> Conversation[UploadProgress]:
    """Wait for a message, or until all files are where they go.

    Raises:
        PeerFailed, PeerClosed: the server gives up.
        OdfError: a file could not be given.
    """
    try:
        news: UploadProgress = yield ReceiveWhileUploading()
    except PeerClosed as closed:
        raise refusal_error(_said_with(closed)) from None
    return news


def receive_result(type_: type[M], *, past: str | None = None) -> Conversation[tuple[M | None, AnyError | None]]:
    """Wait for a message that says yes or no; also a closing frame may say no.

    Args:
        type_: of a message that says yes.
        past: a message that may come before, and that says nothing here.

    Raises:
        ProtocolViolation: something else came.
        PeerClosed: nothing will come.
    """
    try:
        text = yield Receive()
        while text == past and text is not None:
            text = yield Receive()
    except PeerClosed as closed:
        return None, _said_with(closed)
    return decode_result(type_, AnyError, text)


def refusal_error(error: AnyError | None) -> Exception:
    """Return the error that a refusal stands for; a conversation handles the cases that it knows better."""
    match error:
        case Internal():
            place = error.phase.value
            return PeerFailed(
                f"The server has given up in the phase {place}: {error.error_message[:1000]}",
                hint=_HINTS.get(error.error_message.partition(" ")[0], _LOOK),
            )
        case RefCollision():
            return RemoteCollision(
                f"The server has the dataset {error.dataset_id} under another name",
                hint="Push it to the name that it has there.",
            )
        case NameCollision():
            return RemoteCollision(
                f"The server has another dataset called {error.dataset_alias}",
                hint="Push it under another name: --to REPOSITORY/NAME.",
            )
    return PeerFailed(f"The server refuses: {type(error).__name__}")


def _said_with(closed: PeerClosed) -> AnyError:
    """The no in a closing frame.

    Raises:
        PeerClosed: there is none in it.
    """
    if closed.close_code == FAILED:
        with suppress(ProtocolViolation):
            error: AnyError | None = decode_result(Confirmed, AnyError, closed.reason)[1]
            if error is not None:
                return error
    raise closed


def head_text(head: Multihash | None) -> str:
    """A head for messages."""
    return str(head) if head else "none"

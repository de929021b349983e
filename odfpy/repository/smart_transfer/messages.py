"""The messages of version 1 of the protocol. Names of fields and union members are those in the encoded messages.

pull   PullRequest    -> PullAccepted | PullError
       BlocksRequest  -> BlocksReply
       ObjectsRequest -> ObjectsReply          repeated as needed
push   PushRequest    -> PushAccepted | PushError
       PushBlocks     -> BlocksAccepted | PushBlocksError
       PushObjects    -> UploadsAccepted | PushObjectsError, then Ping and Progress, until that is Complete
       Complete       -> Confirmed
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeAlias, TypeVar

from odfpy.data.multihash import Multihash
from odfpy.data.scalars import I32, U32, U64
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias
from odfpy.repository.objects import ObjectKind
from odfpy.repository.peer_errors import ProtocolViolation
from odfpy.repository.smart_transfer.json_form import from_json, name_of, to_json

VERSION = 1
VERSION_HEADER = "x-odf-smtp-version"

MAX_MESSAGE = 64 * 1024 * 1024
"""Maximum bytes of a message, as in the reference implementation: an archive of about 17 MB, or 100 000 blocks."""

MAX_OBJECTS = 1000
"""Maximum number of objects per request: all must be transferred before their signed URLs expire."""

PING_EVERY = 10.0
"""Seconds between progress requests of a server, so that proxies do not close the connection as idle."""

_MAX_REASON = 123
"""Maximum bytes of the reason in a WebSocket close frame (RFC 6455, 5.5)."""
_dump: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """The sender's summary of a transfer."""

    num_blocks: U32
    num_objects: U32
    num_records: U64
    bytes_in_raw_blocks: U64
    bytes_in_raw_objects: U64


@dataclass(frozen=True, slots=True)
class BlocksBatch:
    """An archive of blocks; `media_type` and `encoding` define its format."""

    num_blocks: U32
    media_type: str
    encoding: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """A data file or checkpoint to transfer."""

    object_type: ObjectKind
    physical_hash: Multihash
    size: U64


@dataclass(frozen=True, slots=True)
class HeaderRow:
    """A header that a request must have."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class TransferUrl:
    """The URL to download or upload an object."""

    url: str
    headers: tuple[HeaderRow, ...] = ()
    expires_at: Timestamp | None = None


class PullPhase(Enum):
    """The phase in which a pull has failed."""

    INITIAL_REQUEST = "InitialRequest"
    METADATA_REQUEST = "MetadataRequest"
    OBJECTS_REQUEST = "ObjectsRequest"


class PushPhase(Enum):
    """The phase in which a push has failed."""

    INITIAL_REQUEST = "InitialRequest"
    METADATA_REQUEST = "MetadataRequest"
    OBJECTS_REQUEST = "ObjectsRequest"
    ENSURING_TARGET_EXISTS = "EnsuringTargetExists"
    OBJECTS_UPLOAD_PROGRESS = "ObjectsUploadProgress"
    COMPLETE_REQUEST = "CompleteRequest"


# A union is encoded with the name of the member; these two are named after the conversation.
PullPhase.WIRE_NAME = "Pull"  # type: ignore[attr-defined]
PushPhase.WIRE_NAME = "Push"  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Internal:
    """An error without a type of its own."""

    phase: PullPhase | PushPhase
    error_message: str


@dataclass(frozen=True, slots=True)
class SeedBlockOverwriteRestricted:
    """The seed block belongs to another dataset."""


# --- Pull ---


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Start a pull of the blocks after `begin_after`, up to `stop_at`; by default, of all blocks up to the head."""

    begin_after: Multihash | None
    stop_at: Multihash | None
    force_update_if_diverged: bool


@dataclass(frozen=True, slots=True)
class PullAccepted:
    """Accept a pull, with a summary of the transfer."""

    transfer_plan: TransferPlan


@dataclass(frozen=True, slots=True)
class InvalidInterval:
    """The block to begin after is not an ancestor of the block to stop at."""

    head: Multihash
    tail: Multihash


PullError: TypeAlias = InvalidInterval | Internal | SeedBlockOverwriteRestricted


@dataclass(frozen=True, slots=True)
class BlocksRequest:
    """Request the blocks."""


@dataclass(frozen=True, slots=True)
class BlocksReply:
    """Send the blocks."""

    blocks: BlocksBatch


@dataclass(frozen=True, slots=True)
class ObjectsRequest:
    """Request the URLs of objects."""

    object_files: tuple[ObjectFile, ...]


class PullStrategy(Enum):
    """The ways to download an object."""

    HTTP_DOWNLOAD = "HttpDownload"


@dataclass(frozen=True, slots=True)
class Download:
    """The URL to download an object."""

    object_file: ObjectFile
    pull_strategy: PullStrategy
    download_from: TransferUrl


@dataclass(frozen=True, slots=True)
class ObjectsReply:
    """Send the URLs to download objects."""

    object_transfer_strategies: tuple[Download, ...]


# --- Push ---


class Visibility(Enum):
    """The visibility of a dataset that a push creates."""

    PRIVATE = "Private"
    PUBLIC = "Public"


@dataclass(frozen=True, slots=True)
class PushRequest:
    """Start a push, with the last seen head and a summary of the transfer."""

    current_head: Multihash | None
    transfer_plan: TransferPlan
    force_update_if_diverged: bool
    visibility_for_created_dataset: Visibility


@dataclass(frozen=True, slots=True)
class PushAccepted:
    """Accept a push."""


@dataclass(frozen=True, slots=True)
class InvalidHead:
    """The head has moved. In the reference implementation, `actual` is what the client sent, `expected` the current
    head.
    """

    actual_head: Multihash | None
    expected_head: Multihash | None


PushError: TypeAlias = Internal | InvalidHead


@dataclass(frozen=True, slots=True)
class PushBlocks:
    """Send the blocks."""

    new_blocks: BlocksBatch


@dataclass(frozen=True, slots=True)
class BlocksAccepted:
    """Accept the blocks."""


PushBlocksError: TypeAlias = SeedBlockOverwriteRestricted | Internal


@dataclass(frozen=True, slots=True)
class PushObjects:
    """Request URLs to upload objects; `is_truncated` announces another message with further objects."""

    object_files: tuple[ObjectFile, ...]
    is_truncated: bool


class PushStrategy(Enum):
    """The ways to upload an object."""

    SKIP_UPLOAD = "SkipUpload"
    HTTP_UPLOAD = "HttpUpload"


@dataclass(frozen=True, slots=True)
class Upload:
    """The URL to upload an object, None for an object that already exists."""

    object_file: ObjectFile
    push_strategy: PushStrategy
    upload_to: TransferUrl | None


@dataclass(frozen=True, slots=True)
class UploadsAccepted:
    """Send the URLs to upload objects."""

    object_transfer_strategies: tuple[Upload, ...]


@dataclass(frozen=True, slots=True)
class RefCollision:
    """The server has the dataset under another name."""

    dataset_id: DatasetId


@dataclass(frozen=True, slots=True)
class NameCollision:
    """The server has another dataset with the name."""

    dataset_alias: DatasetAlias


PushObjectsError: TypeAlias = Internal | RefCollision | NameCollision


@dataclass(frozen=True, slots=True)
class Ping:
    """Request the progress of uploads."""


@dataclass(frozen=True, slots=True)
class Running:
    """Uploads are running; reports the number of uploaded objects."""

    uploaded_objects_count: I32


@dataclass(frozen=True, slots=True)
class AllUploaded:
    """All objects are uploaded."""

    WIRE_NAME: ClassVar[str] = "Complete"
    IS_BARE: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Progress:
    """Report the progress of uploads."""

    details: Running | AllUploaded


@dataclass(frozen=True, slots=True)
class Complete:
    """Request the commit."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Confirm the commit."""


# --- Encoding ---


def encode(message: Any) -> str:
    """Encode a message as text."""
    return _dump(to_json(message))


def encode_ok(message: Any) -> str:
    """Encode a success."""
    return _dump({"Ok": to_json(message)})


def encode_error(error: Any) -> str:
    """Encode an error."""
    return _dump({"Err": {name_of(type(error)): to_json(error)}})


def closing_reason(error: Any) -> str:
    """Encode an error for the reason of a close frame; texts are truncated to the limit."""
    text = encode_error(error)
    while len(text.encode()) > _MAX_REASON and isinstance(error, Internal) and error.error_message:
        error = Internal(error.phase, error.error_message[:-1])
        text = encode_error(error)
    return text if len(text.encode()) <= _MAX_REASON else ""


def decode(type_: type[M], text: str) -> M:
    """Decode a message.

    Raises:
        ProtocolViolation: the message is invalid.
    """
    return from_json(type_, _load(text))


def decode_result(ok: type[M], error: Any, text: str) -> tuple[M | None, Any]:
    """Decode a success or an error; return both, one of which is None.

    Args:
        ok: class of the success.
        error: union of the error classes.
        text: text of the message.

    Raises:
        ProtocolViolation: the message is invalid.
    """
    match _load(text):
        case {"Ok": tree, **rest} if not rest:
            return from_json(ok, tree), None
        case {"Err": tree, **rest} if not rest:
            return None, from_json(error, tree, "Err")
    raise ProtocolViolation(f"Expected Ok or Err, found {text[:80]!r}")


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolViolation(f"Not JSON: {text[:80]!r}") from error

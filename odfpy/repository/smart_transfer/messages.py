"""The messages of version 1 of the protocol. The names of fields and of members of unions are those on the wire.

pull   PullRequest    -> PullAccepted | PullError
       BlocksRequest  -> BlocksReply
       ObjectsRequest -> ObjectsReply          as often as needed
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
"""Bytes of a message, the limit of the reference too: an archive of about 17 MB, or 100 000 blocks."""

MAX_OBJECTS = 1000
"""Objects that are asked for at once: what a signed URL lasts for must be enough for all of them."""

PING_EVERY = 10.0
"""Seconds after which a server asks how the uploads go, so that nobody between takes the connection for dead."""

_MAX_REASON = 123
"""Bytes that a WebSocket's closing frame has for its reason (RFC 6455, 5.5)."""
_dump: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """The sender's summary of what is going to be transferred."""

    num_blocks: U32
    num_objects: U32
    num_records: U64
    bytes_in_raw_blocks: U64
    bytes_in_raw_objects: U64


@dataclass(frozen=True, slots=True)
class BlocksBatch:
    """Blocks as an archive; `media_type` and `encoding` say which kind."""

    num_blocks: U32
    media_type: str
    encoding: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """A data file or checkpoint."""

    object_type: ObjectKind
    physical_hash: Multihash
    size: U64


@dataclass(frozen=True, slots=True)
class HeaderRow:
    """A header to be sent along."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class TransferUrl:
    """The address to get or put an object."""

    url: str
    headers: tuple[HeaderRow, ...] = ()
    expires_at: Timestamp | None = None


class PullPhase(Enum):
    """The phase that a pull had reached."""

    INITIAL_REQUEST = "InitialRequest"
    METADATA_REQUEST = "MetadataRequest"
    OBJECTS_REQUEST = "ObjectsRequest"


class PushPhase(Enum):
    """The phase that a push had reached."""

    INITIAL_REQUEST = "InitialRequest"
    METADATA_REQUEST = "MetadataRequest"
    OBJECTS_REQUEST = "ObjectsRequest"
    ENSURING_TARGET_EXISTS = "EnsuringTargetExists"
    OBJECTS_UPLOAD_PROGRESS = "ObjectsUploadProgress"
    COMPLETE_REQUEST = "CompleteRequest"


# A union writes the name of the member that it is; these two are named for the conversation.
PullPhase.WIRE_NAME = "Pull"  # type: ignore[attr-defined]
PushPhase.WIRE_NAME = "Push"  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Internal:
    """Something else went wrong."""

    phase: PullPhase | PushPhase
    error_message: str


@dataclass(frozen=True, slots=True)
class SeedBlockOverwriteRestricted:
    """The first block is that of another dataset."""


# --- Pull ---


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Begin: the blocks after one, up to another; without them, all up to the head."""

    begin_after: Multihash | None
    stop_at: Multihash | None
    force_update_if_diverged: bool


@dataclass(frozen=True, slots=True)
class PullAccepted:
    """The answer to a pull: a summary of what there is."""

    transfer_plan: TransferPlan


@dataclass(frozen=True, slots=True)
class InvalidInterval:
    """The block to begin after is not among the ancestors of the one to stop at."""

    head: Multihash
    tail: Multihash


PullError: TypeAlias = InvalidInterval | Internal | SeedBlockOverwriteRestricted


@dataclass(frozen=True, slots=True)
class BlocksRequest:
    """Send the blocks."""


@dataclass(frozen=True, slots=True)
class BlocksReply:
    """The blocks."""

    blocks: BlocksBatch


@dataclass(frozen=True, slots=True)
class ObjectsRequest:
    """A request for the addresses of objects."""

    object_files: tuple[ObjectFile, ...]


class PullStrategy(Enum):
    """A way to get an object."""

    HTTP_DOWNLOAD = "HttpDownload"


@dataclass(frozen=True, slots=True)
class Download:
    """The address of an object to get."""

    object_file: ObjectFile
    pull_strategy: PullStrategy
    download_from: TransferUrl


@dataclass(frozen=True, slots=True)
class ObjectsReply:
    """The addresses of objects to get."""

    object_transfer_strategies: tuple[Download, ...]


# --- Push ---


class Visibility(Enum):
    """The visibility of a dataset that a push makes."""

    PRIVATE = "Private"
    PUBLIC = "Public"


@dataclass(frozen=True, slots=True)
class PushRequest:
    """Begin: what is going to come on top of the head that the client has seen."""

    current_head: Multihash | None
    transfer_plan: TransferPlan
    force_update_if_diverged: bool
    visibility_for_created_dataset: Visibility


@dataclass(frozen=True, slots=True)
class PushAccepted:
    """Go on."""


@dataclass(frozen=True, slots=True)
class InvalidHead:
    """The head is another one. The reference has it that `actual` is what the client said, `expected` what is there."""

    actual_head: Multihash | None
    expected_head: Multihash | None


PushError: TypeAlias = Internal | InvalidHead


@dataclass(frozen=True, slots=True)
class PushBlocks:
    """The blocks."""

    new_blocks: BlocksBatch


@dataclass(frozen=True, slots=True)
class BlocksAccepted:
    """They are in order."""


PushBlocksError: TypeAlias = SeedBlockOverwriteRestricted | Internal


@dataclass(frozen=True, slots=True)
class PushObjects:
    """A request for addresses to put objects; `is_truncated`: more come in a message of their own."""

    object_files: tuple[ObjectFile, ...]
    is_truncated: bool


class PushStrategy(Enum):
    """A way to put an object."""

    SKIP_UPLOAD = "SkipUpload"
    HTTP_UPLOAD = "HttpUpload"


@dataclass(frozen=True, slots=True)
class Upload:
    """The address to put an object; one that already exists has none."""

    object_file: ObjectFile
    push_strategy: PushStrategy
    upload_to: TransferUrl | None


@dataclass(frozen=True, slots=True)
class UploadsAccepted:
    """The addresses to put objects."""

    object_transfer_strategies: tuple[Upload, ...]


@dataclass(frozen=True, slots=True)
class RefCollision:
    """The server has the dataset under another name."""

    dataset_id: DatasetId


@dataclass(frozen=True, slots=True)
class NameCollision:
    """The server has another dataset of that name."""

    dataset_alias: DatasetAlias


PushObjectsError: TypeAlias = Internal | RefCollision | NameCollision


@dataclass(frozen=True, slots=True)
class Ping:
    """A question for the progress of uploads."""


@dataclass(frozen=True, slots=True)
class Running:
    """So many objects are there."""

    uploaded_objects_count: I32


@dataclass(frozen=True, slots=True)
class AllUploaded:
    """They are all there."""

    WIRE_NAME: ClassVar[str] = "Complete"
    IS_BARE: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of uploads."""

    details: Running | AllUploaded


@dataclass(frozen=True, slots=True)
class Complete:
    """Commit it all."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """It is committed."""


# --- As text ---


def encode(message: Any) -> str:
    """A message as text."""
    return _dump(to_json(message))


def encode_ok(message: Any) -> str:
    """Return a message that says yes."""
    return _dump({"Ok": to_json(message)})


def encode_error(error: Any) -> str:
    """A message that says no, and why."""
    return _dump({"Err": {name_of(type(error)): to_json(error)}})


def closing_reason(error: Any) -> str:
    """The same, as short as the reason of a closing frame has to be: what a message says is cut off, if need be."""
    text = encode_error(error)
    while len(text.encode()) > _MAX_REASON and isinstance(error, Internal) and error.error_message:
        error = Internal(error.phase, error.error_message[:-1])
        text = encode_error(error)
    return text if len(text.encode()) <= _MAX_REASON else ""


def decode(type_: type[M], text: str) -> M:
    """A message from text.

    Raises:
        ProtocolViolation: it is not such a message.
    """
    return from_json(type_, _load(text))


def decode_result(ok: type[M], error: Any, text: str) -> tuple[M | None, Any]:
    """A message that says yes or no, from text: what it says, and what it says against it; one of them is None.

    Args:
        ok: the class of a yes.
        error: the classes of a no.
        text: the message.

    Raises:
        ProtocolViolation: it is not such a message.
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

"""Both sides of a pull.

      1. The client sends its head; the server responds with a summary of later blocks.
      2. The client requests the blocks, and validates each on top of its chain.
      3. It requests the URLs of missing files, and downloads them, in as many rounds as needed.
      4. It reads the links in the rows, and downloads the requested objects.
      5. It stores the blocks and moves its head.

The connection may break at any time: complete files are retained, and the head is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.metadata_chain import MetadataChain
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.errors import ObjectNotFound, OdfError, TransferError
from odfpy.repository.divergence import records_of
from odfpy.repository.objects import ObjectKind, ObjectOfBlock, objects_of_blocks
from odfpy.repository.peer_errors import ProtocolViolation
from odfpy.repository.smart_transfer.archive import ArchiveLimits, pack
from odfpy.repository.smart_transfer.incoming import (
    Incoming,
    attach_blocks,
    commit,
    read_blocks,
    require_files,
    require_id,
)
from odfpy.repository.smart_transfer.messages import (
    MAX_MESSAGE,
    BlocksReply,
    BlocksRequest,
    Download,
    Internal,
    InvalidInterval,
    ObjectFile,
    ObjectsReply,
    ObjectsRequest,
    PullAccepted,
    PullPhase,
    PullRequest,
    PullStrategy,
    SeedBlockOverwriteRestricted,
    TransferPlan,
    TransferUrl,
    encode,
    encode_error,
    encode_ok,
)
from odfpy.repository.smart_transfer.pull_links import pull_links, rounds_of
from odfpy.repository.smart_transfer.session import (
    Conversation,
    Fetch,
    Located,
    PeerClosed,
    Refusal,
    Send,
    TakeSignatures,
    receive,
    receive_result,
    refusal_error,
    send,
)
from odfpy.repository.transfer.clock import require_past
from odfpy.repository.transfer.options import DEFAULTS, TransferOptions
from odfpy.repository.transfer.signatures import CollectedSignatures
from odfpy.repository.transfer.simple import ForeignDataset, TransferOutcome, TransferResult

MAX_OBJECTS_ASKED = 10_000
"""Maximum number of objects that a client may request at once."""


class IntervalRefused(TransferError, code="E626"):
    """The server's chain does not contain the client's last block."""


# --- The client ---


def pull(
    target: DatasetLayout,
    options: TransferOptions = DEFAULTS,
    *,
    limits: ArchiveLimits | None = None,
) -> Conversation[TransferResult]:
    """Update a dataset from the server.

    Args:
        target: the dataset to update; its lock, if any, is held by the caller.
        options: requirements on the server, and content to copy; `seen` is not used.
        limits: limits on what the server sends.

    Raises:
        IntervalRefused: the server's chain does not continue the local one: it is behind, or has diverged.
        ForeignDataset: the server has another dataset.
        FromTheFuture: blocks are more than a day ahead of `options.clock`.
        ForgedSignature, NotSigned: a signature is invalid, or a required one is missing.
        IntegrityError, MalformedData, ProtocolViolation: received data is invalid.
        ConcurrentUpdate: another process has moved the target's head.
        PeerFailed, PeerClosed: the server aborts.
    """
    old_head = target.refs.get(HEAD)
    # 1.
    yield from send(PullRequest(old_head, None, options.force))
    accepted, error = yield from receive_result(PullAccepted)
    if accepted is None:
        raise _refusal(error, old_head)
    if accepted.transfer_plan.num_blocks == 0:
        if old_head is None:
            raise ProtocolViolation("The server offers a dataset without blocks")
        return TransferResult(outcome=TransferOutcome.UP_TO_DATE, old_head=old_head, new_head=old_head)
    # 2.
    yield from send(BlocksRequest())
    blocks = read_blocks((yield from receive(BlocksReply)).blocks, limits or ArchiveLimits())
    existing = target.chain.in_order(old_head) if old_head else []
    incoming = attach_blocks(blocks, existing, force=options.force)
    require_id(incoming, options.expected_id)
    require_past(incoming.state.system_time, incoming.base.system_time, options.clock, "The server")
    new = tuple(block.hashed for block in incoming.blocks)
    signatures: CollectedSignatures = yield TakeSignatures(
        new, incoming.state.dataset_id, options.required, incoming.received[-1]
    )
    # 3.
    missing = incoming.missing(target)
    for objects in rounds_of(missing):
        yield from _fetch(objects)
    require_files(incoming, target, {item.name for item in missing})
    # 4.
    links = yield from pull_links(incoming, target, options.files)
    # 5.
    signatures.store(target)
    commit(incoming, target, old_head)
    result = result_of(incoming, old_head, missing)
    return replace(result, signatures=signatures.report, links=links)


def _refusal(error: object, old_head: Multihash | None) -> Exception:
    match error:
        case InvalidInterval():
            return IntervalRefused(f"The server's chain, which ends at {error.head}, lacks block {error.tail}")
        case SeedBlockOverwriteRestricted():
            return ForeignDataset(f"The dataset there is another one than that which ends in {old_head}")
    return refusal_error(error)  # type: ignore[arg-type]


def _fetch(objects: list[ObjectOfBlock]) -> Conversation[None]:
    files = tuple(file_of(item) for item in objects)
    yield from send(ObjectsRequest(files))
    reply = yield from receive(ObjectsReply)
    locations = {strategy.object_file: strategy.download_from for strategy in reply.object_transfer_strategies}
    if locations.keys() != set(files) or len(reply.object_transfer_strategies) != len(files):
        raise ProtocolViolation("The server does not provide locations for the requested objects")
    yield Fetch(tuple(Located(item, locations[file_of(item)]) for item in objects))


def file_of(item: ObjectOfBlock) -> ObjectFile:
    """Convert a file to its form in messages."""
    return ObjectFile(item.kind, item.name, item.size)


def result_of(incoming: Incoming, old_head: Multihash | None, moved: Iterable[ObjectOfBlock]) -> TransferResult:
    """Return the result of a pull.

    Args:
        incoming: the received blocks.
        old_head: the previous head, None for a new dataset.
        moved: the copied files.
    """
    objects = list(moved)
    return TransferResult(
        outcome=TransferOutcome.UPDATED,
        old_head=old_head,
        new_head=incoming.head,
        num_blocks=len(incoming.blocks),
        num_records=incoming.state.num_records - incoming.base.num_records,
        num_objects=len(objects),
        num_bytes=sum(item.size for item in objects),
        num_dropped=len(incoming.dropped),
        num_dropped_records=records_of(incoming.dropped),
        state=incoming.state,
    )


# --- The server ---

Locate = Callable[[ObjectFile], TransferUrl | None]
"""Returns the URL of an object; None if the dataset does not have it."""


def serve_pull(
    source: DatasetLayout, locate: Locate, is_linked: Callable[[Multihash], bool] = lambda _: False
) -> Conversation[None]:
    """Serve a pull of a dataset.

    Args:
        source: the dataset.
        locate: returns the URL of an object.
        is_linked: returns whether a row links to an object; missing linked objects are omitted from the response.

    Raises:
        Refusal: an error to report to the client.
        PeerClosed: the client has disconnected before the end.
    """
    phase = PullPhase.INITIAL_REQUEST
    try:
        request = yield from receive(PullRequest)
        interval = _interval(source, request)
        if isinstance(interval, InvalidInterval):
            yield Send(encode_error(interval))
            return
        yield Send(encode_ok(PullAccepted(interval.plan)))
        phase = PullPhase.METADATA_REQUEST
        if (yield from _unless_closed(BlocksRequest)) is None:
            return
        yield Send(_blocks_text(source, interval))
        phase = PullPhase.OBJECTS_REQUEST
        while (asked := (yield from _unless_closed(ObjectsRequest))) is not None:
            yield from send(ObjectsReply(_located(source, asked, locate, is_linked)))
    except PeerClosed:
        raise
    except ProtocolViolation as error:
        raise Refusal(Internal(phase, error.message)) from error
    except OdfError as error:
        raise Refusal(Internal(phase, "Internal error")) from error


def _unless_closed(type_: type[BlocksRequest | ObjectsRequest]) -> Conversation[ObjectsRequest | None]:
    """Return the next message, None if the client has finished."""
    try:
        message = yield from receive(type_)
    except PeerClosed:
        return None
    return message if isinstance(message, ObjectsRequest) else ObjectsRequest(())


@dataclass(frozen=True, slots=True)
class Interval:
    """A range of blocks of a chain, without their content.

    Attributes:
        plan: summary of the blocks.
        names: hashes of the blocks, oldest first.
    """

    plan: TransferPlan
    names: tuple[Multihash, ...]


def survey(layout: DatasetLayout, blocks: list[HashedBlock], num_records: int) -> Interval:
    """Summarize a transfer of blocks.

    Args:
        layout: the dataset with the blocks.
        blocks: the blocks, oldest first.
        num_records: number of rows in the blocks.
    """
    objects = objects_of_blocks(blocks)
    plan = TransferPlan(
        num_blocks=len(blocks),
        num_objects=len(objects),
        num_records=num_records,
        bytes_in_raw_blocks=sum(layout.blocks.size(block.hash) for block in blocks),
        bytes_in_raw_objects=sum(item.size for item in objects),
    )
    return Interval(plan, tuple(block.hash for block in blocks))


def blocks_after(
    chain: MetadataChain, head: Multihash, begin_after: Multihash | None, *, force: bool
) -> list[HashedBlock] | None:
    """Return the blocks of a chain between two blocks, oldest first; read no more blocks than necessary.

    Args:
        chain: the chain.
        head: the last block.
        begin_after: the block before the first one, None for the beginning of the chain.
        force: whether to return all blocks if `begin_after` is not an ancestor of `head`.

    Returns:
        None if `begin_after` is not an ancestor of `head`, unless `force` is set.
    """
    found: list[HashedBlock] = []
    for hashed in chain.iter_blocks(head):
        if hashed.hash == begin_after:
            return found[::-1]
        found.append(hashed)
    return found[::-1] if force or begin_after is None else None


def _interval(source: DatasetLayout, request: PullRequest) -> Interval | InvalidInterval:
    head = source.chain.head()
    if request.stop_at is not None:
        if all(block.hash != request.stop_at for block in source.chain.iter_blocks(head)):
            return InvalidInterval(head, request.stop_at)
        head = request.stop_at
    new = blocks_after(source.chain, head, request.begin_after, force=request.force_update_if_diverged)
    if new is None:
        assert request.begin_after is not None  # noqa: S101 - without it, all are new
        return InvalidInterval(head, request.begin_after)
    return survey(source, new, records_of(new))


def _blocks_text(source: DatasetLayout, interval: Interval) -> str:
    text = encode(BlocksReply(pack((name, source.blocks.read(name)) for name in interval.names)))
    if len(text) > MAX_MESSAGE:
        raise ProtocolViolation("More blocks than one message can hold")
    return text


def _located(
    source: DatasetLayout, asked: ObjectsRequest, locate: Locate, is_linked: Callable[[Multihash], bool]
) -> tuple[Download, ...]:
    if len(asked.object_files) > MAX_OBJECTS_ASKED:
        raise ProtocolViolation(f"More than {MAX_OBJECTS_ASKED} objects at once")
    found = []
    for wanted in asked.object_files:
        is_link = wanted.object_type is ObjectKind.DATA_SLICE and is_linked(wanted.physical_hash)
        file = _with_its_size(source, wanted) if is_link else wanted
        if file is None:
            continue
        url = locate(file)
        if url is None:
            raise ProtocolViolation(f"No object {file.physical_hash}")
        found.append(Download(file, PullStrategy.HTTP_DOWNLOAD, url))
    return tuple(found)


def _with_its_size(source: DatasetLayout, file: ObjectFile) -> ObjectFile | None:
    """Return a linked object with its actual size, None if it does not exist."""
    try:
        return replace(file, size=source.data.size(file.physical_hash))
    except ObjectNotFound:
        return None

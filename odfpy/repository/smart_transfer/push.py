"""Client side of a push; for the server side, see `serve_push`.

    1. The client sends the last seen head, and a summary of the push.
    2. It sends the blocks; the server validates each on top of its chain.
    3. The client requests URLs for the files, and uploads these, in as many rounds as needed, linked objects last.
       The server requests the progress from time to time.
    4. The client sends that it is complete; the server checks that every file exists, stores the blocks and moves
       its head, unless the head has moved in the meantime.

The connection may break at any time: complete files are retained, and the head is unchanged.
"""

from __future__ import annotations

from typing import Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.data.multihash import Multihash
from odfpy.errors import TransferError
from odfpy.repository.divergence import records_of
from odfpy.repository.objects import ObjectOfBlock, objects_of_blocks
from odfpy.repository.peer_errors import ProtocolViolation, RemoteHeadMoved
from odfpy.repository.smart_transfer.archive import pack
from odfpy.repository.smart_transfer.messages import (
    MAX_MESSAGE,
    PING_EVERY,
    AllUploaded,
    BlocksAccepted,
    Complete,
    Confirmed,
    InvalidHead,
    Ping,
    Progress,
    PushAccepted,
    PushBlocks,
    PushObjects,
    PushRequest,
    PushStrategy,
    Running,
    SeedBlockOverwriteRestricted,
    UploadsAccepted,
    Visibility,
    decode,
    encode,
)
from odfpy.repository.smart_transfer.pull import file_of, survey
from odfpy.repository.smart_transfer.pull_links import TAKES_LINKS, rounds_of
from odfpy.repository.smart_transfer.push_links import OfferedLinks
from odfpy.repository.smart_transfer.push_signatures import upload_signatures
from odfpy.repository.smart_transfer.session import (
    Conversation,
    FetchCapabilities,
    FetchHead,
    Located,
    Send,
    StartUploads,
    head_text,
    receive,
    receive_result,
    receive_while_uploading,
    refusal_error,
    send,
)
from odfpy.repository.transfer.linked import NO_FILES, LinkedResult, WantedFiles
from odfpy.repository.transfer.simple import ForeignDataset, TransferOutcome, TransferResult

_MAX_PINGS: Final = 1_000
"""Maximum number of progress requests in transit; a server that sends more violates the protocol."""


def push(
    source: DatasetLayout,
    blocks: list[HashedBlock],
    remote_head: Multihash | None,
    *,
    force: bool = False,
    visibility: Visibility = Visibility.PRIVATE,
    is_head: bool = True,
    files: WantedFiles = NO_FILES,
) -> Conversation[TransferResult]:
    """Update the server's dataset from a local one.

    Args:
        source: the local dataset, only read.
        blocks: blocks that the server lacks, oldest first: those after its head, or all.
        remote_head: the last seen head of the server.
        force: whether to replace existing blocks.
        visibility: visibility of the dataset, if it is new there.
        is_head: whether to move the server's head, not a branch or tag.
        files: linked objects to upload, if the server supports them; none if rows have no links.

    Raises:
        RemoteHeadMoved: the server's head has moved.
        ForeignDataset: the server has another dataset with the name.
        RemoteCollision: the server has the dataset under another name.
        ProtocolViolation, PeerFailed, PeerClosed: the server violates the protocol, or aborts.
    """
    head = blocks[-1].hash
    objects = objects_of_blocks(blocks)
    interval = survey(source, blocks, records_of(blocks))
    # 1.
    yield from send(PushRequest(remote_head, interval.plan, force, visibility))
    yield from _require_accepted(PushAccepted)
    # 2.
    text = encode(PushBlocks(pack((name, source.blocks.read(name)) for name in interval.names)))
    if len(text) > MAX_MESSAGE:
        raise TransferError(
            f"{len(blocks)} blocks are more than one message of the Smart Transfer Protocol can hold",
            hint="Push to a folder or a bucket instead.",
        )
    yield Send(text)
    yield from _require_accepted(BlocksAccepted)
    # 3.
    uploaded: list[ObjectOfBlock] = []
    rounds = list(rounds_of(objects)) or [[]]
    ping_in_transit = False
    takes_links = not files.choice.is_empty and TAKES_LINKS in (yield FetchCapabilities())
    for number, objects_of_round in enumerate(rounds):
        is_truncated = takes_links or number + 1 < len(rounds)
        uploads = yield from _request_locations(objects_of_round, is_truncated=is_truncated)
        ping_in_transit |= yield from _upload(uploads)
        uploaded += [upload.item for upload in uploads]
    links = LinkedResult()
    if takes_links:
        links, ping_after_links = yield from _upload_links(source, blocks, files)
        ping_in_transit |= ping_after_links
    signatures = yield from upload_signatures(source, blocks, is_head=is_head)
    # 4.
    yield from send(Complete())
    yield from _await_confirmation(head, ping_in_transit=ping_in_transit)
    return TransferResult(
        outcome=TransferOutcome.UPDATED,
        old_head=remote_head,
        new_head=head,
        num_blocks=len(blocks),
        num_records=interval.plan.num_records,
        num_objects=len(uploaded),
        num_bytes=sum(item.size for item in uploaded),
        signatures=signatures,
        links=links,
    )


def push_missing(
    source: DatasetLayout, blocks: list[HashedBlock], remote_head: Multihash, *, is_head: bool, files: WantedFiles
) -> Conversation[TransferResult]:
    """Upload missing linked objects to a server that has all blocks; the blocks are sent again, which changes nothing.

    Args:
        source: the local dataset, only read.
        blocks: the complete chain, oldest first.
        remote_head: the last seen head of the server.
        is_head: whether it is the server's head, not that of a branch or tag.
        files: linked objects to upload.

    Raises:
        TransferError: the server does not support linked objects.
        OdfError: see `push`.
    """
    if TAKES_LINKS not in (yield FetchCapabilities()):
        raise TransferError("The server does not accept linked files", hint="Push to a folder or a bucket instead.")
    return (yield from push(source, blocks, remote_head, is_head=is_head, files=files))


def _upload_links(
    source: DatasetLayout, blocks: list[HashedBlock], files: WantedFiles
) -> Conversation[tuple[LinkedResult, bool]]:
    """Upload linked objects; return the result, and whether a progress request may still be in transit."""
    offered = OfferedLinks(source, blocks, files)
    result, ping_in_transit = LinkedResult(), False
    for objects in (objects for items in offered.portions() for objects in rounds_of(items)):
        uploads = yield from _request_locations(objects, is_truncated=True)
        ping_in_transit |= yield from _upload(uploads)
        result += LinkedResult(len(uploads), sum(upload.item.size for upload in uploads))
    yield from _request_locations([], is_truncated=False)
    ping_in_transit |= yield from _upload(())
    return result + LinkedResult(elsewhere=offered.elsewhere), ping_in_transit


def _require_accepted(type_: type[PushAccepted | BlocksAccepted]) -> Conversation[None]:
    _, error = yield from receive_result(type_)
    match error:
        case None:
            return
        case InvalidHead():
            # In the reference implementation, `expected` is the current head.
            raise RemoteHeadMoved(
                f"The server's head is {head_text(error.expected_head)} by now, not {head_text(error.actual_head)}:"
                " another client has pushed",
                hint="Nothing was changed there; run the command again.",
            )
        case SeedBlockOverwriteRestricted():
            raise ForeignDataset(
                "The server has another dataset of that name, by its id",
                hint="Push it under another name: --to REPOSITORY/NAME.",
            )
    raise refusal_error(error)


def _request_locations(objects: list[ObjectOfBlock], *, is_truncated: bool) -> Conversation[tuple[Located, ...]]:
    """Offer objects; return those that the server lacks, with their upload URLs."""
    files = tuple(file_of(item) for item in objects)
    yield from send(PushObjects(files, is_truncated))
    # A progress request may have been in transit when the previous round ended.
    reply, error = yield from receive_result(UploadsAccepted, past=encode(Ping()))
    if reply is None:
        raise refusal_error(error)
    strategies = {strategy.object_file: strategy for strategy in reply.object_transfer_strategies}
    if strategies.keys() != set(files) or len(reply.object_transfer_strategies) != len(files):
        raise ProtocolViolation("The server does not provide upload locations for the offered objects")
    located = []
    for item in objects:
        strategy = strategies[file_of(item)]
        if strategy.push_strategy is PushStrategy.HTTP_UPLOAD:
            if strategy.upload_to is None:
                raise ProtocolViolation(f"The server requests the object {item.name}, but provides no location")
            located.append(Located(item, strategy.upload_to))
    return tuple(located)


def _upload(uploads: tuple[Located, ...]) -> Conversation[bool]:
    """Upload files; return whether a progress request of the server may still be in transit."""
    yield StartUploads(uploads)
    pings = 0
    while True:
        news = yield from receive_while_uploading()
        if news.text is None:
            yield from send(Progress(AllUploaded()))
            return pings > 0 or news.seconds > PING_EVERY / 2
        decode(Ping, news.text)
        pings += 1
        yield from send(Progress(Running(news.count)))


def _await_confirmation(head: Multihash, *, ping_in_transit: bool) -> Conversation[None]:
    """Wait until the push is committed.

    A confirmation cannot be distinguished from a progress request, some of which may have been in transit. In that
    case, the server's head is checked: while it is unchanged, the confirmation has not arrived yet.
    """
    yield from receive(Confirmed)
    if not ping_in_transit or (before := (yield FetchHead())) == head:
        return
    for _ in range(_MAX_PINGS):
        yield from receive(Confirmed)
        if (now := (yield FetchHead())) == head:
            return
        if now != before:
            break
    raise RemoteHeadMoved(f"The server has confirmed the push of {head}, but its head is {head_text(now)}")

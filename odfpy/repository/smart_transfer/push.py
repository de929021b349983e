"""A push, both sides of it.

      1. The client says which head it has seen, and sums up what it has on top of it.
      2. It sends the blocks; the server checks each of them, and every rule of the chain on top of what it has.
      3. It asks where the files go, and puts them there, in as many rounds as it takes. The server asks from time to
         time how that goes.
      4. The client says that this is all; the server sees that every file is there, stores the blocks and moves its
         head, if that still is where it was.

The connection may end anywhere: what arrived whole is kept, the head is where it was.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.ref_store import HEAD
from odfpy.chain.revocations import ExpiredKey, KnownRevocations, RevokedKey
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import DatasetLocked, DatasetsDiverged, OdfError, TransferError
from odfpy.repository.objects import LinkedObject, linked_objects
from odfpy.repository.peer_errors import ConnectionLost, ProtocolViolation, RemoteHeadMoved
from odfpy.repository.smart_transfer.archive import ArchiveLimits, pack
from odfpy.repository.smart_transfer.incoming import MAX_OBJECT_SIZE, Incoming, commit, place, read_blocks
from odfpy.repository.smart_transfer.messages import (
    MAX_MESSAGE,
    PING_EVERY,
    AllUploaded,
    BlocksAccepted,
    Complete,
    Confirmed,
    Internal,
    InvalidHead,
    ObjectFile,
    Ping,
    Progress,
    PushAccepted,
    PushBlocks,
    PushObjects,
    PushPhase,
    PushRequest,
    PushStrategy,
    Running,
    SeedBlockOverwriteRestricted,
    TransferUrl,
    Upload,
    UploadsAccepted,
    Visibility,
    decode,
    encode,
    encode_error,
    encode_ok,
)
from odfpy.repository.smart_transfer.pull import MAX_OBJECTS_ASKED, file_of, in_rounds, records_of, survey
from odfpy.repository.smart_transfer.push_signatures import take_signatures, upload_signatures
from odfpy.repository.smart_transfer.session import (
    AskHead,
    Conversation,
    Located,
    PeerClosed,
    Receive,
    Refusal,
    Send,
    StartUploads,
    head_text,
    receive,
    receive_result,
    receive_while_uploading,
    refusal_error,
    send,
)
from odfpy.repository.transfer.clock import require_past
from odfpy.repository.transfer.incoming_signatures import IncomingSignatures
from odfpy.repository.transfer.simple import ForeignDataset, TransferOutcome, TransferResult

_MAX_SILENT_PINGS = 6


# --- The client ---


def push(
    source: DatasetLayout,
    blocks: list[HashedBlock],
    remote_head: Multihash | None,
    *,
    force: bool = False,
    visibility: Visibility = Visibility.PRIVATE,
    is_head: bool = True,
) -> Conversation[TransferResult]:
    """Bring the server's dataset up to this one.

    Args:
        source: only read.
        blocks: what the server lacks, oldest first: those after its head, or all.
        remote_head: the head that the server had when it was asked.
        force: whether they may take the place of some that are there.
        visibility: who sees the dataset, if it is new there.
        is_head: whether it is the server's head that moves, and not a branch or tag.

    Raises:
        RemoteHeadMoved: the server's head is another one by now.
        ForeignDataset: the server has another dataset there.
        RemoteCollision: the server has it under another name.
        ProtocolViolation, PeerFailed, PeerClosed: the server does not play its part.
    """
    head = blocks[-1].hash
    linked = linked_objects(blocks)
    interval = survey(source, blocks, records_of(blocks))
    # 1.
    yield from send(PushRequest(remote_head, interval.plan, force, visibility))
    yield from _accepted(PushAccepted)
    # 2.
    text = encode(PushBlocks(pack((name, source.blocks.read(name)) for name in interval.names)))
    if len(text) > MAX_MESSAGE:
        raise TransferError(
            f"{len(blocks)} blocks are more than one message of the Smart Transfer Protocol can hold",
            hint="Push to a folder or a bucket instead.",
        )
    yield Send(text)
    yield from _accepted(BlocksAccepted)
    # 3.
    uploaded: list[LinkedObject] = []
    rounds = list(in_rounds(linked)) or [[]]
    in_doubt = False
    for at, some in enumerate(rounds):
        uploads = yield from _where_to(some, is_truncated=at + 1 < len(rounds))
        in_doubt |= yield from _upload(uploads)
        uploaded += [upload.item for upload in uploads]
    signatures = yield from upload_signatures(source, blocks, is_head=is_head)
    # 4.
    yield from send(Complete())
    yield from _confirmed(head, in_doubt=in_doubt)
    return TransferResult(
        outcome=TransferOutcome.UPDATED,
        old_head=remote_head,
        new_head=head,
        num_blocks=len(blocks),
        num_records=interval.plan.num_records,
        num_objects=len(uploaded),
        num_bytes=sum(item.size for item in uploaded),
        signatures=signatures,
    )


def _accepted(type_: type[PushAccepted | BlocksAccepted]) -> Conversation[None]:
    _, error = yield from receive_result(type_)
    match error:
        case None:
            return
        case InvalidHead():
            # What the reference calls `expected` is what is there.
            raise RemoteHeadMoved(
                f"The server's head is {head_text(error.expected_head)} by now, not {head_text(error.actual_head)}:"
                " somebody else has pushed",
                hint="Nothing was changed there; run the command again.",
            )
        case SeedBlockOverwriteRestricted():
            raise ForeignDataset(
                "The server has another dataset of that name, by its id",
                hint="Push it under another name: --to REPOSITORY/NAME.",
            )
    raise refusal_error(error)


def _where_to(objects: list[LinkedObject], *, is_truncated: bool) -> Conversation[tuple[Located, ...]]:
    files = tuple(file_of(item) for item in objects)
    yield from send(PushObjects(files, is_truncated))
    reply, error = yield from receive_result(UploadsAccepted)
    if reply is None:
        raise refusal_error(error)
    found = {strategy.object_file: strategy for strategy in reply.object_transfer_strategies}
    if found.keys() != set(files) or len(reply.object_transfer_strategies) != len(files):
        raise ProtocolViolation("The server does not say where the objects go that it was offered")
    located = []
    for item in objects:
        strategy = found[file_of(item)]
        if strategy.push_strategy is PushStrategy.HTTP_UPLOAD:
            if strategy.upload_to is None:
                raise ProtocolViolation(f"The server wants the object {item.name}, but does not say where")
            located.append(Located(item, strategy.upload_to))
    return tuple(located)


def _upload(uploads: tuple[Located, ...]) -> Conversation[bool]:
    """Upload files; gives whether a question of the server may still be on its way when it is done."""
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


def _confirmed(head: Multihash, *, in_doubt: bool) -> Conversation[None]:
    """Wait until the push is committed.

    A confirmation looks the same as a question how the uploads go, and one of these may have been on its way: then the
    server's head tells.
    """
    yield from receive(Confirmed)
    if not in_doubt or (yield AskHead()) == head:
        return
    yield from receive(Confirmed)
    if (found := (yield AskHead())) != head:
        raise RemoteHeadMoved(f"The server has confirmed the push of {head}, but its head is {head_text(found)}")


# --- The server ---


class PushTarget(Protocol):
    """The target of a push, as the server's side sees it."""

    def existing(self) -> DatasetLayout | None:
        """The dataset of that name, as it is now."""

    def stage(self, dataset_id: DatasetId) -> DatasetLayout:
        """Return where a new dataset grows until it is whole; what an earlier push has left of it is there.

        Raises:
            Refusal: it is somewhere else already.
        """

    def locate(self, dataset_id: DatasetId, file: ObjectFile) -> TransferUrl:
        """Return where an object is to be put."""

    def writing(self, dataset_id: DatasetId) -> AbstractContextManager[None]:
        """Hold the dataset's lock.

        Raises:
            DatasetLocked: somebody else is writing.
        """

    def publish(self, layout: DatasetLayout, dataset_id: DatasetId, visibility: Visibility) -> None:
        """Give the new dataset its name, under the lock.

        Args:
            layout: the folder in which it has grown.
            dataset_id: id of the dataset.
            visibility: who sees it then.

        Raises:
            Refusal: the name has been taken in the meantime.
        """


def serve_push(
    target: PushTarget,
    *,
    may_force: bool = True,
    may_bring_future: bool = True,
    clock: Timestamp | None = None,
    limits: ArchiveLimits | None = None,
    max_object_size: int = MAX_OBJECT_SIZE,
    revoked: KnownRevocations | None = None,
) -> Conversation[None]:
    """Let a client push.

    Args:
        target: where to.
        may_force: whether this client may overwrite blocks that are there.
        may_bring_future: whether this client may force blocks that are of the future.
        clock: the time here, of which blocks may not be far ahead unless they are forced; any may come where none is
            given.
        limits: of blocks that may come.
        max_object_size: bytes of a file that may come.
        revoked: what is known here of keys that have ended.

    Raises:
        Refusal: to be told to the client.
        PeerClosed: the client has gone in the middle of it.
    """
    phase = PushPhase.INITIAL_REQUEST
    try:
        request = yield from receive(PushRequest)
        layout = target.existing()
        head = layout.refs.get(HEAD) if layout else None
        if request.current_head != head:
            yield Send(encode_error(InvalidHead(request.current_head, head)))
            return
        yield Send(encode_ok(PushAccepted()))
        phase = PushPhase.METADATA_REQUEST
        blocks = (yield from receive(PushBlocks)).new_blocks
        if blocks.num_blocks != request.transfer_plan.num_blocks:
            raise ProtocolViolation(f"{blocks.num_blocks} blocks, {request.transfer_plan.num_blocks} were announced")
        here = layout.chain.in_order(head) if layout and head else []
        force = may_force and request.force_update_if_diverged
        incoming = place(
            read_blocks(blocks, limits or ArchiveLimits()), here, force=force, max_object_size=max_object_size
        )
        if not (force and may_bring_future):
            require_past(incoming.state.system_time, incoming.base.system_time, clock, "The push")
        yield Send(encode_ok(BlocksAccepted()))
        phase = PushPhase.ENSURING_TARGET_EXISTS
        dataset_id = incoming.state.dataset_id
        staged = layout or target.stage(dataset_id)
        phase = PushPhase.OBJECTS_REQUEST
        while (yield from _take_objects(incoming, staged, target)):
            pass
        phase = PushPhase.COMPLETE_REQUEST
        given = yield from take_signatures(incoming, here, staged, revoked or KnownRevocations(), clock)
        # The lock only for this: uploads may take hours. What others have committed meanwhile fails the swap of the
        # head.
        with target.writing(dataset_id):
            _commit(incoming, target, staged, head, request.visibility_for_created_dataset, given)
        yield from send(Confirmed())
    except (PeerClosed, Refusal):
        raise
    except ForeignDataset as error:
        raise Refusal(SeedBlockOverwriteRestricted()) from error
    except OdfError as error:
        raise Refusal(Internal(phase, _public(error, may_force=may_force))) from error


def _take_objects(incoming: Incoming, staged: DatasetLayout, target: PushTarget) -> Conversation[bool]:
    """One round of uploads; gives whether there is another."""
    request = yield from receive(PushObjects)
    if len(request.object_files) > MAX_OBJECTS_ASKED:
        raise ProtocolViolation(f"More than {MAX_OBJECTS_ASKED} objects at once")
    known = {file_of(item): item for item in incoming.objects}
    strategies = []
    for file in request.object_files:
        item = known.get(file)
        if item is None:
            raise ProtocolViolation(f"No block has {file.physical_hash}")
        if item.is_in(staged):
            strategies.append(Upload(file, PushStrategy.SKIP_UPLOAD, None))
        else:
            url = target.locate(incoming.state.dataset_id, file)
            strategies.append(Upload(file, PushStrategy.HTTP_UPLOAD, url))
    yield Send(encode_ok(UploadsAccepted(tuple(strategies))))
    silent = 0
    while True:
        text = yield Receive(within=PING_EVERY)
        if text is None:
            silent += 1
            if silent > _MAX_SILENT_PINGS:
                raise ConnectionLost("The client does not say how its uploads go")
            yield from send(Ping())
        elif isinstance(decode(Progress, text).details, AllUploaded):
            return request.is_truncated
        else:
            silent = 0


def _commit(
    incoming: Incoming,
    target: PushTarget,
    staged: DatasetLayout,
    head: Multihash | None,
    visibility: Visibility,
    given: IncomingSignatures,
) -> None:
    now = target.existing()
    if now is not None:
        # Where the dataset was new, and somebody else has made it in the meantime, this finds its head moved.
        commit(incoming, now, head, before=given.store)
    elif head is not None:
        raise TransferError("The dataset has been deleted")
    else:
        left = staged.refs.get(HEAD)  # of a push that was cut at the last moment
        commit(incoming, staged, left, before=given.store)
        target.publish(staged, incoming.state.dataset_id, visibility)


def _public(error: OdfError, *, may_force: bool) -> str:
    """Return what a client may know of an error: what is wrong with its bytes, not where things are on the server.

    A closing frame has room for few words.
    """
    name = f"{error.code} {type(error).__name__}"
    if isinstance(error, RevokedKey):
        return f"{name}: signed with {'an expired' if isinstance(error, ExpiredKey) else 'a revoked'} key"
    if isinstance(error, DatasetsDiverged):
        return f"{name}: force is needed" if may_force else f"{name}: needs the scope admin"
    if isinstance(error, DatasetLocked):
        return f"{name}: somebody else is writing"
    return name if "/" in error.message else f"{name}: {error.message}"

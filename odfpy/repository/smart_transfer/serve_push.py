"""The server's side of a push; see `push`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.revocations import ExpiredKey, KnownRevocations, RevokedKey
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import DatasetLocked, OdfError, TransferError
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.peer_errors import ConnectionLost, ProtocolViolation
from odfpy.repository.smart_transfer.archive import ArchiveLimits
from odfpy.repository.smart_transfer.incoming import (
    MAX_OBJECT_SIZE,
    Incoming,
    commit,
    place,
    read_blocks,
    require_files,
)
from odfpy.repository.smart_transfer.messages import (
    PING_EVERY,
    AllUploaded,
    BlocksAccepted,
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
    SeedBlockOverwriteRestricted,
    TransferUrl,
    Upload,
    UploadsAccepted,
    Visibility,
    decode,
    encode_error,
    encode_ok,
)
from odfpy.repository.smart_transfer.pull import MAX_OBJECTS_ASKED, file_of
from odfpy.repository.smart_transfer.push_links import AcceptedLinks
from odfpy.repository.smart_transfer.push_signatures import take_signatures
from odfpy.repository.smart_transfer.session import (
    Conversation,
    PeerClosed,
    Receive,
    Refusal,
    Send,
    receive,
    send,
)
from odfpy.repository.transfer.clock import require_past
from odfpy.repository.transfer.incoming_signatures import IncomingSignatures
from odfpy.repository.transfer.simple import ForeignDataset

_MAX_SILENT_PINGS = 6


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

    def receiving(self, dataset_id: DatasetId) -> AbstractContextManager[None]:
        """Keep all objects of the dataset, also those that no block has yet, while others come.

        Raises:
            DatasetLocked: somebody is removing objects.
        """

    def writing(self, dataset_id: DatasetId) -> AbstractContextManager[None]:
        """Hold the dataset's lock.

        Raises:
            DatasetLocked: somebody else is writing.
        """

    def note_lacking(self, dataset_id: DatasetId) -> None:
        """Note that a dataset has not all files that rows link to, under the lock."""

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
    has_all_files: bool = False,
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
        has_all_files: whether the client says that it has all objects that rows link to.

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
        with target.receiving(dataset_id):
            staged = layout or target.stage(dataset_id)
            phase = PushPhase.OBJECTS_REQUEST
            links = AcceptedLinks(incoming, staged)
            while (yield from _take_objects(incoming, staged, target, links, max_object_size)):
                pass
            phase = PushPhase.COMPLETE_REQUEST
            given = yield from take_signatures(incoming, here, staged, revoked or KnownRevocations(), clock)
            # The lock only for this: uploads may take hours. What others have committed meanwhile fails the swap of the
            # head.
            with target.writing(dataset_id):
                require_files(incoming, staged)
                lacking = links.lacking(has_all=has_all_files)
                if lacking:
                    target.note_lacking(dataset_id)
                _commit(incoming, target, staged, head, request.visibility_for_created_dataset, given)
        yield from send(Confirmed())
    except (PeerClosed, Refusal):
        raise
    except ForeignDataset as error:
        raise Refusal(SeedBlockOverwriteRestricted()) from error
    except OdfError as error:
        raise Refusal(Internal(phase, _public(error, may_force=may_force))) from error


def _take_objects(
    incoming: Incoming, staged: DatasetLayout, target: PushTarget, links: AcceptedLinks, max_size: int
) -> Conversation[bool]:
    """One round of uploads; gives whether there is another."""
    request = yield from receive(PushObjects)
    if len(request.object_files) > MAX_OBJECTS_ASKED:
        raise ProtocolViolation(f"More than {MAX_OBJECTS_ASKED} objects at once")
    known = {file_of(item): item for item in incoming.objects}
    strategies = []
    for file in request.object_files:
        item = known.get(file) or links.find(file, max_size)
        if item is None:
            raise ProtocolViolation(f"No block has {file.physical_hash}, and no row links to it")
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

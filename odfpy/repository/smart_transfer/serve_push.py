"""Server side of a push; see `push` for the protocol."""

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
    attach_blocks,
    commit,
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
from odfpy.repository.smart_transfer.push_signatures import receive_signatures
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
    """The target of a push; implemented by the server."""

    def existing(self) -> DatasetLayout | None:
        """Return the current dataset with the name, None if there is none."""

    def stage(self, dataset_id: DatasetId) -> DatasetLayout:
        """Return the staging folder of a new dataset, with files left by an earlier push.

        Raises:
            Refusal: the dataset exists under another name.
        """

    def locate(self, dataset_id: DatasetId, file: ObjectFile) -> TransferUrl:
        """Return the URL to upload an object."""

    def receiving(self, dataset_id: DatasetId) -> AbstractContextManager[None]:
        """Protect all objects of the dataset from garbage collection during the block.

        Raises:
            DatasetLocked: garbage collection is running.
        """

    def writing(self, dataset_id: DatasetId) -> AbstractContextManager[None]:
        """Hold the dataset's lock during the block.

        Raises:
            DatasetLocked: another process is writing.
        """

    def note_lacking(self, dataset_id: DatasetId) -> None:
        """Record that a dataset lacks linked objects; called under the lock."""

    def publish(self, layout: DatasetLayout, dataset_id: DatasetId, visibility: Visibility) -> None:
        """Publish the new dataset under its name; called under the lock.

        Args:
            layout: the staging folder.
            dataset_id: id of the dataset.
            visibility: visibility of the new dataset.

        Raises:
            Refusal: the name has been assigned in the meantime.
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
    """Serve a push.

    Args:
        target: the target of the push.
        may_force: whether this client may replace existing blocks.
        may_bring_future: whether this client may force blocks with a time in the future.
        clock: current time; blocks must not be far ahead of it unless they are forced; None for no check.
        limits: limits on received blocks.
        max_object_size: maximum size of a file.
        revoked: known revoked and expired keys.
        has_all_files: whether the client declares that it has all linked objects.

    Raises:
        Refusal: an error to report to the client.
        PeerClosed: the client has disconnected before the end.
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
        existing = layout.chain.in_order(head) if layout and head else []
        force = may_force and request.force_update_if_diverged
        incoming = attach_blocks(
            read_blocks(blocks, limits or ArchiveLimits()), existing, force=force, max_object_size=max_object_size
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
            while (yield from _receive_objects(incoming, staged, target, links, max_object_size)):
                pass
            phase = PushPhase.COMPLETE_REQUEST
            signatures = yield from receive_signatures(incoming, existing, staged, revoked or KnownRevocations(), clock)
            # Locked only for the commit: uploads may take hours. If another process has committed in the meantime, the
            # compare-and-swap of the head fails.
            with target.writing(dataset_id):
                require_files(incoming, staged)
                lacking = links.lacking(has_all=has_all_files)
                if lacking:
                    target.note_lacking(dataset_id)
                _commit(incoming, target, staged, head, request.visibility_for_created_dataset, signatures)
        yield from send(Confirmed())
    except (PeerClosed, Refusal):
        raise
    except ForeignDataset as error:
        raise Refusal(SeedBlockOverwriteRestricted()) from error
    except OdfError as error:
        raise Refusal(Internal(phase, _public_message(error, may_force=may_force))) from error


def _receive_objects(
    incoming: Incoming, staged: DatasetLayout, target: PushTarget, links: AcceptedLinks, max_size: int
) -> Conversation[bool]:
    """Run one round of uploads; return whether there is another one."""
    request = yield from receive(PushObjects)
    if len(request.object_files) > MAX_OBJECTS_ASKED:
        raise ProtocolViolation(f"More than {MAX_OBJECTS_ASKED} objects at once")
    objects = {file_of(item): item for item in incoming.objects}
    strategies = []
    for file in request.object_files:
        item = objects.get(file) or links.find(file, max_size)
        if item is None:
            raise ProtocolViolation(f"No block has {file.physical_hash}, and no row links to it")
        if item.is_in(staged):
            strategies.append(Upload(file, PushStrategy.SKIP_UPLOAD, None))
        else:
            url = target.locate(incoming.state.dataset_id, file)
            strategies.append(Upload(file, PushStrategy.HTTP_UPLOAD, url))
    yield Send(encode_ok(UploadsAccepted(tuple(strategies))))
    unanswered = 0
    while True:
        text = yield Receive(within=PING_EVERY)
        if text is None:
            unanswered += 1
            if unanswered > _MAX_SILENT_PINGS:
                raise ConnectionLost("The client does not report its progress")
            yield from send(Ping())
        elif isinstance(decode(Progress, text).details, AllUploaded):
            return request.is_truncated
        else:
            unanswered = 0


def _commit(
    incoming: Incoming,
    target: PushTarget,
    staged: DatasetLayout,
    head: Multihash | None,
    visibility: Visibility,
    signatures: IncomingSignatures,
) -> None:
    """Store blocks and signatures, and move the head; fail if it has moved since the push began.

    Args:
        incoming: the pushed blocks.
        target: the target of the push.
        staged: the dataset, or the staging folder of a new one.
        head: the head when the push began, None for a new dataset.
        visibility: visibility of a new dataset.
        signatures: the pushed signatures.

    Raises:
        ConcurrentUpdate: another process has moved the head in the meantime.
        TransferError: the dataset has been deleted.
    """
    now = target.existing()
    if now is not None:
        # If another push has created the new dataset in the meantime, the compare-and-swap of the head fails.
        commit(incoming, now, head, before=signatures.store)
    elif head is not None:
        raise TransferError("The dataset has been deleted")
    else:
        staged_head = staged.refs.get(HEAD)  # left by an interrupted push
        commit(incoming, staged, staged_head, before=signatures.store)
        target.publish(staged, incoming.state.dataset_id, visibility)


def _public_message(error: OdfError, *, may_force: bool) -> str:
    """Return the description of an error for a client: the error in its data, without paths of the server.

    A close frame only has room for a short text.
    """
    name = f"{error.code} {type(error).__name__}"
    if isinstance(error, RevokedKey):
        return f"{name}: signed with {'an expired' if isinstance(error, ExpiredKey) else 'a revoked'} key"
    if isinstance(error, DatasetsDiverged):
        return f"{name}: force is needed" if may_force else f"{name}: needs the scope admin"
    if isinstance(error, DatasetLocked):
        return f"{name}: another process is writing"
    return name if "/" in error.message else f"{name}: {error.message}"

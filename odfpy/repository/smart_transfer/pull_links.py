"""Linked objects in a pull, which are requested after the slices have arrived.

The protocol has no message for them. An odfpy server announces support in its handshake (`Odf-Takes`): then their URLs
are requested in rounds after those of the slices, and the server omits objects that it lacks. From all other servers,
including the reference implementation, each object is requested as from a static file server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.links.linked_objects import UNKNOWN, linked_slices
from odfpy.data.hash_set import HashSet
from odfpy.repository.objects import ObjectOfBlock
from odfpy.repository.peer_errors import ProtocolViolation
from odfpy.repository.smart_transfer.incoming import Incoming
from odfpy.repository.smart_transfer.messages import (
    MAX_OBJECTS,
    Download,
    ObjectFile,
    ObjectsReply,
    ObjectsRequest,
)
from odfpy.repository.smart_transfer.session import (
    Conversation,
    FetchCapabilities,
    FetchedLinks,
    FetchLinked,
    receive,
    send,
)
from odfpy.repository.transfer.linked import LinkedResult, WantedFiles, lacking, require_columns, require_no_loss
from odfpy.repository.transfer.linked_names import linked_in

TAKES_LINKS = "linked-objects"
"""The extension's name in the handshake of a server."""

MAX_ROUND = 4 * 1024**3
"""Maximum size of a round of requested objects in bytes, since their URLs expire."""


def pull_links(incoming: Incoming, target: DatasetLayout, files: WantedFiles) -> Conversation[LinkedResult]:
    """Download the objects that the new rows link to, after their slices have arrived.

    Args:
        incoming: the received blocks.
        target: the target dataset.
        files: the objects to transfer.

    Raises:
        MissingLinkedObjects: the server lacks required objects.
        IntegrityError: an object contradicts its row, or a link is invalid.
        ProtocolViolation: the server violates the protocol.
    """
    blocks, base = incoming.received, incoming.received_base
    if files.choice.is_empty:
        return LinkedResult()
    require_columns(blocks, base, files.choice)
    result, missing = LinkedResult(), HashSet()
    for items in linked_in(linked_slices(blocks, base), target, files.choice, HashSet()):
        for some in rounds_of(lacking(items, target.data)):
            found: FetchedLinks = yield from _fetch(some, missing)
            result += found.result
            missing.add_all(found.missing)
    if len(missing):
        before = [] if base.head is None else target.chain.in_order(base.head)
        result += LinkedResult(elsewhere=require_no_loss(missing, [*before, *blocks], target, files, "The server"))
    return result


def _fetch(items: list[ObjectOfBlock], missing: HashSet) -> Conversation[FetchedLinks]:
    if TAKES_LINKS not in (yield FetchCapabilities()):
        found: FetchedLinks = yield FetchLinked(tuple(items), None)
        return found
    yield from send(ObjectsRequest(tuple(file_of_link(item) for item in items)))
    reply = yield from receive(ObjectsReply)
    located = {strategy.object_file.physical_hash: strategy for strategy in reply.object_transfer_strategies}
    if len(located) != len(reply.object_transfer_strategies) or not located.keys() <= {item.name for item in items}:
        raise ProtocolViolation("The server provides locations for objects that were not requested")
    there = tuple(_sized(item, located[item.name]) for item in items if item.name in located)
    missing.add_hashes(item.name for item in items if item.name not in located)
    found = yield FetchLinked(there, {name: one.download_from for name, one in located.items()})
    return found


def _sized(item: ObjectOfBlock, found: Download) -> ObjectOfBlock:
    return replace(item, size=found.object_file.size) if item.size == UNKNOWN else item


def file_of_link(item: ObjectOfBlock) -> ObjectFile:
    """Convert an object for messages: without a size, if its row has none."""
    return ObjectFile(item.kind, item.name, max(0, item.size))


def rounds_of(items: list[ObjectOfBlock]) -> Iterator[list[ObjectOfBlock]]:
    """Split objects into rounds, each of which can be transferred before its URLs expire."""
    some: list[ObjectOfBlock] = []
    size = 0
    for item in items:
        if some and (len(some) == MAX_OBJECTS or size + item.size > MAX_ROUND):
            yield some
            some, size = [], 0
        some.append(item)
        size += max(0, item.size)
    if some:
        yield some

"""Both sides of the transfer of signatures in a push; see `signature_messages`."""

from __future__ import annotations

from collections.abc import Sequence

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceView
from odfpy.chain.revocations import KnownRevocations, key_of
from odfpy.chain.signatures import (
    HEAD_PATH,
    HEAD_SIGNATURES,
    MAX_SIZE,
    MalformedSignature,
    SignatureReport,
    SignedBlock,
    decode,
    has_signatures,
    path_of,
    read_all_signatures,
    read_head_signatures,
)
from odfpy.data.timestamp import Timestamp
from odfpy.repository.peer_errors import ProtocolViolation
from odfpy.repository.smart_transfer import messages
from odfpy.repository.smart_transfer.incoming import Incoming
from odfpy.repository.smart_transfer.messages import Complete
from odfpy.repository.smart_transfer.session import Conversation, FetchCapabilities, receive_text, send
from odfpy.repository.smart_transfer.signature_messages import (
    MAX_FILES,
    TAKES_SIGNATURES,
    PushSignatures,
    SideFile,
)
from odfpy.repository.transfer.incoming_signatures import MAX_KEYS, IncomingSignatures, files_of

# --- The client ---


def upload_signatures(
    source: DatasetLayout, blocks: Sequence[HashedBlock], *, is_head: bool
) -> Conversation[SignatureReport | None]:
    """Send the signatures of pushed blocks, if the server supports that; return the signers, None if not supported.

    Args:
        source: the local dataset.
        blocks: the pushed blocks, oldest first.
        is_head: whether the last block becomes the head, not the tip of a branch or tag.

    Raises:
        ForgedSignature, MalformedSignature: a local signature is invalid; the message names its file.
    """
    side = source.side
    if side is None or not has_signatures(side) or TAKES_SIGNATURES not in (yield FetchCapabilities()):
        return None
    data = side.read(HEAD_PATH, MAX_SIZE)
    assert data is not None  # noqa: S101 - signed entries have data
    dataset_id = decode(data, HEAD_SIGNATURES, side.describe(HEAD_PATH)).dataset_id
    signatures = read_all_signatures(side, dataset_id, blocks)
    signed: dict[str, SignedBlock | None] = {
        path_of(hashed.hash): one for hashed, one in zip(blocks, signatures, strict=True)
    }
    if is_head:
        signed[HEAD_PATH] = read_head_signatures(side, dataset_id, blocks[-1])
    files = [SideFile(path, text.decode()) for path, text in files_of(side, dataset_id, signed).items()]
    for start in range(0, len(files), MAX_FILES):
        yield from send(PushSignatures(tuple(files[start : start + MAX_FILES])))
    return SignatureReport.of(signatures)


# --- The server ---


def receive_signatures(
    incoming: Incoming,
    existing: Sequence[HashedBlock],
    target: DatasetLayout,
    known: KnownRevocations,
    clock: Timestamp | None,
) -> Conversation[IncomingSignatures]:
    """Receive signatures until the client sends that the push is complete.

    Args:
        incoming: the pushed blocks.
        existing: existing blocks.
        target: the dataset, or the staging folder of a new one.
        known: known revoked and expired keys.
        clock: current time; blocks must not be far ahead of it; None for no check.

    Raises:
        ForgedSignature, MalformedSignature, UnentitledRevocation: a file is invalid.
        RevokedKey: a signature is by a revoked or expired key.
        ProtocolViolation: there are too many files, or a message is unexpected.
    """
    chain = (*existing[: len(existing) - len(incoming.dropped)], *(block.hashed for block in incoming.blocks))
    new = {path_of(one.hash): one for one in chain}
    newest = chain[-1] if chain else None
    if newest is not None and not isinstance(target.refs, ReferenceView):
        new[HEAD_PATH] = newest
    numbers = {one.block.sequence_number: one.hash for one in chain}
    signatures = IncomingSignatures(incoming.state.dataset_id, known, clock or Timestamp.now(), numbers.get)
    count = 0
    while (files := _signatures_in((yield from receive_text()))) is not None:
        count += len(files)
        if len(files) > MAX_FILES or count > len(new) + MAX_KEYS:
            raise ProtocolViolation("More signatures than there are blocks")
        for file in files:
            key, hashed = key_of(file.path), new.get(file.path)
            if key is not None:
                signatures.take_statements(file.path, file.text.encode("utf-8", "replace"), key)
            elif hashed is not None:
                signatures.take(file.path, file.text.encode("utf-8", "replace"), hashed)
            else:
                raise MalformedSignature(f"{file.path[:200]!r} is not a place for signatures of this push")
    signatures.require(target.side, newest.hash if newest is not None else None)
    return signatures


def _signatures_in(text: str) -> tuple[SideFile, ...] | None:
    """Parse the files in a message; return None if it is the completion.

    Raises:
        ProtocolViolation: the message is another one.
    """
    try:
        return messages.decode(PushSignatures, text).signatures
    except ProtocolViolation:
        messages.decode(Complete, text)
    return None

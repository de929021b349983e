"""Client of the Smart Transfer Protocol: pull from and push to a node; `transfer` is for other remotes."""

from __future__ import annotations

from dataclasses import replace

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceName
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.repository.divergence import compare_chains, records_of
from odfpy.repository.locations.http import http_dataset
from odfpy.repository.locations.node import node_dataset, upload_signatures
from odfpy.repository.objects import BytesProgress
from odfpy.repository.smart_transfer.messages import Visibility
from odfpy.repository.smart_transfer.pull import IntervalRefused, blocks_after, pull
from odfpy.repository.smart_transfer.push import push, push_missing
from odfpy.repository.smart_transfer.push_links import link_headers
from odfpy.repository.smart_transfer.session import Conversation
from odfpy.repository.smart_transfer.websocket import run_conversation
from odfpy.repository.transfer.linked import ALL_FILES, NO_FILES, WantedFiles
from odfpy.repository.transfer.options import DEFAULTS, TransferOptions
from odfpy.repository.transfer.signatures import carry_revocations
from odfpy.repository.transfer.simple import (
    TransferOutcome,
    TransferResult,
    copy_missing_linked_objects,
    head_of_source,
    resolve_divergence,
    transfer,
)
from odfpy.values import dataclass


def pull_from_node(
    base: str,
    target: DatasetLayout,
    options: TransferOptions = DEFAULTS,
    *,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Update a dataset from a node, whose http or https URL is `base`; otherwise like `transfer`.

    Args:
        base: http or https URL of the dataset on the node.
        target: the local dataset.
        options: requirements on the source, and content to copy.
        progress: called with the number of bytes received.
    """
    node = http_dataset(base)
    node_head, head = head_of_source(node), target.refs.get(HEAD)
    if node_head == head:
        carry_revocations(node, target, head, options.required)
        links = copy_missing_linked_objects(node, target, node_head, options.files, progress)
        return TransferResult(outcome=TransferOutcome.UP_TO_DATE, old_head=head, new_head=head, links=links)
    conversation = pull(target, options)
    try:
        return run_conversation(base, "pull", conversation, target, progress)
    except IntervalRefused:
        # The node is behind or has diverged: walk both chains back to their common ancestor.
        return transfer(node, target, replace(options, force=False), progress=progress)


def push_to_node(
    source: DatasetLayout,
    base: str,
    *,
    force: bool = False,
    visibility: Visibility = Visibility.PRIVATE,
    reference: ReferenceName | None = None,
    files: WantedFiles = ALL_FILES,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Update the dataset on a node from a local one, and send signatures; see `transfer` for errors.

    Args:
        source: the local dataset, only read.
        base: http or https URL of the dataset on the node.
        force: whether to overwrite the node's history, even if that drops blocks there.
        visibility: visibility of the dataset, if it is new there.
        reference: the branch or tag to move to the head of `source`, None for the node's head; only supported by odfpy
            nodes.
        files: linked objects to transfer; none if rows have no links.
        progress: called with the transferred and the total number of bytes.
    """
    result = _NodePush(source, base, visibility, reference, files, progress).run(force=force)
    if result.outcome is TransferOutcome.TARGET_AHEAD:
        return result
    if result.signatures is None:
        return replace(result, signatures=upload_signatures(source, result.new_head, base, is_head=reference is None))
    # Signatures of these blocks were part of the push; those of an earlier push may be missing.
    if result.old_head is not None and result.old_head in source.blocks:
        upload_signatures(source, result.old_head, base, is_head=False)
    return result


@dataclass(frozen=True, slots=True)
class _NodePush:
    """A push to a node; the attributes are the arguments of `push_to_node`."""

    source: DatasetLayout
    base: str
    visibility: Visibility
    reference: ReferenceName | None
    files: WantedFiles
    progress: BytesProgress | None

    def run(self, *, force: bool) -> TransferResult:
        """Compare the heads, and push the blocks that the node lacks."""
        source, reference = self.source, self.reference
        node = http_dataset(self.base) if reference is None else node_dataset(self.base).on(reference)
        head, node_head = head_of_source(source), node.refs.get(HEAD)
        if node_head == head:
            return self._push_missing_links(head)
        blocks = blocks_after(source.chain, head, node_head, force=False)
        divergence = None
        if blocks is None:
            divergence = compare_chains(source, head, node, node_head)
            decided = resolve_divergence(divergence, source, head, node, node_head, TransferOptions(force=force))
            if decided is not None:
                return decided
            blocks = source.chain.in_order(head)
        if reference is not None and head in node.blocks:
            node.refs.compare_and_swap(HEAD, node_head, head)
            result = TransferResult(
                outcome=TransferOutcome.UPDATED, old_head=node_head, new_head=head, num_blocks=len(blocks)
            )
        else:
            visibility, is_head, files = self.visibility, reference is None, self.files
            result = self._converse(
                push(source, blocks, node_head, force=force, visibility=visibility, is_head=is_head, files=files)
            )
        if divergence is None:
            return result
        return replace(
            result,
            num_blocks=len(divergence.source),
            num_records=records_of(block.hashed for block in divergence.source),
            num_dropped=len(divergence.target),
            num_dropped_records=records_of(block.hashed for block in divergence.target),
        )

    def _push_missing_links(self, head: Multihash) -> TransferResult:
        """Push missing linked objects to a node that has all blocks."""
        result = TransferResult(outcome=TransferOutcome.UP_TO_DATE, old_head=head, new_head=head)
        if not self.files.complete or self.files.choice.is_empty:
            return result
        blocks, is_head = self.source.chain.in_order(head), self.reference is None
        pushed = self._converse(push_missing(self.source, blocks, head, is_head=is_head, files=self.files))
        return replace(result, links=pushed.links)

    def _converse(self, conversation: Conversation[TransferResult]) -> TransferResult:
        headers = {} if self.files is NO_FILES else link_headers(self.files)
        return run_conversation(
            self.base,
            "push",
            conversation,
            self.source,
            self.progress,
            reference=self.reference,
            headers=headers,
        )

"""Pulling from and pushing to a node by the Smart Transfer Protocol; `transfer` serves other remotes."""

from __future__ import annotations

from dataclasses import replace

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceName
from odfpy.chain.stores.ref_store import HEAD
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
        options: what is required of the source, and what is copied.
        progress: called with the number of bytes received.
    """
    node = http_dataset(base)
    node_head, head = head_of_source(node), target.refs.get(HEAD)
    if node_head == head:
        carry_revocations(node, target, head, options.required)
        links = copy_missing_linked_objects(node, target, node_head, options.files, progress)
        return TransferResult(outcome=TransferOutcome.UP_TO_DATE, old_head=head, new_head=head, links=links)
    talk = pull(target, options)
    try:
        return run_conversation(base, "pull", talk, target, progress)
    except IntervalRefused:
        # It is behind, or they have diverged: walking both chains back to their common ancestor tells.
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
    """Update the dataset on a node from this one; errors as of `transfer`. Signatures are sent, too.

    Args:
        source: the local dataset, only read.
        base: http or https URL of the dataset on the node.
        force: whether to overwrite the node's history, even if that drops blocks there.
        visibility: visibility of the dataset, if it is new there.
        reference: the branch or tag to move to the head of `source`; only supported by odfpy nodes.
        files: which linked objects to transfer; none where rows link to none.
        progress: called with the transferred and the total number of bytes.
    """
    result = _pushed(source, base, force, visibility, reference, files, progress)
    if result.outcome is TransferOutcome.TARGET_AHEAD:
        return result
    if result.signatures is None:
        return replace(result, signatures=upload_signatures(source, result.new_head, base, is_head=reference is None))
    # Signatures of this push have been sent with it; those of an earlier push may be missing.
    if result.old_head is not None and result.old_head in source.blocks:
        upload_signatures(source, result.old_head, base, is_head=False)
    return result


def _pushed(
    source: DatasetLayout,
    base: str,
    force: bool,
    visibility: Visibility,
    reference: ReferenceName | None,
    files: WantedFiles,
    progress: BytesProgress | None,
) -> TransferResult:
    node = http_dataset(base) if reference is None else node_dataset(base).on(reference)
    head, node_head = head_of_source(source), node.refs.get(HEAD)
    if node_head == head:
        same = TransferResult(outcome=TransferOutcome.UP_TO_DATE, old_head=node_head, new_head=head)
        if not files.complete or files.choice.is_empty:
            return same
        talk = push_missing(source, source.chain.in_order(head), node_head, is_head=reference is None, files=files)
        return replace(same, links=_said(talk, source, base, files, reference, progress).links)
    blocks = blocks_after(source.chain, head, node_head, force=False)
    found = None
    if blocks is None:
        found = compare_chains(source, head, node, node_head)
        decided = resolve_divergence(found, source, head, node, node_head, TransferOptions(force=force))
        if decided is not None:
            return decided
        blocks = source.chain.in_order(head)
    if reference is not None and head in node.blocks:
        node.refs.compare_and_swap(HEAD, node_head, head)
        result = TransferResult(
            outcome=TransferOutcome.UPDATED, old_head=node_head, new_head=head, num_blocks=len(blocks)
        )
    else:
        is_head = reference is None
        talk = push(source, blocks, node_head, force=force, visibility=visibility, is_head=is_head, files=files)
        result = _said(talk, source, base, files, reference, progress)
    if found is None:
        return result
    return replace(
        result,
        num_blocks=len(found.source),
        num_records=records_of(block.hashed for block in found.source),
        num_dropped=len(found.target),
        num_dropped_records=records_of(block.hashed for block in found.target),
    )


def _said(
    talk: Conversation[TransferResult],
    source: DatasetLayout,
    base: str,
    files: WantedFiles,
    reference: ReferenceName | None,
    progress: BytesProgress | None,
) -> TransferResult:
    headers = {} if files is NO_FILES else link_headers(files)
    return run_conversation(base, "push", talk, source, progress, reference=reference, headers=headers)

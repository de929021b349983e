"""Transfer of a dataset between two locations (ODF specification, "Simple Transfer Protocol", RFC-007).

Push and pull are the same operation: blocks and files are copied from a source, which is only read, to a target, whose
head moves at the very end. Until then, the target is unchanged; complete files are retained, and not copied again.
"""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from functools import partial

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.new_blocks import validate
from odfpy.chain.signatures import SignatureReport
from odfpy.chain.state import ChainState
from odfpy.chain.stores.object_store import LocalObjectStore
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.amounts import count_of
from odfpy.data.multihash import Multihash
from odfpy.errors import DatasetNotFound, TransferError
from odfpy.repository.divergence import DatasetsDiverged, Divergence, compare_chains, records_of
from odfpy.repository.objects import BytesProgress, copy_blocks, copy_objects, missing_objects, objects_of_blocks
from odfpy.repository.transfer.clock import require_past
from odfpy.repository.transfer.linked import LinkedResult, WantedFiles, copy_linked
from odfpy.repository.transfer.options import DEFAULTS, TransferOptions
from odfpy.repository.transfer.signatures import carry_revocations, collect_signatures
from odfpy.repository.transfer.slice_checks import check_slices
from odfpy.values import dataclass


class ForeignDataset(TransferError, code="E602"):
    """The datasets at the two locations have different ids."""


class HistoryRewritten(TransferError, code="E660"):
    """A remote has removed blocks from its history that exist here."""


class TransferOutcome(Enum):
    """The outcome of a transfer."""

    UP_TO_DATE = "up-to-date"
    UPDATED = "updated"
    TARGET_AHEAD = "target-ahead"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResult:
    """The result of a transfer.

    Attributes:
        outcome: up-to-date (the heads are equal), updated (the target's head is now the source's), target-ahead
            (nothing to do: the target has all blocks, and more).
        old_head: previous head of the target, None if it was empty.
        new_head: current head of the target.
        num_blocks: number of transferred blocks.
        num_records: number of rows in these blocks.
        num_objects: number of copied data files and checkpoints, without existing ones.
        num_bytes: total size of these files in bytes.
        num_dropped: number of blocks removed from the target's chain; only with `force`.
        num_dropped_records: number of rows in these blocks.
        num_ahead: number of blocks that only the target has.
        signatures: signers of the transferred blocks, None if there were none.
        links: counts of the copied linked objects.
        behind: head of the source, if it is behind the target's.
        state: state of the chain at its new head, if known without reading the chain again.
    """

    outcome: TransferOutcome
    old_head: Multihash | None
    new_head: Multihash
    num_blocks: int = 0
    num_records: int = 0
    num_objects: int = 0
    num_bytes: int = 0
    num_dropped: int = 0
    num_dropped_records: int = 0
    num_ahead: int = 0
    behind: Multihash | None = None
    signatures: SignatureReport | None = None
    state: ChainState | None = None
    links: LinkedResult = field(default_factory=LinkedResult)

    @property
    def source_head(self) -> Multihash:
        """Return the head of the source."""
        return self.behind or self.new_head


def transfer(
    source: DatasetLayout,
    target: DatasetLayout,
    options: TransferOptions = DEFAULTS,
    *,
    is_ours: bool = False,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Update the target from the source.

      1. Read both heads; if they are equal, there is nothing to do.
      2. Walk both chains back to their common ancestor.
      3. Decide: nothing to do, fast-forward, overwrite, or reject.
      4. Validate the new blocks on top of the target's chain, and their signatures.
      5. Copy data files and checkpoints that the target lacks, and check that footers match their blocks.
      6. Copy the selected linked objects of their rows.
      7. Copy blocks and signatures.
      8. Move the head, if it has not moved in the meantime.

    Args:
        source: the source, which is only read, and not trusted.
        target: the dataset to update; its lock, if any, is held by the caller.
        options: requirements on the source, and content to copy.
        is_ours: whether the source is a local workspace, whose data files were checked when they arrived.
        progress: called with the transferred and the total number of bytes, while files are copied.

    Raises:
        DatasetNotFound: the source has no head.
        DatasetsDiverged: both have blocks that the other one lacks.
        HistoryRewritten: the source has removed blocks that it had before.
        ForeignDataset: source and target, or source and `options.expected_id`, are different datasets.
        IntegrityError, MalformedData, ObjectNotFound: an object of the source is invalid or missing; the message names
            the object.
        FromTheFuture: blocks are more than a day ahead of `options.clock`.
        ForgedSignature, NotSigned: a signature is invalid, or a required one is missing.
        RevokedKey: a block is signed with a revoked or expired key.
        ConcurrentUpdate: another process has moved the target's head in the meantime.
        TransferError: the target is not writable, or the source is unreachable.
    """
    _require_writable(target)
    # 1.
    source_head, target_head = head_of_source(source), target.refs.get(HEAD)
    if source_head == target_head:
        carry_revocations(source, target, source_head, options.required)
        return TransferResult(
            outcome=TransferOutcome.UP_TO_DATE,
            old_head=target_head,
            new_head=source_head,
            links=copy_missing_linked_objects(source, target, source_head, options.files, progress),
        )
    # 2.
    divergence = compare_chains(source, source_head, target, target_head)
    # 3.
    decided = resolve_divergence(divergence, source, source_head, target, target_head, options)
    if decided is not None:  # the target has all blocks, but may lack files
        return replace(decided, links=copy_missing_linked_objects(source, target, source_head, options.files, progress))
    # 4.
    # Both sides have the ancestor, but reading from a bucket would cost a request per block.
    nearer = target if isinstance(target.blocks, LocalObjectStore) else source
    base = nearer.chain.state(divergence.ancestor) if divergence.ancestor else ChainState()
    state = validate((block.hashed for block in divergence.source), base)
    if options.expected_id not in (None, state.dataset_id):
        raise ForeignDataset(
            f"{source.refs.describe(HEAD)}: the dataset is {state.dataset_id}, not {options.expected_id}"
        )
    require_past(state.system_time, base.system_time, options.clock, source.refs.describe(HEAD))
    new = [block.hashed for block in divergence.source]
    head = new[-1] if new else nearer.chain.block(source_head)
    signatures = collect_signatures(source, new, state.dataset_id, options.required, target, head)
    # 5.
    report = progress or (lambda _done, _total: None)
    objects = objects_of_blocks(block.hashed for block in divergence.source)
    missing = missing_objects(objects, target)
    copy_objects(source, target, missing, report)
    if not is_ours:
        check_slices((block.hashed for block in divergence.source), base, target, {item.name for item in missing})
    # 6.
    links = copy_linked(
        source, target, new, partial(_blocks_until, target, divergence.ancestor), base, options.files, report
    )
    # 7.
    copy_blocks(divergence.source, target)
    signatures.store(target)
    # 8.
    target.refs.compare_and_swap(HEAD, target_head, source_head)
    return TransferResult(
        outcome=TransferOutcome.UPDATED,
        old_head=target_head,
        new_head=source_head,
        num_blocks=len(divergence.source),
        num_records=state.num_records - base.num_records,
        num_objects=len(missing),
        num_bytes=sum(item.size for item in missing),
        num_dropped=len(divergence.target),
        num_dropped_records=records_of(block.hashed for block in divergence.target),
        state=state,
        signatures=signatures.report,
        links=links,
    )


def copy_missing_linked_objects(
    source: DatasetLayout, target: DatasetLayout, head: Multihash, files: WantedFiles, progress: BytesProgress | None
) -> LinkedResult:
    """Copy missing linked objects to a target that has all blocks of the source.

    Args:
        source: the dataset to copy from.
        target: the dataset to copy to.
        head: a block that both have; files of this block and its ancestors are checked.
        files: linked objects to transfer.
        progress: called with the transferred and the total number of bytes.

    Raises:
        OdfError: see `copy_linked`.
    """
    if not files.complete:
        return LinkedResult()
    reader = target if isinstance(target.data, LocalObjectStore) else source
    blocks = partial(_blocks_until, reader, head)
    return copy_linked(source, target, [], blocks, ChainState(), files, progress or (lambda _done, _total: None))


def _blocks_until(layout: DatasetLayout, head: Multihash | None) -> list[HashedBlock]:
    return [] if head is None else layout.chain.in_order(head)


def _require_writable(target: DatasetLayout) -> None:
    if not target.blocks.writable:
        place = target.refs.describe(HEAD)
        hint = "Push to a folder (a path or a file:// URL), such as the one that the server serves."
        if place.startswith(("http://", "https://")):
            node = f"odf+{place.removesuffix(f'/refs/{HEAD}')}"
            hint = f"To a node, push with --to {node}; for a static server, push to the folder that it serves."
        raise TransferError(f"{place}: this repository is read-only", hint=hint)


def head_of_source(source: DatasetLayout) -> Multihash:
    """Return the head of the source.

    Raises:
        DatasetNotFound: the source has no head.
    """
    head = source.refs.get(HEAD)
    if head is None:
        raise DatasetNotFound(
            f"No dataset there: {source.refs.describe(HEAD)} does not exist",
            hint="Is it the URL of a repository? `odf search --repo URL` lists the datasets in it.",
        )
    return head


def resolve_divergence(
    divergence: Divergence,
    source: DatasetLayout,
    source_head: Multihash,
    target: DatasetLayout,
    target_head: Multihash | None,
    options: TransferOptions,
) -> TransferResult | None:
    """Decide how to transfer between different chains; return a result if there is nothing to transfer, else None.

    Args:
        divergence: the divergence of the chains.
        source: the dataset to copy from.
        source_head: head of the source.
        target: the dataset to copy to.
        target_head: head of the target, None if it is new.
        options: whether to overwrite a diverged history, and the last seen head of the source.

    Raises:
        DatasetsDiverged, HistoryRewritten, ForeignDataset: see `transfer`.
    """
    if target_head is None:
        return None
    _require_same_dataset(divergence, source, target)
    if options.force:
        return None
    _require_what_was_there(divergence, source, source_head, options.seen)
    if not divergence.source:
        return _target_ahead(target_head, source_head, divergence)
    if divergence.target:
        raise _diverged(source, source_head, target, target_head, divergence)
    return None


def _require_same_dataset(divergence: Divergence, source: DatasetLayout, target: DatasetLayout) -> None:
    if divergence.ancestor is not None:
        return
    theirs = validate([divergence.source[0].hashed]).dataset_id
    ours = validate([divergence.target[0].hashed]).dataset_id
    if theirs != ours:
        here = target.refs.describe(HEAD)
        raise ForeignDataset(
            f"{source.refs.describe(HEAD)} is of the dataset {theirs}, and {here} of another one, {ours}",
            hint="Check the address, or copy it to another place or under another name.",
        )


def _require_what_was_there(
    divergence: Divergence, source: DatasetLayout, source_head: Multihash, seen: Multihash | None
) -> None:
    lost, dropped = divergence.num_gone(seen), count_of(len(divergence.target), "block")
    if lost:
        number = divergence.ancestor_number + lost
        raise HistoryRewritten(
            f"{source.refs.describe(HEAD)} was at block {number} ({seen}) at the last check, and is now at"
            f" {source_head}: {count_of(lost, 'block')} that {'was' if lost == 1 else 'were'} there"
            f" {'has' if lost == 1 else 'have'} been removed",
            hint=f"Ask its publishers for the reason. --force follows it, and drops {dropped} here.",
        )


def _target_ahead(head: Multihash, source_head: Multihash, divergence: Divergence) -> TransferResult:
    return TransferResult(
        outcome=TransferOutcome.TARGET_AHEAD,
        old_head=head,
        new_head=head,
        num_ahead=len(divergence.target),
        behind=source_head,
    )


def _diverged(
    source: DatasetLayout,
    source_head: Multihash,
    target: DatasetLayout,
    target_head: Multihash,
    divergence: Divergence,
) -> DatasetsDiverged:
    since = (
        f"after block {divergence.ancestor_number} ({divergence.ancestor})"
        if divergence.ancestor
        else "from the first block on"
    )
    return DatasetsDiverged(
        f"The two copies have diverged {since}: {source.refs.describe(HEAD)} continues with"
        f" {count_of(len(divergence.source), 'block')} (to {source_head}), {target.refs.describe(HEAD)} with"
        f" {count_of(len(divergence.target), 'block')} (to {target_head})",
        hint=f"--force replaces the second by the first, and drops {count_of(len(divergence.target), 'block')} there.",
    )

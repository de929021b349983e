"""Moving a dataset between two places (ODF specification, "Simple Transfer Protocol", RFC-007).

Pushing and pulling are the same: blocks and files go from a source that is only read to a target, whose head moves at
the very end. Until then the target is what it was; files that arrived whole are kept, and not sent again next time.
"""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from functools import partial

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.new_blocks import validate
from odfpy.chain.required_signers import RequiredSigners
from odfpy.chain.signatures import SignatureReport
from odfpy.chain.state import ChainState
from odfpy.chain.stores.object_store import LocalObjectStore
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.amounts import count_of
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import DatasetNotFound, TransferError
from odfpy.repository.divergence import DatasetsDiverged, Divergence, compare_chains, records_of
from odfpy.repository.objects import BytesProgress, copy_blocks, copy_objects, missing_objects, objects_of_blocks
from odfpy.repository.transfer.clock import require_past
from odfpy.repository.transfer.linked import ALL_FILES, LinkedResult, WantedFiles, copy_linked
from odfpy.repository.transfer.signatures import carry_revocations, collect_signatures
from odfpy.repository.transfer.slice_checks import check_slices
from odfpy.values import dataclass


class ForeignDataset(TransferError, code="E602"):
    """The two places have different datasets, by their ids."""


class HistoryRewritten(TransferError, code="E660"):
    """A place that had blocks which are here too does not have them any more."""


class TransferOutcome(Enum):
    """The outcome of a transfer."""

    UP_TO_DATE = "up-to-date"
    UPDATED = "updated"
    TARGET_AHEAD = "target-ahead"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResult:
    """The result of a transfer.

    Attributes:
        outcome: up-to-date (the heads are the same), updated (the target's head is the source's now), target-ahead
            (nothing to do: the target has all, and more).
        old_head: head of the target before, None when it was empty.
        new_head: head of the target now.
        num_blocks: blocks that came.
        num_records: rows in them.
        num_objects: data files and checkpoints that were copied; those that already existed do not count.
        num_bytes: their size.
        num_dropped: blocks that are not in the target's chain any more; only `force` does that.
        num_dropped_records: rows in them.
        num_ahead: blocks that only the target has.
        signatures: who has signed the blocks that came, None when none came.
        links: the linked objects that were copied.
        behind: head of the source, where it is behind the target's.
        state: what the chain amounts to at its new head, where that is known without reading the chain again.
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
        """Head of the source."""
        return self.behind or self.new_head


def transfer(
    source: DatasetLayout,
    target: DatasetLayout,
    *,
    force: bool = False,
    expected_id: DatasetId | None = None,
    seen: Multihash | None = None,
    required: RequiredSigners | None = None,
    clock: Timestamp | None = None,
    files: WantedFiles = ALL_FILES,
    is_ours: bool = False,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Bring the target up to the source.

      1. Read both heads; when they are equal, all is done.
      2. Walk both chains back to where they meet.
      3. Decide: nothing to do, go on, overwrite, or refuse.
      4. Check every rule of the chain on what comes, on top of what the target has, and its signatures.
      5. Copy data files and checkpoints that the target lacks, and check that footers say what their blocks say.
      6. Copy the objects that rows in them link to, those that are wanted.
      7. Copy blocks and signatures.
      8. Move the head, if it still is where it was.

    Args:
        source: read only, and not trusted.
        target: written to; whoever keeps a lock on it holds it.
        force: let the target's chain become the source's, even when that drops blocks of the target.
        expected_id: the id that the dataset must have; a target that is not empty implies one anyway.
        seen: the source's head when it was last looked at; without `force`, it may not go back behind that.
        required: by whom the source's head must be signed; learns which keys have ended.
        clock: the time here, of which blocks may not be far ahead; any may come where none is given.
        files: the linked objects that are wanted.
        is_ours: the source is a workspace of this machine: its data files were looked at when they came.
        progress: called with bytes done and bytes in all, while files are copied.

    Raises:
        DatasetNotFound: the source has no head.
        DatasetsDiverged: both sides have blocks that the other lacks.
        HistoryRewritten: the source does not have all any more that it had.
        ForeignDataset: source and target, or source and `expected_id`, are not the same dataset.
        IntegrityError, MalformedData, ObjectNotFound: something of the source is not what it should be; the message
            names it.
        FromTheFuture: blocks are more than a day ahead of `clock`.
        ForgedSignature, NotSigned: a signature is not what it says, or a required one is not there.
        RevokedKey: a block is signed with a key that had been revoked, or had expired.
        ConcurrentUpdate: somebody else has moved the target's head in the meantime.
        TransferError: the target cannot be written to, the source cannot be reached.
    """
    _require_writable(target)
    # 1.
    source_head, target_head = head_of_source(source), target.refs.get(HEAD)
    if source_head == target_head:
        carry_revocations(source, target, source_head, required)
        return TransferResult(
            outcome=TransferOutcome.UP_TO_DATE,
            old_head=target_head,
            new_head=source_head,
            links=copy_missing_linked_objects(source, target, source_head, files, progress)
            if files.complete
            else LinkedResult(),
        )
    # 2.
    found = compare_chains(source, source_head, target, target_head)
    # 3.
    decided = resolve_divergence(found, source, source_head, target, target_head, seen=seen, force=force)
    if decided is not None:  # the target has more blocks, but may lack files of those that both have
        links = (
            copy_missing_linked_objects(source, target, source_head, files, progress)
            if files.complete
            else LinkedResult()
        )
        return replace(decided, links=links)
    # 4.
    # Both have the ancestor: in a bucket, each of its blocks would be a request.
    near = target if isinstance(target.blocks, LocalObjectStore) else source
    base = near.chain.state(found.ancestor) if found.ancestor else ChainState()
    state = validate((block.hashed for block in found.source), base)
    if expected_id is not None and state.dataset_id != expected_id:
        raise ForeignDataset(f"{source.refs.describe(HEAD)}: the dataset is {state.dataset_id}, not {expected_id}")
    require_past(state.system_time, base.system_time, clock, source.refs.describe(HEAD))
    new = [block.hashed for block in found.source]
    signatures = collect_signatures(source, new, state.dataset_id, required, target)
    # 5.
    told = progress or (lambda _done, _total: None)
    objects = objects_of_blocks(block.hashed for block in found.source)
    missing = missing_objects(objects, target)
    copy_objects(source, target, missing, told)
    if not is_ours:
        check_slices((block.hashed for block in found.source), base, target, {item.name for item in missing})
    # 6.
    links = copy_linked(source, target, new, partial(_blocks_until, target, found.ancestor), base, files, told)
    # 7.
    copy_blocks(found.source, target)
    signatures.store(target)
    # 8.
    target.refs.compare_and_swap(HEAD, target_head, source_head)
    return TransferResult(
        outcome=TransferOutcome.UPDATED,
        old_head=target_head,
        new_head=source_head,
        num_blocks=len(found.source),
        num_records=state.num_records - base.num_records,
        num_objects=len(missing),
        num_bytes=sum(item.size for item in missing),
        num_dropped=len(found.target),
        num_dropped_records=records_of(block.hashed for block in found.target),
        state=state,
        signatures=signatures.report,
        links=links,
    )


def copy_missing_linked_objects(
    source: DatasetLayout, target: DatasetLayout, head: Multihash, files: WantedFiles, progress: BytesProgress | None
) -> LinkedResult:
    """Copy the linked objects that a target lacks though it has all blocks of the source.

    Args:
        source: has the objects.
        target: lacks some of them.
        head: a block that both have; files of those up to it are looked at.
        files: the objects that are wanted.
        progress: called with bytes done and bytes in all.

    Raises:
        OdfError: as `copy_linked`.
    """
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
        raise TransferError(f"{place}: this place is read-only, nothing can be pushed to it", hint=hint)


def head_of_source(source: DatasetLayout) -> Multihash:
    """The last block of what is to be copied.

    Raises:
        DatasetNotFound: there is none.
    """
    head = source.refs.get(HEAD)
    if head is None:
        raise DatasetNotFound(
            f"No dataset there: {source.refs.describe(HEAD)} does not exist",
            hint="Is it the URL of a repository? `odf search --repo URL` lists the datasets in it.",
        )
    return head


def resolve_divergence(
    found: Divergence,
    source: DatasetLayout,
    source_head: Multihash,
    target: DatasetLayout,
    target_head: Multihash | None,
    *,
    seen: Multihash | None = None,
    force: bool = False,
) -> TransferResult | None:
    """Return what two chains that are not equal come to: nothing to do, or None where there is.

    Args:
        found: how the chains relate.
        source: the dataset that is copied.
        source_head: its head.
        target: the dataset that it is copied to.
        target_head: its head, None if it is new.
        seen: the head that was seen there last, None for none.
        force: whether a history that has diverged is overwritten.

    Raises:
        DatasetsDiverged, HistoryRewritten, ForeignDataset: see `transfer`.
    """
    if target_head is None:
        return None
    _require_same_dataset(found, source, target)
    if force:
        return None
    _require_what_was_there(found, source, source_head, seen)
    if not found.source:
        return _target_ahead(target_head, source_head, found)
    if found.target:
        raise _diverged(source, source_head, target, target_head, found)
    return None


def _require_same_dataset(found: Divergence, source: DatasetLayout, target: DatasetLayout) -> None:
    if found.ancestor is not None:
        return
    theirs = validate([found.source[0].hashed]).dataset_id
    ours = validate([found.target[0].hashed]).dataset_id
    if theirs != ours:
        here = target.refs.describe(HEAD)
        raise ForeignDataset(
            f"{source.refs.describe(HEAD)} is of the dataset {theirs}, and {here} of another one, {ours}",
            hint="Check the address, or copy it to another place or under another name.",
        )


def _require_what_was_there(
    found: Divergence, source: DatasetLayout, source_head: Multihash, seen: Multihash | None
) -> None:
    gone = next((block for block in found.target if block.hashed.hash == seen), None)
    if gone is not None:
        lost, dropped = gone.number - found.ancestor_number, count_of(len(found.target), "block")
        raise HistoryRewritten(
            f"{source.refs.describe(HEAD)} was at block {gone.number} ({seen}) when it was last looked at, and is at"
            f" {source_head} now: {count_of(lost, 'block')} that {'was' if lost == 1 else 'were'} there"
            f" {'has' if lost == 1 else 'have'} been taken back",
            hint=f"Ask those who publish it why. --force follows, which drops {dropped} here.",
        )


def _target_ahead(head: Multihash, source_head: Multihash, found: Divergence) -> TransferResult:
    return TransferResult(
        outcome=TransferOutcome.TARGET_AHEAD,
        old_head=head,
        new_head=head,
        num_ahead=len(found.target),
        behind=source_head,
    )


def _diverged(
    source: DatasetLayout,
    source_head: Multihash,
    target: DatasetLayout,
    target_head: Multihash,
    found: Divergence,
) -> DatasetsDiverged:
    since = f"after block {found.ancestor_number} ({found.ancestor})" if found.ancestor else "from the first block on"
    return DatasetsDiverged(
        f"The two copies have different histories {since}: {source.refs.describe(HEAD)} goes on with"
        f" {count_of(len(found.source), 'block')} (to {source_head}), {target.refs.describe(HEAD)} with"
        f" {count_of(len(found.target), 'block')} (to {target_head})",
        hint=f"--force replaces the second by the first, and drops {count_of(len(found.target), 'block')} there.",
    )

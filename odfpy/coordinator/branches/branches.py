"""Branches: the difference to the head, and merging it.

    1. where branch and head part        the last block of both
    2. what each has since then          blocks; rows; by key, which are new, changed or gone
    3. fast-forward                      the head has nothing of its own: it moves to the end of the branch
    4. or apply the events again         on top of the head, where both sides say nothing different of the same thing

A branch that has to be applied again is first moved, whole, onto the head; then the head moves to its end. Whenever
that is interrupted, the command does the rest when it is run again, and no row comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.metadata_chain import validate
from odfpy.chain.ref_store import HEAD
from odfpy.chain.references import ReferenceKind
from odfpy.chain.slices import slice_paths, slices_of
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.storage.references import delete, find
from odfpy.coordinator.storage.results import DatasetHandle
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError, UsageError
from odfpy.repository.divergence import compare_chains

if TYPE_CHECKING:
    import pyarrow as pa

_APPEND, _RETRACT, _CORRECT_FROM, _CORRECT_TO = range(4)


class MergeConflict(UsageError, code="E656"):
    """Branch and head say different things of the same, so that the branch cannot be applied again."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """The effect of rows on keys: how many are new, changed and gone after them."""

    new: int = 0
    changed: int = 0
    gone: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchDiff:
    """The difference of a branch to the head.

    Attributes:
        head: the last block of the dataset.
        tip: the last block of the branch.
        base: the last block of both.
        base_number: its sequence number.
        blocks: what the branch has since then, oldest first.
        head_blocks: what the head has since then.
        num_records: rows that the branch has since then.
        keys: what they do by key, None where rows have none.
    """

    handle: DatasetHandle
    branch: str
    head: Multihash
    tip: Multihash
    base: Multihash
    base_number: int
    blocks: tuple[HashedBlock, ...]
    head_blocks: tuple[HashedBlock, ...]
    num_records: int
    keys: KeyChanges | None = None


def diff(dataset: StoredDataset, branch: str) -> BranchDiff:
    """Return what a branch would add to the head.

    Raises:
        NoSuchReference: with a suggestion.
        OdfError: a chain is damaged.
    """
    tip, head = find(dataset, ReferenceKind.BRANCH, branch), dataset.chain.head()
    layout = DatasetLayout.local(dataset.folder)
    found = compare_chains(layout, tip, layout, head)
    if found.ancestor is None:
        raise IntegrityError(
            f"{dataset.handle}: the branch {branch} has no block in common with the head",
            hint=f"Drop it: odf branch {dataset.handle} {branch} --delete",
        )
    blocks = tuple(block.hashed for block in found.source)
    keys = dataset.on(branch).state.primary_key
    return BranchDiff(
        handle=dataset.handle,
        branch=branch,
        head=head,
        tip=tip,
        base=found.ancestor,
        base_number=found.ancestor_number,
        blocks=blocks,
        head_blocks=tuple(block.hashed for block in found.target),
        num_records=sum(
            item.data.offset_interval.end - item.data.offset_interval.start + 1 for item in slices_of(blocks)
        ),
        keys=_changes(dataset, blocks, keys) if keys else None,
    )


def staged_rows(dataset: StoredDataset, found: BranchDiff, limit: int) -> pa.Table:
    """The first rows that a branch would add, with the columns that it ends with.

    Args:
        dataset: the dataset.
        found: the difference of the branch to the head.
        limit: most rows.
    """
    import pyarrow as pa

    from odfpy.data.schemas.arrow import to_arrow
    from odfpy.data.schemas.fit import fit_table

    state = dataset.on(found.branch).state
    if state.schema is None:
        return pa.table({})
    schema = to_arrow(state.schema)
    parts, count = [], 0
    for table in rows_of(dataset, found.blocks):
        if count >= limit:
            break
        parts.append(fit_table(table.slice(0, limit - count), schema))
        count += table.num_rows
    return pa.concat_tables(parts) if parts else schema.empty_table()


def rows_of(
    dataset: StoredDataset, blocks: Sequence[HashedBlock], columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The rows of some blocks, in order of offset, a table for each slice.

    Args:
        dataset: the dataset.
        blocks: the blocks, oldest first.
        columns: names of the columns to read, None for all.
    """
    from odfpy.data.slices.slice import read_slice

    slices = slices_of(blocks)
    for path in slice_paths(dataset.layout.data, slices):
        yield read_slice(path, columns=columns, vocab=dataset.state.vocab)


def touched_keys(dataset: StoredDataset, blocks: Sequence[HashedBlock], keys: Sequence[str]) -> dict[str, list[int]]:
    """The keys of the rows of some blocks, each with the operations on it, in order.

    Args:
        dataset: the dataset.
        blocks: the blocks, oldest first.
        keys: names of the key columns.
    """
    operation = dataset.state.vocab.operation_type_column
    found: dict[str, list[int]] = {}
    for table in rows_of(dataset, blocks, [operation, *keys]):
        operations = table.column(operation).to_pylist()
        values = zip(*(table.column(key).to_pylist() for key in keys), strict=True)
        for done, key in zip(operations, values, strict=True):
            found.setdefault(", ".join(map(str, key)), []).append(done)
    return found


def _changes(dataset: StoredDataset, blocks: Sequence[HashedBlock], keys: Sequence[str]) -> KeyChanges:
    counts = {(False, True): 0, (True, True): 0, (True, False): 0, (False, False): 0}
    for operations in touched_keys(dataset, blocks, keys).values():
        was = operations[0] in (_RETRACT, _CORRECT_FROM)
        counts[was, operations[-1] in (_APPEND, _CORRECT_TO)] += 1
    return KeyChanges(counts[False, True], counts[True, True], counts[True, False])


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The outcome of a merge.

    Attributes:
        old_head: the head before.
        new_head: the head after.
        num_blocks: blocks that the head has gained.
        num_records: rows in them.
        applied_again: whether they are other blocks than those of the branch, since the head had moved.
        notes: remarks for the person.
    """

    handle: DatasetHandle
    branch: str
    old_head: Multihash
    new_head: Multihash
    num_blocks: int
    num_records: int
    applied_again: bool
    notes: tuple[str, ...] = ()


def merge(dataset: StoredDataset, branch: str, *, fast_forward_only: bool = False) -> MergeResult:
    """Take over what is on a branch, which is deleted then; the caller holds the dataset's lock.

    Args:
        dataset: seen from its head.
        branch: what to take over.
        fast_forward_only: refuse where events would have to be applied again.

    Raises:
        MergeConflict: they cannot be; nothing has changed.
        DependencyCycle: by a query on the branch, the dataset would be derived from itself; the head has not moved.
        NoSuchReference: with a suggestion.
        OdfError: something is damaged; nothing has changed.
    """
    found = diff(dataset, branch)
    applied_again = bool(found.blocks and found.head_blocks)
    if applied_again:
        if fast_forward_only:
            raise MergeConflict(
                f"{dataset.handle}: the head has moved on since {branch} began",
                hint="Leave out --ff-only to apply the events of the branch again on top of the head.",
            )
        from odfpy.coordinator.branches.rebase import rebase

        rebase(dataset, found)
        found = diff(dataset, branch)
    if found.blocks:
        after = validate(found.blocks, dataset.chain.state(found.base))
        Lineage(dataset.storage).refuse_circle(dataset, after)
        dataset.sign_head(found.blocks[-1])  # with the head, or before it: it is never there unsigned
        dataset.layout.refs.compare_and_swap(HEAD, found.head, found.tip)
    delete(dataset, ReferenceKind.BRANCH, branch)
    return MergeResult(
        handle=dataset.handle,
        branch=branch,
        old_head=found.head,
        new_head=found.tip if found.blocks else found.head,
        num_blocks=len(found.blocks),
        num_records=found.num_records,
        applied_again=applied_again,
        notes=dataset.storage.signing.remarks(),
    )

"""Difference between a branch and the head: the blocks, rows and key changes that the branch would add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odfpy.chain.block import HashedBlock
from odfpy.chain.references import ReferenceKind
from odfpy.chain.slices import SliceOfBlock, overlapping, slice_paths, slices_of
from odfpy.coordinator.storage.references import find
from odfpy.coordinator.storage.results import DatasetHandle
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError
from odfpy.repository.divergence import compare_chains

if TYPE_CHECKING:
    import pyarrow as pa

_APPEND, _RETRACT, _CORRECT_FROM, _CORRECT_TO = range(4)


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """The effect of rows on keys: the number of new, changed and removed keys."""

    new: int = 0
    changed: int = 0
    gone: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchDiff:
    """The difference between a branch and the head.

    Attributes:
        head: hash of the last block of the head.
        tip: hash of the last block of the branch.
        base: hash of the last common block.
        base_number: sequence number of the last common block.
        blocks: blocks of the branch after the base, oldest first, without `rewritten`.
        rewritten: blocks of the branch whose rows a compaction has stored in other blocks of the head.
        head_blocks: blocks of the head after the base.
        num_records: number of rows in `blocks`.
        keys: the effect of these rows on keys, None if rows have no key.
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
    rewritten: tuple[HashedBlock, ...] = ()


def diff(dataset: StoredDataset, branch: str) -> BranchDiff:
    """Return the difference that a branch would add to the head.

    Raises:
        NoSuchReference: the branch does not exist; the message has a suggestion.
        OdfError: a chain is damaged.
    """
    tip, head = find(dataset, ReferenceKind.BRANCH, branch), dataset.chain.head()
    layout = dataset.on(None).layout
    comparison = compare_chains(layout, tip, layout, head)
    if comparison.ancestor is None:
        raise IntegrityError(
            f"{dataset.handle}: the branch {branch} has no block in common with the head",
            hint=f"Drop it: odf branch {dataset.handle} {branch} --delete",
        )
    head_blocks = tuple(block.hashed for block in comparison.target)
    rewritten, blocks = _rewritten_and_own(dataset, [block.hashed for block in comparison.source], head_blocks)
    keys = dataset.on(branch).state.primary_key
    return BranchDiff(
        handle=dataset.handle,
        branch=branch,
        head=head,
        tip=tip,
        base=comparison.ancestor,
        base_number=comparison.ancestor_number,
        blocks=blocks,
        head_blocks=head_blocks,
        num_records=sum(item.data.offset_interval.num_rows for item in slices_of(blocks)),
        keys=_changes(dataset, blocks, keys) if keys else None,
        rewritten=rewritten,
    )


def _rewritten_and_own(
    dataset: StoredDataset, blocks: Sequence[HashedBlock], head_blocks: Sequence[HashedBlock]
) -> tuple[tuple[HashedBlock, ...], tuple[HashedBlock, ...]]:
    """Split the blocks of a branch after the last one whose rows are also in the head.

    A compaction of the head stores rows that branch and head shared in other blocks. The branch did not add these rows,
    and applying its blocks would add them again.
    """
    own = 0
    head_slices = slices_of(head_blocks)
    for number, hashed in enumerate(blocks, start=1):
        slices = slices_of([hashed])
        if not all(_has_rows_of(dataset, head_slices, item) for item in slices):
            break
        own = number if slices else own
    return tuple(blocks[:own]), tuple(blocks[own:])


def _has_rows_of(dataset: StoredDataset, slices: Sequence[SliceOfBlock], item: SliceOfBlock) -> bool:
    """Return whether slices contain all rows of another slice, with their offsets and system times."""
    import pyarrow as pa

    from odfpy.data.schemas.fit import fit_table
    from odfpy.data.slices.slice import read_slice

    first, last = item.data.offset_interval.start, item.data.offset_interval.end
    slices_found = overlapping(slices, first, last)
    if (
        not slices_found
        or slices_found[0].data.offset_interval.start > first
        or slices_found[-1].data.offset_interval.end < last
    ):
        return False
    vocab, store = dataset.state.vocab, dataset.layout.data
    (path,) = slice_paths(store, [item])
    system_columns = [vocab.offset_column, vocab.system_time_column, vocab.operation_type_column]
    for columns in (system_columns, None):  # the system columns almost always suffice
        rows = read_slice(path, columns, vocab=vocab)
        rows = fit_table(rows, rows.schema)  # nullability is not compared
        parts = [read_slice(slice_path, columns, vocab=vocab) for slice_path in slice_paths(store, slices_found)]
        if not all(set(rows.column_names) <= set(part.column_names) for part in parts):
            return False
        head_rows = pa.concat_tables([fit_table(part.select(rows.column_names), rows.schema) for part in parts])
        start = slices_found[0].data.offset_interval.start
        if not head_rows.slice(first - start, rows.num_rows).equals(rows):
            return False
    return True


def staged_rows(dataset: StoredDataset, branch_diff: BranchDiff, limit: int) -> pa.Table:
    """Return the first rows that a branch would add, with the schema of its last block.

    Args:
        dataset: the dataset.
        branch_diff: the difference between the branch and the head.
        limit: the maximum number of rows.
    """
    import pyarrow as pa

    from odfpy.data.schemas.arrow import to_arrow
    from odfpy.data.schemas.fit import fit_table

    state = dataset.on(branch_diff.branch).state
    if state.schema is None:
        return pa.table({})
    schema = to_arrow(state.schema)
    parts, count = [], 0
    for table in rows_of(dataset, branch_diff.blocks):
        if count >= limit:
            break
        parts.append(fit_table(table.slice(0, limit - count), schema))
        count += table.num_rows
    return pa.concat_tables(parts) if parts else schema.empty_table()


def rows_of(dataset: StoredDataset, blocks: Sequence[HashedBlock]) -> Iterator[pa.Table]:
    """Yield the rows of blocks, oldest first, in order of offset; one table for each slice."""
    from odfpy.data.slices.slice import read_slice

    slices = slices_of(blocks)
    for path in slice_paths(dataset.layout.data, slices):
        yield read_slice(path, vocab=dataset.state.vocab)


def touched_keys(
    dataset: StoredDataset, blocks: Sequence[HashedBlock], keys: Sequence[str], since: int = 0
) -> dict[tuple[str, ...], list[int]]:
    """Return the keys of the rows of blocks, as texts, each with its operations in order.

    Args:
        dataset: the dataset.
        blocks: the blocks, oldest first.
        keys: names of the key columns; rows of slices without all of these columns are ignored.
        since: offset of the first row to read.
    """
    from odfpy.data.slices.slice import read_slice, slice_schema

    vocab = dataset.state.vocab
    operation = vocab.operation_type_column
    offsets_by_key: dict[tuple[str, ...], list[int]] = {}
    slices = [item for item in slices_of(blocks) if item.data.offset_interval.end >= since]
    for item, path in zip(slices, slice_paths(dataset.layout.data, slices), strict=True):
        if not set(keys) <= set(slice_schema(path, vocab=vocab).names):
            continue
        table = read_slice(path, [operation, *keys], vocab=vocab)
        table = table.slice(max(0, since - item.data.offset_interval.start))
        operations = table.column(operation).to_pylist()
        values = zip(*(table.column(key).to_pylist() for key in keys), strict=True)
        for done, key in zip(operations, values, strict=True):
            offsets_by_key.setdefault(tuple(_text_of(value) for value in key), []).append(done)
    return offsets_by_key


def _text_of(value: Any) -> str:
    """Return a key value as text; values that merges consider equal have equal texts."""
    match value:
        case float():
            return str(value + 0.0)  # -0.0 + 0.0 is 0.0
        case list():
            return f"[{', '.join(map(_text_of, value))}]"
        case dict():
            return f"{{{', '.join(f'{name!r}: {_text_of(member)}' for name, member in value.items())}}}"
    return str(value)


def _changes(dataset: StoredDataset, blocks: Sequence[HashedBlock], keys: Sequence[str]) -> KeyChanges:
    counts = {(False, True): 0, (True, True): 0, (True, False): 0, (False, False): 0}
    for operations in touched_keys(dataset, blocks, keys).values():
        was = operations[0] in (_RETRACT, _CORRECT_FROM)
        counts[was, operations[-1] in (_APPEND, _CORRECT_TO)] += 1
    return KeyChanges(counts[False, True], counts[True, True], counts[True, False])

"""Branches and tags of a dataset, and the resolution of block references that users give."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceKind, ReferenceName, means_block
from odfpy.chain.stores.ref_store import HEAD, is_name
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import AlreadyExists, InvalidValue, NotFound, OdfError, UsageError, did_you_mean
from odfpy.values import dataclass


class BlockNotFound(NotFound, code="E641"):
    """The history of a dataset does not contain the block."""


class NoSuchReference(NotFound, code="E655"):
    """A dataset has no branch or tag with the name."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A branch or tag, and its target.

    Attributes:
        target: hash of the block; None if the reference is damaged.
        block: the block, None if it cannot be read.
        problem: the error if target or block cannot be read.
    """

    name: ReferenceName
    target: Multihash | None
    block: HashedBlock | None
    problem: OdfError | None = None


def references(dataset: StoredDataset, kind: ReferenceKind) -> Iterator[Reference]:
    """Yield the branches or tags of a dataset, sorted by name; a damaged one does not affect the others."""
    layout = dataset.layout
    for text in layout.refs.names():
        name = ReferenceName.parse(text)
        if name is None or name.kind is not kind:
            continue
        target = None
        try:
            target = layout.refs.get(text)
            if target is not None:
                yield Reference(name, target, layout.chain.block(target))
        except OdfError as error:
            yield Reference(name, target, None, error)


def create(dataset: StoredDataset, kind: ReferenceKind, name: str, block: str | None) -> Reference:
    """Create a branch or tag at the head or another block; requires the dataset's lock.

    Args:
        dataset: the dataset.
        kind: branch or tag.
        name: name of the branch or tag.
        block: hash, number or name of the block, None for the head.

    Raises:
        AlreadyExists: the name is in use.
        BlockNotFound, InvalidValue: the block does not exist, or the name is invalid.
    """
    reference = ReferenceName.of(kind, name)
    chain = dataset.chain
    target = chain.head() if block is None else find_block(dataset, block)
    known = dataset.layout.refs.get(reference.reference)
    if known is not None and known != target:
        raise AlreadyExists(
            f"{dataset.handle} already has a {reference}, at {known}",
            hint=f"Choose another name, or first run `odf {kind.value} {dataset.handle} {name} --delete`.",
        )
    if known is None:
        _require_one_meaning(dataset, reference)
    dataset.layout.refs.compare_and_swap(reference.reference, known, target)
    return Reference(reference, target, chain.block(target))


def staging(dataset: StoredDataset, branch: str | None) -> StoredDataset:
    """Return the dataset opened on a branch for new commits, or at its head if the branch is None.

    Raises:
        AlreadyExists: the branch does not exist, and a tag has its name.
        InvalidValue: the name is invalid.
    """
    seen = dataset.on(branch)
    if seen.branch is not None and dataset.layout.refs.get(seen.branch.reference) is None:
        _require_one_meaning(dataset, ReferenceName.of(ReferenceKind.BRANCH, seen.branch.name))
    return seen


def _require_one_meaning(dataset: StoredDataset, new: ReferenceName) -> None:
    if dataset.layout.refs.get(new.other.reference) is not None:
        raise AlreadyExists(
            f"{dataset.handle} already has a {new.other}, so that {dataset.handle}@{new.name} would mean either",
            hint=f"Choose another name for the {new.prefix}.",
        )


def delete(dataset: StoredDataset, kind: ReferenceKind, name: str) -> Multihash:
    """Delete a branch or tag, and return its target; requires the dataset's lock.

    Args:
        dataset: the dataset.
        kind: branch or tag.
        name: name of the branch or tag.

    Raises:
        NoSuchReference: the branch or tag does not exist; the message has a suggestion.
    """
    target = find(dataset, kind, name)
    dataset.layout.refs.delete(ReferenceName.there(kind, name).reference, target)
    if kind is ReferenceKind.BRANCH:
        shutil.rmtree(dataset.on(name).cache, ignore_errors=True)
    return target


def find(dataset: StoredDataset, kind: ReferenceKind, name: str) -> Multihash:
    """Return the target of a branch or tag.

    Args:
        dataset: the dataset.
        kind: branch or tag.
        name: name of the branch or tag.

    Raises:
        NoSuchReference: the branch or tag does not exist; the message has a suggestion.
        InvalidValue: the name is invalid.
    """
    reference = ReferenceName.there(kind, name)
    target = dataset.layout.refs.get(reference.reference)
    if target is None:
        names = [item.name.name for item in references(dataset, kind)]
        otherwise = f"`odf {kind.value} {dataset.handle}` lists the existing ones."
        raise NoSuchReference(
            f"{dataset.handle} has no {reference}", hint=did_you_mean(name, names, otherwise=otherwise)
        )
    return target


# --- Several datasets -------------------------------------------------------------------------------------------------


def has_reference(dataset: StoredDataset, name: ReferenceName) -> bool:
    """Return whether a dataset has a branch or tag, even a damaged one."""
    return name.reference in DatasetLayout.local(dataset.folder).refs.names()


def require_in_one(datasets: Sequence[StoredDataset], names: Sequence[ReferenceName]) -> None:
    """Check that each branch or tag exists in at least one of the datasets.

    Raises:
        NoSuchReference: one does not exist in any dataset.
    """
    for name in names:
        if not any(has_reference(dataset, name) for dataset in datasets):
            raise NoSuchReference(
                f"None of the {len(datasets)} datasets has a {name}",
                hint=f"`odf {name.kind.value} NAME` lists those of a dataset.",
            )


def without(dataset: StoredDataset, name: ReferenceName, why: str) -> PullResult:
    """Return the result for a dataset without a branch or tag that is transferred for several datasets.

    Args:
        dataset: the dataset.
        name: the branch or tag.
        why: the reason, for the user.
    """
    return PullResult(name=f"{dataset.handle} {name}", outcome=PullOutcome.SKIPPED, notes=(why,))


# --- Resolution of blocks --------------------------------------------------------------------------------------------


def find_block(dataset: StoredDataset, text: str, history: Sequence[HashedBlock] | None = None) -> Multihash:
    """Resolve a block reference given by a user.

    Args:
        dataset: the dataset.
        text: `head`, a sequence number, a hash or a prefix of one, a tag, or a branch; a whole hash may also name an
            existing block that is in no history.
        history: the blocks of the dataset, newest first; None to read them.

    Raises:
        BlockNotFound, UsageError: the block does not exist, or the text is ambiguous.
    """
    if text == HEAD:
        return dataset.chain.head()
    named = _block_of_name(dataset, text)
    if named is not None and not means_block(text):
        return named
    try:
        return _in_history(dataset, list(history or dataset.chain.iter_blocks()), text)
    except BlockNotFound:
        if named is None:
            raise
        return named  # earlier releases allowed names that look like hashes or numbers


def _block_of_name(dataset: StoredDataset, text: str) -> Multihash | None:
    """Return the block of a tag, a branch, or another reference by name; None if there is none."""
    refs = dataset.layout.refs
    names = (f"{kind.value}.{text}" for kind in (ReferenceKind.TAG, ReferenceKind.BRANCH))
    return next((block for name in (*names, text) if is_name(name) and (block := refs.get(name)) is not None), None)


def _in_history(dataset: StoredDataset, blocks: list[HashedBlock], text: str) -> Multihash:
    last = blocks[0].block.sequence_number
    if text.isdecimal() and len(text) < len(str(blocks[0].hash)):
        matching = [hashed for hashed in blocks if hashed.block.sequence_number == int(text)]
    else:
        matching = [block for block in blocks if str(block.hash).startswith(text)] if _is_hash(text) else []
    if len(matching) == 1:
        return matching[0].hash
    if len(text) == len(str(blocks[0].hash)) and _is_hash(text) and Multihash.parse(text) in dataset.layout.blocks:
        return Multihash.parse(text)  # of an abandoned history that has not been removed yet
    if matching:
        raise UsageError(
            f"{len(matching)} blocks of {dataset.handle} begin with {text}", hint="Write more of the hash."
        )
    others = (name for name in dataset.layout.refs.names() if name != HEAD)
    names = [known.name if (known := ReferenceName.parse(name)) else name for name in others]
    about = f"Its blocks have the numbers 0 to {last}; `odf log {dataset.handle}` shows them."
    what = "block" if text.isdecimal() or _is_hash(text) else "block, tag or branch"
    if text.startswith(_PREFIX) and len(text) < _MIN_LENGTH:
        about = f"Write at least {_MIN_LENGTH} characters of a hash."
    raise BlockNotFound(
        f"{dataset.handle} has no {what} {text!r} in its history", hint=did_you_mean(text, names, otherwise=about)
    )


_PREFIX = "f16"
_MIN_LENGTH = len("f1620") + 4
"""Minimum length of an abbreviated hash; all hashes begin with `f1620`."""


def _is_hash(text: str) -> bool:
    try:
        Multihash.parse(text)
    except InvalidValue:
        return text.startswith(_PREFIX) and len(text) >= _MIN_LENGTH
    return True

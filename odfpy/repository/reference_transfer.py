"""Branches and tags go where they are asked to go, beside the head of a dataset that is there already."""

from __future__ import annotations

from dataclasses import replace

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.ref_store import HEAD
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.signatures import RequiredSigners
from odfpy.dataset.identity import DatasetId
from odfpy.errors import AlreadyExists, NotFound, TransferError
from odfpy.repository.http import http_dataset
from odfpy.repository.objects import BytesProgress
from odfpy.repository.open import open_dataset, smart_base
from odfpy.repository.simple_transfer import TransferOutcome, TransferResult, transfer


class ReferenceNotThere(NotFound, code="E657"):
    """A place has no branch or tag of that name."""


def fetch_reference(
    url: str,
    target: DatasetLayout,
    name: ReferenceName,
    *,
    force: bool = False,
    expected_id: DatasetId | None = None,
    required: RequiredSigners | None = None,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Bring a branch or tag of the dataset at a URL here; see `copy_reference`."""
    base = smart_base(url)  # nodes are asked as other servers are
    source = open_dataset(url) if base is None else http_dataset(base)
    return copy_reference(
        source, target, name, force=force, expected_id=expected_id, required=required, progress=progress
    )


def send_reference(
    source: DatasetLayout, url: str, name: ReferenceName, *, force: bool = False, progress: BytesProgress | None = None
) -> TransferResult:
    """Bring a branch or tag to the dataset at a URL; see `copy_reference`.

    Raises:
        TransferError: nodes only take heads.
    """
    if smart_base(url) is not None:
        raise TransferError(
            f"{name}: a node takes the head of a dataset, and no branches or tags",
            hint="Push them to a folder or a bucket, or make them on the node.",
        )
    return copy_reference(source, open_dataset(url), name, force=force, progress=progress)


def copy_reference(
    source: DatasetLayout,
    target: DatasetLayout,
    name: ReferenceName,
    *,
    force: bool = False,
    expected_id: DatasetId | None = None,
    required: RequiredSigners | None = None,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Bring a branch or tag from one place to another, with all that it leads to.

    Args:
        source: read only, and not trusted.
        target: has the dataset already; its head stays where it is.
        name: the branch or tag.
        force: move a tag, or a branch that has diverged.
        expected_id: the id that the dataset must have.
        required: by whom what comes must be signed.
        progress: called with bytes done and bytes in all.

    Raises:
        ReferenceNotThere: the source has no such branch or tag.
        AlreadyExists: the target has such a tag at another block.
        TransferError, IntegrityError: as for `transfer`.
    """
    block, known = source.refs.get(name.reference), target.refs.get(name.reference)
    if block is None:
        raise ReferenceNotThere(
            f"{source.refs.describe(name.reference)}: there is no {name}", hint="Has it been pushed there?"
        )
    if target.refs.get(HEAD) is None:
        raise TransferError(f"{target.refs.describe(HEAD)}: there is no dataset to which {name} could be added")
    if known == block:
        return TransferResult(outcome=TransferOutcome.UP_TO_DATE, old_head=known, new_head=block)
    if known is not None and name.kind is ReferenceKind.TAG and not force:
        raise AlreadyExists(
            f"{target.refs.describe(name.reference)}: {name} is there already, at {known}",
            hint="--force moves it.",
        )
    moved = transfer(
        source.at(block),
        target.on(name),
        force=force or known is None,  # one that is new drops nothing
        expected_id=expected_id,
        required=required,
        progress=progress,
    )
    if target.refs.get(name.reference) is None:  # it is where the head is
        target.refs.compare_and_swap(name.reference, None, block)
        moved = replace(moved, outcome=TransferOutcome.UPDATED, old_head=None, new_head=block)
    return replace(moved, num_dropped=0 if known is None else moved.num_dropped)

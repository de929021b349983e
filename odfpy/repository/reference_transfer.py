"""Branches and tags go where they are asked to go, beside the head of a dataset that already exists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.required_signers import RequiredSigners
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import AlreadyExists, NotFound, TransferError
from odfpy.http.url import without_user
from odfpy.repository.objects import BytesProgress
from odfpy.repository.places.http import http_dataset
from odfpy.repository.places.open import open_dataset, smart_base
from odfpy.repository.transfer.linked import ALL_FILES, WantedFiles
from odfpy.repository.transfer.simple import TransferOutcome, TransferResult, transfer

_Carry: TypeAlias = Callable[[DatasetLayout, bool], TransferResult]
"""Brings a dataset as it is at a block to where the reference is; overwriting what has diverged, or not."""


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
    clock: Timestamp | None = None,
    files: WantedFiles = ALL_FILES,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Bring a branch or tag of the dataset at a URL here; see `copy_reference`.

    Args:
        url: address of the dataset.
        target: the dataset here.
        name: the branch or tag.
        force: whether a history that has diverged is overwritten.
        expected_id: the id that the dataset must have, None for any.
        required: who must have signed the head, None for nobody.
        clock: the time here, of which blocks may not be far ahead; None for no check.
        files: the linked objects that are wanted.
        progress: is told of bytes that have arrived.
    """
    base = smart_base(url)  # nodes are asked as other servers are
    source = open_dataset(url) if base is None else http_dataset(base)
    return copy_reference(
        source,
        target,
        name,
        force=force,
        expected_id=expected_id,
        required=required,
        clock=clock,
        files=files,
        progress=progress,
    )


def send_reference(
    source: DatasetLayout,
    url: str,
    name: ReferenceName,
    *,
    force: bool = False,
    files: WantedFiles = ALL_FILES,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Bring a branch or tag to the dataset at a URL; see `copy_reference`.

    Args:
        source: the dataset here.
        url: address of the dataset.
        name: the branch or tag.
        force: whether a history that has diverged is overwritten.
        files: the linked objects that go along.
        progress: is told of bytes that have arrived.

    Raises:
        TransferError: it is on a node that only takes heads.
    """
    base = smart_base(url)
    if base is None:
        return copy_reference(source, open_dataset(url), name, force=force, files=files, progress=progress)
    from odfpy.repository.places.node import TAKES_REFERENCES, node_dataset, summary_of
    from odfpy.repository.smart_transfer.client import push_to_node  # loads what only nodes need

    summary = summary_of(base)
    if summary is None or TAKES_REFERENCES not in summary.takes:
        raise TransferError(
            f"{without_user(base)}: this node takes the head of a dataset, and not {name}",
            hint="Push it to a folder, a bucket or a node of odfpy, or make it on the node. Has the dataset been"
            " pushed, and may you read it there?",
        )

    def push(at: DatasetLayout, force: bool) -> TransferResult:
        return push_to_node(at, base, force=force, reference=name, files=files, progress=progress)

    return _copied(source, node_dataset(base), name, push, force=force)


def copy_reference(
    source: DatasetLayout,
    target: DatasetLayout,
    name: ReferenceName,
    *,
    force: bool = False,
    expected_id: DatasetId | None = None,
    required: RequiredSigners | None = None,
    clock: Timestamp | None = None,
    files: WantedFiles = ALL_FILES,
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
        clock: as for `transfer`.
        files: the linked objects that are wanted.
        progress: called with bytes done and bytes in all.

    Raises:
        ReferenceNotThere: the source has no such branch or tag.
        AlreadyExists: the target has such a tag at another block, or a branch of the name of the tag.
        TransferError, IntegrityError: as for `transfer`.
    """

    def carry(at: DatasetLayout, force: bool) -> TransferResult:
        place = target.on(name)
        return transfer(
            at,
            place,
            force=force,
            expected_id=expected_id,
            required=required,
            clock=clock,
            files=files,
            progress=progress,
        )

    return _copied(source, target, name, carry, force=force)


def _copied(
    source: DatasetLayout, target: DatasetLayout, name: ReferenceName, carry: _Carry, *, force: bool
) -> TransferResult:
    block, known = source.refs.get(name.reference), target.refs.get(name.reference)
    if block is None:
        raise ReferenceNotThere(
            f"{source.refs.describe(name.reference)}: there is no {name}",
            hint=f"`odf {name.kind.value} NAME` lists those of a workspace; other places have what was pushed there.",
        )
    if target.refs.get(HEAD) is None:
        raise TransferError(f"{target.refs.describe(HEAD)}: there is no dataset to which {name} could be added")
    if known == block:
        return TransferResult(outcome=TransferOutcome.UP_TO_DATE, old_head=known, new_head=block)
    if known is not None and name.kind is ReferenceKind.TAG and not force:
        raise AlreadyExists(
            f"{target.refs.describe(name.reference)}: {name} already exists, at {known}",
            hint="--force moves it.",
        )
    if known is None and target.refs.get(name.other.reference) is not None:
        raise AlreadyExists(
            f"{target.refs.describe(name.other.reference)}: the {name.other} already exists, and its name cannot be"
            f" that of a {name.prefix} too",
            hint="Give one of them another name.",
        )
    moved = carry(source.at(block), force or known is None)  # one that is new drops nothing
    if target.refs.get(name.reference) is None:  # it is where the head is
        target.refs.compare_and_swap(name.reference, None, block)
        moved = replace(moved, outcome=TransferOutcome.UPDATED, old_head=None, new_head=block)
    return moved if known is not None else replace(moved, num_dropped=0, num_dropped_records=0)

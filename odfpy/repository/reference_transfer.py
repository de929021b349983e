"""Transfer of branches and tags, independent of the head of an existing dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.stores.ref_store import HEAD
from odfpy.errors import AlreadyExists, NotFound, TransferError
from odfpy.http.url import without_user
from odfpy.repository.locations.http import http_dataset
from odfpy.repository.locations.open import open_dataset, smart_base
from odfpy.repository.objects import BytesProgress
from odfpy.repository.transfer.linked import ALL_FILES, WantedFiles
from odfpy.repository.transfer.options import DEFAULTS, TransferOptions
from odfpy.repository.transfer.simple import TransferOutcome, TransferResult, transfer

_Carry: TypeAlias = Callable[[DatasetLayout, bool], TransferResult]
"""Transfers a dataset as of a block; the flag permits overwriting a diverged one."""


class ReferenceNotThere(NotFound, code="E657"):
    """The remote does not have the branch or tag."""


def fetch_reference(
    url: str,
    target: DatasetLayout,
    name: ReferenceName,
    options: TransferOptions = DEFAULTS,
    *,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Fetch a branch or tag of the dataset at a URL; see `copy_reference`.

    Args:
        url: URL of the dataset.
        target: the local dataset.
        name: the branch or tag.
        options: requirements on the source, and content to copy.
        progress: called with the number of bytes received.
    """
    base = smart_base(url)  # nodes are read like other servers
    source = open_dataset(url) if base is None else http_dataset(base)
    return copy_reference(source, target, name, options, progress=progress)


def send_reference(
    source: DatasetLayout,
    url: str,
    name: ReferenceName,
    *,
    force: bool = False,
    files: WantedFiles = ALL_FILES,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Send a branch or tag to the dataset at a URL; see `copy_reference`.

    Args:
        source: the local dataset.
        url: URL of the dataset.
        name: the branch or tag.
        force: whether to overwrite a diverged history.
        files: linked objects to transfer.
        progress: called with the number of bytes sent.

    Raises:
        TransferError: the URL is on a node that only accepts heads.
    """
    base = smart_base(url)
    if base is None:
        options = TransferOptions(force=force, files=files)
        return copy_reference(source, open_dataset(url), name, options, progress=progress)
    from odfpy.repository.locations.node import TAKES_REFERENCES, node_dataset, summary_of
    from odfpy.repository.smart_transfer.client import push_to_node  # only imported for nodes

    summary = summary_of(base)
    if summary is None or TAKES_REFERENCES not in summary.takes:
        raise TransferError(
            f"{without_user(base)}: this node accepts only the head of a dataset, not {name}",
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
    options: TransferOptions = DEFAULTS,
    *,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Copy a branch or tag from one dataset to another, with all reachable blocks and objects.

    Args:
        source: the source, which is only read, and not trusted.
        target: the target, which must exist; its head is not moved.
        name: the branch or tag.
        options: requirements on the source, and content to copy; `force` also moves a tag.
        progress: called with the transferred and the total number of bytes.

    Raises:
        ReferenceNotThere: the source does not have the branch or tag.
        AlreadyExists: the target has the tag at another block, or a branch with the name of the tag.
        TransferError, IntegrityError: see `transfer`.
    """

    def carry(at: DatasetLayout, force: bool) -> TransferResult:
        return transfer(at, target.on(name), replace(options, force=force), progress=progress)

    return _copied(source, target, name, carry, force=options.force)


def _copied(
    source: DatasetLayout, target: DatasetLayout, name: ReferenceName, carry: _Carry, *, force: bool
) -> TransferResult:
    block, known = source.refs.get(name.reference), target.refs.get(name.reference)
    if block is None:
        raise ReferenceNotThere(
            f"{source.refs.describe(name.reference)}: there is no {name}",
            hint=f"`odf {name.kind.value} NAME` lists those of a workspace; repositories have those that were pushed.",
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
    moved = carry(source.at(block), force or known is None)  # a new reference overwrites nothing
    if target.refs.get(name.reference) is None:  # equal to the head, so nothing was transferred
        target.refs.compare_and_swap(name.reference, None, block)
        moved = replace(moved, outcome=TransferOutcome.UPDATED, old_head=None, new_head=block)
    return moved if known is not None else replace(moved, num_dropped=0, num_dropped_records=0)

"""Endpoints for odfpy's own clients next to the Smart Transfer Protocol, for tokens with scope write.

    PUT info            signatures of existing blocks, and of the head; revocations of keys
    PUT refs/<name>     a branch or tag, to an existing block

Signatures are verified before they are stored, and never replace others. Branches are fast-forwarded, and tags stay:
only scope admin may move them otherwise. The head is only moved by a push.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Path, Query, Request
from pydantic import BaseModel, Field

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.revocations import key_of
from odfpy.chain.revoked_keys import walk_back
from odfpy.chain.signatures import HEAD_PATH, MAX_SIZE, signed_block_of
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.errors import ConcurrentUpdate, InvalidValue, OdfError
from odfpy.repository.locations.http import MAX_SIDE_FILES, SIDE_FILES
from odfpy.repository.transfer.incoming_signatures import IncomingSignatures
from odfpy.serving.callers.access import DatasetTarget, Writable
from odfpy.serving.rest.models import HASH, with_example

router = APIRouter(tags=["Simple Transfer Protocol"])

_ANSWERS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The body is invalid; the answer has the reason."},
    401: {"description": "An access token is needed."},
    403: {"description": "Not allowed for this token."},
    404: {"description": "There is no such dataset, or no such block in it."},
    409: {"description": "Another process is writing to the dataset."},
}


# --- Signatures ---


class _Files(BaseModel):
    """Files beside a chain, by their paths under the dataset's URL."""

    files: Annotated[
        dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=MAX_SIZE)]],
        Field(max_length=MAX_SIDE_FILES, examples=[{f"info/signatures/{HASH}": "{...}"}]),
    ]


@router.put(f"/{SIDE_FILES}", responses={**_ANSWERS, 200: with_example({"taken": 1})})
def add_signatures(request: Request, target: Writable, given: _Files) -> dict[str, int]:
    """Add signatures, and revocations of keys. All are checked before any is stored; existing ones stay. Signatures
    with an expired or revoked key are refused.
    """
    with _there(target).writing() as dataset:
        layout = dataset.layout
        has = partial(request.app.state.reaches.get(dataset.folder).has, layout, None)
        block_at = walk_back((), ()) if not given.files else _numbers(layout)
        new = IncomingSignatures(dataset.handle.id, UserKeys().revoked, Timestamp.now(), block_at)
        try:
            for path, text in given.files.items():
                key = key_of(path)
                if key is not None:
                    new.take_statements(path, text.encode(), key)
                else:
                    new.take(path, text.encode(), _block_at(path, layout, has))
            new.require(layout.side, layout.refs.get(HEAD))
        except OdfError as error:
            raise HTTPException(400, error.message) from error
        return {"taken": new.store(layout)}


def _numbers(layout: DatasetLayout) -> Callable[[int], Multihash | None]:
    """Return a function that resolves block numbers; the chain is only read if a revocation names one."""
    head = layout.chain.block(layout.chain.head())
    return walk_back([head], layout.chain.iter_blocks(head.block.prev_block_hash) if head.block.prev_block_hash else ())


def _block_at(path: str, layout: DatasetLayout, has: Callable[[Multihash], bool]) -> HashedBlock:
    """Return the block that a signature file belongs to."""
    block = layout.refs.get(HEAD) if path == HEAD_PATH else signed_block_of(path)
    if block is None:
        raise HTTPException(400, f"{path} is not a place for signatures")
    if not has(block):
        raise HTTPException(404, f"{path}: there is no such block")
    return layout.chain.block(block)


# --- Branches and tags ---


@router.put(
    "/refs/{ref}",
    responses={
        **_ANSWERS,
        200: with_example({"block": HASH}),
        412: {"description": "The reference is at another block."},
        428: {"description": "The request has neither If-Match nor If-None-Match."},
    },
)
def move_reference(
    request: Request,
    place: Writable,
    ref: Annotated[str, Path(max_length=200, description="branch.<name> or tag.<name>")],
    block: Annotated[str, Query(max_length=200, description="Hash of a block of the dataset.")],
    if_match: Annotated[str | None, Header(description="The expected current block: its hash, in quotes.")] = None,
    if_none_match: Annotated[str | None, Header(description="`*` for a new one.")] = None,
) -> dict[str, str]:
    """Create or move a branch or tag, if it is at the block that the caller expects."""
    name, target = _reference_name(ref), _hash(block)
    expected = _expected(if_match, if_none_match)
    with _there(place).writing() as dataset:
        layout = dataset.layout
        if not request.app.state.reaches.get(dataset.folder).has(layout, None, target):
            raise HTTPException(404, "There is no such block")
        known = layout.refs.get(ref)
        if known != expected:
            raise HTTPException(412, f"{name} is {'at ' + str(known) if known else 'not there'}")
        if known is None:
            _require_one_meaning(name, layout)
        elif not place.may_force:
            _require_going_on(name, layout, known, target)
        try:
            layout.refs.compare_and_swap(ref, expected, target)
        except ConcurrentUpdate as error:
            raise HTTPException(412, f"{name} was moved by another client") from error
    return {"block": str(target)}


def _require_going_on(name: ReferenceName, layout: DatasetLayout, known: Multihash, target: Multihash) -> None:
    """Check that a branch is fast-forwarded, and that no tag moves."""
    if known == target:
        return
    if name.kind is ReferenceKind.TAG:
        raise _stays(name)
    if all(hashed.hash != known for hashed in layout.chain.iter_blocks(target)):
        raise HTTPException(403, f"{name} has diverged; overwriting it needs the scope admin")


def pushed_reference(target: DatasetTarget, reference: str) -> tuple[ReferenceName, bool]:
    """Return the branch or tag that is to be pushed, and whether it is new.

    Raises:
        HTTPException: the name is invalid, or it must not be moved.
    """
    name, layout = _reference_name(reference), _there(target).layout
    is_new = layout.refs.get(name.reference) is None
    if is_new:
        _require_one_meaning(name, layout)
    if not is_new and name.kind is ReferenceKind.TAG and not target.may_force:
        raise _stays(name)
    return name, is_new


def _reference_name(reference: str) -> ReferenceName:
    name = ReferenceName.parse(reference)
    if name is None:
        raise HTTPException(400, "This is neither a branch nor a tag; the head moves with a push")
    try:
        return ReferenceName.of(name.kind, name.name)  # not a name that would be taken for a block
    except InvalidValue as error:
        raise HTTPException(400, f"{error.message}. {error.hint}") from error


def _require_one_meaning(new: ReferenceName, layout: DatasetLayout) -> None:
    """Check that a new branch does not have the name of a tag, nor a new tag that of a branch.

    Raises:
        HTTPException: it has.
    """
    if layout.refs.get(new.other.reference) is not None:
        raise HTTPException(400, f"The {new.other} already exists, and its name cannot be that of a {new.prefix} too")


def _stays(tag: ReferenceName) -> HTTPException:
    return HTTPException(403, f"{tag} already exists; moving it needs the scope admin")


def _expected(if_match: str | None, if_none_match: str | None) -> Multihash | None:
    if if_match is None and if_none_match is not None and if_none_match.strip() == "*":
        return None
    if if_match is None or if_none_match is not None:
        raise HTTPException(428, 'Precondition required: send If-Match: "<hash>" or If-None-Match: *')
    return _hash(if_match.strip().strip('"'))


def _hash(text: str) -> Multihash:
    try:
        return Multihash.parse(text)
    except InvalidValue as error:
        raise HTTPException(400, "This is not the hash of a block") from error


def _there(target: DatasetTarget) -> StoredDataset:
    if target.dataset is None:
        raise HTTPException(404, "There is no dataset of that name")
    return target.dataset

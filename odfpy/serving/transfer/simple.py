"""The Simple Transfer Protocol, read only (ODF specification, RFC-007).

    refs/head, refs/<name>      a reference; mutable, so caches must revalidate
    refs/head.sig, info/signatures/<hash>
                                signatures of the head and of blocks
    info/revocations/<key>      the time from which signatures of a key are invalid
    blocks/<hash>, data/<hash>, checkpoints/<hash>
                                an object reachable from a reference; immutable

Files are streamed at the client's speed, and ranges are supported.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request, Response
from fastapi.responses import FileResponse, PlainTextResponse
from pydantic import BaseModel, Field

from odfpy.chain.revocations import FOLDER as REVOCATIONS
from odfpy.chain.revocations import key_of
from odfpy.chain.revocations import path_of as revocations_of
from odfpy.chain.signatures import HEAD_PATH, MAX_SIZE, path_of, signed_block_of
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.chain.stores.ref_store import is_name
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import InvalidValue
from odfpy.repository.locations.http import MAX_SIDE_FILES, SIDE_FILES
from odfpy.repository.objects import ObjectKind
from odfpy.serving.callers.access import Readable
from odfpy.serving.callers.reachable_objects import readable_references
from odfpy.serving.callers.visibility import Visibility, visibility_of
from odfpy.serving.http.ranges import PIECE, FileInPieces, is_known, streamed
from odfpy.serving.rest.models import HASH, ID, with_example

router = APIRouter(tags=["Simple Transfer Protocol"])

_NOT_MODIFIED = 304
_BYTES = "application/octet-stream"
_ANSWERS: dict[int | str, dict[str, Any]] = {
    401: {"description": "An access token is needed."},
    404: {"description": "There is no such object."},
}
_OBJECT_ANSWERS: dict[int | str, dict[str, Any]] = {
    **_ANSWERS,
    200: {"description": "The object.", "content": {"application/octet-stream": {}}},
    206: {"description": "A range of the object.", "content": {"application/octet-stream": {}}},
    304: {"description": "Not modified: the client has the object."},
    400: {"description": "The range is invalid."},
    416: {"description": "The range exceeds the object."},
}

_SIGNATURES = {
    "kind": "HeadSignatures",
    "version": 1,
    "content": {"datasetId": ID, "blockHash": HASH, "sequenceNumber": 3, "signatures": []},
}

_REVOCATIONS = {"kind": "KeyRevocations", "version": 1, "content": {"revocations": []}}

_Hash = Annotated[str, Path(max_length=200, description="Hash of the object.")]


@router.get("/refs/head.sig", responses={**_ANSWERS, 200: with_example(_SIGNATURES)})
def head_signatures(dataset: Readable) -> Response:
    """Return the signatures of the head."""
    return _side_file(dataset, HEAD_PATH)


@router.get("/info/signatures/{hash}", responses={**_ANSWERS, 200: with_example(_SIGNATURES)})
def block_signatures(request: Request, dataset: Readable, hash: _Hash) -> Response:  # noqa: A002 - the specification's term
    """Return the signatures of a block."""
    name = _name(hash)
    if not request.app.state.reaches.get(dataset.folder).has(dataset.layout, None, name):
        raise HTTPException(404, "There is no such block")
    return _side_file(dataset, path_of(name))


@router.get("/info/revocations/{key}", responses={**_ANSWERS, 200: with_example(_REVOCATIONS)})
def revocations(
    dataset: Readable, key: Annotated[str, Path(max_length=200, description="The key, in the form of did:key.")]
) -> Response:
    """Return the revocations of a key, with the times from which on its signatures are invalid."""
    signer = key_of(f"{REVOCATIONS}/{key}")
    if signer is None:
        raise HTTPException(404, "There is no such key")
    return _side_file(dataset, revocations_of(signer))


class _Paths(BaseModel):
    """Files beside a chain."""

    paths: Annotated[
        list[Annotated[str, Field(max_length=200)]],
        Field(max_length=MAX_SIDE_FILES, examples=[[f"info/signatures/{HASH}"]]),
    ]


@router.post(f"/{SIDE_FILES}", responses={**_ANSWERS, 200: with_example({"files": {f"info/signatures/{HASH}": "..."}})})
def side_files(request: Request, dataset: Readable, wanted: _Paths) -> dict[str, dict[str, str]]:
    """Return the existing ones of many signatures and revocations, by their paths under the dataset's URL."""
    reach = request.app.state.reaches.get(dataset.folder)
    names = [name for path in dict.fromkeys(wanted.paths) if (name := signed_block_of(path)) is not None]
    reached = [path_of(name) for name in names if reach.has(dataset.layout, None, name)]
    reached += [path for path in dict.fromkeys(wanted.paths) if key_of(path) is not None]
    side = dataset.layout.side
    files = side.read_all(reached, MAX_SIZE) if side is not None else {}
    return {"files": {path: data.decode("utf-8", "replace") for path, data in files.items()}}


def _side_file(dataset: StoredDataset, path: str) -> Response:
    side = dataset.layout.side
    data = side.read(path, MAX_SIZE) if side is not None else None
    if data is None:
        raise HTTPException(404, "There is no signature")
    return Response(data, media_type="application/json", headers={"Cache-Control": "no-cache"})


@router.head("/refs/{ref}", include_in_schema=False)
@router.get(
    "/refs/{ref}", response_class=PlainTextResponse, responses={**_ANSWERS, 200: with_example(HASH, "text/plain")}
)
def reference(
    request: Request,
    dataset: Readable,
    ref: Annotated[str, Path(max_length=200, description="head, branch.<name> or tag.<name>")],
) -> Response:
    """Return the block that a reference points to; `head` is the last block."""
    target = dataset.layout.refs.get(ref) if is_name(ref) else None
    if target is None:
        raise HTTPException(404, "There is no such reference")
    headers = {"ETag": f'"{target}"', "Cache-Control": "no-cache"}
    if is_known(request, headers["ETag"]):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    return PlainTextResponse(str(target), headers=headers)


@router.get("/refs", responses={**_ANSWERS, 200: with_example({"head": HASH, "tag.v1": HASH})})
def references(dataset: Readable) -> dict[str, str]:
    """Return all readable references, and the blocks that they point to."""
    return {name: str(target) for name, target in readable_references(dataset.layout.refs)}


@router.head("/blocks/{hash}", include_in_schema=False)
@router.get("/blocks/{hash}", response_class=FileResponse, responses=_OBJECT_ANSWERS)
def block(request: Request, dataset: Readable, hash: _Hash) -> Response:  # noqa: A002 - the specification's term
    """Return a metadata block."""
    return _object(request, dataset, None, dataset.layout.blocks, hash)


@router.head("/data/{hash}", include_in_schema=False)
@router.get("/data/{hash}", response_class=FileResponse, responses=_OBJECT_ANSWERS)
def data(request: Request, dataset: Readable, hash: _Hash) -> Response:  # noqa: A002
    """Return a data slice."""
    return _object(request, dataset, ObjectKind.DATA_SLICE, dataset.layout.data, hash)


@router.head("/checkpoints/{hash}", include_in_schema=False)
@router.get("/checkpoints/{hash}", response_class=FileResponse, responses=_OBJECT_ANSWERS)
def checkpoint(request: Request, dataset: Readable, hash: _Hash) -> Response:  # noqa: A002
    """Return a checkpoint, the state of an engine."""
    return _object(request, dataset, ObjectKind.CHECKPOINT, dataset.layout.checkpoints, hash)


def _object(
    request: Request, dataset: StoredDataset, kind: ObjectKind | None, store: ObjectStore, text: str
) -> Response:
    name = _name(text)
    reach = request.app.state.reaches.get(dataset.folder)
    # Unreachable objects are not served: they may belong to a push in progress, or to a dropped history.
    if not reach.has(dataset.layout, kind, name) or name not in store:
        raise HTTPException(404, "There is no such object")
    is_public = visibility_of(dataset.folder) is Visibility.PUBLIC
    headers = {
        "ETag": f'"{name}"',
        "Cache-Control": f"{'public' if is_public else 'private'}, max-age=31536000, immutable",
        # Clients that push control the bytes: browsers must not interpret them as a page of this server.
        "X-Content-Type-Options": "nosniff",
    }
    if is_known(request, headers["ETag"]):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    path = store.local_path(name)
    if path is None:  # it is stored compressed
        more = {**headers, "Content-Type": _BYTES}
        return streamed(request, partial(store.open_at, name), store.size(name), headers["ETag"], more)
    stamp = path.stat()
    if stamp.st_size <= PIECE and "Range" not in request.headers:  # mostly a block: one piece
        return Response(path.read_bytes(), media_type=_BYTES, headers={**headers, "Accept-Ranges": "bytes"})
    return FileInPieces(path, media_type=_BYTES, headers=headers, stat_result=stamp)


def _name(text: str) -> Multihash:
    try:
        return Multihash.parse(text)
    except InvalidValue as error:
        raise HTTPException(404, "There is no such object: this is not a hash") from error

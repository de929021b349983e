"""The Smart Transfer Protocol (RFC-008): the server's WebSockets, and the download and upload of objects.

    /pull, /push                WebSockets
    /signed-data/<hash>         GET and PUT, for holders of a signed URL from one of these conversations
    /signed-checkpoints/<hash>

Work on datasets is done in threads; the event loop only passes messages.
"""

from __future__ import annotations

import asyncio
import io
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Annotated, Any, Literal, cast

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response, WebSocket
from fastapi.responses import FileResponse
from starlette.requests import ClientDisconnect, HTTPConnection

from odfpy.chain.stores.object_store import LocalObjectStore, ObjectTooLarge
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.coordinator.storage.workspace_folder import WorkspaceFolder
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import HashMismatch, InvalidValue
from odfpy.repository.partial_objects import PartElsewhere, PartialObject, upload_object
from odfpy.repository.peer_errors import ProtocolViolation
from odfpy.repository.smart_transfer.located import OFFSET_HEADER
from odfpy.repository.smart_transfer.messages import (
    VERSION,
    VERSION_HEADER,
    Internal,
    ObjectFile,
    PullPhase,
    PushPhase,
    TransferUrl,
    closing_reason,
)
from odfpy.repository.smart_transfer.pull import serve_pull
from odfpy.repository.smart_transfer.pull_links import TAKES_LINKS
from odfpy.repository.smart_transfer.push_links import HAS_ALL, LINKS_HEADER
from odfpy.repository.smart_transfer.serve_push import serve_push
from odfpy.repository.smart_transfer.session import (
    FAILED,
    NORMAL,
    Conversation,
    PeerClosed,
    Receive,
    Refusal,
    Send,
    Step,
)
from odfpy.repository.smart_transfer.signature_messages import TAKES_HEADER, TAKES_SIGNATURES
from odfpy.repository.smart_transfer.signed_urls import KINDS, Grant, UrlSigner
from odfpy.serving.callers.access import AnyCaller, Caller, Readable, Writable, alias_in, is_readable, registry_of
from odfpy.serving.callers.reachable_objects import ReachableObjects
from odfpy.serving.http.bodies import BodyReader
from odfpy.serving.http.budget import MemoryBudget, OverBudget, weight_of_json
from odfpy.serving.http.limits import Streamed
from odfpy.serving.http.logs import log
from odfpy.serving.http.query_limiter import party_of
from odfpy.serving.http.ranges import FileInPieces, streamed
from odfpy.serving.http.websocket_protocol import TRY_AGAIN_LATER, intake_of
from odfpy.serving.transfer.pushes import ServedTarget, SignedUrls, store_of
from odfpy.serving.transfer.signatures_api import pushed_reference

router = APIRouter(tags=["Smart Transfer Protocol"])

_PATIENCE = 6 * 3600.0  # a client transfers a round of objects; the library pings it every 20 s
_CLOSING = 5.0
_TALKING = 16
_QUESTION = 4 * 1024 * 1024  # the maximum number of objects in a request, twice
_PUTTING = 64


def _require_version(connection: HTTPConnection) -> None:
    if connection.headers.get(VERSION_HEADER, "").strip() != str(VERSION):
        raise HTTPException(400, f"Incompatible version: {VERSION_HEADER} must be {VERSION}")


_Versioned = Depends(_require_version)


@router.websocket("/pull", dependencies=[_Versioned])
async def pull(socket: WebSocket, caller: AnyCaller, dataset: Readable) -> None:
    """Serve a pull of a client."""
    urls = _urls(socket, dataset.workspace_folder)
    reach: ReachableObjects = socket.app.state.reaches.get(dataset.folder)

    def locate(file: ObjectFile) -> TransferUrl | None:
        store = file.object_type.store(dataset.layout)
        name = file.physical_hash
        is_there = reach.has(dataset.layout, file.object_type, name) and name in store and store.size(name) == file.size
        return urls.to_get(dataset.handle.id, file) if is_there else None

    _admit(socket, caller, min(_QUESTION, socket.app.state.settings.max_message))

    def is_linked(name: Multihash) -> bool:
        return reach.has_link(dataset.layout, name)

    conversation = serve_pull(dataset.layout, locate, is_linked)
    may_go_on = partial(is_readable, dataset, caller)
    await _hold(socket, conversation, PullPhase.INITIAL_REQUEST, may_go_on, {TAKES_HEADER: TAKES_LINKS})


@router.websocket("/push", dependencies=[_Versioned])
async def push(
    socket: WebSocket, place: Writable, reference: Annotated[str | None, Query(max_length=200)] = None
) -> None:
    """Serve a push of a client; clients of odfpy may also push a branch or tag of an existing dataset."""
    name, is_new = None, False
    if reference is not None:
        name, is_new = await anyio.to_thread.run_sync(pushed_reference, place, reference)
    # A new branch or tag drops nothing, so every writer may create it by force; but only if it is still new when it is
    # moved, or else they could wait until another client has created it.
    may_force = place.may_force or is_new
    target = ServedTarget(
        registry_of(socket),
        place.storage,
        place.alias,
        _urls(socket, place.storage),
        name,
        must_be_new=is_new and not place.may_force,
    )
    limit = socket.app.state.settings.max_object
    revoked = await anyio.to_thread.run_sync(lambda: UserKeys().revoked)
    conversation = serve_push(
        target,
        may_force=may_force,
        may_bring_future=place.may_force,
        clock=Timestamp.now(),
        max_object_size=limit,
        revoked=revoked,
        has_all_files=socket.headers.get(LINKS_HEADER, "").strip() == HAS_ALL,
    )
    _admit(socket, place.caller, socket.app.state.settings.max_message)
    takes = {TAKES_HEADER: f"{TAKES_SIGNATURES}, {TAKES_LINKS}"}
    await _hold(socket, conversation, PushPhase.INITIAL_REQUEST, place.caller.is_still_known, takes)


def _admit(socket: WebSocket, caller: Caller, most: int) -> None:
    """Accept messages up to a size, charged to the caller's budget."""
    intake = intake_of(socket)
    intake.most = most
    intake.held.pass_to(party_of(caller, socket))


def _urls(connection: HTTPConnection, folder: WorkspaceFolder) -> SignedUrls:
    state = connection.app.state
    # A client that uses the WebSocket transfers its objects by separate requests.
    base = state.settings.base_url or str(connection.base_url).replace("ws", "http", 1)
    place = next(at for at, storage in enumerate(registry_of(connection).storages) if storage is folder)
    return SignedUrls(state.signer, f"{base.rstrip('/')}/{alias_in(connection)}", place)


# --- Conversations ---


async def _hold(
    socket: WebSocket,
    conversation: Conversation[None],
    phase: PullPhase | PushPhase,
    may_go_on: Callable[[], bool],
    headers: Mapping[str, str],
) -> None:
    """Run a conversation, and close it as the protocol requires.

    Args:
        socket: the connection.
        conversation: the server's side.
        phase: its first phase, for errors.
        may_go_on: returns whether the caller still has the right to it; asked with each message.
        headers: headers of the handshake.
    """
    await socket.accept(headers=[(name.encode(), value.encode()) for name, value in headers.items()])
    code, reason = NORMAL, ""
    try:
        await _converse(socket, conversation, may_go_on)
    except PeerClosed as closed:
        log("transfer ended early", path=socket.scope["path"], code=closed.close_code)
        return
    except Refusal as refusal:
        code, reason = FAILED, closing_reason(refusal.error)
        problem = str(refusal.__cause__ or refusal)
        log("transfer refused", level=logging.WARNING, path=socket.scope["path"], problem=problem)
    except OverBudget as error:
        code, reason = TRY_AGAIN_LATER, closing_reason(Internal(phase, error.message))
        log("transfer refused", level=logging.WARNING, path=socket.scope["path"], problem=error.message)
    except Exception as error:  # noqa: BLE001 - a bug: the client is only told that there was an error
        code, reason = FAILED, closing_reason(Internal(phase, "Internal error"))
        log("transfer failed", level=logging.ERROR, error=error, path=socket.scope["path"])
    if code == NORMAL:
        try:
            await asyncio.wait_for(_closed(socket), _CLOSING)
        except asyncio.TimeoutError:
            log("a client does not hang up", path=socket.scope["path"])
        except RuntimeError:  # the client has disconnected already
            return
        else:
            return
    try:
        await socket.close(code, reason)
    except RuntimeError:  # the client has disconnected
        return


async def _converse(socket: WebSocket, conversation: Conversation[None], may_go_on: Callable[[], bool]) -> None:
    limiter = _limiter(socket, "talking", _TALKING)
    value: Any = None
    error: BaseException | None = None
    longest = 0
    budget: MemoryBudget = socket.app.state.budget
    # In any case, what it holds is released immediately.
    with closing(conversation), budget.reserve(intake_of(socket).held.who) as parsed:
        while True:
            step = await anyio.to_thread.run_sync(_advance, conversation, value, error, limiter=limiter)
            value, error = None, None
            match step:
                case None:
                    return
                case Send(text):
                    await _send(socket, text)
                case Receive(within):
                    try:
                        value = await _receive(socket, within)
                    except (PeerClosed, ProtocolViolation) as problem:
                        error = problem
                    if value is not None and not await anyio.to_thread.run_sync(may_go_on, limiter=limiter):
                        value, error = None, ProtocolViolation("Access has ended")  # a frame has room for little
                    # The reservation for the largest message may be kept until the end, that for the parsed last
                    # message may not.
                    parsed.resize(longest + weight_of_json(value or ""))
                    longest = max(longest, len(value or ""))


def _advance(conversation: Conversation[None], value: Any, error: BaseException | None) -> Step | None:
    """Run the next step; None at the end."""
    try:
        return conversation.throw(error) if error is not None else conversation.send(value)
    except StopIteration:
        return None


async def _send(socket: WebSocket, text: str) -> None:
    try:
        await socket.send_text(text)
    except RuntimeError as error:  # it is closed already
        raise PeerClosed(1006) from error


async def _receive(socket: WebSocket, within: float | None) -> str | None:
    try:
        message = await asyncio.wait_for(socket.receive(), within or _PATIENCE)
    except asyncio.TimeoutError:
        if within is not None:
            return None
        raise ProtocolViolation("No message for too long") from None
    if message["type"] == "websocket.disconnect":
        raise PeerClosed(message.get("code") or 1005, message.get("reason") or "")
    text = message.get("text")
    if text is None:
        raise ProtocolViolation("A message is not text")
    return cast("str", text)


async def _closed(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


def _limiter(connection: HTTPConnection, name: str, total: int) -> anyio.CapacityLimiter:
    """Return a thread limiter for one kind of work, so that it does not use the threads of other requests."""
    limiters: dict[str, anyio.CapacityLimiter] = connection.app.state.limiters
    return limiters.setdefault(name, anyio.CapacityLimiter(total))


# --- Objects at signed URLs ---

_Hash = Annotated[str, Path(max_length=200, description="Hash of the object.")]
_ANSWERS: dict[int | str, dict[str, Any]] = {
    403: {"description": "The URL is not of this server, or has expired."},
    404: {"description": "The dataset or object no longer exists."},
}
_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})")
_PUT_ANSWERS = {
    **_ANSWERS,
    200: {"description": "The server stored it."},
    400: {"description": "The bytes are of another object."},
    408: {"description": "Timed out waiting for the request body."},
    409: {"description": "The bytes do not follow the received ones."},
}


def _granted(
    request: Request,
    hash: _Hash,  # noqa: A002 - the specification's term
    place: Annotated[int, Query(description="The workspace.")],
    dataset: Annotated[str, Query(max_length=200, description="Id of the dataset.")],
    size: Annotated[int, Query(description="Bytes of the object.")],
    expires: Annotated[int, Query(description="Expiry of the URL, in seconds since 1970.")],
    signature: Annotated[str, Query(max_length=200, description="Signature of the parameters by the server.")],
) -> Grant:
    """Return what the URL allows."""
    method: Literal["GET", "PUT"] = "GET" if request.method == "GET" else "PUT"
    try:
        name, dataset_id = Multihash.parse(hash), DatasetId.parse(dataset)
    except InvalidValue as error:
        raise HTTPException(403, "This URL is not one of ours") from error
    grant = Grant(method, place, dataset_id, KINDS[request.scope["path"].split("/")[-2]], name, size, expires)
    signer: UrlSigner = request.app.state.signer
    if not signer.allows(grant, signature, int(time.time())):
        raise HTTPException(403, "This URL is not one of ours, or has expired")
    return grant


Granted = Annotated[Grant, Depends(_granted)]


@router.get("/signed-data/{hash}", response_class=FileResponse, responses=_ANSWERS)  # noqa: FAST003 - in `Granted`
@router.get("/signed-checkpoints/{hash}", response_class=FileResponse, responses=_ANSWERS)
def get_object(request: Request, grant: Granted) -> Response:
    """Return an object, for clients with a signed URL."""
    layout = store_of(registry_of(request), alias_in(request), grant)
    store = grant.kind.store(layout) if layout else None
    if store is None or grant.name not in store:
        raise HTTPException(404, "There is no such object")
    headers, media_type = {"Cache-Control": "private, no-store"}, "application/octet-stream"
    path = store.local_path(grant.name)
    if path is None:  # it is stored compressed
        more = {**headers, "Content-Type": media_type}
        size = store.size(grant.name)
        return streamed(request, partial(store.open_at, grant.name), size, f'"{grant.name}"', more)
    return FileInPieces(path, media_type=media_type, headers=headers)


@router.put("/signed-data/{hash}", responses=_PUT_ANSWERS, dependencies=[Streamed])  # noqa: FAST003 - in `Granted`
@router.put("/signed-checkpoints/{hash}", responses=_PUT_ANSWERS, dependencies=[Streamed])
async def put_object(request: Request, grant: Granted) -> Response:
    """Upload an object, for clients with a signed URL. It is hashed while it is received."""
    layout = await anyio.to_thread.run_sync(store_of, registry_of(request), alias_in(request), grant)
    if layout is None:
        raise HTTPException(404, "There is no such dataset")
    body = cast("io.BufferedReader", BodyReader(request, request.app.state.settings.patience))
    begin = _begin_of(request, grant)

    def insert() -> None:
        upload_object(grant.kind.store(layout), grant.name, grant.size, body, begin)

    try:
        await anyio.to_thread.run_sync(insert, limiter=_limiter(request, "putting", _PUTTING))
    except PartElsewhere as error:
        raise HTTPException(409, "The object cannot be continued there; HEAD tells where") from error
    except (HashMismatch, ObjectTooLarge) as error:
        raise HTTPException(400, f"This is not the object {grant.name} of {grant.size} bytes") from error
    except ClientDisconnect as error:
        raise HTTPException(400, "The request body ended early") from error
    return Response(status_code=200)


@router.head("/signed-data/{hash}", include_in_schema=False)  # noqa: FAST003 - in `Granted`
@router.head("/signed-checkpoints/{hash}", include_in_schema=False)
def arrived(request: Request, grant: Granted) -> Response:
    """Return how many bytes of an object were received, for clients with a signed URL to upload it."""
    layout = store_of(registry_of(request), alias_in(request), grant)
    if layout is None:
        raise HTTPException(404, "There is no such dataset")
    store = grant.kind.store(layout)
    count = PartialObject(store, grant.name).arrived if isinstance(store, LocalObjectStore) else 0
    return Response(status_code=204, headers={OFFSET_HEADER: str(count), "Cache-Control": "no-store"})


def _begin_of(request: Request, grant: Grant) -> int:
    """Return the first byte of an upload, as far as its URL allows."""
    header = request.headers.get("Content-Range")
    if header is None:
        return 0
    match = _RANGE.fullmatch(header.strip())
    if match is None or int(match[2]) != grant.size - 1 or int(match[3]) != grant.size:
        raise HTTPException(400, "Content-Range is the rest of the object, such as bytes 100-199/200")
    return int(match[1])

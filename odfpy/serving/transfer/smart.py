"""The Smart Transfer Protocol (RFC-008): the server's transport, and where objects are got and put.

    /pull, /push                WebSockets
    /signed-data/<hash>         GET and PUT, for whoever was given a signed URL in one of these conversations
    /signed-checkpoints/<hash>

What a conversation does with datasets it does on a thread; the event loop only carries messages.
"""

from __future__ import annotations

import asyncio
import io
import logging
import time
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Literal, cast

import anyio
import anyio.from_thread
import anyio.to_thread
from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response, WebSocket
from fastapi.responses import FileResponse
from starlette.requests import ClientDisconnect, HTTPConnection

from odfpy.chain.object_store import ObjectTooLarge
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.coordinator.storage.workspace_folder import WorkspaceFolder
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import HashMismatch, InvalidValue
from odfpy.repository.peer_errors import ProtocolViolation
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
from odfpy.repository.smart_transfer.push import serve_push
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
from odfpy.serving.callers.access import AnyCaller, Caller, Readable, Writable, alias_in, registry_of
from odfpy.serving.http.budget import MemoryBudget, OverBudget, weight_of_json
from odfpy.serving.http.logs import log
from odfpy.serving.http.query_limiter import who_is
from odfpy.serving.http.websocket_protocol import TRY_AGAIN_LATER, intake_of
from odfpy.serving.transfer.pushes import ServedTarget, SignedUrls, store_of
from odfpy.serving.transfer.signatures_api import pushed_reference

router = APIRouter(tags=["Smart Transfer Protocol"])

_PATIENCE = 6 * 3600.0  # a client gets a round of objects; whether it is alive is asked by the library, every 20 s
_CLOSING = 5.0
_PIECE = 256 * 1024
_TALKING = 16
_QUESTION = 4 * 1024 * 1024  # as many objects as may be asked for at once, twice
_PUTTING = 64


class _Pieces(FileResponse):
    chunk_size = 128 * 1024


def _require_version(connection: HTTPConnection) -> None:
    if connection.headers.get(VERSION_HEADER, "").strip() != str(VERSION):
        raise HTTPException(400, f"Incompatible version: {VERSION_HEADER} must be {VERSION}")


_Versioned = Depends(_require_version)


@router.websocket("/pull", dependencies=[_Versioned])
async def pull(socket: WebSocket, caller: AnyCaller, dataset: Readable) -> None:
    """Let a client pull."""
    urls = _urls(socket, dataset.workspace_folder)
    reach = socket.app.state.reaches.of(dataset.folder)

    def locate(file: ObjectFile) -> TransferUrl | None:
        store = file.object_type.store(dataset.layout)
        name = file.physical_hash
        is_there = reach.has(dataset.layout, file.object_type, name) and name in store and store.size(name) == file.size
        return urls.to_get(dataset.handle.id, file) if is_there else None

    _admit(socket, caller, min(_QUESTION, socket.app.state.settings.max_message))
    await _hold(socket, serve_pull(dataset.layout, locate), PullPhase.INITIAL_REQUEST)


@router.websocket("/push", dependencies=[_Versioned])
async def push(
    socket: WebSocket, place: Writable, reference: Annotated[str | None, Query(max_length=200)] = None
) -> None:
    """Let a client push; ours may also push a branch or tag of a dataset that is there."""
    name, is_new = None, False
    if reference is not None:
        name, is_new = await anyio.to_thread.run_sync(pushed_reference, place, reference)
    # A branch or tag that is new drops nothing, so anybody who may write may force it; but only if it is still new when
    # it moves, or else they could wait until somebody else has made it.
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
    )
    _admit(socket, place.caller, socket.app.state.settings.max_message)
    await _hold(socket, conversation, PushPhase.INITIAL_REQUEST, {TAKES_HEADER: TAKES_SIGNATURES})


def _admit(socket: WebSocket, caller: Caller, most: int) -> None:
    """Let messages of a size come, on the account of whoever it is."""
    intake = intake_of(socket)
    intake.most = most
    intake.held.pass_to(who_is(caller, socket))


def _urls(connection: HTTPConnection, folder: WorkspaceFolder) -> SignedUrls:
    state = connection.app.state
    # A client that came through a WebSocket gets its objects through plain requests.
    base = state.settings.base_url or str(connection.base_url).replace("ws", "http", 1)
    place = next(at for at, one in enumerate(registry_of(connection).storages) if one is folder)
    return SignedUrls(state.signer, f"{base.rstrip('/')}/{alias_in(connection)}", place)


# --- Conversations ---


async def _hold(
    socket: WebSocket,
    conversation: Conversation[None],
    phase: PullPhase | PushPhase,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Have a conversation, and end it as the protocol has it; `headers` are those of the handshake."""
    await socket.accept(headers=[(name.encode(), value.encode()) for name, value in (headers or {}).items()])
    code, reason = NORMAL, ""
    try:
        await _converse(socket, conversation)
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
    except Exception as error:  # noqa: BLE001 - a fault of ours: the client is told that there was one
        code, reason = FAILED, closing_reason(Internal(phase, "Internal error"))
        log("transfer failed", level=logging.ERROR, error=error, path=socket.scope["path"])
    if code == NORMAL:
        try:
            await asyncio.wait_for(_closed(socket), _CLOSING)
        except asyncio.TimeoutError:
            log("a client does not hang up", path=socket.scope["path"])
        except RuntimeError:  # it has hung up before
            return
        else:
            return
    try:
        await socket.close(code, reason)
    except RuntimeError:  # the client has gone
        return


async def _converse(socket: WebSocket, conversation: Conversation[None]) -> None:
    limiter = _limiter(socket, "talking", _TALKING)
    value: Any = None
    error: BaseException | None = None
    longest = 0
    budget: MemoryBudget = socket.app.state.budget
    with budget.reserve(intake_of(socket).held.who) as parsed:
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
                    # What the largest message said may be kept until the end; what the last one is parsed to, not.
                    parsed.resize(longest + weight_of_json(value or ""))
                    longest = max(longest, len(value or ""))


def _advance(conversation: Conversation[None], value: Any, error: BaseException | None) -> Step | None:
    """The next step; None at the end."""
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
    """Threads for one kind of work, so that it does not take those of all other requests."""
    limiters: dict[str, anyio.CapacityLimiter] = connection.app.state.limiters
    return limiters.setdefault(name, anyio.CapacityLimiter(total))


# --- Objects at signed URLs ---

_Hash = Annotated[str, Path(max_length=200, description="Hash of the object.")]
_ANSWERS: dict[int | str, dict[str, Any]] = {
    403: {"description": "The URL is not one of ours, or has expired."},
    404: {"description": "There is no such dataset or object any more."},
}
_PUT_ANSWERS = {
    **_ANSWERS,
    200: {"description": "The server has it."},
    400: {"description": "Another object came."},
    408: {"description": "The object does not come."},
}


def _granted(
    request: Request,
    hash: _Hash,  # noqa: A002 - the specification's word
    place: Annotated[int, Query(description="The workspace.")],
    dataset: Annotated[str, Query(max_length=200, description="Id of the dataset.")],
    size: Annotated[int, Query(description="Bytes of the object.")],
    expires: Annotated[int, Query(description="Seconds since 1970 until which the URL is good.")],
    signature: Annotated[str, Query(max_length=200, description="Of all that, by the server.")],
) -> Grant:
    """Return what the URL allows."""
    method: Literal["GET", "PUT"] = "PUT" if request.method == "PUT" else "GET"
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
    """An object, for whoever was given the URL."""
    layout = store_of(registry_of(request), alias_in(request), grant)
    path = grant.kind.store(layout).local_path(grant.name) if layout else None
    if path is None or not path.is_file():
        raise HTTPException(404, "There is no such object")
    return _Pieces(path, media_type="application/octet-stream", headers={"Cache-Control": "private, no-store"})


@router.put("/signed-data/{hash}", responses=_PUT_ANSWERS)  # noqa: FAST003 - in `Granted`
@router.put("/signed-checkpoints/{hash}", responses=_PUT_ANSWERS)
async def put_object(request: Request, grant: Granted) -> Response:
    """Put an object, for whoever was given the URL. It is hashed while it comes in."""
    layout = await anyio.to_thread.run_sync(store_of, registry_of(request), alias_in(request), grant)
    if layout is None:
        raise HTTPException(404, "There is no such dataset")
    body = _Body(request, request.app.state.settings.patience)
    store = grant.kind.store(layout)

    def insert() -> None:
        store.insert_stream(cast("io.BufferedReader", body), grant.name, size=grant.size)

    try:
        await anyio.to_thread.run_sync(insert, limiter=_limiter(request, "putting", _PUTTING))
    except (HashMismatch, ObjectTooLarge) as error:
        raise HTTPException(400, f"This is not the object {grant.name} of {grant.size} bytes") from error
    except ClientDisconnect as error:
        raise HTTPException(400, "The object has not come whole") from error
    return Response(status_code=200)


class _Body:
    """The body of a request as a stream for a thread; a client that does not send for too long is given up."""

    def __init__(self, request: Request, patience: float) -> None:
        self._chunks: AsyncIterator[bytes] = request.stream()
        self._patience = patience

    def read(self, size: int) -> bytes:
        """The next bytes: a piece of them, whatever `size` says, which is more."""
        del size
        return anyio.from_thread.run(self._piece)

    async def _piece(self) -> bytes:
        piece = bytearray()
        try:
            with anyio.fail_after(self._patience):
                while len(piece) < _PIECE and (chunk := await anext(self._chunks, b"")):
                    piece += chunk
        except TimeoutError as error:
            raise HTTPException(408, "The object does not come") from error
        return bytes(piece)

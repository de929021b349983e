"""The client's transport: messages over a WebSocket, files over HTTP with the URLs that the server sends."""

from __future__ import annotations

import queue
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from odfpy import __version__
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceName
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.errors import DatasetNotFound, TransferError
from odfpy.extras import needs_extra
from odfpy.http.client import HttpClient
from odfpy.http.connection import hint, reason, space_at
from odfpy.http.resume import TransferInterrupted
from odfpy.http.spaces import AddressSpace, require_no_nearer
from odfpy.http.url import Origin, without_user
from odfpy.repository.credentials import advice, authorization
from odfpy.repository.locations.http import http_dataset
from odfpy.repository.objects import BytesProgress, ObjectKind, ObjectOfBlock, StreamMonitor, copy_objects
from odfpy.repository.peer_errors import AccessRefused, ConnectionLost, ProtocolViolation
from odfpy.repository.smart_transfer.located import Downloads, LocatedObjects, Uploads
from odfpy.repository.smart_transfer.messages import MAX_MESSAGE, VERSION, VERSION_HEADER, TransferUrl
from odfpy.repository.smart_transfer.pull_links import TAKES_LINKS
from odfpy.repository.smart_transfer.session import (
    NORMAL,
    Conversation,
    Fetch,
    FetchCapabilities,
    FetchedLinks,
    FetchHead,
    FetchLinked,
    Located,
    PeerClosed,
    Receive,
    ReceiveWhileUploading,
    Send,
    StartUploads,
    Step,
    TakeSignatures,
    UploadProgress,
)
from odfpy.repository.smart_transfer.signature_messages import TAKES_HEADER
from odfpy.repository.smart_transfer.tls_socket import SharedTlsSocket
from odfpy.repository.smart_transfer.upload_thread import (
    CLOSE_TIMEOUT,
    ConnectionFailed,
    Event,
    Message,
    UploadsEnded,
    UploadThread,
)
from odfpy.repository.transfer.linked import LinkedCopy
from odfpy.repository.transfer.signatures import collect_signatures

if TYPE_CHECKING:
    from websockets.client import ClientProtocol
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import ClientConnection

R = TypeVar("R")

PATIENCE = 300.0
"""Maximum seconds to wait for a response; pings detect a dead server earlier (RFC 6455, 5.5.2)."""

_OPEN_TIMEOUT = 30.0
_FRAGMENT = 1 << 20  # characters; the reference implementation accepts frames of up to 16 MB
_GIVING_UP = 1001
_TOO_BIG = 1009
_LOST = 1006


def run_conversation(
    base: str,
    path: str,
    conversation: Conversation[R],
    here: DatasetLayout,
    progress: BytesProgress | None = None,
    *,
    reference: ReferenceName | None = None,
    headers: Mapping[str, str] | None = None,
) -> R:
    """Run a conversation with a server.

    Args:
        base: http or https URL of the dataset.
        path: `pull` or `push`.
        conversation: the client's side of the conversation.
        here: the local dataset.
        progress: called with the transferred and the total number of bytes, while files are transferred.
        reference: the branch or tag to transfer instead of the head; only supported by odfpy nodes.
        headers: additional headers of the handshake, ignored by other servers.

    Raises:
        TransferError: the server is unreachable, requires a token, or lacks the dataset.
        OdfError: any error of the conversation.
    """
    with ExitStack() as ends:
        name = HEAD if reference is None else reference.reference
        where = path if reference is None else f"{path}?reference={name}"
        connection, space = _connected(base, where, headers or {}, ends)
        connected = _Connection(connection, space, base, name, here, progress or (lambda _done, _total: None))
        result = connected.run(conversation)
        connected.close(NORMAL)
        return result


class _Connection:
    """A conversation over a connection.

    One thread reads messages on demand, another one uploads files; events are handled in order.
    """

    def __init__(
        self,
        socket: ClientConnection,
        space: AddressSpace,
        base: str,
        reference: str,
        local: DatasetLayout,
        progress: BytesProgress,
    ) -> None:
        self._socket = socket
        self._base = base
        self._reference = reference
        self._local = local
        self._progress = progress
        # Redirected URLs must not lead to a more local network than that of the server itself.
        self._client = HttpClient(TransferError, interrupted=TransferInterrupted, nearest=space)
        self._moved = 0
        self._uploading: UploadThread | None = None
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._is_reading = False

    def run(self, conversation: Conversation[R]) -> R:
        """Execute the steps of a conversation, and return its result."""
        try:
            step = next(conversation)
            while True:
                try:
                    outcome = self._do(step)
                except Exception as error:  # noqa: BLE001 - the conversation decides what an error means
                    step = conversation.throw(error)
                else:
                    step = conversation.send(outcome)
        except StopIteration as stop:
            result: R = stop.value
            return result
        except BaseException:
            self.close(_GIVING_UP)
            raise

    def close(self, code: int) -> None:
        """Close the connection."""
        if self._uploading:
            self._uploading.stop()
        with suppress(Exception):  # everything has been sent
            self._socket.close(code)

    def _do(self, step: Step) -> Any:
        match step:
            case Send(text):
                self._send(text)
            case Receive(within):
                return self._receive(within)
            case Fetch(files):
                self._copy(self._layout_of_located(files, Downloads), self._local, files)
            case FetchLinked(items, urls):
                return self._fetch_linked(items, urls)
            case StartUploads(files):
                self._uploading = UploadThread(
                    self._layout_of_located(files, Uploads), files, self._copy, self._local, self._events
                )
            case ReceiveWhileUploading():
                return self._receive_while_uploading()
            case TakeSignatures(blocks, dataset_id, required, head):
                return collect_signatures(http_dataset(self._base), blocks, dataset_id, required, self._local, head)
            case FetchHead():
                return http_dataset(self._base).refs.get(self._reference)
            case FetchCapabilities():
                return self._capabilities()
        return None

    def _capabilities(self) -> frozenset[str]:
        answer = self._socket.response
        header = answer.headers.get(TAKES_HEADER, "") if answer is not None else ""
        return frozenset(name.strip() for name in header.split(","))

    def _fetch_linked(
        self, items: tuple[ObjectOfBlock, ...], urls: Mapping[Multihash, TransferUrl] | None
    ) -> FetchedLinks:
        source: ObjectStore = http_dataset(self._base).data
        if urls is not None:
            source = Downloads([Located(item, urls[item.name]) for item in items], self._base, self._client)
        before, total = self._moved, sum(max(0, item.size) for item in items)
        monitor = StreamMonitor(total, lambda done, total: self._progress(before + done, before + total))
        copying = LinkedCopy(self._local.data, monitor)
        copying.copy(list(items), source)
        self._moved = before + monitor.done
        return FetchedLinks(copying.result, copying.missing)

    def _layout_of_located(self, files: tuple[Located, ...], store: type[LocatedObjects]) -> DatasetLayout:
        """Return a layout whose files are at the locations provided by the server."""

        def of_kind(kind: ObjectKind) -> LocatedObjects:
            objects = store([located for located in files if located.item.kind is kind], self._base, self._client)
            if isinstance(objects, Uploads):
                objects.goes_on = TAKES_LINKS in self._capabilities()
            return objects

        return replace(self._local, data=of_kind(ObjectKind.DATA_SLICE), checkpoints=of_kind(ObjectKind.CHECKPOINT))

    def _copy(self, source: DatasetLayout, target: DatasetLayout, files: tuple[Located, ...]) -> None:
        before = self._moved
        items = [located.item for located in files]
        copy_objects(source, target, items, lambda done, total: self._progress(before + done, before + total))
        self._moved = before + sum(item.size for item in items)

    def _send(self, text: str) -> None:
        from websockets.exceptions import ConnectionClosed

        pieces = [text[at : at + _FRAGMENT] for at in range(0, len(text), _FRAGMENT)]
        with suppress(ConnectionClosed):  # the reason is received next
            self._socket.send(pieces if len(pieces) > 1 else text)

    def _receive(self, within: float | None) -> str | None:
        try:
            event = self._next(PATIENCE if within is None else within)
        except queue.Empty:
            if within is not None:
                return None
            where = without_user(self._base)
            raise ConnectionLost(f"{where} has not answered for {PATIENCE:.0f} seconds") from None
        assert isinstance(event, Message)  # noqa: S101 - no uploads are running
        return event.text

    def _receive_while_uploading(self) -> UploadProgress:
        assert self._uploading  # noqa: S101 - the conversation has started uploads
        event = self._next(None)
        text = event.text if isinstance(event, Message) else None
        return UploadProgress(text, self._uploading.count, self._uploading.seconds)

    def _next(self, within: float | None) -> Event:
        if not self._is_reading:
            self._is_reading = True
            threading.Thread(target=self._read, name="odf-smart-transfer", daemon=True).start()
        event = self._events.get(timeout=within)
        if not isinstance(event, UploadsEnded):
            self._is_reading = False
        if isinstance(event, Message) or (isinstance(event, UploadsEnded) and event.error is None):
            return event
        assert event.error is not None  # noqa: S101 - the only remaining case
        raise event.error

    def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            message = self._socket.recv()
        except ConnectionClosed as closed:
            self._events.put(ConnectionFailed(_closed(closed)))
        except Exception as error:  # noqa: BLE001 - reported to the waiting caller
            self._events.put(ConnectionFailed(ConnectionLost(f"The connection broke: {error}")))
        else:
            text = Message(message) if isinstance(message, str) else None
            self._events.put(text or ConnectionFailed(ProtocolViolation("A message is not text")))


# --- The connection ---


def _connected(base: str, path: str, more: Mapping[str, str], ends: ExitStack) -> tuple[ClientConnection, AddressSpace]:
    """Open a connection, and determine the network space of the server."""
    with needs_extra("serve", "URLs that begin with odf+http", TransferError):
        from websockets.exceptions import InvalidStatus, WebSocketException
        from websockets.sync.client import ClientConnection, connect
    token = authorization(base)
    headers = {**more, VERSION_HEADER: str(VERSION), **({"Authorization": token} if token else {})}
    shown = without_user(base)
    spaces = [AddressSpace.LINK_LOCAL]

    def create(peer: socket.socket, protocol: ClientProtocol, **options: Any) -> ClientConnection:
        """Check the peer's address before sending anything: the library follows redirects."""
        uri = protocol.uri
        origin = Origin("https" if uri.secure else "http", uri.host, uri.port)
        spaces.append(space_at(origin, peer, TransferError))
        require_no_nearer(str(origin), spaces[-1], spaces[-2], TransferError)
        if isinstance(peer, ssl.SSLSocket):
            peer = cast("socket.socket", SharedTlsSocket(peer))
        return ClientConnection(peer, protocol, **options)

    try:
        connection = ends.enter_context(
            connect(
                f"ws{base.removeprefix('http')}/{path}",
                additional_headers=headers,
                user_agent_header=f"odfpy/{__version__}",
                open_timeout=_OPEN_TIMEOUT,
                close_timeout=CLOSE_TIMEOUT,
                max_size=MAX_MESSAGE,
                compression=None,
                create_connection=cast("type[ClientConnection]", create),
            )
        )
    except InvalidStatus as error:
        raise _refusal(error.response.status_code, error.response.body or b"", shown) from error
    except WebSocketException as error:
        if isinstance(error.__cause__, EOFError):  # before any response
            raise ConnectionLost(f"{shown} sent no answer", hint="Run the command again.") from error
        raise TransferError(
            f"{shown} does not support the Smart Transfer Protocol: {error}",
            hint="Is it the URL of a dataset on a node? For plain servers, write http:// or https://.",
        ) from error
    except (OSError, ValueError) as error:
        raise TransferError(f"Cannot reach {shown}: {reason(error)}", hint=hint(error)) from error
    return connection, spaces[-1]


def _refusal(status: int, body: bytes | bytearray, shown: str) -> Exception:
    if status in (401, 403):
        return AccessRefused(f"{shown}: the server answers with status {status}", hint=advice(shown))
    if status == 404:
        return DatasetNotFound(
            f"No dataset there: {shown}",
            hint="Check that it was pushed, and that this is a server of datasets.",
        )
    said = body[:500].decode("utf-8", "replace").strip()
    details = f": {said}" if said.isprintable() else ""
    return TransferError(f"{shown}: the server answers with status {status}{details}")


def _closed(closed: ConnectionClosed) -> Exception:
    if closed.sent is not None and closed.sent.code == _TOO_BIG and not closed.rcvd_then_sent:
        return ProtocolViolation(f"A message is longer than the {MAX_MESSAGE} bytes allowed")
    return PeerClosed(closed.rcvd.code, closed.rcvd.reason) if closed.rcvd is not None else PeerClosed(_LOST)

"""What can happen to a connection: cuts, pings, peers that send too much or nothing, and objects that are not what they should be."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from support.chains.small_datasets import add_info, add_slice, dataset_id, image, make_dataset
from support.servers.serving import ask, put, serving
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.errors import DatasetNotFound, OdfError, TransferError
from odfpy.repository.exchange import fetch_dataset, send_dataset
from odfpy.repository.peer_errors import ConnectionLost, ProtocolViolation
from odfpy.repository.smart_transfer import pull_links, serve_push, websocket
from odfpy.repository.smart_transfer import push as pushes
from odfpy.repository.smart_transfer.session import PeerClosed
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import HistoryRewritten
from odfpy.serving.callers.tokens import Scope, Tokens

VERSION = {"x-odf-smtp-version": "1"}
PATIENCE = 300


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.init(tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="module")
def token(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("admin", Scope.ADMIN)


@pytest.fixture(scope="module")
def node(workspace: Workspace) -> Iterator[str]:
    put(workspace, "seen", 101, public=True)
    with serving(workspace, max_message=1 << 20, max_object=1 << 20) as server:
        yield server.url


@pytest.fixture(autouse=True)
def as_admin(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("ODF_TOKEN", token)


@pytest.fixture
def here(tmp_path: Path) -> DatasetLayout:
    return DatasetLayout.local(tmp_path / "here")


# --- Cuts ---


class Cutting:
    """Stands between a client and a node, and cuts all connections when so many bytes have passed.

    Attributes:
        url: where it listens.
        left: bytes until the cut; None for no cut.
    """

    def __init__(self, target: str) -> None:
        host, port = target.removeprefix("http://").split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.left: int | None = None
        self._lock = threading.Lock()
        self._is_over = False
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with self._listener:
            while True:
                ours, _ = self._listener.accept()
                if self._is_over:
                    ours.close()
                    return
                self._threads.append(threading.Thread(target=self._pass, args=(ours,)))
                self._threads[-1].start()

    def _pass(self, ours: socket.socket) -> None:
        with ours, socket.create_connection(self._target) as theirs, suppress(OSError):
            while True:
                if self._is_over:
                    return
                for one in select.select([ours, theirs], [], [], 0.05)[0]:
                    data = one.recv(512)
                    with self._lock:
                        self.left = None if self.left is None else self.left - len(data)
                        if not data or (self.left is not None and self.left < 0):
                            return
                    (theirs if one is ours else ours).sendall(data)

    def close(self) -> None:
        self._is_over = True
        socket.create_connection(self._listener.getsockname()).close()
        for thread in self._threads:
            thread.join(PATIENCE)


@pytest.fixture
def between(node: str) -> Iterator[Cutting]:
    cutting = Cutting(node)
    yield cutting
    cutting.close()


def dataset(layout: DatasetLayout, number: int) -> DatasetLayout:
    make_dataset(layout, "a", number=number)
    for at in range(4):
        add_slice(layout, bytes([at]) * 3000, b"state %d" % at)
    return layout


def test_pull_goes_on_after_cuts(workspace: Workspace, node: str, between: Cutting, here: DatasetLayout):
    dataset(source := DatasetLayout.in_memory(), 11)
    send_dataset(source, f"odf+{node}/cut", public=True)
    for budget in (200, 1500, 4000, 9000, 13000):
        between.left = budget
        with suppress(OdfError):
            fetch_dataset(f"odf+{between.url}/cut", here)
        assert here.refs.get(HEAD) in (None, source.refs.get(HEAD))
    arrived = {*here.data, *here.checkpoints}
    between.left = None
    result = fetch_dataset(f"odf+{between.url}/cut", here)
    assert result.num_objects == 8 - len(arrived), "what has arrived is not sent again"
    assert image(here) == image(source)


def test_push_goes_on_after_cuts(workspace: Workspace, node: str, between: Cutting, here: DatasetLayout):
    dataset(here, 12)
    for budget in (200, 1500, 5000, 9000, 13000):
        between.left = budget
        with suppress(OdfError):
            send_dataset(here, f"odf+{between.url}/mended")
        assert ask(f"{node}/mended/refs/head", token=None).status == 401
    between.left = None
    send_dataset(here, f"odf+{between.url}/mended")
    assert image(workspace.storage.get("mended").layout) == image(here)


def test_objects_go_in_several_rounds(node: str, here: DatasetLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pull_links, "MAX_OBJECTS", 3)
    dataset(here, 13)
    done = []
    send_dataset(here, f"odf+{node}/rounds", progress=lambda *now: done.append(now))
    assert done[-1][0] == sum(store.size(name) for store in (here.data, here.checkpoints) for name in store)
    fetch_dataset(f"odf+{node}/rounds", copy := DatasetLayout.local(tmp_path / "copy"))
    assert image(copy) == image(here)


def test_node_asks_how_the_uploads_go(node: str, here: DatasetLayout, monkeypatch: pytest.MonkeyPatch):
    """Also when a question is on its way as the client says that all is there: what it hears then does not confirm that."""
    monkeypatch.setattr(pushes, "PING_EVERY", 0.001)
    monkeypatch.setattr(serve_push, "PING_EVERY", 0.001)
    monkeypatch.setattr(serve_push, "_MAX_SILENT_PINGS", 1_000_000)
    make_dataset(here, "a", number=14)
    for at in range(12):
        add_slice(here, bytes([at]) * 100_000)
    send_dataset(here, f"odf+{node}/asked")
    assert ask(
        f"{node}/asked/refs/head", token=websocket.authorization(node).removeprefix("Bearer ")
    ).body.decode() == str(here.refs.get(HEAD))


def test_place_that_has_taken_back_what_it_had_is_not_followed(workspace: Workspace, node: str, here: DatasetLayout):
    theirs = make_dataset(DatasetLayout.in_memory(), "a", "b", number=15)
    send_dataset(theirs, f"odf+{node}/back")
    fetch_dataset(f"odf+{node}/back", here)
    seen = here.chain.head()
    layout = workspace.storage.get("back").layout
    layout.refs.compare_and_swap(HEAD, seen, here.chain.in_order()[1].hash)
    with pytest.raises(HistoryRewritten):
        fetch_dataset(f"odf+{node}/back", here, TransferOptions(seen=seen))
    assert here.chain.head() == seen


# --- A hostile server ---


@contextmanager
def server_that(talk: Callable[[ServerConnection], object], *, upgrades: bool = True) -> Iterator[str]:
    """A server with a head, whose side of a conversation is `talk`; gives the URL of a dataset.

    Args:
        talk: the conversation.
        upgrades: whether it comes to one, or the server dies when it is asked for.
    """
    head = str(Multihash.of(b"head")).encode()

    def answer(connection: ServerConnection, request: Any) -> Response | None:
        if "Upgrade" in request.headers:
            if not upgrades:
                connection.socket.shutdown(socket.SHUT_RDWR)
            return None
        return Response(200, "OK", Headers({"Content-Length": str(len(head)), "Connection": "close"}), head)

    def safely(connection: ServerConnection) -> None:
        try:
            talk(connection)
        except ConnectionClosed:
            return

    with serve(safely, "127.0.0.1", 0, process_request=answer, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"odf+http://127.0.0.1:{server.socket.getsockname()[1]}/x"
        finally:
            server.shutdown()
            thread.join()


def endless(connection: ServerConnection) -> None:
    connection.recv()
    connection.send("x" * 1000 for _ in iter(int, 1))


TALKS: dict[str, tuple[Callable[[ServerConnection], object], type[OdfError]]] = {
    "hangs up": (lambda connection: connection.recv() and None, PeerClosed),
    "sends bytes": (
        lambda connection: (connection.recv(), connection.send(b"{}"), connection.recv()),
        ProtocolViolation,
    ),
    "sends without end": (endless, ProtocolViolation),
    "fails": (lambda connection: (connection.recv(), connection.close(1011, "no JSON")), PeerClosed),
}


@pytest.mark.parametrize("how", TALKS)
def test_client_is_done_with_a_server_that(how: str, here: DatasetLayout, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(websocket, "MAX_MESSAGE", 1 << 16)
    talk, error = TALKS[how]
    with server_that(talk) as url, pytest.raises(error):
        fetch_dataset(url, here)
    assert here.refs.get(HEAD) is None


def test_server_that_says_nothing_is_given_up(here: DatasetLayout, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(websocket, "PATIENCE", 0.05)
    done = threading.Event()
    with server_that(lambda _: done.wait(PATIENCE)) as url:
        with pytest.raises(TransferError, match="has not answered"):
            fetch_dataset(url, here)
        done.set()


def test_server_that_dies_before_it_answers_is_lost(here: DatasetLayout):
    """That is nothing to be wrong about the address."""
    with server_that(lambda _: None, upgrades=False) as url, pytest.raises(ConnectionLost, match="sent no answer"):
        fetch_dataset(url, here)


def test_address_that_is_not_that_of_a_dataset_is_told(here: DatasetLayout, node: str):
    with pytest.raises(DatasetNotFound, match="no/such/thing"):
        fetch_dataset(f"odf+{node}/no/such/thing", here)


# --- A hostile client ---


@contextmanager
def pushing(node: str, name: str, token: str, body: bytes) -> Iterator[tuple[dict[str, Any], Any]]:
    """A push that has come to where its object goes; gives where that is, and the connection."""
    source = make_dataset(DatasetLayout.in_memory(), "a", number=50)
    add_slice(source, body)
    talk = pushes.push(source, source.chain.in_order(), None)
    address = f"ws{node.removeprefix('http')}/{name}/push"
    with connect(address, additional_headers={**VERSION, "Authorization": f"Bearer {token}"}) as connection:
        step = next(talk)
        while not isinstance(step, pushes.StartUploads):
            if isinstance(step, pushes.Send):
                connection.send(step.text)
                step = talk.send(None)
            else:
                step = talk.send(connection.recv(timeout=PATIENCE))
        (file,) = step.files
        yield {"url": file.url.url, "name": file.item.name}, connection


def test_only_the_object_itself_is_taken_and_only_where_it_goes(node: str, token: str, workspace: Workspace):
    with pushing(node, "odd", token, b"the object") as (where, connection):
        url = where["url"]
        assert token not in url
        for body in (b"", b"the objec", b"the objext", b"the object and more", b"x" * 300_000):
            assert ask(url, method="PUT", body=body).status == 400
        for changed in (
            url.replace("size=10", "size=11"),
            url.replace("signed-data", "signed-checkpoints"),
            url.replace(str(where["name"]), str(Multihash.of(b"other"))),
            url.replace("signature=", "signature=0"),
            url.replace("expires=", "expires=9"),
            url.replace("place=0", "place=1"),
            url.replace(str(dataset_id(50))[-64:], str(dataset_id(101))[-64:]),
        ):
            assert changed != url
            assert ask(changed, method="PUT", body=b"the object").status == 403
        assert ask(url).status == 403, "what may be put may not be got"
        assert ask(url, method="PUT", body=b"the object").status == 200
        connection.send('{"details":"Complete"}')
        connection.send("{}")
        assert connection.recv(timeout=PATIENCE) == "{}"
    assert workspace.storage.get("odd").layout.data.read(where["name"]) == b"the object"
    assert ask(url, method="PUT", body=b"forged!!!!").status == 400
    assert ask(url.replace("/odd/", "/other/"), method="PUT", body=b"the object").status == 404


def told(address: str, texts: list[str | bytes], headers: dict[str, str]) -> ConnectionClosed:
    """How a node hangs up on a client that says such things."""
    with connect(address, additional_headers=headers, compression=None) as connection:
        try:
            for text in texts:
                connection.send(text)
            while True:
                connection.recv(timeout=PATIENCE)
        except ConnectionClosed as closed:
            return closed


@pytest.mark.parametrize(
    ("text", "code"),
    [("nonsense", 1011), (b"bytes", 1011), ("[" * 100_000, 1011), ("{}", 1011)],
    ids=["nonsense", "bytes", "deep", "empty"],
)
@pytest.mark.parametrize("path", ["pull", "push"])
def test_node_hangs_up_on_a_client_that_sends(node: str, token: str, path: str, text: str | bytes, code: int):
    headers = {**VERSION, "Authorization": f"Bearer {token}"}
    closed = told(f"ws{node.removeprefix('http')}/seen/{path}", [text], headers)
    assert closed.rcvd is not None
    assert closed.rcvd.code == code
    error = json.loads(closed.rcvd.reason)["Err"]["Internal"]
    assert error["phase"] == {path.title(): "InitialRequest"}
    assert ask(f"{node}/seen/refs/head").status == 200


@pytest.mark.parametrize("path", ["pull", "push"])
def test_node_hangs_up_on_a_client_that_announces_too_much(node: str, token: str, path: str):
    headers = {**VERSION, "Authorization": f"Bearer {token}"}
    with connect(f"ws{node.removeprefix('http')}/seen/{path}", additional_headers=headers) as connection:
        # Only the head of the frame: the system drops the answer where a server hangs up on what it has not read.
        connection.socket.sendall(b"\x81\xff" + (2 << 20).to_bytes(8, "big") + bytes(4))
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(timeout=PATIENCE)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize("version", [None, "2", "", "one"])
def test_another_version_is_refused(node: str, version: str | None):
    from websockets.exceptions import InvalidStatus

    headers = {"x-odf-smtp-version": version} if version is not None else {}
    with (
        pytest.raises(InvalidStatus) as caught,
        connect(f"ws{node.removeprefix('http')}/seen/pull", additional_headers=headers),
    ):
        pass
    assert caught.value.response.status_code == 400


def test_two_clients_push_at_once_and_one_wins(node: str, workspace: Workspace):
    base = make_dataset(DatasetLayout.in_memory(), "a", number=60)
    send_dataset(base, f"odf+{node}/raced")
    sides = []
    for at in range(2):
        side = make_dataset(DatasetLayout.in_memory(), "a", number=60)
        sides.append(add_info(side, f"of {at}"))
    start, errors = threading.Barrier(2), []

    def run(side: DatasetLayout) -> None:
        start.wait(PATIENCE)
        try:
            send_dataset(side, f"odf+{node}/raced")
        except OdfError as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(side,)) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 1
    assert errors[0].message
    head = workspace.storage.get("raced").layout.chain.head()
    assert [side.chain.head() for side in sides].count(head) == 1

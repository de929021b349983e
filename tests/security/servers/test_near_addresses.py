"""Servers that lead to services of this machine: by redirects, and by URLs of files.

127.0.0.2 is taken for an address of the internet in these tests, and 127.0.0.1 for what it is.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import workspace_with
from support.servers.running import running_server
from support.servers.static_server import StaticServer, send, static_server
from websockets.sync.server import ServerConnection, serve

from odfpy.chain.layout import DatasetLayout
from odfpy.data.multihash import Multihash
from odfpy.errors import FetchError, TransferError
from odfpy.http import spaces
from odfpy.http.client import HttpClient
from odfpy.http.spaces import AddressSpace, space_of, space_of_host
from odfpy.repository.objects import ObjectKind, ObjectOfBlock
from odfpy.repository.smart_transfer.messages import TransferUrl
from odfpy.repository.smart_transfer.session import Fetch, Located, ReceiveWhileUploading, StartUploads
from odfpy.repository.smart_transfer.websocket import run_conversation

FAR = "127.0.0.2"
SECRET = b"what only this machine may see"
ITEM = ObjectOfBlock(ObjectKind.DATA_SLICE, Multihash.of(SECRET), len(SECRET), Multihash.of(b"block"))


@pytest.fixture(autouse=True)
def far_address(monkeypatch: pytest.MonkeyPatch) -> None:
    real = spaces.space_of
    monkeypatch.setattr(spaces, "space_of", lambda text: AddressSpace.PUBLIC if text == FAR else real(text))


@pytest.fixture
def near(tmp_path: Path) -> Iterator[StaticServer]:
    """A service of this machine."""
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "secret").write_bytes(SECRET)
    with static_server(tmp_path / "near") as site:
        yield site


@pytest.fixture
def far(tmp_path: Path) -> Iterator[StaticServer]:
    """A server of somebody else."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "open").write_bytes(b"for everybody")
    with static_server(tmp_path / "far", host=FAR) as site:
        yield site


def redirect(location: str) -> Callable[[SimpleHTTPRequestHandler], None]:
    return lambda handler: send(handler, b"", status=302, Location=location)


# --- What is how near ---


@pytest.mark.parametrize(
    ("address", "space"),
    [
        ("8.8.8.8", "public"),
        ("2001:4860:4860::8888", "public"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.0.1", "private"),
        ("100.100.100.200", "private"),  # metadata of a cloud
        ("fd00:ec2::254", "private"),  # and of another one
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "loopback"),
        ("::", "loopback"),
        ("169.254.169.254", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:169.254.169.254", "link-local"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("2002:7f00:1::", "loopback"),
        ("64:ff9b::808:808", "public"),
    ],
)
def test_addresses_have_a_space_also_where_they_are_wrapped(address: str, space: str):
    assert space_of(address).shown == space


@pytest.mark.parametrize(
    ("host", "space"),
    [
        ("example.com", "public"),
        ("localhost", "loopback"),
        ("LOCALHOST.", "loopback"),
        ("a.localhost", "loopback"),
        ("169.254.169.254", "link-local"),
        ("::1", "loopback"),
    ],
)
def test_names_tell_what_they_can(host: str, space: str):
    assert space_of_host(host).shown == space


# --- Redirects ---


@pytest.mark.parametrize("ask", ["get", "head"])
def test_redirects_do_not_lead_nearer(far: StaticServer, near: StaticServer, ask: str):
    far.special["/x"] = redirect(f"{near.url}/secret")
    with pytest.raises(FetchError, match="a public server leads there, and that is a loopback address"):
        getattr(HttpClient(FetchError), ask)(f"{far.url}/x")
    assert near.requests == []


def test_nor_do_several_of_them_nor_a_connection_that_is_there(far: StaticServer, near: StaticServer):
    client = HttpClient(FetchError)
    with client.get(f"{near.url}/secret") as answer:
        assert answer.read() == SECRET
    far.special["/a"], far.special["/b"] = redirect("/b"), redirect(f"{near.url}/secret")
    with pytest.raises(FetchError, match="loopback"):
        client.get(f"{far.url}/a")
    assert len(near.requests) == 1


def test_they_lead_away_from_here(far: StaticServer, near: StaticServer):
    near.special["/x"] = redirect(f"{far.url}/open")
    near.special["/y"] = redirect(f"{near.url}/secret")
    client = HttpClient(FetchError)
    assert client.get(f"{near.url}/x").read() == b"for everybody"
    assert client.get(f"{near.url}/y").read() == SECRET
    far.special["/x"] = redirect(f"{near.url}/x")
    with pytest.raises(FetchError):
        client.get(f"{far.url}/x")


@pytest.mark.parametrize("host", ["localhost:1", "169.254.169.254", "[::ffff:7f00:1]"])
def test_nor_by_way_of_a_proxy(far: StaticServer, host: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", far.url)
    monkeypatch.setenv("no_proxy", "")
    far.special["/x"] = redirect(f"http://{host}/secret")
    with pytest.raises(FetchError, match="a public server leads there"):
        HttpClient(FetchError).get("http://example.com/x")
    assert far.asked() == ["http://example.com/x"]


MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: numbers
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}"}}
      read: {{kind: Csv, header: true, ddlSchema: [n BIGINT]}}
      merge: {{kind: Append}}
"""


def test_a_pull_tells_where_it_was_led(tmp_path: Path, far: StaticServer, near: StaticServer):
    far.special["/numbers.csv"] = redirect(f"{near.url}/secret")
    workspace = workspace_with(tmp_path / "workspace", MANIFEST.format(url=f"{far.url}/numbers.csv"))
    (result,) = workspace.pull(["numbers"])
    assert "a public server leads there" in str(result.error)
    near.special["/numbers.csv"] = redirect("http://169.254.169.254/latest/meta-data")
    workspace = workspace_with(tmp_path / "other", MANIFEST.format(url=f"{near.url}/numbers.csv"))
    (result,) = workspace.pull(["numbers"])
    assert "a loopback server leads there, and that is a link-local address" in str(result.error)
    assert near.asked() == ["/numbers.csv"]


# --- URLs of files, and WebSockets ---


def test_who_is_told_what_to_ask_for_has_a_limit(near: StaticServer):
    client = HttpClient(TransferError, nearest=AddressSpace.PRIVATE)
    asks: list[Callable[[], Any]] = [
        lambda: client.get(f"{near.url}/secret"),
        lambda: client.post(f"{near.url}/secret", b"{}", {}),
        lambda: client.put(f"{near.url}/secret", io.BytesIO(b"x"), 1, {}),
    ]
    for ask in asks:
        with pytest.raises(TransferError, match="a private server leads there, and that is a loopback address"):
            ask()
    assert near.requests == []


@pytest.mark.parametrize("direction", ["get", "put"])
def test_a_node_does_not_say_that_files_are_here(near: StaticServer, direction: str):
    files = (Located(ITEM, TransferUrl(f"{near.url}/secret")),)
    here = DatasetLayout.in_memory()
    if direction == "put":
        here.data.insert_stream(io.BytesIO(SECRET), ITEM.name, size=len(SECRET))

    def conversation():  # type: ignore[no-untyped-def]
        if direction == "get":
            yield Fetch(files)
        else:
            yield StartUploads(files)
            yield ReceiveWhileUploading()

    with (
        serve(_wait, FAR, 0) as server,
        running_server(server),
        pytest.raises(TransferError, match="a public server leads there, and that is a loopback address"),
    ):
        run_conversation(f"http://{FAR}:{server.socket.getsockname()[1]}", "pull", conversation(), here)
    assert near.requests == []
    assert (ITEM.name in here.data) == (direction == "put")


def test_a_node_does_not_redirect_to_here(near: StaticServer):
    def elsewhere(connection: ServerConnection, _request: object) -> Any:
        answer = connection.respond(302, "")
        answer.headers["Location"] = f"ws{near.url.removeprefix('http')}/secret"
        return answer

    with (
        serve(_wait, FAR, 0, process_request=elsewhere) as server,
        running_server(server),
        pytest.raises(TransferError),
    ):
        run_conversation(f"http://{FAR}:{server.socket.getsockname()[1]}", "pull", iter(()), DatasetLayout.in_memory())  # type: ignore[arg-type]
    assert near.requests == []


def _wait(connection: ServerConnection) -> None:
    for _ in connection:
        pass

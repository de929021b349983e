"""The Simple Transfer Protocol, and who may use it, against a real server."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.chains.small_datasets import add_info, add_slice, image
from support.servers.serving import PATIENCE, Answer, ask, put, serving, wait_until, workspace_at

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.signatures import path_of
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.data.duration import Duration
from odfpy.data.multihash import Multihash
from odfpy.errors import DatasetNotFound, TransferError
from odfpy.repository.credentials import VARIABLE
from odfpy.repository.locations.http import http_dataset
from odfpy.repository.transfer.simple import TransferOutcome, transfer
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility, visibility_of
from odfpy.serving.server import DatasetServer


@dataclass(frozen=True)
class Node:
    """A server of two workspaces, with a token of each scope for the first."""

    url: str
    first: Workspace
    second: Workspace
    public: StoredDataset
    private: StoredDataset
    elsewhere: StoredDataset
    tokens: dict[Scope, str]
    foreign: str

    def of(self, dataset: StoredDataset) -> str:
        return f"{self.url}/{dataset.handle.alias}"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node")
    first, second = workspace_at(folder / "first"), workspace_at(folder / "second")
    public = put(first, "com.example.public", 1, public=True)
    private = put(first, "alice/com.example.private", 2)
    elsewhere = put(second, "com.example.elsewhere", 3)
    put(second, "com.example.public", 4)
    tokens = {scope: Tokens(first.odf).new(scope.value, scope) for scope in Scope}
    with serving(first, second) as server:
        foreign = Tokens(second.odf).new("foreign", Scope.ADMIN)
        yield Node(server.url, first, second, public, private, elsewhere, tokens, foreign)


# --- What there is ---------------------------------------------------------------------------------------------------


def test_a_public_dataset_is_pulled_without_a_token(node: Node) -> None:
    copy = DatasetLayout.in_memory()
    done = transfer(http_dataset(node.of(node.public)), copy)
    assert done.outcome is TransferOutcome.UPDATED
    assert image(copy) == image(node.public.layout)


def test_a_private_one_with_a_token_also_of_an_account(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TransferError, match="status 401") as refused:
        transfer(http_dataset(node.of(node.private)), DatasetLayout.in_memory())
    assert "odf login" in (refused.value.hint or "")
    monkeypatch.setenv(VARIABLE, node.tokens[Scope.READ])
    copy = DatasetLayout.in_memory()
    transfer(http_dataset(node.of(node.private)), copy)
    assert image(copy) == image(node.private.layout)


def test_of_two_datasets_of_one_name_the_first_workspace_has_it(node: Node) -> None:
    assert ask(f"{node.of(node.public)}").json["id"] == str(node.public.handle.id)


def test_references_say_when_they_have_not_moved(node: Node) -> None:
    head = ask(f"{node.of(node.public)}/refs/head")
    assert Multihash.parse(head.body.decode()) == node.public.layout.refs.get(HEAD)
    assert head.headers["cache-control"] == "no-cache"
    again = ask(f"{node.of(node.public)}/refs/head", If_None_Match=head.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert ask(f"{node.of(node.public)}/refs").json == {"head": head.body.decode()}


def test_objects_come_whole_or_in_ranges_and_are_never_asked_for_again(node: Node) -> None:
    (name,) = node.public.layout.data
    content, url = node.public.layout.data.read(name), f"{node.of(node.public)}/data/{name}"
    whole = ask(url)
    assert whole.body == content
    assert whole.headers["etag"] == f'"{name}"'
    assert whole.headers["cache-control"] == "public, max-age=31536000, immutable"
    part = ask(url, Range="bytes=10-19")
    assert (part.status, part.body) == (206, content[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(content)}"
    resumed = ask(url, Range="bytes=7990-", If_Range=whole.headers["etag"])
    assert (resumed.status, resumed.body) == (206, content[7990:])
    assert ask(url, Range="bytes=8000-").status == 416
    assert ask(url, If_None_Match=f'"other", {whole.headers["etag"]}').status == 304
    headers = ask(url, method="HEAD")
    assert (headers.headers["content-length"], headers.body) == (str(len(content)), b"")


def test_signatures_of_many_blocks_come_with_one_question(node: Node) -> None:
    layout = node.public.layout
    blocks = [hashed.hash for hashed in layout.chain.in_order()]
    paths = [*map(path_of, blocks), path_of(Multihash.of(b"no block"))]
    assert layout.side is not None
    for block in blocks[:-1]:
        layout.side.write(path_of(block), b"about " + str(block).encode())
    try:
        side = http_dataset(node.of(node.public)).side
        assert side is not None
        found = side.read_all(paths, 1000)
        assert found == {path_of(block): b"about " + str(block).encode() for block in blocks[:-1]}
        assert found == {path: data for path in paths if (data := side.read(path, 1000)) is not None}
        answer = asked_for(node.of(node.public), [*paths, "info/alias", "../x", "refs/head"])
        assert set(answer.json["files"]) == set(found), "nothing else is given away"
        assert asked_for(node.of(node.public), ["x"] * 501).status == 422
        assert asked_for(node.of(node.private), paths).status == 401
    finally:
        for block in blocks[:-1]:
            layout.side.delete(path_of(block))


def asked_for(url: str, paths: list[str]) -> Answer:
    body = json.dumps({"paths": paths}).encode()
    return ask(f"{url}/info", method="POST", body=body, Content_Type="application/json")


def test_caches_between_do_not_keep_what_is_private(node: Node) -> None:
    (name,) = node.private.layout.data
    answer = ask(f"{node.of(node.private)}/data/{name}", token=node.tokens[Scope.READ])
    assert answer.headers["cache-control"].startswith("private,")


def test_only_what_a_reference_leads_to_is_given_away(node: Node) -> None:
    layout = node.public.layout
    stray = {
        "blocks": layout.blocks.insert(b"not in the chain"),
        "data": layout.data.insert(b"neither this"),
        "checkpoints": layout.checkpoints.insert(b"nor that"),
    }
    for kind, name in stray.items():
        assert ask(f"{node.of(node.public)}/{kind}/{name}").status == 404
    layout.blocks.delete(stray["blocks"])
    layout.data.delete(stray["data"])
    layout.checkpoints.delete(stray["checkpoints"])


def test_what_a_reset_has_dropped_is_out_and_what_a_tag_keeps_is_not(node: Node) -> None:
    dataset = put(node.first, "com.example.reset", 20, public=True)
    before = dataset.layout.refs.get(HEAD)
    dropped = add_slice(dataset.layout, b"soon gone")[0]
    url = f"{node.of(dataset)}/data/{dropped}"
    assert ask(url).status == 200
    after = dataset.layout.refs.get(HEAD)
    assert before
    assert after
    dataset.layout.refs.compare_and_swap("v1", None, after)
    dataset.layout.refs.compare_and_swap(HEAD, after, before)
    assert ask(url).status == 200
    dataset.layout.refs.delete("v1", after)
    assert ask(url).status == 404
    assert ask(f"{node.of(dataset)}/blocks/{before}").status == 200


def test_new_renamed_and_deleted_datasets_are_seen_at_once(node: Node) -> None:
    dataset = put(node.first, "com.example.new", 21, public=True)
    assert ask(f"{node.url}/com.example.new/refs/head").status == 200
    node.first.datasets.rename("com.example.new", "com.example.newer")
    assert ask(f"{node.url}/com.example.new/refs/head").status == 401
    assert ask(f"{node.url}/com.example.newer/refs/head").status == 200
    node.first.datasets.delete([str(dataset.handle.id)])
    assert ask(f"{node.url}/com.example.newer/refs/head").status == 401


@pytest.mark.parametrize(
    "path",
    [
        "com.example.public/refs/nothing",
        "com.example.public/refs/..%2Fhead",
        "com.example.public/refs/head.tmp",
        "com.example.public/blocks/head",
        "com.example.public/data/..%2F..%2Frefs%2Fhead",
        "com.example.public/data/f1620" + "0" * 64,
        "com.example.public/data/%00",
        "com.example.public/info/alias",
        "com.example.public/info/visibility",
        "com.example.public/info/webhooks",
        "../keys",
        "%2e%2e/%2e%2e/etc/passwd",
    ],
)
def test_there_is_nothing_else(node: Node, path: str) -> None:
    for token in (None, node.tokens[Scope.ADMIN]):
        assert ask(f"{node.url}/{path}", token=token).status in (401, 404, 405)


def test_a_damaged_dataset_is_no_reason_to_say_where_it_lies(node: Node) -> None:
    dataset = put(node.first, "com.example.damaged", 22, public=True)
    (dataset.folder / "refs" / "head").write_text("garbage")
    answer = ask(f"{node.of(dataset)}/refs/head")
    assert (answer.status, answer.json["code"]) == (500, "E220")
    assert str(dataset.folder).encode() not in answer.body
    assert ask(f"{node.of(node.public)}/refs/head").status == 200


# --- Who may ---------------------------------------------------------------------------------------------------------


def test_whether_a_private_dataset_is_there_is_nobodys_business(node: Node) -> None:
    there = ask(f"{node.of(node.private)}/refs/head")
    missing = ask(f"{node.url}/alice/com.example.missing/refs/head")
    assert (there.status, there.body, there.headers["www-authenticate"]) == (
        401,
        missing.body,
        missing.headers["www-authenticate"],
    )


@pytest.mark.parametrize("token", ["", "nonsense", "odf_" + "A" * 43, "../../x", "odf_é".encode().decode("latin-1")])
def test_a_token_that_is_none_is_told_also_for_public_datasets(node: Node, token: str) -> None:
    answer = ask(f"{node.of(node.public)}/refs/head", token=token)
    assert answer.status == 401
    assert token.encode() not in answer.body or not token


def test_a_token_is_good_for_its_own_workspace_only(node: Node) -> None:
    assert ask(f"{node.of(node.elsewhere)}/refs/head", token=node.foreign).status == 200
    assert ask(f"{node.of(node.elsewhere)}/refs/head", token=node.tokens[Scope.ADMIN]).status == 404
    assert ask(f"{node.of(node.private)}/refs/head", token=node.foreign).status == 404


def test_a_token_that_is_revoked_or_over_is_refused_at_once(node: Node) -> None:
    tokens, url = Tokens(node.first.odf), f"{node.of(node.private)}/refs/head"
    text = tokens.new("short", Scope.READ)
    assert ask(url, token=text).status == 200
    tokens.revoke("short")
    assert ask(url, token=text).status == 401
    over = tokens.new("over", Scope.ADMIN, Duration(seconds=1))
    wait_until(lambda: ask(url, token=over).status == 401)


def test_tokens_are_kept_as_hashes(node: Node) -> None:
    files = [path.read_bytes() for path in (node.first.odf / "tokens").iterdir()]
    assert not [text for text in node.tokens.values() for file in files if text.encode() in file]
    assert {path.stat().st_mode & 0o777 for path in (node.first.odf / "tokens").iterdir()} == {0o600}


def test_a_server_says_what_a_token_is_good_for(node: Node) -> None:
    assert ask(f"{node.url}/token", token=node.tokens[Scope.WRITE]).json == {
        "name": "write",
        "scope": "write",
        "expiresAt": None,
    }
    assert ask(f"{node.url}/token").status == 401


def test_only_admins_make_datasets_public(node: Node) -> None:
    dataset = put(node.first, "com.example.visible", 23)
    url = f"{node.of(dataset)}/visibility?value=public"
    for token, status in ((None, 401), (node.tokens[Scope.WRITE], 403), (node.foreign, 404)):
        assert ask(url, method="PUT", token=token).status == status
    assert visibility_of(dataset.folder) is Visibility.PRIVATE
    assert ask(url, method="PUT", token=node.tokens[Scope.ADMIN]).json["visibility"] == "public"
    assert ask(f"{node.of(dataset)}/refs/head").status == 200
    set_visibility(dataset.folder, Visibility.PRIVATE)
    assert ask(f"{node.of(dataset)}/refs/head").status == 401
    assert ask(f"{node.of(dataset)}/visibility?value=open", method="PUT", token=node.tokens[Scope.ADMIN]).status == 422


def test_a_list_has_what_the_caller_may_read(node: Node) -> None:
    def names(token: str | None, query: str = "") -> set[str]:
        return {item["name"] for item in ask(f"{node.url}/datasets{query}", token=token).json}

    assert "com.example.public" in names(None)
    assert "alice/com.example.private" not in names(None)
    assert names(node.tokens[Scope.READ], "?search=PRIV") == {"alice/com.example.private"}
    assert names(node.foreign, "?search=elsewhere") == {"com.example.elsewhere"}
    assert names(node.tokens[Scope.READ], "?search=FIRST") == names(node.tokens[Scope.READ], ""), "their description"
    assert len(names(node.tokens[Scope.READ], "?limit=1&offset=1")) == 1


# --- The server itself -----------------------------------------------------------------------------------------------


def test_monitoring_learns_that_it_lives_and_what_it_does_but_no_names(node: Node) -> None:
    assert ask(f"{node.url}/health").json["status"] == "ok"
    ask(f"{node.of(node.public)}/refs/head")
    numbers = ask(f"{node.url}/metrics")
    assert numbers.headers["content-type"].startswith("text/plain")
    assert b'odf_requests_total{method="GET",route="/refs/{ref}",status="200"}' in numbers.body
    assert b"com.example" not in numbers.body


def test_there_is_a_page_of_what_can_be_asked(node: Node) -> None:
    assert ask(f"{node.url}/").headers["location"] == "ui/"
    assert ask(f"{node.url}/docs").status == 200
    paths = ask(f"{node.url}/openapi.json").json["paths"]
    assert {"/{name}/refs/{ref}", "/{account}/{name}/data/{hash}", "/{name}/events", "/datasets"} <= paths.keys()


def test_the_page_asks_nobody_else_for_anything(node: Node) -> None:
    page = ask(f"{node.url}/docs")
    parts = re.findall(rb'(?:src|href)="([^"]*)"', page.body)
    assert len(parts) == 4
    assert not [part for part in parts if b"//" in part]
    assert b"<script>" not in page.body
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    kinds = [ask(f"{node.url}/{part.decode()}").headers["content-type"].partition(";")[0] for part in parts]
    assert kinds == ["image/png", "text/css", "text/javascript", "text/javascript"]
    assert ask(f"{node.url}/docs/../pyproject.toml").status in (401, 404, 422)
    assert ask(f"{node.url}/docs/__init__.py").status == 422


# --- Many, slow, and strange clients ---------------------------------------------------------------------------------


def test_many_readers_while_a_writer_commits_each_have_a_whole_chain(node: Node) -> None:
    dataset = put(node.first, "com.example.busy", 24, public=True)
    stop = threading.Event()

    def write() -> int:
        count = 0
        while not stop.is_set() and count < 40:
            add_slice(dataset.layout, b"%d" % count)
            count += 1
        return count

    def read(_: int) -> None:
        copy = DatasetLayout.in_memory()
        transfer(http_dataset(node.of(dataset)), copy)
        assert copy.chain.state().num_records == len(list(copy.data))

    with ThreadPoolExecutor(5) as pool:
        writer = pool.submit(write)
        try:
            list(pool.map(read, range(8)))
        finally:
            stop.set()
        assert writer.result() > 0


@pytest.fixture(scope="module")
def impatient(node: Node) -> Iterator[DatasetServer]:
    """Another server of the same datasets, that nobody can keep waiting for long."""
    with serving(node.first, patience=1, keep_alive=1) as server:
        yield server


def _connected(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE)


def _all_that_comes(raw: socket.socket) -> int:
    """Bytes until the server ends the connection."""
    total = 0
    try:
        while data := raw.recv(1 << 20):
            total += len(data)
    except ConnectionError:
        pass
    return total


BEGINNINGS = {
    "silent": b"",
    "in the request line": b"GET / HT",
    "in the headers": b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "in the second request": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /",
}


def test_who_does_not_say_what_he_wants_is_sent_away(impatient: DatasetServer) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(_connected(impatient.url)) for _ in BEGINNINGS]
        for raw, beginning in zip(slow, BEGINNINGS.values(), strict=True):
            raw.sendall(beginning)
        for raw in slow:
            _all_that_comes(raw)


def test_who_does_not_take_what_he_asked_for_is_sent_away(node: Node, impatient: DatasetServer) -> None:
    dataset = put(node.first, "com.example.large", 25, public=True)
    name = add_slice(dataset.layout, bytes(16 << 20))[0]
    with _connected(impatient.url) as raw:
        raw.sendall(f"GET /com.example.large/data/{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert raw.recv(1000, socket.MSG_PEEK).startswith(b"HTTP/1.1 200")
        busy = impatient.app.state.metrics.registry.get_sample_value
        wait_until(lambda: busy("odf_requests_in_progress") == 0)  # although nothing more has been read
        assert _all_that_comes(raw) < 16 << 20


@pytest.mark.parametrize(
    "request_", [b"\0\1\2\3\r\n\r\n", b"GARBAGE\r\n\r\n", b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n"]
)
def test_what_is_no_request_gets_a_clear_answer(node: Node, request_: bytes) -> None:
    with _connected(node.url) as raw:
        raw.sendall(request_)
        assert raw.recv(65536).startswith(b"HTTP/1.1 400")


def test_bodies_that_nobody_wants_do_no_harm(node: Node) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = ask(f"{node.of(node.public)}/refs/head", method=method, body=b"x" * 1000)
        assert answer.status == (401 if method == "PUT" else 405)


def test_connections_beyond_the_limit_are_told_so(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    with serving(workspace, max_connections=1) as server, _connected(server.url) as raw:
        raw.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.recv(65536).startswith(b"HTTP/1.1 200")
        assert ask(f"{server.url}/health").status == 503


def test_a_copy_of_an_empty_place_is_told_as_such(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, node.tokens[Scope.READ])
    with pytest.raises(DatasetNotFound, match="No dataset there"):
        transfer(http_dataset(f"{node.url}/com.example.missing"), DatasetLayout.in_memory())


def test_a_longer_chain_is_pulled_from_where_the_copy_is(node: Node) -> None:
    dataset = put(node.first, "com.example.long", 26, public=True)
    copy = DatasetLayout.in_memory()
    transfer(http_dataset(node.of(dataset)), copy)
    add_info(dataset.layout, "second", "third", "fourth")
    assert transfer(http_dataset(node.of(dataset)), copy).num_blocks == 3


def test_a_damaged_tag_is_in_nobodys_way(node: Node) -> None:
    refs = node.public.layout.refs
    file = Path(refs.describe("tag.rotten"))
    file.write_text("x")
    try:
        url = node.of(node.public)
        found = ask(f"{url}/refs")
        assert (found.status, "tag.rotten" in found.json, "head" in found.json) == (200, False, True)
        head = refs.get("head")
        assert ask(f"{url}/blocks/{head}").status == 200
    finally:
        file.unlink()

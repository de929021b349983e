"""Pull and push between a client and a node, over sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chains.small_datasets import add_info, add_slice, dataset_id, image, make_dataset
from support.servers.serving import ask, put, serving, wait_until
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from odfpy.chain.layout import DatasetLayout
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import DatasetLocked, DatasetNotFound, TransferError
from odfpy.repository.credentials import Credentials
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.exchange import fetch_dataset, send_dataset
from odfpy.repository.locations.listing import list_datasets
from odfpy.repository.peer_errors import AccessRefused, PeerFailed, RemoteCollision
from odfpy.repository.smart_transfer.messages import VERSION, VERSION_HEADER, BlocksRequest, PullRequest, encode
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import ForeignDataset, TransferOutcome
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, visibility_of


class Node:
    """A server of one workspace.

    Attributes:
        url: its address for the Smart Transfer Protocol.
        tokens: by scope.
    """

    def __init__(self, url: str, workspace: Workspace) -> None:
        self.http = url
        self.url = f"odf+{url}"
        self.workspace = workspace
        self.tokens = {scope: Tokens(workspace.odf).new(scope.value, scope) for scope in Scope}

    def layout(self, name: str) -> DatasetLayout:
        return self.workspace.storage.get(name).layout


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    workspace = Workspace.init(tmp_path_factory.mktemp("node"))
    put(workspace, "seen", 101, public=True)
    put(workspace, "hidden", 102)
    with serving(workspace) as server:
        yield Node(server.url, workspace)


@pytest.fixture
def here(tmp_path: Path) -> DatasetLayout:
    return DatasetLayout.local(tmp_path / "here")


@pytest.fixture(autouse=True)
def anybody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ODF_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def token(node: Node, monkeypatch: pytest.MonkeyPatch):
    return lambda scope: monkeypatch.setenv("ODF_TOKEN", node.tokens[scope])


def test_public_dataset_is_pulled_without_a_token(node: Node, here: DatasetLayout):
    result = fetch_dataset(f"{node.url}/seen", here)
    assert (result.outcome, result.num_blocks, result.num_objects) == (TransferOutcome.UPDATED, 4, 2)
    assert image(here) == image(node.layout("seen"))
    assert fetch_dataset(f"{node.url}/seen", here).outcome is TransferOutcome.UP_TO_DATE


def test_private_dataset_is_pulled_with_a_token(node: Node, here: DatasetLayout, token):
    with pytest.raises(Exception, match="401"):
        fetch_dataset(f"{node.url}/hidden", here)
    token(Scope.READ)
    fetch_dataset(f"{node.url}/hidden", here)
    assert image(here) == image(node.layout("hidden"))


def test_push_makes_a_dataset_then_goes_on_from_it(node: Node, here: DatasetLayout, tmp_path: Path, token):
    token(Scope.WRITE)
    make_dataset(here, "a", number=1)
    add_slice(here, b"row", b"state")
    moved = []
    result = send_dataset(
        here, f"{node.url}/fresh", public=True, progress=lambda done, total: moved.append((done, total))
    )
    assert (result.outcome, result.num_blocks, result.num_objects) == (TransferOutcome.UPDATED, 4, 2)
    assert moved[-1] == (8, 8)
    dataset = node.workspace.storage.get("fresh")
    assert visibility_of(dataset.folder) is Visibility.PUBLIC
    add_slice(here, b"more")
    assert send_dataset(here, f"{node.url}/fresh").num_blocks == 1
    assert send_dataset(here, f"{node.url}/fresh").outcome is TransferOutcome.UP_TO_DATE
    assert image(here) == image(node.layout("fresh"))
    copy = DatasetLayout.local(tmp_path / "copy")
    fetch_dataset(f"{node.url}/fresh", copy)
    assert image(copy) == image(here)


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "there"])
def test_what_a_push_has_uploaded_is_no_garbage_before_it_is_committed(
    is_new: bool, node: Node, here: DatasetLayout, token
):
    token(Scope.WRITE)
    name = f"pushed-during-gc-{is_new}".lower()
    make_dataset(here, name, number=130 + is_new)
    if not is_new:
        send_dataset(here, f"{node.url}/{name}")
    add_slice(here, b"row", b"state")
    add_slice(here, b"more")
    passed_over = []

    def collect(done: int, total: int) -> None:
        for report in node.workspace.maintenance.gc() if done else ():
            passed_over.extend([report.name] if isinstance(report.error, DatasetLocked) else [])

    result = send_dataset(here, f"{node.url}/{name}", progress=collect)
    assert (result.outcome, result.num_objects) == (TransferOutcome.UPDATED, 3)
    assert image(here) == image(node.layout(name))
    assert set(passed_over) == (set() if is_new else {name})
    (report,) = node.workspace.maintenance.gc([name])
    assert report.error is None, "the push has let go"


def test_a_push_that_ended_early_keeps_no_garbage(node: Node, here: DatasetLayout, token):
    token(Scope.WRITE)
    make_dataset(here, "cut", number=140)
    send_dataset(here, f"{node.url}/cut")
    add_slice(here, b"row", b"state")

    def give_up(done: int, _: int) -> None:
        if done:
            raise TransferError("given up")

    with pytest.raises(TransferError, match="given up"):
        send_dataset(here, f"{node.url}/cut", progress=give_up)

    def collected() -> bool:
        (report,) = node.workspace.maintenance.gc(["cut"])
        return report.error is None

    wait_until(collected)


def test_diverged_copies_are_refused_and_overwritten_by_force(node: Node, here: DatasetLayout, tmp_path: Path, token):
    token(Scope.WRITE)
    make_dataset(here, "a", number=2)
    send_dataset(here, f"{node.url}/forked")
    copy = DatasetLayout.local(tmp_path / "copy")
    fetch_dataset(f"{node.url}/forked", copy)
    add_info(here, "ours")
    add_info(copy, "theirs", "theirs too")
    send_dataset(here, f"{node.url}/forked")
    before = image(copy)
    with pytest.raises(DatasetsDiverged, match="have diverged after block 1 "):
        fetch_dataset(f"{node.url}/forked", copy)
    with pytest.raises(DatasetsDiverged, match="have diverged after block 1 "):
        send_dataset(copy, f"{node.url}/forked")
    assert image(copy) == before
    with pytest.raises(PeerFailed, match="needs the scope admin"):
        send_dataset(copy, f"{node.url}/forked", force=True)
    token(Scope.ADMIN)
    result = send_dataset(copy, f"{node.url}/forked", force=True)
    assert (result.num_blocks, result.num_dropped) == (2, 1)
    assert node.layout("forked").chain.head() == copy.chain.head()
    result = fetch_dataset(f"{node.url}/forked", here, TransferOptions(force=True))
    assert (result.num_blocks, result.num_dropped) == (2, 1)
    assert here.chain.head() == copy.chain.head()


def test_what_is_overwritten_by_force_is_counted_from_where_the_two_part(
    node: Node, here: DatasetLayout, tmp_path: Path, token
):
    token(Scope.ADMIN)
    make_dataset(here, "a", number=12)
    add_slice(here, b"both")
    send_dataset(here, f"{node.url}/counted")
    copy = DatasetLayout.local(tmp_path / "copy")
    fetch_dataset(f"{node.url}/counted", copy)
    add_slice(here, b"ours")
    add_slice(copy, b"theirs")
    send_dataset(here, f"{node.url}/counted")
    result = send_dataset(copy, f"{node.url}/counted", force=True)
    dropped = (result.num_dropped, result.num_dropped_records)
    assert (result.num_blocks, result.num_records, *dropped) == (1, 1, 1, 1)


def test_whoever_comes_second_is_told_so(node: Node, here: DatasetLayout, token):
    token(Scope.WRITE)
    make_dataset(here, "a", number=13)
    send_dataset(here, f"{node.url}/busy")
    add_info(here, "b")
    with (
        node.workspace.storage.get("busy").writing(),
        pytest.raises(PeerFailed, match="another process is writing") as refused,
    ):
        send_dataset(here, f"{node.url}/busy")
    assert "again in a moment" in str(refused.value.hint)
    send_dataset(here, f"{node.url}/busy")
    assert node.layout("busy").chain.head() == here.chain.head()


def test_copy_that_has_more_is_left_alone(node: Node, here: DatasetLayout):
    fetch_dataset(f"{node.url}/seen", here)
    add_info(here, "more")
    result = fetch_dataset(f"{node.url}/seen", here)
    assert (result.outcome, result.num_ahead) == (TransferOutcome.TARGET_AHEAD, 1)


def test_node_that_has_more_is_left_alone(node: Node, here: DatasetLayout, token):
    token(Scope.WRITE)
    make_dataset(here, "a", number=3)
    add_info(there := make_dataset(DatasetLayout.in_memory(), "a", number=3), "b")
    send_dataset(there, f"{node.url}/ahead")
    assert send_dataset(here, f"{node.url}/ahead").outcome is TransferOutcome.TARGET_AHEAD


def test_another_dataset_is_never_overwritten(node: Node, here: DatasetLayout, token):
    token(Scope.ADMIN)
    make_dataset(here, "a", number=4)
    before = image(here)
    for force in (False, True):
        with pytest.raises(ForeignDataset):
            send_dataset(here, f"{node.url}/seen", force=force)
        with pytest.raises(ForeignDataset):
            fetch_dataset(f"{node.url}/seen", here, TransferOptions(force=force))
    with pytest.raises(ForeignDataset, match=str(dataset_id(5))):
        fetch_dataset(f"{node.url}/seen", DatasetLayout.in_memory(), TransferOptions(expected_id=dataset_id(5)))
    assert image(here) == before


def test_dataset_that_is_there_under_another_name_is_not_made_twice(node: Node, here: DatasetLayout, token):
    token(Scope.WRITE)
    fetch_dataset(f"{node.url}/seen", here)
    with pytest.raises(RemoteCollision, match=str(dataset_id(101))):
        send_dataset(here, f"{node.url}/again")


def test_pushing_needs_the_right_token(node: Node, here: DatasetLayout, token):
    make_dataset(here, "a", number=6)
    with pytest.raises(Exception, match="401"):
        send_dataset(here, f"{node.url}/nobody")
    token(Scope.READ)
    with pytest.raises(AccessRefused, match="403") as refused:
        send_dataset(here, f"{node.url}/nobody")
    assert "It refuses the token in ODF_TOKEN for this" in str(refused.value.hint)


def test_a_push_ends_with_its_token(node: Node, here: DatasetLayout, monkeypatch: pytest.MonkeyPatch):
    tokens = Tokens(node.workspace.odf)
    monkeypatch.setenv("ODF_TOKEN", tokens.new("stolen", Scope.WRITE))
    make_dataset(here, "late", number=150)
    send_dataset(here, f"{node.url}/late")
    before = node.layout("late").chain.head()
    add_slice(here, b"row", b"state")

    def revoke(done: int, _: int) -> None:
        if done and any(token.name == "stolen" for token in tokens.list()):
            tokens.revoke("stolen")

    with pytest.raises(PeerFailed, match="Access has ended"):
        send_dataset(here, f"{node.url}/late", progress=revoke)
    assert node.layout("late").chain.head() == before


def test_a_pull_ends_with_its_token(node: Node):
    tokens = Tokens(node.workspace.odf)
    headers = {VERSION_HEADER: str(VERSION), "Authorization": f"Bearer {tokens.new('lent', Scope.READ)}"}
    with connect(f"{node.http.replace('http', 'ws')}/hidden/pull", additional_headers=headers) as connection:
        connection.send(encode(PullRequest(None, None, force_update_if_diverged=False)))
        assert "Ok" in connection.recv()
        tokens.revoke("lent")
        connection.send(encode(BlocksRequest()))
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv()
    assert closed.value.rcvd is not None
    assert "Access has ended" in closed.value.rcvd.reason


def test_a_token_that_has_ended_is_told_as_such_also_by_lists(node: Node, here: DatasetLayout):
    Credentials().save(node.http, "odf_of-yesterday")
    for request in (lambda: fetch_dataset(f"{node.url}/seen", here), lambda: list_datasets(node.url)):
        with pytest.raises(TransferError, match="401") as refused:
            request()
        assert "It refuses the token of `odf login` for this" in str(refused.value.hint)


def test_missing_dataset_is_a_clear_error(node: Node, here: DatasetLayout, token):
    token(Scope.READ)
    with pytest.raises(DatasetNotFound, match="/missing"):
        fetch_dataset(f"{node.url}/missing", here)


def test_signed_urls_are_good_for_one_object_only(node: Node):
    answers = {
        ask(f"{node.http}/seen/signed-data/{path}").status
        for path in (
            "f1620"
            + "0" * 64
            + "?place=0&dataset="
            + str(dataset_id(101))
            + "&size=1&expires=99999999999&signature=00",
            "nothing?place=0&dataset=x&size=1&expires=1&signature=",
        )
    }
    assert answers == {403}
